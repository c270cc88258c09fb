"""A person, a model and tools in turns: what is said goes to the model, what it calls is called, what comes back goes
to it again, until it has nothing more to call.

Everything a model wants done goes through the host, and so through its gate: a model has no hands of its own. The
conversation knows whose data it holds: once a result of one server is in it, every later call may carry that data, and
says so (`sources`), so that a policy can keep servers apart.

A conversation is always whole: when a step is cancelled or fails, calls without a result get one that says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import count
from time import monotonic
from typing import Any, Protocol

import msgspec

from ...client.results import CallResult
from ...wire.errors import InterlockError, LocalError
from ...wire.escaping import display
from ..catalogue.token_estimate import tokens
from ..gate.consent_queue import measure_consent
from ..models.model import (
    CallPart,
    End,
    Message,
    Model,
    ModelError,
    ModelRefused,
    ModelRequest,
    ModelTool,
    TextPart,
    Usage,
    blocks_of,
)
from .content_blocks import failed_block, result_block, text_block
from .history_repair import calls_in, paired
from .transcript import Transcript
from .trimming import lighter, trim

__all__ = [
    "Called",
    "Calling",
    "Cancelled",
    "Conversation",
    "ConversationEvent",
    "Finished",
    "Offering",
    "Progressed",
    "Said",
    "Shortened",
]

log = logging.getLogger("interlock.host")
_LONGEST_ID = 64
_ENDED = "[the program ended before this came back]"


class Offering(Protocol):
    """What a conversation needs of a host."""

    async def tools_for(self, said: str) -> Sequence[ModelTool]:
        """The tools to be shown to the model in this turn, within the budget."""
        ...

    def about(self) -> str:
        """What servers say about themselves, marked as theirs; nothing where they say nothing."""
        ...

    def origin(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """The server whose tool is called by this; None for what is the host's own, or nobody's."""
        ...

    async def use(
        self, tool: str, arguments: Mapping[str, Any], *, sources: frozenset[str], on_progress: Any
    ) -> CallResult:
        """Call it, through the gate."""
        ...


class Said(msgspec.Struct, frozen=True):
    """A piece of what the model says."""

    text: str


class Calling(msgspec.Struct, frozen=True):
    """The model wants this tool to be called."""

    call: CallPart
    server: str | None


class Progressed(msgspec.Struct, frozen=True):
    call: CallPart
    progress: float
    total: float | None
    message: str | None


class Called(msgspec.Struct, frozen=True):
    """It came back, or did not: then `because` says why."""

    call: CallPart
    server: str | None
    result: CallResult | None
    because: str | None
    seconds: float
    """That the tool took; the time in which the user was asked is not part of it."""


class Shortened(msgspec.Struct, frozen=True):
    """Old parts were left out to keep within the budget."""

    cut: int
    dropped: int


class Cancelled(msgspec.Struct, frozen=True):
    """The step was stopped; what was under way was told to stop."""


class Finished(msgspec.Struct, frozen=True):
    reason: str
    usage: Usage


ConversationEvent = Said | Calling | Progressed | Called | Shortened | Cancelled | Finished


class Conversation:
    """`budget` is in tokens, for what is sent to the model; `most_steps` bounds how often it may call tools in one
    turn, `at_once` how many of its calls run at the same time."""

    def __init__(
        self,
        host: Offering,
        model: Model,
        *,
        system: str | None = None,
        budget: int | None = None,
        max_tokens: int = 4_096,
        most_steps: int = 50,
        at_once: int = 8,
        transcript: Transcript | None = None,
        on_event: Callable[[ConversationEvent], None] = lambda event: None,
    ) -> None:
        self.model = model
        self.messages: list[Message] = []
        self.sources: set[str] = set()
        """The servers whose data is in it."""
        self.usage = Usage()
        self._host, self._system = host, system
        self._budget = budget
        self._max_tokens, self._most_steps = max_tokens, most_steps
        self._at_once = asyncio.Semaphore(at_once)
        self._transcript, self._tell = transcript, on_event
        self._busy = False

    def resume(self, messages: Sequence[Message], sources: Sequence[str] | set[str] = ()) -> None:
        """Go on with what a transcript holds."""
        if self._busy or self.messages:
            raise LocalError("only a conversation that has not begun can go on with another")
        self.messages, self.sources = paired(messages, _ENDED), {*sources}
        self._settle(_ENDED)

    def attach(self, blocks: Sequence[dict[str, Any]], source: str | None = None) -> None:
        """Put something before what the user says next: a resource, or a message of a prompt."""
        self.add({"role": "user", "content": [*blocks]}, source)

    def add(self, message: Message, source: str | None = None) -> None:
        """Put a message of either role there: prompts may hold both."""
        if self._busy:  # it would come between a call and its result
            raise LocalError("one step of a conversation at a time")
        self._add({"role": message["role"], "content": blocks_of(message)}, source)

    async def say(self, text: str | None = None) -> str:
        """Say it, and wait until the model has nothing more to call; its last words. Cancel the caller to stop it.
        Without a text it goes on from what was put there."""
        if self._busy:
            raise LocalError("one step of a conversation at a time")
        if text is not None:
            self._add({"role": "user", "content": [text_block(text)]})
        if not self.messages:
            raise LocalError("there is nothing yet that a model could answer")
        self._busy = True
        try:
            return await self._turn(text or "")
        except asyncio.CancelledError:
            self._settle("[cancelled by the user]")
            self._tell(Cancelled())
            raise
        except BaseException:
            self._settle("[this did not come back]")
            raise
        finally:
            self._busy = False

    async def _turn(self, said: str) -> str:
        for step in range(self._most_steps + 1):
            last = step == self._most_steps
            answer, calls = await self._answer(await self._host.tools_for(said), last)
            if not calls:
                return answer
            if not last:
                await self._call_all(calls)
        raise ModelError(f"the model went on calling tools after {self._most_steps} steps")

    # --- the model --------------------------------------------------------------------------------

    async def _answer(self, tools: Sequence[ModelTool], last: bool) -> tuple[str, list[CallPart]]:
        """What is refused for what is in it is sent once more with less: it would be refused for ever."""
        try:
            return await self._asked(tools, last)
        except ModelRefused as refused:
            less = lighter(self.messages, refused)
            if less is None:
                raise
        before, self.messages = self.messages, less.messages
        self._tell(Shortened(less.cut, less.dropped))
        try:
            return await self._asked(tools, last)
        except ModelRefused as refused:
            if refused.status:  # that was not it
                self.messages = before
            raise

    async def _asked(self, tools: Sequence[ModelTool], last: bool) -> tuple[str, list[CallPart]]:
        texts: list[str] = []
        calls: list[CallPart] = []
        try:
            async with aclosing(self.model.reply(self._request(tools, last))) as events:
                async for event in events:
                    match event:
                        case TextPart(text):
                            texts.append(text)
                            self._tell(Said(text))
                        case CallPart():
                            calls.append(self._distinct(event, calls))
                        case End():
                            self._count(event)
                            return "".join(texts), calls
            raise ModelError("the model's answer broke off")
        finally:
            self._keep("".join(texts), calls)

    def _request(self, tools: Sequence[ModelTool], last: bool) -> ModelRequest:
        """With its last step the model may not call any more: it shall say how far it came."""
        facts = self.model.facts
        most = min(self._max_tokens, facts.longest)
        system = "\n\n".join(part for part in (self._system, self._host.about()) if part)
        beside = most + tokens(system) + sum(tokens(tool) for tool in tools)
        trimmed = trim(self.messages, (self._budget or facts.context) - beside)
        if trimmed.cut or trimmed.dropped:
            self.messages = trimmed.messages
            self._tell(Shortened(trimmed.cut, trimmed.dropped))
        return ModelRequest(
            messages=[*self.messages],
            system=system or None,
            tools=tools,
            tool_choice="none" if last else "auto",
            max_tokens=most,
        )

    def _distinct(self, call: CallPart, calls: Sequence[CallPart]) -> CallPart:
        """The call with an id that no other has: services refuse a conversation where two have the same, and some
        models count from the beginning with every answer."""
        blocks = [block for message in self.messages for block in blocks_of(message) if block["type"] == "tool_use"]
        taken = {"", *(block["id"] for block in blocks), *(each.id for each in calls)}
        if call.id not in taken and len(call.id) <= _LONGEST_ID:
            return call
        fresh = next(id for number in count(len(taken)) if (id := f"call_{number}") not in taken)
        return msgspec.structs.replace(call, id=fresh)

    def _count(self, end: End) -> None:
        used = end.usage
        self.usage = Usage(self.usage.sent + used.sent, self.usage.written + used.written)
        self._tell(Finished(end.reason, used))

    def _keep(self, text: str, calls: Sequence[CallPart]) -> None:
        """What was said stays said, also where it was interrupted."""
        used = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
        if blocks := ([text_block(text)] if text else []) + used:
            self._add({"role": "assistant", "content": blocks})

    # --- its calls --------------------------------------------------------------------------------

    async def _call_all(self, calls: Sequence[CallPart]) -> None:
        """All of them, as many at once as may be; the results in the order of the calls."""
        sources = frozenset(self.sources)  # what the model knew when it called: the same for all of them
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._call(call, sources)) for call in calls]
        servers = {server for task in tasks if (server := task.result()[1]) is not None}
        self._add({"role": "user", "content": [task.result()[0] for task in tasks]}, *servers)

    async def _call(self, call: CallPart, sources: frozenset[str]) -> tuple[dict[str, Any], str | None]:
        server = self._host.origin(call.name, call.arguments)
        self._tell(Calling(call, server))
        result, because, seconds = None, call.wrong, 0.0
        if because is None:
            async with self._at_once:
                began = monotonic()
                with measure_consent() as asked:
                    result, because = await self._used(call, sources)
                seconds = max(0.0, monotonic() - began - asked.seconds)
        self._tell(Called(call, server, result, because, seconds))
        if result is None:
            return failed_block(call, because or ""), None
        return result_block(call, result), server

    async def _used(self, call: CallPart, sources: frozenset[str]) -> tuple[CallResult | None, str | None]:
        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self._tell(Progressed(call, progress, total, message))

        try:
            return await self._host.use(call.name, call.arguments, sources=sources, on_progress=on_progress), None
        except InterlockError as error:  # the model may do without it, or do something else
            return None, str(error)
        except Exception:
            log.exception("! calling %s failed", display(call.name, 100))
            return None, "the host failed to call it: its log says why"

    # --- what stays -------------------------------------------------------------------------------

    def _add(self, message: Message, *sources: str | None) -> None:
        found = {source for source in sources if source is not None}
        self.sources |= found
        self.messages.append(message)
        if self._transcript is not None:
            self._transcript.add(message, found)

    def _settle(self, because: str) -> None:
        """Calls that nothing came back for have come to an end all the same."""
        if calls := calls_in(self.messages[-1]) if self.messages else []:
            self._add({"role": "user", "content": [failed_block(call, because) for call in calls]})
