"""What a server may ask in the words of a revision, and the answers to it, read strictly: they come from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from ...revisions.revision import Revision
from ...wire.errors import CannotAsk, InvalidParams, LocalError
from ...wire.exchange import Question, Result
from ...wire.json.lenient import members_of, one_or_more, read_as
from ...wire.json.reader import read_members
from .sampling import what_is_wrong_with

__all__ = ["check_answer", "check_words", "needs_of"]


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
_SAMPLED_BLOCKS = frozenset({"text", "image", "audio", "tool_use", "tool_result"})


def check_answer(question: Question, answer: Any, *, strict: bool = False) -> Result:
    """The members of an answer, given as bytes or as a dict; malformed ones are -32602, whoever sent them. Unless it is
    `strict`, null stands for a member that is not there."""
    try:
        members = cast("Result", answer) if isinstance(answer, dict) else read_members(answer)
        shape = _SHAPES.get(question.method, dict[str, Any])
        (msgspec.convert if strict else read_as)(members, shape)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        told = str(error).replace("`", "'")
        raise InvalidParams(f"The answer to {question.method} is malformed: {told}") from None
    if question.method == "sampling/createMessage" and (wrong := what_is_wrong_with(members)):
        raise InvalidParams(f"The answer to {question.method} is malformed: {wrong}")
    if question.check is not None:
        question.check(members)
    return members


def check_words(revision: Revision, question: Question) -> None:
    """Refuse a question that this revision has no words for; nothing is dropped from one quietly."""
    wrong = _wrong_in_form(revision, question.params) or _wrong_in_messages(revision, question.params)
    if wrong is not None:
        raise CannotAsk(f"The client's protocol revision has no {wrong}")


def _wrong_in_form(revision: Revision, params: Mapping[str, Any]) -> str | None:
    """Choices of several came with 2025-11-25 (client/elicitation#requested-schema)."""
    if revision.rich_questions:
        return None
    schema: Any = params.get("requestedSchema")
    fields: Any = schema.get("properties") if isinstance(schema, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(fields, Mapping):
        return None
    return "forms with a choice of several" if any(_is_list(field) for field in _values(fields)) else None


def _values(fields: Any) -> Iterable[Any]:
    return cast("Mapping[str, Any]", fields).values()


def _is_list(field: Any) -> bool:
    return isinstance(field, Mapping) and cast("Mapping[str, Any]", field).get("type") == "array"


def _wrong_in_messages(revision: Revision, params: Mapping[str, Any]) -> str | None:
    """One block of text, an image or, since 2025-03-26, audio; several, and those of tools, since 2025-11-25."""
    if not params.get("messages"):
        return None
    known = revision.blocks & {"text", "image", "audio"}
    known |= {"tool_use", "tool_result"} if revision.rich_questions else set[str]()
    for message in cast("list[Any]", params["messages"]):
        content: Any = cast("dict[str, Any]", message).get("content")
        if isinstance(content, list) and not revision.rich_questions:
            return "sampling messages of several blocks"
        for block in one_or_more(content):
            kind = members_of(block).get("type")
            if kind not in (None, *_SAMPLED_BLOCKS):
                raise LocalError(f"{kind!r:.40} cannot stand in a sampling message: put what it holds into text")
            if kind is not None and kind not in known:
                return f"{kind!r:.40} in sampling messages"
    return None


def needs_of(question: Question) -> tuple[str, ...]:
    """Which capabilities a question that came stands behind, beside that of its method."""
    if question.method == "elicitation/create":
        mode = question.params.get("mode", "form")
        return (f"elicitation.{mode}",) if isinstance(mode, str) else ("elicitation.?",)
    if question.method == "sampling/createMessage" and {"tools", "toolChoice"} & question.params.keys():
        return ("sampling.tools",)
    return ()
