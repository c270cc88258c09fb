"""Servers that misbehave on purpose: properly up to one message, and from there on as a fault says.

Pure: a message in, what to do out. The carriers (hostile_peers.py, servers/hostile.py) only do it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["BENIGN", "BENIGN_OVER_HTTP", "FAULTS", "STEPS", "Act", "Script", "play"]

NEWEST = "2026-07-28"
OLDER = "2025-11-25"
STEPS = {
    "stateless": ("server/discover", "tools/list", "tools/call"),
    "handshake": ("server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"),
}
_FLOOD = 1000  # messages
_HUGE = 3 * 1024 * 1024  # bytes, more than the clients here allow


class Script(NamedTuple):
    """The fault happens at the message of that method, every time."""

    era: str
    step: str
    fault: str


class Act(NamedTuple):
    """`say` a whole message, say a `part` of one, `hold`: stay there and do nothing any more, or `end`."""

    what: str
    data: bytes = b""


HOLD, END = Act("hold"), Act("end")


def play(script: Script, message: dict[str, Any]) -> list[Act]:
    """What to do about a message of the client's."""
    if message.get("method") == script.step and script.fault != "none":
        return FAULTS[script.fault](message, script.era)
    return [_say(_answer(message, script.era))] if "id" in message and "method" in message else []


# --- what is proper ---


def _answer(message: dict[str, Any], era: str) -> dict[str, Any]:
    found = _result(message["method"], era)
    if found is None:
        error = {"code": -32601, "message": "Unknown method"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if era == "stateless" else {}
    return {"jsonrpc": "2.0", "id": message["id"], "result": {**complete, **found}}


def _result(method: str, era: str) -> dict[str, Any] | None:
    info = {"name": "hostile", "version": "1"}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "ok"}]}
    if era == "stateless" and method == "server/discover":
        told = {"supportedVersions": [NEWEST], "capabilities": {"tools": {}}}
        return {**told, "_meta": {"io.modelcontextprotocol/serverInfo": info}}
    if era == "handshake" and method == "initialize":
        return {"protocolVersion": OLDER, "capabilities": {"tools": {}}, "serverInfo": info}
    return {} if era == "handshake" and method == "ping" else None


def _say(frame: Any) -> Act:
    return Act("say", json.dumps(frame).encode())


# --- what is not ---

Fault = Callable[[dict[str, Any], str], list[Act]]


def _with(*acts: Act) -> Fault:
    return lambda message, era: [*acts]


def _half(then: Act) -> Fault:
    def fault(message: dict[str, Any], era: str) -> list[Act]:
        whole = json.dumps(_answer({"id": 0, **message}, era)).encode()
        return [Act("part", whole[: len(whole) // 2]), then]

    return fault


def _changed(*changes: dict[str, Any], then: Act | None = None) -> Fault:
    """The answer, with other members: one message for each change."""

    def fault(message: dict[str, Any], era: str) -> list[Act]:
        frames = [{**_answer({"id": 0, **message}, era), **change} for change in changes]
        kept = [{name: value for name, value in frame.items() if value is not ...} for frame in frames]
        return [*(_say(frame) for frame in kept), *([then] if then is not None else [])]

    return fault


def _before(*frames: Any, times: int = 1) -> Fault:
    """Something else first, then the answer. `id` in a frame stands for the id of the request."""

    def fault(message: dict[str, Any], era: str) -> list[Act]:
        asked = message.get("id", 0)
        said = [_say(json.loads(json.dumps(frame).replace('"$id"', json.dumps(asked)))) for frame in frames]
        return [*(said * times), _say(_answer({"id": 0, **message}, era))]

    return fault


def _notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "theirs", "method": method, "params": params}


_PROGRESS = _notice("notifications/progress", progressToken="$id", progress=1)
_DEEP = b'{"jsonrpc":"2.0","id":1,"result":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"

FAULTS: dict[str, Fault] = {
    "killed": _with(END),
    "stalled": _with(HOLD),
    "garbage": _with(Act("say", b"<html>504 Gateway Time-out</html>"), HOLD),
    "binary": _with(Act("say", b"\xff\xfe\x00\x01"), HOLD),
    "half": _half(HOLD),
    "half, killed": _half(END),
    "wrong id": _changed({"id": 987654}, then=HOLD),
    "id of another type": _changed({"id": "1"}, {"id": None}, {"id": 1.5}, {"id": [1]}, then=HOLD),
    "no id": _changed({"id": ...}, then=HOLD),
    "duplicate": _changed({}, {}),
    "contradiction": _changed({}, {"result": ..., "error": {"code": -1, "message": "no"}}),
    "answers nobody asked for": _changed({"id": 10**6}, {"id": 10**6 + 1}, {}),
    "flood of notices": _before(_notice("notifications/message", level="info", data="x" * 100), times=_FLOOD),
    "flood of progress": _before(_PROGRESS, times=_FLOOD),
    "flood of requests": _before(_request("roots/list"), times=_FLOOD),
    "undeclared question": _before(_request("elicitation/create", message="Password?", requestedSchema={})),
    "cancels our request": _before(_notice("notifications/cancelled", requestId="$id")),
    "junk result": _changed({"result": "text"}, then=HOLD),
    "result of the wrong shape": _changed({"result": {"content": 7, "tools": 7, "protocolVersion": 7}}, then=HOLD),
    "unknown kind of result": _changed({"result": {"resultType": "poem", "content": []}}, then=HOLD),
    "neither result nor error": _changed({"result": ...}, then=HOLD),
    "both result and error": _changed({"error": {"code": -1, "message": "no"}}, then=HOLD),
    "odd error": _changed({"result": ..., "error": {"code": "x", "message": 7}}, then=HOLD),
    "error without an object": _changed({"result": ..., "error": None}, then=HOLD),
    "another version of JSON-RPC": _changed({"jsonrpc": "1.0"}, then=HOLD),
    "too deep": _with(Act("say", _DEEP), HOLD),
    "too large": _changed({"more": "x" * _HUGE}, then=HOLD),
    "lone surrogates": _with(Act("say", b'{"jsonrpc":"2.0","id":1,"result":{"content":"\\ud800"}}'), HOLD),
    "the same cursor for ever": _changed({"result": {"tools": [], "nextCursor": "again", "content": []}}),
    "answers and leaves": _changed({}, then=END),
}
"""By name; each is given the message at which it happens."""

BENIGN = frozenset(
    {"duplicate", "contradiction", "answers nobody asked for", "flood of notices", "flood of progress"}
    | {"flood of requests", "undeclared question", "cancels our request"}
)
"""After these the right answer comes, too: on a connection, a client that is worth anything takes it."""
BENIGN_OVER_HTTP = frozenset(
    {"duplicate", "contradiction", "flood of notices", "flood of progress", "cancels our request"}
)
"""There the stream of a request belongs to it alone: whoever asks on it, or answers others, has broken it."""
