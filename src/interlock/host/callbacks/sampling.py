"""Servers that ask for a model's words (client/sampling): looked at by a person before and after, unless a rule allows.

A server gets an answer to exactly what it sent, and nothing of the conversation: what it wants included of the context
(`includeContext`) is given only by `context`, which is the user's to allow, server by server. How often and how much
one server may sample is bounded. A no of the user is told as one (-1), and as nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol, cast

import msgspec

from ...protocol.input.sampling import what_is_wrong_in
from ...server.execution.rate_limits import Buckets, Rate
from ...wire.errors import InternalError, InvalidParams, Refused
from ..catalogue.token_estimate import tokens
from ..gate.action import Deed, Denied
from ..models.model import Model, ModelError, ModelRequest, ModelTool, gather
from ..user import Ask, Leave, User
from .model_choice import needs_of, pick

__all__ = ["Context", "Sampler", "SamplingBounds", "Through"]

_REJECTED = -1  # client/sampling#error-handling
_WRITTEN = ("thisServer", "allServers")
_MODES = ("auto", "required", "none")
_HOTTEST = 2  # that any service takes

Context = Callable[[str, str], Awaitable[str | None]]
"""(server, "thisServer" | "allServers") → what of the context it may see, or None. Whatever belongs to another server
is in it only where the user agreed to that."""


class Through(Protocol):
    """The gate, as far as questions of servers are concerned. `consent` stands in for the usual question."""

    async def through(
        self,
        deed: Deed,
        send: Callable[[Any], Awaitable[Any]],
        *,
        consent: Callable[[Ask], Awaitable[Leave]] | None = None,
    ) -> Any: ...


class SamplingBounds(msgspec.Struct, frozen=True, kw_only=True):
    """For each server by itself; a request over one is refused and says so."""

    requests: Rate = Rate(0.5, 10)
    tokens: int = 8_192
    """That one request may ask for; a model is asked for no more (SAMP-25)."""
    tokens_altogether: int = 200_000
    """That one server may use up, from the start of the host on."""


class Sampler:
    """The `sample` callback of one server's client."""

    def __init__(
        self,
        server: str,
        gate: Through,
        user: User,
        models: Sequence[Model],
        *,
        bounds: SamplingBounds = SamplingBounds(),  # noqa: B008 - immutable
        context: Context | None = None,
    ) -> None:
        self._server, self._gate, self._user, self._models = server, gate, user, models
        self._bounds, self._context = bounds, context
        self._pace = Buckets(bounds.requests, 1)
        self.declares: dict[str, Any] = {"tools": {}} | ({"context": {}} if context is not None else {})
        self.used = 0
        """Tokens that were used up for this server."""

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        request = await self._checked(params)
        try:
            deed = Deed("sampling", self._server, "sampling/createMessage", request)
            sampled = await self._gate.through(deed, self._sample, consent=self._review)
            return await self._reviewed(request, sampled)
        except Denied as denied:
            raise Refused("User rejected sampling request", code=_REJECTED) from denied

    async def _checked(self, params: dict[str, Any]) -> dict[str, Any]:
        if wrong := what_is_wrong_in(params):
            raise InvalidParams(f"sampling/createMessage: {wrong}")
        if _mode(params) not in (None, *_MODES):
            raise InvalidParams(f"sampling/createMessage: toolChoice.mode is one of {', '.join(_MODES)}")
        if wrong := _wrong_options(params):
            raise InvalidParams(f"sampling/createMessage: {wrong}")
        if params["maxTokens"] < 1:
            raise InvalidParams("sampling/createMessage: maxTokens is less than one")
        if wait := self._pace.take(self._server, monotonic()):
            raise InternalError(f"Too many sampling requests: try again in {wait:.0f} s")
        if self.used >= self._bounds.tokens_altogether:
            raise InternalError("This server has used up the tokens it may sample")
        self._request(params, self._model(params))  # who cannot be answered is told before anybody is asked
        return await self._with_context(params)

    async def _with_context(self, params: dict[str, Any]) -> dict[str, Any]:
        """What it may see is written into the request, so that whoever reviews it sees it, too."""
        wanted = params.get("includeContext")
        request = {name: value for name, value in params.items() if name not in ("includeContext", "_meta")}
        if self._context is None or wanted not in _WRITTEN:
            return request
        found = await self._context(self._server, wanted)
        if found:
            before = f"{request['systemPrompt']}\n\n" if request.get("systemPrompt") else ""
            request["systemPrompt"] = f"{before}{found}"
        return request

    async def _review(self, ask: Ask) -> Leave:
        """A person looks at it, and may change it."""
        request = await self._user.review_sampling(self._server, ask.deed.arguments)
        if request is None or what_is_wrong_in(request):
            return Leave(granted=False)
        return Leave(granted=True, arguments=request)

    async def _sample(self, request: dict[str, Any]) -> dict[str, Any]:
        model = self._model(request)
        try:
            reply = await gather(model.reply(self._request(request, model)))
        except ModelError as error:
            raise InternalError("The model gave no answer") from error  # how it failed is not the server's business
        self.used += reply.usage.sent + reply.usage.written or tokens([request, reply.content])  # not all models say
        if _mode(request) == "required" and not reply.calls:
            raise InternalError("The model used no tool, though it was told to")
        content = reply.content or [{"type": "text", "text": ""}]
        return {
            "role": "assistant",
            "content": content if reply.calls or len(content) > 1 else content[0],
            "model": model.facts.name,
            "stopReason": reply.reason,
        }

    async def _reviewed(self, request: dict[str, Any], sampled: dict[str, Any]) -> dict[str, Any]:
        """What the model said is the server's only after the user has seen it (client/sampling#user-interaction)."""

        async def review(ask: Ask) -> Leave:
            answer = await self._user.review_answer(self._server, request, ask.deed.arguments)
            return Leave(granted=answer is not None, arguments=answer)

        async def give(answer: dict[str, Any]) -> dict[str, Any]:
            return answer

        deed = Deed("sampling_answer", self._server, "sampling/createMessage", sampled)
        return await self._gate.through(deed, give, consent=review)

    def _model(self, request: Mapping[str, Any]) -> Model:
        model = pick(self._models, request.get("modelPreferences"), needs_of(request))
        if model is None:
            raise InvalidParams("No model here can take this request")
        return model

    def _request(self, request: Mapping[str, Any], model: Model) -> ModelRequest:
        most = min(int(request["maxTokens"]), self._bounds.tokens, model.facts.longest)
        mode = _mode(request)
        return ModelRequest(
            messages=request["messages"],
            system=request.get("systemPrompt"),
            tools=[_tool(each) for each in request.get("tools") or ()],
            tool_choice=mode if mode in ("required", "none") else "auto",
            max_tokens=most,
            temperature=request.get("temperature"),
            stop=request.get("stopSequences") or (),
        )


def _wrong_options(params: Mapping[str, Any]) -> str | None:
    """Why what stands beside the messages cannot go to a model."""
    stop: Any = params.get("stopSequences") or []
    if not isinstance(params.get("systemPrompt"), str | None):
        return "systemPrompt is no text"
    if not isinstance(stop, list) or not all(isinstance(each, str) for each in cast("list[Any]", stop)):
        return "stopSequences is no list of texts"
    heat: Any = params.get("temperature")
    fine = heat is None or (isinstance(heat, int | float) and not isinstance(heat, bool) and 0 <= heat <= _HOTTEST)
    return None if fine else f"temperature lies between 0 and {_HOTTEST}"


def _mode(request: Mapping[str, Any]) -> Any:
    choice: Any = request.get("toolChoice")
    return cast("dict[str, Any]", choice).get("mode") if isinstance(choice, dict) else None


def _tool(tool: Any) -> ModelTool:
    members = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    name, schema, description = (members.get(each) for each in ("name", "inputSchema", "description"))
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise InvalidParams("sampling/createMessage: a tool has no name or no inputSchema")
    told = description if isinstance(description, str) else ""
    return ModelTool(name=name, description=told, input_schema=cast("dict[str, Any]", schema))
