"""Chat completions as OpenAI began them and many services and local model servers speak them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

import msgspec

from ...wire.display import display
from ...wire.loose import members_of
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

__all__ = ["OpenAIModel"]

_REASONS = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse", "function_call": "toolUse"}
_DONE = b"[DONE]"
_MOST_CALLS = 128


class OpenAIModel:
    """A model behind such an API. The key is read from the environment unless it is given; `key=""` sends none, as
    model servers on this machine want it. `limit_word` is what the service calls the most tokens to write."""

    def __init__(
        self,
        name: str,
        *,
        key: str | None = None,
        base_url: str = "https://api.openai.com/v1",
        facts: ModelFacts | None = None,
        limit_word: str = "max_completion_tokens",
        allowed_hosts: Iterable[str] = (),
        env: Mapping[str, str] = os.environ,
        **service: Any,
    ) -> None:
        self.facts = facts or ModelFacts(name=name, can=frozenset({"images", "tools"}))
        self._name, self._limit_word = name, limit_word
        used = key_in(env, "OPENAI_API_KEY", "OpenAI") if key is None else key
        headers = {"Authorization": f"Bearer {used}"} if used else {}
        url = f"{base_url.rstrip('/')}/chat/completions"
        self._service = Service(url, headers, allowed_hosts=allowed_hosts, **service)

    def __repr__(self) -> str:
        return f"<OpenAIModel {self._name!r}>"

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        reading = _Reading()
        async with aclosing(self._service.events(self._body(request))) as events:
            async for event in events:
                if event.data.strip() == _DONE:
                    break
                for found in reading.read(json_of(event.data)):
                    yield found
        for found in reading.end():
            yield found

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._name,
            self._limit_word: request.max_tokens,
            "messages": [*_system(request), *(each for message in request.messages for each in _messages(message))],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body["tool_choice"] = request.tool_choice
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop"] = [*request.stop]
        return body


# --- out ------------------------------------------------------------------------------------------


def _system(request: ModelRequest) -> Iterable[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}


def _tool(tool: Any) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _messages(message: Message) -> Iterable[dict[str, Any]]:
    """One message of ours, in as many as it takes there: every result of a tool is one of its own."""
    blocks = blocks_of(message)
    results = [block for block in blocks if block["type"] == "tool_result"]
    for block in results:
        text = "\n".join(as_text(each) for each in block.get("content") or ())
        yield {"role": "tool", "tool_call_id": block["toolUseId"], "content": text}
    seen = [each for block in results for each in block.get("content") or () if each["type"] in ("image", "audio")]
    rest = [block for block in blocks if block["type"] != "tool_result"] + seen  # a result holds only text there
    if rest and message["role"] == "assistant":
        yield _said(rest)
    elif rest:
        yield {"role": "user", "content": [_part(block) for block in rest]}


def _said(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    text = "\n".join(as_text(block) for block in blocks if block["type"] != "tool_use")
    found: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls := [_call(block) for block in blocks if block["type"] == "tool_use"]:
        found["tool_calls"] = calls
    return found


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = msgspec.json.encode(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "image":
            return {"type": "image_url", "image_url": {"url": f"data:{block['mimeType']};base64,{block['data']}"}}
        case "audio":
            form = block["mimeType"].partition("/")[2].removeprefix("x-").replace("mpeg", "mp3")
            return {"type": "input_audio", "input_audio": {"data": block["data"], "format": form}}
        case _:
            return {"type": "text", "text": as_text(block)}


# --- in -------------------------------------------------------------------------------------------


class _Call(msgspec.Struct):
    id: str = ""
    name: str = ""
    parts: list[str] = []


class _Reading:
    """One answer as its chunks tell it."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._reason: str | None = None
        self._usage = Usage()

    def read(self, chunk: dict[str, Any]) -> Iterable[Event]:
        if isinstance(error := chunk.get("error"), dict):
            raise _stopped(cast("dict[str, Any]", error))
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = Usage(number_in(usage, "prompt_tokens"), number_in(usage, "completion_tokens"))
        choices: Any = chunk.get("choices")
        for choice in cast("list[Any]", choices)[:1] if isinstance(choices, list) else ():  # there is never a second
            yield from self._delta(members_of(members_of(choice).get("delta")))
            if isinstance(reason := members_of(choice).get("finish_reason"), str):
                self._reason = _REASONS.get(reason, reason)

    def _delta(self, delta: dict[str, Any]) -> Iterable[Event]:
        if isinstance(text := delta.get("content"), str) and text:
            yield TextPart(text)
        calls = delta.get("tool_calls")
        for number, part in enumerate(cast("list[Any]", calls) if isinstance(calls, list) else ()):
            self._more(number, part)

    def _more(self, number: int, part: Any) -> None:
        """A piece of a call. Some services leave out which one it belongs to: then its place in the list says."""
        members = members_of(part)
        function = members_of(members.get("function"))
        if isinstance(index := members.get("index"), int):
            number = index
        if number not in self._calls and len(self._calls) >= _MOST_CALLS:
            raise ModelError(f"the model wants more than {_MOST_CALLS} tools to be called at once")
        call = self._calls.setdefault(number, _Call())
        if isinstance(id := members.get("id"), str):
            call.id = id or call.id
        if isinstance(name := function.get("name"), str):
            call.name = call.name or name
        if isinstance(text := function.get("arguments"), str):
            call.parts.append(text)

    def end(self) -> Iterable[Event]:
        if self._reason is None:
            raise ModelError("the model's answer broke off")
        for number, call in sorted(self._calls.items()):
            yield call_of(call.id or f"call_{number}", call.name, "".join(call.parts))
        yield End("toolUse" if self._calls else self._reason, self._usage)


def _stopped(error: dict[str, Any]) -> ModelError:
    """An error in the middle of an answer; only a limit says that it is worth another try."""
    told = f"the model stopped: {display(str(error.get('message')), 500)}"
    kind = f"{error.get('type')} {error.get('code')}"
    return ModelBusy(told) if "rate_limit" in kind or "server_error" in kind or "429" in kind else ModelRefused(told)
