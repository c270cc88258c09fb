"""A model without a model: it calls the tool whose name it is told, and says what came back.

It needs no network and no key, so that a host can be tried, shown and tested with real servers, consent and all.

    add a=1 b=2          calls the one tool that is called `add`
    notes__add {"a": 1}  calls it by its whole name, with arguments as JSON
    anything else        it says which tools there are
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, cast

import msgspec

from ...wire.json.duplicate_names import check_unique_names
from ...wire.json.reader import read_json, read_members
from .model import CallPart, End, Event, ModelFacts, ModelRequest, ModelTool, TextPart, Usage, blocks_of

__all__ = ["PlainModel"]

_MOST_SHOWN = 20
_FACTS = ModelFacts(
    name="plain", cheapness=1.0, speed=1.0, intelligence=0.0, can=frozenset({"images", "audio", "tools"})
)


class PlainModel:
    """It answers at once, and always the same."""

    def __init__(self, facts: ModelFacts = _FACTS) -> None:
        self.facts = facts
        self._calls = 0

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        called = False
        for event in self._events(request):
            called = called or isinstance(event, CallPart)
            yield event
            await asyncio.sleep(0)
        yield End("toolUse" if called else "endTurn", Usage())

    def _events(self, request: ModelRequest) -> Iterable[Event]:
        blocks = blocks_of(request.messages[-1])
        if results := [block for block in blocks if block["type"] == "tool_result"]:
            return [TextPart(_told(results))]
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
        word, _, rest = text.partition(" ")
        found = _called(word, request.tools) if request.tool_choice != "none" else []
        if len(found) == 1:
            return [self._call(found[0], rest)]
        if request.tools:
            return [TextPart(_offer(found or request.tools))]
        return [TextPart(f"You said: {text}")]

    def _call(self, tool: ModelTool, rest: str) -> CallPart:
        self._calls += 1
        id = f"plain_{self._calls}"
        try:
            return CallPart(id, tool.name, _arguments(rest))
        except (ValueError, RecursionError) as error:
            return CallPart(id, tool.name, {}, f"the arguments cannot be read: {error}")


def _called(word: str, tools: Sequence[ModelTool]) -> list[ModelTool]:
    """By the whole name, or by what stands behind the server's."""
    if not word:
        return []
    whole = [tool for tool in tools if tool.name == word]
    return whole or [tool for tool in tools if tool.name.partition("__")[2] == word]


def _arguments(rest: str) -> dict[str, Any]:
    if rest.lstrip().startswith("{"):
        data = rest.encode()
        arguments = read_members(data)
        check_unique_names(data)
        return arguments
    found: dict[str, Any] = {}
    for word in shlex.split(rest):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r:.60} is no name=value")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    """JSON where it is JSON, else the text itself."""
    try:
        return read_json(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return text


def _told(results: Sequence[Any]) -> str:
    said: list[str] = []
    for result in results:
        texts = [block.get("text") or f"({block['type']})" for block in cast("list[Any]", result.get("content") or [])]
        said.append(f"{'That failed' if result.get('isError') else 'It says'}: " + "\n".join(texts))
    return "\n".join(said)


def _offer(tools: Sequence[ModelTool]) -> str:
    names = [f"  {tool.name}  {tool.description.partition(chr(10))[0][:80]}" for tool in tools[:_MOST_SHOWN]]
    more = [f"  and {len(tools) - _MOST_SHOWN} more"] if len(tools) > _MOST_SHOWN else []
    return "\n".join(["I call the tool that you name, as in `add a=1 b=2`. There are:", *names, *more])
