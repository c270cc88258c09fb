"""Our server and client where Sentry's AsyncioIntegration wraps the coroutine of every task: nothing hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.told import our_python, our_server, served, story
from support.wire_peer import HANDSHAKE, MODERN

FOLDER = Path(__file__).parents[1] / "support" / "servers"
SERVER = our_server(str(FOLDER / "sentry.py"))

both_eras = pytest.mark.parametrize("revision", [HANDSHAKE[-1], MODERN[-1]])


def check_client(revision, *target):
    script = Path(__file__).with_name("sentry_client.py")
    assert story([*our_python(), str(script), str(FOLDER), revision, *target]) == {
        "at_once": "at once",
        "wait": "waited",
        "wait_in_thread": "waited in a thread",
        "ask": "hello Ada",
        "steps": "done",
        "progress": [1, 2, 3],
        "many": ["waited"] * 20,
        "forever": "stopped",
        "tags": ["a", "b"],  # of each request its own
    }


@both_eras
def test_handlers_that_wait_answer_in_memory(revision):
    check_client(revision)


@both_eras
def test_handlers_that_wait_answer_over_stdio(revision):
    check_client(revision, *SERVER)


@both_eras
def test_handlers_that_wait_answer_over_http(revision, tmp_path):
    with served([*SERVER, "--http", "--port", "0"], tmp_path / "stderr") as address:
        check_client(revision, address)
