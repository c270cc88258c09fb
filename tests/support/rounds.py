"""A handler that asks, and a client that carries its state: the rounds of the stateless era without a wire."""

from __future__ import annotations

import json
from typing import Any

from interlock.protocol.input.settings import AskingRules
from interlock.protocol.input.strategy import Asker
from interlock.protocol.request import Served
from interlock.protocol.server.responder import answer
from interlock.protocol.server.stateless import refuse_to_ask
from interlock.revisions.table import NEWEST
from interlock.state.memory import MemoryStore
from interlock.state.sealing import Seal
from interlock.wire.exchange import Handler, Peer, Principal, Question
from interlock.wire.messages import encode
from interlock.wire.meta import NO_META
from interlock.wire.methods import METHODS
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import Outlet

__all__ = ["Rounds", "accept", "form"]

CAN = ClientCapabilities(elicitation={}, sampling={}, roots={})
ADA = Principal("issuer", "ada")


def form(message: str, key: str | None = None, **more: Any) -> Question:
    params = {"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}}
    return Question("elicitation/create", params, ("elicitation.form",), key, **more)


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


class Rounds:
    """One server; each call is one request of a client."""

    def __init__(self, handler: Handler, **rules: Any) -> None:
        self.now = 1000.0
        self.outlet = Outlet()
        seal = Seal([bytes(32)], store=MemoryStore(clock=lambda: self.now))
        options = {"sealer": seal, "clock": lambda: self.now, **rules}
        self.asker = Asker(AskingRules(**options))
        self.handler = handler

    def begin(
        self,
        answers: Any = None,
        state: str | None = None,
        *,
        arguments: Any = None,
        who: Principal = ADA,
        can: ClientCapabilities = CAN,
        method: str = "tools/call",
    ) -> Any:
        """The work of one request."""
        params: dict[str, Any] = {"name": "t", "arguments": arguments or {}}
        return self._work(params, answers, state, who, can, method)

    def bare(self, answers: Any = None, state: str | None = None) -> Any:
        """The work of a request without arguments."""
        return self.of({"name": "t"}, answers, state)

    def of(self, params: dict[str, Any], answers: Any = None, state: str | None = None) -> Any:
        """The work of a request with these params."""
        return self._work(dict(params), answers, state, ADA, CAN, "tools/call")

    def _work(
        self,
        params: dict[str, Any],
        answers: Any,
        state: str | None,
        who: Principal,
        can: ClientCapabilities,
        method: str,
    ) -> Any:
        params |= {"inputResponses": answers} if answers is not None else {}
        params |= {"requestState": state} if state is not None else {}
        raw: Any = encode(params)
        peer = Peer(None, can, principal=who)
        read = METHODS[method].decoder.decode(raw)
        exchange = Served(method, read, raw, peer, NO_META, self.outlet, NEWEST, refuse_to_ask)
        exchange.rounds = self.asker.rounds_of(self.handler, exchange)
        return answer(exchange.rounds or self.handler, exchange, 1)

    async def __call__(self, answers: Any = None, state: str | None = None, **more: Any) -> Any:
        """The result or the error of one request."""
        told = json.loads(await self.begin(answers, state, **more))
        return told.get("result", told.get("error"))

    async def all_of(self, given: dict[str, Any], **more: Any) -> Any:
        """Round after round with these answers, to the end."""
        result = await self(**more)
        while result.get("resultType") == "input_required":
            result = await self({key: given[key] for key in result["inputRequests"]}, result["requestState"], **more)
        return result
