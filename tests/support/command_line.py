"""The command line in the test's own process, pointed at a server in memory."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Context, ResourceContents, Server, Suggestions, ToolError
from interlock.cli import connect
from interlock.cli.main import main
from interlock.cli.target import Aim

__all__ = ["Person", "aimed", "code_of", "demo"]


def demo(**options: Any) -> Server:
    """A server with a little of everything, some of it hostile to terminals."""
    server = Server("demo\x1b[31m", version="1.0", **options)

    @server.tool
    def add(a: int, b: int = 1) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool
    def say(text: str) -> str:
        return f"\x1b[2Jsaid {text}"

    @server.tool
    def fail() -> str:
        raise ToolError("not today")

    @server.tool
    async def walk(steps: int, ctx: Context) -> str:
        for done in range(steps):
            await ctx.progress(done + 1, steps, f"step {done + 1}")
        await ctx.log("warning", "walked")
        return "there"

    @server.tool
    async def borrow(ctx: Context) -> str:
        fields = {"weeks": {"type": "integer", "default": 2}, "why": {"type": "string"}}
        form = {"type": "object", "properties": fields, "required": ["why"]}
        answer = await ctx.elicit("How long?", form)
        return f"{answer['weeks']} weeks: {answer['why']}"

    @server.resource("note://{day}")
    def note(day: str) -> str:
        return f"note of {day}\x07"

    @server.resource("logo://big", mime_type="image/png")
    def logo() -> bytes:
        return b"\x00\xff" * 8

    @server.resource("pair://both")
    def pair() -> list[ResourceContents]:
        return [ResourceContents(uri="pair://1", text="one"), ResourceContents(uri="pair://2", text="two")]

    @server.prompt
    def review(language: str, version: str = "") -> str:
        """Asks for a review."""
        return f"Review {language} {version}".strip()

    @server.completion(prompt="review", argument="language")
    def languages(value: str, known: dict[str, str]) -> Suggestions:
        return Suggestions([name for name in ("python", "perl") if name.startswith(value)], has_more=True)

    return server


def aimed(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    """Whatever TARGET is named from now on, it is this server."""

    def aim_of(words: Any, own: list[str]) -> Aim:
        own.clear()
        return Aim("command", "demo", server)

    monkeypatch.setattr(connect, "aim_of", aim_of)


def code_of(*words: str) -> int:
    """The exit code of one command."""
    try:
        main([*words])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code
    return 0


class Person:
    """Somebody at a terminal who has decided beforehand what to type; after that there is nobody."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.heard = ""

    def say(self, text: str) -> None:
        self.heard += text + "\n"

    async def ask(self, shown: str) -> str | None:
        self.heard += shown
        return self._lines.pop(0) if self._lines else None

    def forget_typed(self) -> None:
        """Nothing is typed before it is asked for."""
