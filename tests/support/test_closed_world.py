"""The reader of leaks finds them, and nothing else."""

import pytest

from support.closed_world import leaks
from support.transcripts import Transcript


def _list(revision, **tool):
    transcript = Transcript(revision)
    transcript.sent({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, sender="client")
    shown = {"name": "a", "inputSchema": {"type": "object", "x-own": 1}, **tool}
    transcript.sent({"jsonrpc": "2.0", "id": 1, "result": {"tools": [shown]}}, sender="server")
    return transcript


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_member_of_a_later_revision_is_a_leak(revision):
    assert leaks(_list(revision)) == []
    since = {"annotations": "2025-03-26", "title": "2025-06-18", "icons": "2025-11-25"}
    for member, first in since.items():
        expected = [] if revision >= first else [f"tools/list /tools/0/{member}"]
        assert leaks(_list(revision, **{member: {} if member == "annotations" else "x"})) == expected


def test_unknown_methods_and_envelope_members_are_leaks():
    transcript = Transcript("2025-06-18")
    transcript.sent({"jsonrpc": "2.0", "method": "notifications/new"}, sender="server")
    transcript.sent({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "x": 1}, sender="server")
    transcript.sent({"jsonrpc": "2.0", "method": "client/own"}, sender="client")
    found = leaks(transcript)
    assert "method notifications/new" in found and "frame: x" in found
    assert not [leak for leak in found if "client/own" in leak]


def test_a_block_is_judged_by_its_type():
    transcript = Transcript("2025-06-18")
    transcript.sent({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}, sender="client")
    link = {"type": "resource_link", "uri": "note://one", "name": "one", "icons": []}
    content = [{"type": "text", "text": "a", "uri": "note://one"}, link]
    transcript.sent({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}, sender="server")
    assert leaks(transcript) == ["tools/call /content/0/uri", "tools/call /content/1/icons"]
