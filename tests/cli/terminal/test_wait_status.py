"""cli/terminal/wait_status.py: a command that waits says for what, on a terminal and elsewhere."""

import asyncio
import os
import pty

import pytest

from interlock.cli.terminal import wait_status
from interlock.cli.terminal.output_buffer import OUTPUT
from interlock.cli.terminal.wait_status import WaitStatus


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(wait_status, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(wait_status, "_INTERVAL", 0.01)


async def test_without_a_terminal_it_is_one_line(capsys):
    said = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, said.set)
    async with WaitStatus().waiting_for("tools/list", 60):
        await said.wait()
    assert capsys.readouterr().err == "waiting for tools/list (up to 60 s)\n"


async def test_what_is_quick_is_not_named(capsys, monkeypatch):
    monkeypatch.setattr(wait_status, "SHOW_AFTER", 600.0)
    async with WaitStatus().waiting_for("tools/list", 60):
        await asyncio.sleep(0)
    assert capsys.readouterr().err == ""


async def test_on_a_terminal_it_is_one_line_that_is_taken_away():
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        status = WaitStatus(stream)
        async with status.waiting_for("the server to answer", 7):
            shown = await asyncio.to_thread(os.read, ours, 1000)
            assert b"\r\x1b[Kwaiting for the server to answer: 0 s (up to 7 s)" in shown
        end = await asyncio.to_thread(os.read, ours, 10_000)
        assert end.endswith(b"\r\x1b[K") and b"\n" not in shown + end
    os.close(ours)


async def test_what_fails_while_it_is_waited_for_fails(capsys):
    with pytest.raises(ValueError, match="no"):
        async with WaitStatus().waiting_for("x", 1):
            raise ValueError("no")


async def test_other_output_does_not_continue_the_line():
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        async with WaitStatus(stream).waiting_for("x", 7):
            shown = await asyncio.to_thread(os.read, ours, 1000)
            OUTPUT.write(stream, "! skipped 8 bytes\n")
            while b"skipped" not in shown:
                shown += await asyncio.to_thread(os.read, ours, 1000)
    assert b"\x1b[K! skipped 8 bytes\r\n" in shown
    os.close(ours)
