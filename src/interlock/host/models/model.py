"""What a language model is to a host: something that goes on with a conversation, piece by piece.

A conversation is written in the protocol's own words, those of sampling (client/sampling#message-content): messages
of a role and a list of blocks: text, image, audio, tool_use, tool_result. So what a server asks to be sampled goes to a
model as it came, and an adapter translates it once, into the words of its service.

::

    ModelError                  the model gave no answer
    ├── ModelRefused            it will not, whoever asks again: a wrong key, a request it does not take
    └── ModelBusy (retry_after) not now: too many requests, or the service is overloaded
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol, cast

import msgspec

from ...wire.errors import RemoteError

__all__ = [
    "Ability",
    "CallPart",
    "End",
    "Event",
    "Message",
    "Model",
    "ModelBusy",
    "ModelError",
    "ModelFacts",
    "ModelRefused",
    "ModelRequest",
    "ModelTool",
    "Reply",
    "TextPart",
    "Usage",
    "blocks_of",
    "gather",
]

Message = Mapping[str, Any]
"""`{"role": "user" | "assistant", "content": block or blocks}`."""
ToolChoice = Literal["auto", "required", "none"]
Ability = Literal["images", "audio", "tools"]


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a model before it is asked. The three traits are shares from 0 to 1: how cheap, how fast,
    how clever (client/sampling#capability-priorities)."""

    name: str
    cheapness: float = 0.5
    speed: float = 0.5
    intelligence: float = 0.5
    context: int = 128_000
    """How many tokens it can look at."""
    longest: int = 8_192
    """How many tokens it writes at most."""
    can: frozenset[Ability] = frozenset({"tools"})

    def __post_init__(self) -> None:
        for trait in ("cheapness", "speed", "intelligence"):
            if not 0 <= getattr(self, trait) <= 1:
                raise ValueError(f"{trait} of {self.name!r:.60} lies between 0 and 1")


class ModelTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is shown to a model."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    messages: Sequence[Message]
    system: str | None = None
    tools: Sequence[ModelTool] = ()
    tool_choice: ToolChoice = "auto"
    max_tokens: int = 4_096
    temperature: float | None = None
    stop: Sequence[str] = ()


class TextPart(msgspec.Struct, frozen=True):
    """A piece of what it says."""

    text: str


class CallPart(msgspec.Struct, frozen=True):
    """It wants a tool to be called."""

    id: str
    name: str
    arguments: dict[str, Any]
    wrong: str | None = None
    """Why its arguments could not be read. Then nothing is called, and the model is told."""


class Usage(msgspec.Struct, frozen=True):
    sent: int = 0
    written: int = 0


class End(msgspec.Struct, frozen=True):
    """It has finished. `reason` is one of endTurn, stopSequence, maxTokens, toolUse, or a word of the service's own."""

    reason: str
    usage: Usage = Usage()


Event = TextPart | CallPart | End


class Model(Protocol):
    """Anything with these two members."""

    @property
    def facts(self) -> ModelFacts: ...

    def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        """The pieces of one answer as they come, the last of them an `End`. Whoever stops reading ends it."""
        ...


class ModelError(RemoteError):
    """The model gave no answer; what the service said is in the text."""


class ModelRefused(ModelError):
    """It will not, whoever asks again."""

    status = 0
    """Of the service's answer, where it was one and not a stream that began."""


class ModelBusy(ModelError):
    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds, where the service says."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    content: list[dict[str, Any]]
    calls: list[CallPart]
    reason: str
    usage: Usage

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.content if block["type"] == "text")


async def gather(events: AsyncGenerator[Event]) -> Reply:
    """All of an answer. One that breaks off before its end is an error, not a short answer."""
    content: list[dict[str, Any]] = []
    calls: list[CallPart] = []
    texts: list[str] = []
    async with aclosing(events):
        async for event in events:
            match event:
                case TextPart(text):
                    texts.append(text)
                case CallPart(id, name, arguments):
                    _flush(texts, content)
                    content.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
                    calls.append(event)
                case End(reason, usage):
                    _flush(texts, content)
                    return Reply(content=content, calls=calls, reason=reason, usage=usage)
    raise ModelError("the model's answer broke off")


def _flush(texts: list[str], content: list[dict[str, Any]]) -> None:
    if texts:
        content.append({"type": "text", "text": "".join(texts)})
        texts.clear()


def blocks_of(message: Message) -> list[dict[str, Any]]:
    """The content of a message as the list it may be written without."""
    content = message["content"]
    return cast("list[dict[str, Any]]", content if isinstance(content, list) else [content])
