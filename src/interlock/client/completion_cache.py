"""Suggestions for an argument, as fast as somebody types: kept for a while, and not asked for with every letter.

(server/utilities/completion#implementation-considerations)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

import msgspec

from ..wire.errors import LocalError, MethodNotFound
from ..wire.exchange import Result
from ..wire.json.lenient import items_of, members_of

__all__ = ["Completion", "Completions", "params_of_completion"]

QUIET = 0.15  # seconds between two requests for the same argument; of those that come meanwhile the newest is sent
KEPT = 60.0  # seconds an answer is good for
MOST_KEPT = 256  # answers; beyond it the one kept longest is forgotten
MOST_VALUES = 1_000  # of one answer, where 100 are allowed; the rest is dropped, and said to be there
MOST_FIELDS = 256  # arguments whose last request is remembered


class Completion(msgspec.Struct, frozen=True):
    """What the server suggests. Nothing at all is an answer, too."""

    values: tuple[str, ...] = ()
    total: int | None = None
    """How many there are, if the server says so."""
    has_more: bool = False
    superseded: bool = False
    """True when a newer request for the same argument took the place of this one, which was never sent."""


def params_of_completion(
    argument: str, value: str, prompt: str | None, template: str | None, known: Mapping[str, str] | None
) -> dict[str, Any]:
    """The params of `completion/complete`; `known` is what the other arguments are already."""
    if (prompt is None) == (template is None):
        raise LocalError("complete: give prompt= (its name) or template= (its URI template), and not both")
    strings = (argument, value, prompt or template, *(known or {}).keys(), *(known or {}).values())
    if not all(isinstance(each, str) for each in strings):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller's
        raise LocalError("complete: names and values of arguments are strings")
    ref = {"type": "ref/prompt", "name": prompt} if prompt is not None else {"type": "ref/resource", "uri": template}
    asked: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
    return asked | ({"context": {"arguments": dict(known)}} if known else {})


class Completions:
    """What one client was told, and what it asked last. Used on the client's own loop."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[float, Completion]] = {}
        self._asked: dict[Hashable, float] = {}
        self._newest: dict[Hashable, int] = {}
        self._count = 0

    def forget(self) -> None:
        self._kept.clear()

    async def get(self, params: dict[str, Any], ask: Callable[[dict[str, Any]], Awaitable[Result]]) -> Completion:
        key = msgspec.json.encode(params, order="sorted")
        now = asyncio.get_running_loop().time()
        until, kept = self._kept.get(key, (0.0, None))
        if kept is not None and now < until:
            return kept
        if not await self._is_newest((str(params["ref"]), params["argument"]["name"])):
            return Completion(superseded=True)
        found = await _answer(ask(params))
        self._kept.pop(key, None)
        self._kept[key] = (asyncio.get_running_loop().time() + KEPT, found)
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    async def _is_newest(self, field: Hashable) -> bool:
        """Wait until this field may be asked for again; False if somebody newer wants to by then."""
        loop = asyncio.get_running_loop()
        self._count += 1
        mine = self._newest[field] = self._count
        wait = self._asked.get(field, float("-inf")) + QUIET - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
            if self._newest.get(field) != mine:
                return False
        for times in (self._asked, self._newest):
            times.pop(field, None)
        self._asked[field], self._newest[field] = loop.time(), mine
        if len(self._asked) > MOST_FIELDS:
            oldest = next(iter(self._asked))
            del self._asked[oldest]
            self._newest.pop(oldest, None)
        return True


async def _answer(asked: Awaitable[Result]) -> Completion:
    """Missing or partial answers are none; a server without completion has no suggestions (the first revision
    has no word for who has it)."""
    try:
        found: Any = (await asked).get("completion")
    except MethodNotFound:
        return Completion()
    members = members_of(found)
    texts = tuple(each for each in items_of(members.get("values")) if isinstance(each, str))
    total = members.get("total")
    return Completion(
        texts[:MOST_VALUES],
        total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
        members.get("hasMore") is True or len(texts) > MOST_VALUES,
    )
