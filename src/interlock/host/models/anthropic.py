"""The Anthropic Messages API: a conversation in its words, and its events in ours."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

import msgspec

from ...wire.escaping import display
from .http_service import Service, is_busy, key_in
from .model import (
    CallPart,
    End,
    Event,
    Message,
    ModelBusy,
    ModelError,
    ModelFacts,
    ModelRefused,
    ModelRequest,
    ModelTool,
    TextPart,
    Usage,
)
from .parsing import block_text, call_of, json_of, members_of, number_in
from .sanitize import Names, fit_id, fit_tool, is_blank, joined, picture_type

__all__ = ["AnthropicModel"]

_VERSION = "2023-06-01"
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_REASONS = {"end_turn": "endTurn", "max_tokens": "maxTokens", "stop_sequence": "stopSequence", "tool_use": "toolUse"}


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
        names = Names(request.tools)
        reading, body = _Reading(names), _Writing(names, "images" in self.facts.can).body(self._name, request)
        async with aclosing(self._service.events(body)) as events:
            async for event in events:
                for found in reading.read(json_of(event.data)):
                    yield found
                if reading.over:
                    return
        raise ModelError("the model's answer broke off")


# --- out ------------------------------------------------------------------------------------------


class _Writing:
    """One request in the words of that API."""

    def __init__(self, names: Names, images: bool) -> None:
        self._names, self._images = names, images

    def body(self, name: str, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": name,
            "max_tokens": request.max_tokens,
            "messages": _ended([self._message(message) for message in joined(request.messages)]),
            "stream": True,
        }
        if request.system and request.system.strip():
            body["system"] = request.system
        if request.tools:
            body["tools"] = [self._tool(tool) for tool in request.tools]
            body["tool_choice"] = {"type": _CHOICES[request.tool_choice]}
        if request.temperature is not None:
            body["temperature"] = min(1.0, request.temperature)  # others go up to 2
        if stop := [each for each in request.stop if each.strip()]:
            body["stop_sequences"] = stop
        return body

    def _tool(self, tool: ModelTool) -> dict[str, Any]:
        fit = fit_tool(tool, self._names, plain_keys=True)
        return {"name": fit.name, "description": fit.description, "input_schema": fit.input_schema}

    def _message(self, message: Message) -> dict[str, Any]:
        pictures = message["role"] == "user"  # an assistant has none there
        return {"role": message["role"], "content": [self._block(block, pictures) for block in message["content"]]}

    def _block(self, block: Mapping[str, Any], pictures: bool) -> dict[str, Any]:
        match block["type"]:
            case "image" if self._images and pictures and (kind := picture_type(block)):
                return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": block["data"]}}
            case "tool_use":
                name = self._names.out(block["name"])
                return {"type": "tool_use", "id": fit_id(block["id"]), "name": name, "input": block["input"]}
            case "tool_result":
                return self._result(block)
            case _:
                return {"type": "text", "text": block_text(block)}

    def _result(self, block: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "tool_result", "tool_use_id": fit_id(block["toolUseId"])}
        if content := [self._block(each, True) for each in block.get("content") or () if not is_blank(each)]:
            found["content"] = content
        return found | ({"is_error": True} if block.get("isError") else {})


def _ended(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Words that the assistant is to go on with may not end in white space."""
    last = messages[-1]
    if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
        last["content"][-1]["text"] = last["content"][-1]["text"].rstrip()
    return messages


# --- in -------------------------------------------------------------------------------------------


class _Call(msgspec.Struct):
    id: str
    name: str
    parts: list[str]


class _Reading:
    """One answer as its events tell it."""

    def __init__(self, names: Names) -> None:
        self.over = False
        self._names = names
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
                yield call_of(call.id, self._names.back(call.name), "".join(call.parts))
            case {"type": "message_delta"}:
                self._ending(event)
            case {"type": "message_stop"}:
                self.over = True
                yield End(self._reason, Usage(self._sent, self._written))
            case {"type": "message"}:
                yield from self._at_once(event)
            case {"type": "error", "error": {"message": str(message)}}:
                refused = ModelBusy if is_busy(members_of(event, "error")) else ModelRefused
                raise refused(f"the model stopped: {display(message, 500)}")
            case _:
                pass  # pings, thoughts, and whatever comes with later versions

    def _at_once(self, message: dict[str, Any]) -> Iterable[Event]:
        """A whole message, from a service that does not stream."""
        blocks: Any = message.get("content")
        for index, block in enumerate(cast("list[Any]", blocks) if isinstance(blocks, list) else ()):
            yield from self._begun(index, block)
            if index in self._calls:
                call = self._calls.pop(index)
                yield CallPart(call.id, self._names.back(call.name), members_of(block, "input"))
        self._ending({"delta": message, "usage": message.get("usage")})
        self.over = True
        yield End(self._reason, Usage(self._sent, self._written))

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
