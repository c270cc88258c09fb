"""What a server lists, looked at with the eyes of those who will use it: other clients, hosts and models.

Pure: plain data in, remarks out. A `fail` breaks a rule of the specification, so that some client will refuse it; a
`warn` is allowed and still goes wrong somewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from ...wire.errors import LocalError
from ...wire.escaping import is_visible
from ...wire.json.lenient import items_of, members_of, text_of
from ...wire.json.schema import validator_of
from ...wire.lazy_regex import pattern
from ...wire.uri_expansion import expand
from ..terminal.output import one_line

__all__ = ["Remark", "State", "lint_prompts", "lint_resources", "lint_templates", "lint_tools"]

State = Literal["ok", "warn", "fail"]
MOST_TOOLS = 100  # beyond it models choose badly, and hosts cut the list
LONGEST_DESCRIPTION = 1024  # characters; some models' interfaces refuse more
MOST_ARGUMENTS = 100  # of one tool
_BY_SPEC = pattern(r"[A-Za-z0-9_.-]{1,128}")  # server/tools#tool-names
_BY_MODELS = pattern(r"[A-Za-z0-9_-]{1,64}")  # what the interfaces of the large models take as a name
_SCHEME = pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Remark(msgspec.Struct, frozen=True):
    """One thing to mend: where, what, and how."""

    state: State
    where: str
    said: str
    todo: str


def lint_tools(tools: list[Any], *, objects_only: bool = False) -> Iterator[Remark]:
    """`objects_only`: the revision that is spoken wants objects as structured results."""
    yield from _twice((members_of(tool).get("name") for tool in tools), "name", "tools")
    if len(tools) > MOST_TOOLS:
        told = f"{len(tools)} tools: models choose badly among so many, and some hosts cut the list"
        yield Remark("warn", "all of them", told, "offer fewer, or hide some until they are needed")
    for tool in map(members_of, tools):
        name = one_line(str(tool.get("name")), 60) or "(no name)"
        yield from _named(name, str(tool.get("name")))
        yield from _described(name, tool, "a model chooses tools by it")
        yield from _input(name, tool.get("inputSchema"))
        if "outputSchema" in tool:
            yield from _output(name, tool["outputSchema"], objects_only)
        hints = members_of(tool.get("annotations"))
        if hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
            yield Remark("warn", name, "says both readOnlyHint and destructiveHint", "say one of them")


def _twice(names: Iterable[Any], what: str, kind: str) -> Iterator[Remark]:
    for name, count in Counter(str(name) for name in names).items():
        if count > 1:
            told = f"{count} {kind} have this {what}: which one is meant nobody can say"
            yield Remark("fail", one_line(name, 60), told, f"give each its own {what}")


def _named(shown: str, name: str) -> Iterator[Remark]:
    if _BY_SPEC.fullmatch(name) is None:
        told = "the name is not one of 1 to 128 letters, digits, '_', '-' and '.'"
        yield Remark("fail", shown, told, "rename it: clients may refuse it (server/tools#tool-names)")
    elif _BY_MODELS.fullmatch(name) is None:
        told = "the name has dots or is over 64 characters: models do not take it, hosts change or drop it"
        yield Remark("warn", shown, told, "use up to 64 letters, digits, '_' and '-'")


def _described(name: str, item: Mapping[str, Any], why: str) -> Iterator[Remark]:
    text = text_of(item.get("description"))
    if not (text or "").strip():
        yield Remark("warn", name, "no description", f"write one: {why}")
        return
    assert text is not None
    if len(text) > LONGEST_DESCRIPTION:
        told = f"a description of {len(text):,} characters: some models take {LONGEST_DESCRIPTION:,}"
        yield Remark("warn", name, told, "say what decides; leave the rest to the documentation")
    hidden = sum(not is_visible(char) and char not in "\r\n\t\ufe0f" for char in text)
    if hidden:
        told = f"{hidden} characters in its description that nobody sees, and a model reads"
        yield Remark("warn", name, told, "take them out; if you did not write them, do not trust this server")


# --- schemas --------------------------------------------------------------------------------------


def _input(name: str, schema: Any) -> Iterator[Remark]:
    if not isinstance(schema, dict) or members_of(schema).get("type") != "object":
        told = "its inputSchema is not of type object"
        yield Remark("fail", name, told, 'arguments have names: {"type": "object", "properties": {…}}')
        return
    members = members_of(schema)
    if (broken := _unusable(members)) is not None:
        yield Remark("fail", name, f"its inputSchema: {broken}", "mend the schema: no client can check arguments by it")
        return
    for word in ("anyOf", "oneOf", "allOf"):
        if word in members:
            told = f"its inputSchema has {word} at the top, which some models refuse"
            yield Remark("warn", name, told, "list all arguments in properties, and check the rest in the tool")
    yield from _arguments(name, members)


def _unusable(schema: dict[str, Any]) -> str | None:
    try:
        validator_of(schema, "it")
    except LocalError as error:
        return one_line(str(error), 200)
    return None


def _arguments(name: str, schema: dict[str, Any]) -> Iterator[Remark]:
    fields = members_of(schema.get("properties"))
    if len(fields) > MOST_ARGUMENTS:
        yield Remark("warn", name, f"{len(fields)} arguments", "no model fills in so many: make several tools of it")
    silent = [each for each in fields if not text_of(members_of(fields[each]).get("description"))]
    if silent:
        told = f"no description of {one_line(', '.join(silent), 100)}"
        yield Remark("warn", name, told, "describe each argument: a model fills it in by that")
    for each in items_of(schema.get("required")):
        if each not in fields:
            told = f"{one_line(str(each), 60)!r} is required and not among the properties"
            yield Remark("warn", name, told, "describe it, or do not require it")
    for each, field in fields.items():
        if _BY_MODELS.fullmatch(each) is None:
            told = f"the argument {one_line(each, 60)!r} has a name that models do not take"
            yield Remark("warn", name, told, "use up to 64 letters, digits, '_' and '-'")
        if members_of(field).get("type") == "array" and "items" not in members_of(field):
            told = f"the list {one_line(each, 60)!r} does not say of what, which some models refuse"
            yield Remark("warn", name, told, 'say it: "items": {"type": "string"}')


def _output(name: str, schema: Any, objects_only: bool) -> Iterator[Remark]:
    members = members_of(schema)
    broken = "it is no object" if not isinstance(schema, dict) else _unusable(members)
    if broken is not None:
        yield Remark("fail", name, f"its outputSchema: {broken}", "mend it: no client can check results by it")
    elif objects_only and members.get("type") != "object":
        told = "its outputSchema is not of type object, which this revision wants"
        yield Remark("fail", name, told, 'give an object: {"type": "object", "properties": {"result": …}}')


# --- the other lists ------------------------------------------------------------------------------


def lint_prompts(prompts: list[Any]) -> Iterator[Remark]:
    yield from _twice((members_of(prompt).get("name") for prompt in prompts), "name", "prompts")
    for prompt in map(members_of, prompts):
        name = one_line(str(prompt.get("name")), 60)
        yield from _described(name, prompt, "a user chooses prompts by it")
        arguments = [members_of(each).get("name") for each in items_of(prompt.get("arguments"))]
        for remark in _twice(arguments, "name", "arguments"):
            yield msgspec.structs.replace(remark, where=f"{name}({remark.where})")


def lint_resources(resources: list[Any]) -> Iterator[Remark]:
    yield from _twice((members_of(each).get("uri") for each in resources), "URI", "resources")
    for each in map(members_of, resources):
        if _SCHEME.match(str(each.get("uri"))) is None:
            told = "this is no URI: it has no scheme"
            yield Remark("fail", one_line(str(each.get("uri")), 60), told, "write one, like note://1 or file:///x")


def lint_templates(templates: list[Any]) -> Iterator[Remark]:
    yield from _twice((members_of(each).get("uriTemplate") for each in templates), "template", "templates")
    for each in map(members_of, templates):
        text = str(each.get("uriTemplate"))
        try:
            expand(text, {})
        except LocalError as error:
            told = f"this is no URI template: {one_line(str(error), 200)}"
            yield Remark("fail", one_line(text, 60), told, "write it by RFC 6570, like note://{day}")
