"""The answers a client may give to what a server asks, read strictly: they come from outside."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from ..wire.errors import InvalidParams
from ..wire.exchange import Question, Result

__all__ = ["check_answer", "needs_of"]


class _Elicited(msgspec.Struct):
    """ElicitResult (client/elicitation#response-actions)."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | UnsetType | None = UNSET


class _Sampled(msgspec.Struct):
    """CreateMessageResult (client/sampling)."""

    role: Literal["user", "assistant"]
    content: dict[str, Any] | list[dict[str, Any]]
    model: str
    stopReason: str | UnsetType = UNSET


class _Root(msgspec.Struct):
    uri: str
    name: str | UnsetType | None = UNSET


class _Rooted(msgspec.Struct):
    """ListRootsResult (client/roots)."""

    roots: list[_Root]


_SHAPES: dict[str, Any] = {
    "elicitation/create": _Elicited,
    "sampling/createMessage": _Sampled,
    "roots/list": _Rooted,
}
_members = msgspec.json.Decoder(dict[str, Any])


def check_answer(question: Question, answer: Any) -> Result:
    """The members of an answer, given as bytes or as a dict; malformed ones are -32602, whoever sent them."""
    try:
        members = cast("Result", answer) if isinstance(answer, dict) else _members.decode(answer)
        msgspec.convert(members, _SHAPES.get(question.method, dict[str, Any]))
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        told = str(error).replace("`", "'")
        raise InvalidParams(f"The answer to {question.method} is malformed: {told}") from None
    if question.check is not None:
        question.check(members)
    return members


def needs_of(question: Question) -> tuple[str, ...]:
    """Which capabilities a question that came stands behind, beside that of its method."""
    if question.method == "elicitation/create":
        mode = question.params.get("mode", "form")
        return (f"elicitation.{mode}",) if isinstance(mode, str) else ("elicitation.?",)
    if question.method == "sampling/createMessage" and {"tools", "toolChoice"} & question.params.keys():
        return ("sampling.tools",)
    return ()
