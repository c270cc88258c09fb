"""What could be typed next in the shell: its own words, names the server lists, and values the server suggests.

What a server suggests is put on the user's line. It stands there as plain data: whatever the reader of the line would
take for something else (a file to be sent, JSON, another word) is written so that it is not, or left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from ...client.client import Client
from ...wire.escaping import is_visible
from ...wire.json.lenient import items_of, members_of
from ...wire.uri_expansion import expressions_in
from ..terminal.elicitation import choices_of
from ..tool_arguments import literal, types_of
from .list import list_one

__all__ = ["WORDS", "candidates"]

WORDS: dict[str, str] = {
    "list": "[tools|resources|templates|prompts …]   what the server offers",
    "call": "TOOL [KEY=VALUE …]                      run a tool",
    "read": "URI | TEMPLATE [KEY=VALUE …]            what a resource holds",
    "prompt": "NAME [KEY=VALUE …]                      what a prompt says",
    "complete": "PROMPT|TEMPLATE KEY=TYPED [KEY=VALUE …] what the server suggests",
    "info": "                                        who the server is",
    "help": "                                        print this",
    "quit": "                                        end (or Ctrl-D)",
}
_MOST = 200  # that are offered at once


async def candidates(client: Client, line: str) -> list[str]:
    """Whole words that may stand where `line` ends; the last of its words, maybe empty, is being typed."""
    words, typed = _split(line)
    if not words:
        return _fitting(WORDS, typed)
    verb, given = words[0], words[1:]
    match verb:
        case "list":
            return _fitting(("tools", "resources", "templates", "prompts"), typed)
        case "call":
            return await _of_tool(client, given, typed)
        case "prompt":
            return await _of_prompt(client, given, typed)
        case "read":
            return await _of_resource(client, given, typed)
        case "complete":
            return await _of_any(client, given, typed)
        case _:
            return []


def _split(line: str) -> tuple[list[str], str]:
    """Finished words, and the one that is being typed; quotes that are still open are part of it."""
    for end in ("", "'", '"'):
        try:
            words = shlex.split(line + end)
        except ValueError:
            continue
        if not line or (line[-1].isspace() and not end):
            return words, ""
        return words[:-1], words[-1] if words else ""
    return [], line


def _fitting(options: Iterable[Any], typed: str) -> list[str]:
    """Those that begin like it, quoted where a space would split them; nothing that could move a cursor."""
    fitting = [each for each in options if isinstance(each, str) and each.startswith(typed) and is_visible(each)]
    return [each if each == shlex.quote(each) or _is_plain(each) else shlex.quote(each) for each in fitting][:_MOST]


def _is_plain(word: str) -> bool:
    """Nothing in it means something to the reader of the line: most values of `key=value` need no quotes."""
    return not any(char.isspace() or char in "'\"\\" for char in word) and bool(word)


async def _items(client: Client, kind: str) -> list[dict[str, Any]]:
    return [members_of(each) for each in await list_one(client, kind)]


def _called(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((each for each in items if each.get("name") == name), dict[str, Any]())


async def _of_tool(client: Client, given: list[str], typed: str) -> list[str]:
    tools = await _items(client, "tools")
    if not given:
        return _fitting((each.get("name") for each in tools), typed)
    fields = members_of(members_of(_called(tools, given[0]).get("inputSchema")).get("properties"))
    key, equals, value = typed.partition("=")
    if not equals:
        return _keys(fields, given, typed)
    if _is_own(value):
        return []
    field = members_of(fields.get(key))
    values = [value for value, _ in choices_of(field)]
    if types_of(field) == ["boolean"]:
        values = ["true", "false"]
    return _fitting((f"{key}={literal(each)}" for each in values), typed)


def _is_own(value: str) -> bool:
    """The user names a file: what a server knows of files is not put there."""
    return value.startswith("@") and not value.startswith("@@")


def _keys(fields: Iterable[Any], given: list[str], typed: str) -> list[str]:
    """Names that are read as names: not as a file, as JSON, or as a name and a part of its value."""
    there = {word.partition("=")[0] for word in given[1:]}
    names = (each for each in fields if isinstance(each, str) and each not in there)
    return _fitting((f"{each}=" for each in names if _is_name(each)), typed)


def _is_name(text: str) -> bool:
    return not text.startswith(("@", "{")) and "=" not in text and not text.endswith(":")


async def _of_prompt(client: Client, given: list[str], typed: str) -> list[str]:
    prompts = await _items(client, "prompts")
    if not given:
        return _fitting((each.get("name") for each in prompts), typed)
    names = [members_of(each).get("name") for each in items_of(_called(prompts, given[0]).get("arguments"))]
    return await _argument(client, given, typed, names, prompt=given[0])


async def _of_resource(client: Client, given: list[str], typed: str) -> list[str]:
    if not given:
        uris = [each.get("uri") for each in await _items(client, "resources")]
        return _fitting([*uris, *(each.get("uriTemplate") for each in await _items(client, "templates"))], typed)
    if "{" not in given[0]:
        return []
    expressions = [expression for _, expression in expressions_in(given[0]) if expression is not None]
    names = [variable.name for expression in expressions for variable in expression.variables]
    return await _argument(client, given, typed, names, template=given[0])


async def _of_any(client: Client, given: list[str], typed: str) -> list[str]:
    """Of both kinds that have suggestions."""
    if given:
        of: Callable[..., Any] = _of_resource if "{" in given[0] else _of_prompt
        return await of(client, given, typed)
    names = [each.get("name") for each in await _items(client, "prompts")]
    return _fitting([*names, *(each.get("uriTemplate") for each in await _items(client, "templates"))], typed)


async def _argument(client: Client, given: list[str], typed: str, names: list[Any], **of: Any) -> list[str]:
    """Its name, or what the server suggests for its value."""
    key, equals, value = typed.partition("=")
    if not equals:
        return _keys(names, given, typed)
    if _is_own(value) or not client.capabilities.can("completions"):
        return []
    known = dict(word.split("=", 1) for word in given[1:] if "=" in word)
    found = await client.complete(key, value.removeprefix("@"), known=known, **of)
    return _fitting((f"{key}={literal(each)}" for each in found.values), f"{key}=")
