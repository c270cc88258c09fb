"""Which question may be put to which client, and how it travels.

Calling back, the strategy of the handshake era, is here; a stateless client is asked by returning `input_required`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from os import urandom
from typing import Any

import msgspec
from msgspec import UNSET

from ...revisions.revision import Revision
from ...revisions.shaping import shape_noun
from ...wire.channel import Patience
from ...wire.errors import BadResult, CannotAsk, InvalidParams, ResourceNotFound
from ...wire.exchange import Peer, Question, Result
from ...wire.json.reader import read_members
from ...wire.messages import Frame, error_of
from ...wire.types.capabilities import ClientCapabilities
from ..request import Served

__all__ = ["answerable", "check_can_ask", "call_back", "result_of", "QUESTION_PATIENCE"]

QUESTION_PATIENCE = Patience(idle=None, total=3600.0)  # a person may think; a peer that is gone ends the wait at once
_NOUN = {"elicitation/create": "ElicitParams"}


def answerable(revision: Revision, declared: ClientCapabilities) -> ClientCapabilities:
    """What a client declares, without what its revision has no words for: who looks before asking must not be misled.

    Clients that lower their revision often declare as before.
    """
    asked = revision.questions.values()
    changes: dict[str, Any] = {name: UNSET for name in ("roots", "sampling", "elicitation") if name not in asked}
    for name, _, flag in (need.partition(".") for need in revision.no_such_needs):
        flags: Any = getattr(declared, name)
        if name not in changes and flags is not UNSET and flag in flags:
            rest = {each: value for each, value in flags.items() if each != flag}
            changes[name] = rest or (UNSET if name == "elicitation" else rest)  # pages alone leave no forms
    return msgspec.structs.replace(declared, **changes)


def check_can_ask(revision: Revision, peer: Peer, question: Question) -> None:
    """Refuse a question the client did not declare it can answer; one error class in every revision."""
    capability = revision.questions.get(question.method)
    if capability is None:
        raise CannotAsk(f"The client's protocol revision has no {question.method}")
    needs = question.needs
    if not needs or not needs[0].startswith(capability):  # who can do a part of something can do it
        needs = (capability, *needs)
    missing = [need for need in needs if need in revision.no_such_needs or not peer.capabilities.can(need)]
    if missing:
        if not peer.can(capability):  # who can do nothing of it has forms with the whole
            missing = [need.removesuffix(".form") for need in missing]
        raise CannotAsk(f"The client did not declare {missing[-1]}", {"requiredCapabilities": _as_object(missing)})
    if not revision.rich_questions or "messages" in question.params:
        _questions().check_words(revision, question)


@cache
def _questions():
    """Loaded with the first question: a server that never asks starts without."""
    from . import validation

    return validation


def _as_object(paths: Iterable[str]) -> dict[str, Any]:
    """`elicitation.url` as a ClientCapabilities object: all that is missing, so that a client has to be told once."""
    found: dict[str, Any] = {}
    for head, _, rest in (path.partition(".") for path in paths):
        found.setdefault(head, {}).update({rest: {}} if rest else {})
    return found


async def call_back(exchange: Served, question: Question) -> Result:
    """Ask on the request's own stream and wait, in the run's own task: when the run ends, so does the question."""
    check_can_ask(exchange.revision, exchange.peer, question)
    trace = exchange.meta.trace()
    params = shape_noun(exchange.revision, _NOUN.get(question.method, ""), question.params)
    if params.get("mode") == "url":
        params = {**params, "elicitationId": urandom(16).hex()}  # 2025-11-25 client/elicitation#url-mode
    frame = await exchange.outlet.call(question.method, params, trace, patience=QUESTION_PATIENCE)
    return _questions().check_answer(question, result_of(frame, question.method, exchange.revision))


def result_of(frame: Frame, method: str, revision: Revision) -> Result:
    """The members of a response's result; its error is raised under this revision's meaning of the code."""
    if frame.result is not UNSET and frame.error is UNSET:
        try:
            return read_members(frame.result)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadResult(f"{method}: the result is no object ({error})") from None
    refused = error_of(frame, {}) if frame.result is UNSET else None
    if refused is None:
        raise BadResult(f"{method}: the response has neither a proper result nor a proper error")
    told = revision.refusal(refused.code, refused.message, refused.data)
    if method == "resources/read" and type(told) is InvalidParams and _names_uri(told.data):
        raise ResourceNotFound(told.message, told.data, code=told.code)  # -32602 says it since 2026-07-28
    raise told


def _names_uri(data: Any) -> bool:
    return isinstance(data, dict) and "uri" in data
