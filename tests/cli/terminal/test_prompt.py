"""cli/terminal/prompt.py: lines of a real (pseudo) terminal, read on the loop."""

import asyncio
import os
import pty
import sys
from types import SimpleNamespace

import pytest

from interlock.cli.terminal.prompt import Terminal, terminal_or_none


@pytest.fixture
def ends():
    ours, theirs = pty.openpty()
    yield ours, theirs
    for fd in (ours, theirs):
        os.close(fd)


async def test_a_line_is_asked_for_and_read(ends, capsys):
    terminal = Terminal(ends[1])
    os.write(ends[0], "grüß\n".encode())
    assert await terminal.ask("name: ") == "grüß"
    terminal.say("thanks")
    assert capsys.readouterr() == ("", "name: thanks\n")


async def test_what_was_typed_before_can_be_dropped(ends):
    terminal = Terminal(ends[1])
    os.write(ends[0], b"yes to something else\nand more\n")
    terminal.forget_typed()
    os.write(ends[0], b"no\n")
    assert await terminal.ask("") == "no"


async def test_the_end_of_input_is_no_line(ends):
    os.write(ends[0], b"\x04")
    assert await Terminal(ends[1]).ask("") is None


async def test_who_gives_up_leaves_nobody_reading(ends):
    terminal = Terminal(ends[1])
    asking = asyncio.ensure_future(terminal.ask(""))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    os.write(ends[0], b"later\n")
    assert await terminal.ask("") == "later"


async def test_a_terminal_that_was_hung_up_is_the_end():
    ours, theirs = pty.openpty()
    try:
        asking = asyncio.ensure_future(Terminal(theirs).ask(""))
        await asyncio.sleep(0)
        os.close(ours)
        assert await asking is None
    finally:
        os.close(theirs)


@pytest.mark.parametrize(("read", "shown", "there"), [(True, True, True), (True, False, False), (False, True, False)])
def test_only_a_whole_terminal_is_asked(read, shown, there, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: read, fileno=lambda: 0))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: shown))
    assert (terminal_or_none() is not None) == there
