"""Chat completions as OpenAI began them and many services and local model servers speak them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

import msgspec

from ...wire.escaping import display
from .http_service import Service, key_in
from .model import (
    Ability,
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
from .sanitize import Names, fit_tool, joined, picture_type, sound_type

__all__ = ["OpenAIModel"]

_REASONS = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse", "function_call": "toolUse"}
_DONE = b"[DONE]"
_MOST_CALLS = 128
_MOST_TOOLS = 128
_MOST_STOPS = 4
_FROM_RESULTS = {"type": "text", "text": "[this is from the results of tools, and not from the user]"}


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
        self.facts = facts or ModelFacts(name=name, can=_abilities(name))
        self._name, self._limit_word = name, limit_word
        used = key_in(env, "OPENAI_API_KEY", "OpenAI") if key is None else key
        headers = {"Authorization": f"Bearer {used}"} if used else {}
        url = f"{base_url.rstrip('/')}/chat/completions"
        self._service = Service(url, headers, allowed_hosts=allowed_hosts, **service)

    def __repr__(self) -> str:
        return f"<OpenAIModel {self._name!r}>"

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Event]:
        names = Names(request.tools)
        reading, body = _Reading(names), _Writing(names, self.facts.can).body(request)
        body |= {"model": self._name, self._limit_word: request.max_tokens}
        async with aclosing(self._service.events(body)) as events:
            async for event in events:
                if event.data.strip() == _DONE:
                    break
                for found in reading.read(json_of(event.data)):
                    yield found
        for found in reading.end():
            yield found


def _abilities(name: str) -> frozenset[Ability]:
    """Where nobody says: those that listen have it in their names, and the others refuse every sound."""
    return frozenset({"images", "tools", "audio"} if "audio" in name.lower() else {"images", "tools"})


# --- out ------------------------------------------------------------------------------------------


class _Writing:
    """One request in the words of such an API; `can` is what the model takes beside text."""

    def __init__(self, names: Names, can: frozenset[Ability]) -> None:
        self._names, self._can = names, can

    def body(self, request: ModelRequest) -> dict[str, Any]:
        said = [each for message in joined(request.messages) for each in self._messages(message)]
        body: dict[str, Any] = {
            "messages": [*_system(request), *said],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [self._tool(tool) for tool in request.tools[:_MOST_TOOLS]]
            body["tool_choice"] = request.tool_choice
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if stop := [each for each in request.stop if each][:_MOST_STOPS]:
            body["stop"] = stop
        return body

    def _tool(self, tool: ModelTool) -> dict[str, Any]:
        fit = fit_tool(tool, self._names)
        function = {"name": fit.name, "description": fit.description, "parameters": fit.input_schema}
        return {"type": "function", "function": function}

    def _messages(self, message: Message) -> Iterable[dict[str, Any]]:
        """One message of ours, in as many as it takes there: every result of a tool is one of its own."""
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        rest = [block for block in message["content"] if block["type"] != "tool_result"]
        if message["role"] == "assistant":
            yield self._said(rest)
            return
        for block in results:
            text = "\n".join(self._told(each) for each in block.get("content") or ())
            yield {"role": "tool", "tool_call_id": block["toolUseId"], "content": text}
        seen = [part for block in results for each in block.get("content") or () if (part := self._media(each))]
        if parts := ([_FROM_RESULTS, *seen] if seen else []) + [self._part(block) for block in rest]:
            yield {"role": "user", "content": parts}

    def _said(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        text = "\n".join(block_text(block) for block in blocks if block["type"] != "tool_use")
        found: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls := [self._call(block) for block in blocks if block["type"] == "tool_use"]:
            found["tool_calls"] = calls
        return found

    def _call(self, block: Mapping[str, Any]) -> dict[str, Any]:
        arguments = msgspec.json.encode(block["input"]).decode()
        function = {"name": self._names.out(block["name"]), "arguments": arguments}
        return {"id": block["id"], "type": "function", "function": function}

    def _told(self, block: Mapping[str, Any]) -> str:
        """Of a block in a result, which holds only text there."""
        return f"[{block['type']}: it follows]" if self._media(block) else block_text(block)

    def _part(self, block: Mapping[str, Any]) -> dict[str, Any]:
        return self._media(block) or {"type": "text", "text": block_text(block)}

    def _media(self, block: Mapping[str, Any]) -> dict[str, Any] | None:
        match block["type"]:
            case "image" if "images" in self._can and (kind := picture_type(block)):
                return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{block['data']}"}}
            case "audio" if "audio" in self._can and (form := sound_type(block)):
                return {"type": "input_audio", "input_audio": {"data": block["data"], "format": form}}
            case _:
                return None


def _system(request: ModelRequest) -> Iterable[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}


# --- in -------------------------------------------------------------------------------------------


class _Call(msgspec.Struct):
    id: str = ""
    name: str = ""
    parts: list[str] = []


class _Reading:
    """One answer as its chunks tell it."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._reason: str | None = None
        self._usage = Usage()

    def read(self, chunk: dict[str, Any]) -> Iterable[Event]:
        if isinstance(error := chunk.get("error"), dict):
            raise _stopped(cast("dict[str, Any]", error))
        if isinstance(error, str):  # as some local servers write it
            raise _stopped({"message": error})
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = Usage(number_in(usage, "prompt_tokens"), number_in(usage, "completion_tokens"))
        choices: Any = chunk.get("choices")
        for choice in cast("list[Any]", choices)[:1] if isinstance(choices, list) else ():  # there is never a second
            yield from self._delta(members_of(choice, "delta") or members_of(choice, "message"))  # or all at once
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
        members, function = members_of(part), members_of(part, "function")
        if isinstance(index := members.get("index"), int):
            number = index
        id, name = (each if isinstance(each, str) else "" for each in (members.get("id"), function.get("name")))
        call = self._at.get(number)
        if call is None or (call.name and name and id not in ("", call.id)):  # some give each call the same place
            call = self._at[number] = self._new()
        call.id, call.name = call.id or id, call.name or name
        if isinstance(text := function.get("arguments"), str):
            call.parts.append(text)

    def _new(self) -> _Call:
        if len(self._calls) >= _MOST_CALLS:
            raise ModelError(f"the model wants more than {_MOST_CALLS} tools to be called at once")
        self._calls.append(_Call())
        return self._calls[-1]

    def end(self) -> Iterable[Event]:
        if self._reason is None:
            raise ModelError("the model's answer broke off")
        for number, call in enumerate(self._calls):
            yield call_of(call.id or f"call_{number}", self._names.back(call.name), "".join(call.parts))
        yield End("toolUse" if self._calls else self._reason, self._usage)


def _stopped(error: dict[str, Any]) -> ModelError:
    """An error in the middle of an answer; only a limit says that it is worth another try."""
    told = f"the model stopped: {display(str(error.get('message')), 500)}"
    kind = f"{error.get('type')} {error.get('code')}"
    return ModelBusy(told) if "rate_limit" in kind or "server_error" in kind or "429" in kind else ModelRefused(told)
