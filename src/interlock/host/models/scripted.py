"""A model that says what it was told to say. It needs no network, and is what demos and tests talk to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, cast

from ...wire.errors import LocalError
from .model import CallPart, End, Event, ModelFacts, ModelRequest, TextPart, Usage

__all__ = ["ScriptedModel", "Step"]

Step = str | Mapping[str, Any] | list[Any] | Exception | Callable[[ModelRequest], Any]
"""What it says in one turn: a text; calls, as a mapping from a tool's name to its arguments; several of these in a
list; an error to fail with; or a function of the request that gives one of them."""


class ScriptedModel:
    """`requests` holds what it was asked. Beyond the end of its script it repeats `otherwise`, or fails."""

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        otherwise: Step | None = None,
        facts: ModelFacts | None = None,
    ) -> None:
        self.facts = facts or ModelFacts(name="scripted", can=frozenset({"images", "audio", "tools"}))
        self._script, self._otherwise = iter(script), otherwise
        self._calls = 0
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        self.requests.append(request)
        written, called = 0, False
        for event in self._events(request):
            await asyncio.sleep(0)  # as one that comes from somewhere: whoever reads can be cancelled here
            called = called or isinstance(event, CallPart)
            written += 1
            yield event
        yield End("toolUse" if called else "endTurn", Usage(len(request.messages), written))

    def _events(self, request: ModelRequest) -> Iterable[Event]:
        step = next(self._script, self._otherwise)
        if step is None:
            raise LocalError("the script of this model is over: give it more steps, or otherwise=")
        return self._said(step(request) if callable(step) else step)

    def _said(self, step: Any) -> Iterable[Event]:
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            yield from _words(step)
        elif isinstance(step, Mapping):
            for name, arguments in cast("Mapping[str, Any]", step).items():
                self._calls += 1
                yield CallPart(f"call_{self._calls}", name, dict(arguments))
        else:
            for each in step:
                yield from self._said(each)


def _words(text: str) -> Iterable[TextPart]:
    """Word by word, as models do."""
    start = 0
    while start < len(text):
        end = text.find(" ", start) + 1 or len(text)
        yield TextPart(text[start:end])
        start = end
