"""The stateless era, client side: every request says everything, no answer is taken for more than it is."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...revisions.revision import Revision
from ...wire.channel import Link, Patience
from ...wire.errors import BadResult, CallTimeout, RemoteError
from ...wire.exchange import Exchange, Question, Result
from ...wire.messages import encode
from ...wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from ...wire.methods import METHODS
from ...wire.types.capabilities import ClientCapabilities
from ..input.form_schema import wrong_form
from ..input.sampling import what_is_wrong_in
from ..input.validation import needs_of
from ..throttling import QuestionMeter
from .base import ClientEdge
from .identity import Identity

__all__ = ["StatelessClient", "envelope", "rest_of"]

_MAX_ROUNDS = 16  # of questions for one call; a server that asks on and on is given up
_MAY_ASK = frozenset(name for name, row in METHODS.items() if row.may_ask)


class _Asked(msgspec.Struct):
    """One of the inputRequests."""

    method: str
    params: dict[str, Any] = {}


def envelope(revision: Revision, me: Identity) -> dict[str, Any]:
    """The `_meta` of every request (2026-07-28 basic/index#meta)."""
    declared = me.capabilities_for(revision)
    return {
        PROTOCOL_VERSION: revision.name,
        CLIENT_CAPABILITIES: Raw(encode(declared)),  # the same on every request, so encoded once
        CLIENT_INFO: Raw(encode(me.info_for(revision))),
    }


def rest_of(patience: Patience, began: float, method: str) -> Patience:
    """The total deadline stands for everything that one call leads to: what a user took of it is gone, too."""
    if patience.total is None:
        return patience
    left = patience.total - (monotonic() - began)
    if left <= 0:
        raise CallTimeout(method, patience.total, "total")
    return Patience(idle=patience.idle, total=left)


class StatelessClient(ClientEdge):
    def __init__(self, link: Link, revision: Revision, me: Identity, discovered: Mapping[str, Any]) -> None:
        super().__init__(link, revision, discovered)
        self._envelope = envelope(revision, me)
        self._declared = msgspec.convert(me.capabilities_for(revision), ClientCapabilities)
        self._meter = QuestionMeter()

    async def __call__(self, exchange: Exchange) -> Result:
        self.check_offered(exchange.method)
        meta = {**self._envelope, **exchange.meta.trace(), **exchange.params.get("_meta", {})}
        inputs: dict[str, Any] = {}
        given, began = exchange.patience or Patience(), monotonic()
        for _ in range(_MAX_ROUNDS):
            result = await self.carry(exchange, {**exchange.params, **inputs}, meta)
            kind = result.get("resultType", "complete")
            if kind == "complete":
                return result
            if kind != "input_required" or exchange.method not in _MAY_ASK:
                # an unknown kind makes the whole response invalid (basic/index#result-type)
                raise BadResult(f"{exchange.method}: a result of the unknown kind {kind!r:.60}")
            inputs = await self._inputs(exchange, result)
            exchange.patience = rest_of(given, began, exchange.method)
        raise RemoteError(f"{exchange.method}: the server asked for more than {_MAX_ROUNDS} rounds")

    async def _inputs(self, exchange: Exchange, result: Result) -> dict[str, Any]:
        """What the retry says beside the same params: all answers, and the state byte for byte (patterns/mrtr)."""
        asked, state = result.get("inputRequests"), result.get("requestState", UNSET)
        if not isinstance(asked, dict | None) or not isinstance(state, str | UnsetType):
            raise BadResult(f"{exchange.method}: inputRequests or requestState is malformed")
        if not asked and state is UNSET:
            raise BadResult(f"{exchange.method}: input_required without a question or a state")
        requests = cast("dict[str, Any]", asked or {})
        questions = {key: self._question(exchange.method, each) for key, each in requests.items()}
        for question in questions.values():
            if question.method != "roots/list" and (wrong := self._meter.refusal(monotonic())):
                raise RemoteError(f"{exchange.method}: the server asks too often: {wrong}")
        answers = {key: await exchange.ask(question) for key, question in questions.items()}
        inputs: dict[str, Any] = {"inputResponses": answers} if questions else {}
        return inputs if state is UNSET else {**inputs, "requestState": state}

    def _question(self, method: str, asked: Any) -> Question:
        """One of the questions, if it is one that we said we answer; all are looked at before any is answered."""
        try:
            request = msgspec.convert(asked, _Asked)
        except msgspec.ValidationError as error:
            raise BadResult(f"{method}: a malformed question ({error})") from None
        question = Question(request.method, request.params)
        capability = self.revision.questions.get(request.method)
        if capability is None or not all(self._declared.can(need) for need in (capability, *needs_of(question))):
            raise BadResult(f"{method}: the server asks {request.method!r:.60}, which this client did not declare")
        if request.method == "sampling/createMessage" and (wrong := what_is_wrong_in(request.params)):
            raise BadResult(f"{method}: the server asks for what cannot be sampled: {wrong}")
        if request.method == "elicitation/create" and (wrong := wrong_form(request.params)):
            raise BadResult(f"{method}: the server asks with a form that is none: {wrong}")
        return question
