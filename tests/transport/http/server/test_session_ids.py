"""Ids of sessions: not to be guessed, and of a form that tells a session of another process from one that has ended."""

import logging
import subprocess
import sys

from interlock.transport.http.server.session_headers import UNKNOWN
from interlock.transport.http.server.session_ids import SessionIds


def test_ids_are_long_different_and_visible():
    ids = {SessionIds("notes\n/mcp", shared=False).issue() for _ in range(1000)}
    assert len({id[:43] for id in ids}) == 1000
    assert all(len(id) == 59 and all("!" <= char <= "~" for char in id) for id in ids)


def test_nothing_in_two_ids_tells_that_one_process_issued_them():
    ids = SessionIds("notes\n/mcp", shared=False)
    one, two = ids.issue(), ids.issue()
    assert one[43:51] != two[43:51] and one[51:] != two[51:]


def test_an_id_of_another_process_is_told_from_all_others(caplog):
    here, there = (SessionIds("notes\n/mcp", shared=False) for _ in range(2))
    elsewhere = SessionIds("other\n/mcp", shared=False)
    id = there.issue()
    for unknown in (here.issue(), elsewhere.issue(), id[:-16], id + "x", "x" * 59, "", "é" * 59, id[1:] + "x"):
        assert here.refuse(unknown) is UNKNOWN
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        refusals = [here.refuse(id) for _ in range(3)]
    assert all(refusal.status == 404 and b"state=" in refusal.body for refusal in refusals)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_processes_that_share_their_sessions_blame_no_other():
    here, there = (SessionIds("notes\n/mcp", shared=True) for _ in range(2))
    assert here.refuse(there.issue()) is UNKNOWN


FORKS = """
import os, sys
from interlock.transport.http.server.session_ids import SessionIds

ids = SessionIds("notes", shared=False)
id = ids.issue()
if os.fork() == 0:
    print("child", ids.refuse(id).body[:200], flush=True)
    os._exit(0)
os.wait()
print("parent", ids.refuse(id).body[:200])
"""


def test_a_forked_process_is_another_one():
    """In a process of its own: one that has threads must not fork."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    child, parent = done.stdout.splitlines()
    assert child.startswith("child") and "another process" in child
    assert parent.startswith("parent") and "another process" not in parent
