"""The wire shapes of two model services, written down from their public descriptions, for a scripted HTTP peer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .http_peer import chunk, chunked

__all__ = ["anthropic_events", "openai_chunks", "stream_of"]


def stream_of(events: Iterable[bytes], *, end: bool = True) -> bytes:
    """A whole response; without `end` the connection is to break off behind it."""
    return chunked() + b"".join(chunk(each) for each in events) + (b"0\r\n\r\n" if end else b"")


def _named(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def anthropic_events(*said: Any, reason: str = "end_turn", stop: bool = True) -> list[bytes]:
    """Texts, and (id, name, JSON text) for calls."""
    usage = {"input_tokens": 11, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    found = [_named("message_start", message=start), _named("ping")]
    for index, each in enumerate(said):
        found += _text(index, each) if isinstance(each, str) else _use(index, *each)
    if stop:
        found.append(
            _named("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 7})
        )
        found.append(_named("message_stop"))
    return found


def _text(index: int, text: str) -> list[bytes]:
    middle = len(text) // 2
    deltas = [{"type": "text_delta", "text": part} for part in (text[:middle], text[middle:])]
    return _block(index, {"type": "text", "text": ""}, deltas)


def _use(index: int, id: str, name: str, arguments: str) -> list[bytes]:
    middle = len(arguments) // 2
    deltas = [
        {"type": "input_json_delta", "partial_json": part} for part in ("", arguments[:middle], arguments[middle:])
    ]
    return _block(index, {"type": "tool_use", "id": id, "name": name, "input": {}}, deltas)


def _block(index: int, block: Any, deltas: list[Any]) -> list[bytes]:
    return [
        _named("content_block_start", index=index, content_block=block),
        *(_named("content_block_delta", index=index, delta=delta) for delta in deltas),
        _named("content_block_stop", index=index),
    ]


def openai_chunks(*said: Any, reason: str = "stop", done: bool = True) -> list[bytes]:
    """The same in chunks of a chat completion."""
    deltas: list[Any] = [{"role": "assistant", "content": ""}]
    calls = 0
    for each in said:
        if isinstance(each, str):
            deltas += [{"content": each[: len(each) // 2]}, {"content": each[len(each) // 2 :]}]
            continue
        id, name, arguments = each
        first = {"index": calls, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        parts = (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :])
        deltas.append({"tool_calls": [first]})
        deltas += [{"tool_calls": [{"index": calls, "function": {"arguments": part}}]} for part in parts]
        calls += 1
    found = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if done:
        found.append(_chunk([{"index": 0, "delta": {}, "finish_reason": reason}]))
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        found += [_chunk([], usage=usage), b"data: [DONE]\n\n"]
    return found


def _chunk(choices: list[Any], **more: Any) -> bytes:
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return f"data: {json.dumps(body)}\n\n".encode()
