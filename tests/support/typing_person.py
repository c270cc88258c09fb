"""Somebody at a terminal, without one: types these lines, and remembers what was asked."""

import asyncio
import io

from interlock.cli.chat.screen import Screen
from interlock.cli.chat.user import TerminalUser

__all__ = ["Typist", "at_terminal"]


class Typist:
    def __init__(self, *lines):
        self.lines, self.asked = [*lines], []

    def say(self, text):
        self.asked.append(text)

    async def ask(self, shown):
        self.asked.append(shown)
        await asyncio.sleep(0)
        return self.lines.pop(0) if self.lines else None


def at_terminal(*lines):
    """The user of a host, what stands on the screen, and who types."""
    stream, typist = io.StringIO(), Typist(*lines)
    return TerminalUser(Screen(stream), typist), stream, typist
