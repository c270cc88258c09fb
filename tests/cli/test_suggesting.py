"""cli/suggesting.py: what could be typed next."""

from typing import Literal

import pytest

from interlock import Client, Server
from interlock.cli.suggesting import WORDS, candidates
from interlock.wire.errors import LocalError
from support.command_line import demo


def library():
    server = demo()

    @server.tool
    def paint(colour: Literal["red", "dark red"], shiny: bool) -> str:
        return colour

    @server.completion(template="note://{day}", argument="day")
    def days(value: str, known: dict[str, str]) -> list[str]:
        return ["monday", "\x1b[2Jevil", "first monday"]

    return server


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", list(WORDS)),
        ("c", ["call", "complete"]),
        ("list t", ["tools", "templates"]),
        ("call ", ["add", "say", "fail", "walk", "borrow", "paint"]),
        ("call a", ["add"]),
        ("call add ", ["a=", "b="]),
        ("call add a=1 ", ["b="]),
        ("call add a=1", []),
        ("call paint colour=", ["colour=red", "'colour=dark red'"]),
        ("call paint colour=r", ["colour=red"]),
        ("call paint shiny=t", ["shiny=true"]),
        ("call nothing ", []),
        ("prompt ", ["review"]),
        ("prompt review ", ["language=", "version="]),
        ("prompt review language=p", ["language=python", "language=perl"]),
        ("prompt 'review' language=py", ["language=python"]),
        ("read lo", ["logo://big"]),
        ("read note", ["note://{day}"]),
        ("read note://{day} ", ["day="]),
        ("read note://{day} day=", ["day=monday", "'day=first monday'"]),
        ("read logo://big ", []),
        ("complete ", ["review", "note://{day}"]),
        ("complete review l", ["language="]),
        ("complete note://{day} day=x", ["day=monday", "'day=first monday'"]),
        ("info ", []),
        ("nonsense ", []),
        ("call 'ad", ["add"]),
    ],
)
async def test_words_names_and_values_are_offered(line, found):
    async with Client(library()) as client:
        assert await candidates(client, line) == found


async def test_a_server_without_suggestions_is_not_asked():
    server = Server("s")

    @server.prompt
    def greet(name: str) -> str:
        return name

    async with Client(server) as client:
        assert await candidates(client, "prompt greet name=a") == []


async def test_a_broken_template_is_no_template():
    async with Client(library()) as client:
        with pytest.raises(LocalError):
            await candidates(client, "read note://{} x")
