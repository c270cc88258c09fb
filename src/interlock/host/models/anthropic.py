"""The Anthropic Messages API: a conversation in its words, and its events in ours."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from ...wire.display import display
from .model import (
    End,
    Event,
    Message,
    ModelBusy,
    ModelError,
    ModelFacts,
    ModelRefused,
    ModelRequest,
    TextPart,
    Usage,
    blocks_of,
)
from .pieces import as_text, call_of, json_of, number_in
from .service import Service, key_in

__all__ = ["AnthropicModel"]

_VERSION = "2023-06-01"
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_REASONS = {"end_turn": "endTurn", "max_tokens": "maxTokens", "stop_sequence": "stopSequence", "tool_use": "toolUse"}
_BUSY = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})


class AnthropicModel:
    """A model behind that API. The key is read from the environment unless it is given."""

    def __init__(
        self,
        name: str,
        *,
        key: str | None = None,
        base_url: str = "https://api.anthropic.com",
        facts: ModelFacts | None = None,
        allowed_hosts: Iterable[str] = (),
        env: Mapping[str, str] = os.environ,
        **service: Any,
    ) -> None:
        self.facts = facts or ModelFacts(name=name, context=200_000, can=frozenset({"images", "tools"}))
        self._name = name
        headers = {"x-api-key": key or key_in(env, "ANTHROPIC_API_KEY", "Anthropic"), "anthropic-version": _VERSION}
        url = f"{base_url.rstrip('/')}/v1/messages"
        self._service = Service(url, headers, allowed_hosts=allowed_hosts, **service)

    def __repr__(self) -> str:
        return f"<AnthropicModel {self._name!r}>"

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        reading = _Reading()
        async with aclosing(self._service.events(_body(self._name, request))) as events:
            async for event in events:
                for found in reading.read(json_of(event.data)):
                    yield found
                if reading.over:
                    return
        raise ModelError("the model's answer broke off")


# --- out ------------------------------------------------------------------------------------------


def _body(name: str, request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": name,
        "max_tokens": request.max_tokens,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in request.tools
        ]
        body["tool_choice"] = {"type": _CHOICES[request.tool_choice]}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop_sequences"] = [*request.stop]
    return body


def _message(message: Message) -> dict[str, Any]:
    return {"role": message["role"], "content": [_block(block) for block in blocks_of(message)]}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "image":
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            return {"type": "image", "source": source}
        case "tool_use":
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]}
        case "tool_result":
            return _result(block)
        case _:
            return {"type": "text", "text": as_text(block)}


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "tool_result", "tool_use_id": block["toolUseId"]}
    if content := [_block(each) for each in block.get("content") or ()]:
        found["content"] = content
    return found | ({"is_error": True} if block.get("isError") else {})


# --- in -------------------------------------------------------------------------------------------


class _Call(msgspec.Struct):
    id: str
    name: str
    parts: list[str]


class _Reading:
    """One answer as its events tell it."""

    def __init__(self) -> None:
        self.over = False
        self._calls: dict[int, _Call] = {}
        self._reason = "endTurn"
        self._sent = self._written = 0

    def read(self, event: dict[str, Any]) -> Iterable[Event]:
        match event:
            case {"type": "message_start", "message": {"usage": usage}}:
                self._count(usage)
            case {"type": "content_block_start", "index": index, "content_block": block}:
                yield from self._begun(index, block)
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                yield TextPart(text)
            case {"type": "content_block_delta", "index": index, "delta": {"partial_json": str(part)}}:
                if index in self._calls:
                    self._calls[index].parts.append(part)
            case {"type": "content_block_stop", "index": index} if index in self._calls:
                call = self._calls.pop(index)
                yield call_of(call.id, call.name, "".join(call.parts))
            case {"type": "message_delta"}:
                self._ending(event)
            case {"type": "message_stop"}:
                self.over = True
                yield End(self._reason, Usage(self._sent, self._written))
            case {"type": "error", "error": {"type": kind, "message": str(message)}}:
                refused = ModelBusy if kind in _BUSY else ModelRefused
                raise refused(f"the model stopped: {display(message, 500)}")
            case _:
                pass  # pings, thoughts, and whatever comes with later versions

    def _begun(self, index: int, block: Any) -> Iterable[Event]:
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield TextPart(text)
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                self._calls[index] = _Call(id, name, [])
            case _:
                pass

    def _ending(self, event: dict[str, Any]) -> None:
        match event:
            case {"delta": {"stop_reason": str(reason)}}:
                self._reason = _REASONS.get(reason, reason)
            case _:
                pass
        self._count(event.get("usage"))

    def _count(self, usage: Any) -> None:
        self._sent = number_in(usage, "input_tokens") or self._sent
        self._written = number_in(usage, "output_tokens") or self._written
