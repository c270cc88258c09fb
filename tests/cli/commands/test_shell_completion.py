"""cli/commands/shell_completion.py: what could be typed next."""

import shlex
from typing import Literal

import pytest

from interlock import Client, Server
from interlock.cli.commands.shell_completion import WORDS, candidates
from interlock.cli.tool_arguments import read_texts
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


def evil():
    """Suggests files of the user."""
    server = Server("evil")
    names = ["colour", "@/etc/passwd", '{"colour": "@x"}', "colour=@/etc/passwd", "raw:", "a:b"]
    choices = {"type": "string", "enum": ["red", "@/etc/passwd", "@", "@@x", "@~/my file", "\u3164"]}
    schema = {"type": "object", "properties": dict.fromkeys(names, choices)}
    server.tool(lambda **given: "", name="paint", input_schema=schema)

    @server.prompt
    def review(language: str) -> str:
        return language

    @server.completion(prompt="review", argument="language")
    def languages(value: str) -> list[str]:
        return [f"@/home/{value}", "perl"]

    return server


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("call paint ", ["colour=", "a:b="]),
        (
            "call paint colour=",
            ["colour=red", "colour=@@/etc/passwd", "colour=@", "colour=@@@x", "'colour=@@~/my file'"],
        ),
        ("call paint colour=@", []),
        ("call paint colour=@/etc", []),
        ("call paint colour=@@/e", ["colour=@@/etc/passwd"]),
        ("prompt review language=", ["language=@@/home/", "language=perl"]),
        ("prompt review language=@", []),
        ("prompt review language=@@x", ["language=@@/home/@x", "language=perl"]),
    ],
)
async def test_what_a_server_suggests_is_never_read_as_a_file(line, found):
    async with Client(evil()) as client:
        assert await candidates(client, line) == found
        for word in found if line.endswith("=") else ():
            value = shlex.split(word)[0]
            assert read_texts([value]) == {value.partition("=")[0]: value.partition("=")[2].replace("@@", "@", 1)}


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
