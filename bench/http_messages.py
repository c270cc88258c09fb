"""What the driver posts and how it takes a response apart: prepared requests, and the rounds of a call that asks."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from messages import HANDSHAKE, STATELESS, Era, WrongAnswer

_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_STATE_BEGIN = b'"requestState":"'

# More than the driver posts: so many requests are prepared before each block, and forgotten after it.
MAX_POSTS_PER_SECOND = 100_000


@dataclass(frozen=True)
class Response:
    status: int
    message: bytes  # the JSON-RPC answer, whatever it was wrapped in


def post(port: int, name: str, body: bytes) -> bytes:
    """A tools/call as bytes: the headers say again what the body says."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {STATELESS.name}\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def session_post(port: int, body: bytes, session: bytes = b"") -> bytes:
    """A message of the handshake era; without a session it is the one that begins it."""
    named = b"MCP-Protocol-Version: %b\r\nMcp-Session-Id: %b\r\n" % (HANDSHAKE.name.encode(), session)
    head = (
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b"Accept: application/json, text/event-stream\r\n%bContent-Length: %d\r\n\r\n"
    )
    return head % (port, named if session else b"", len(body)) + body


def listen_post(port: int) -> bytes:
    """Asks for change notices of the list of tools."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": _ASKED_META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    body = json.dumps(message, separators=(",", ":")).encode()
    return post(port, "", body).replace(b"tools/call\r\nMcp-Name: \r\n", b"subscriptions/listen\r\n", 1)


def prepare_posts(port: int, numbers: range, tool: str = "add", progress: bool = False) -> list[bytes]:
    """The calls of these numbers; call n asks for n + 1."""
    return [post(port, tool, body) for body in _bodies(STATELESS, numbers, tool, progress)]


def prepare_session_posts(
    port: int, session: bytes, numbers: range, tool: str = "add", progress: bool = False
) -> list[bytes]:
    return [session_post(port, body, session) for body in _bodies(HANDSHAKE, numbers, tool, progress)]


def _bodies(era: Era, numbers: range, tool: str, progress: bool) -> Iterable[bytes]:
    template = era.call_template.rstrip().replace(b'"add"', b'"%b"' % tool.encode())
    if not progress:
        return (template % (number, number) for number in numbers)
    begin, found, end = template.partition(b'"_meta":{')
    token = b'"progressToken":%d'
    with_token = begin + found + token + b"," + end if found else template[:-2] + b',"_meta":{' + token + b"}}}"
    # The token stands behind the arguments, so the numbers come in this order.
    return (with_token % (number, number, number) for number in numbers)


def session_of(response: bytes) -> bytes:
    """The id in the head of the answer to `initialize`."""
    head = response.partition(_HEAD_END)[0]
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"mcp-session-id":
            return value.strip()
    raise WrongAnswer(f"no session: {response[:160]!r}")


def is_complete(response: bytes) -> bool:
    """Has all of it come? All that is looked at while the clock runs."""
    end = response.find(_HEAD_END)
    if end < 0:
        return False
    head = response[:end].lower()
    begin = head.find(b"content-length:")
    if begin >= 0:
        return len(response) >= end + 4 + int(head[begin + 15 :].split(b"\r\n", 1)[0])
    if b"transfer-encoding: chunked" in head:
        return response.endswith(_LAST_CHUNK)
    raise WrongAnswer(f"a response of unknown length: {response[:160]!r}")


def parse(response: bytes) -> Response:
    head, body = _taken_apart(response)
    if b"content-type: text/event-stream" in head.lower():
        body = _last_event(body)
    return Response(int(head.split(b" ", 2)[1]), body)


def _taken_apart(response: bytes) -> tuple[bytes, bytes]:
    """The head and the body as it was before it was sent in pieces."""
    head, _, body = response.partition(_HEAD_END)
    return head, _joined(body) if b"transfer-encoding: chunked" in head.lower() else body


def messages_of(responses: list[bytes]) -> list[bytes]:
    """The answers in these responses, every one of which must be a 200."""
    parsed = [parse(response) for response in responses]
    for response in parsed:
        if response.status != 200:
            raise WrongAnswer(f"HTTP {response.status}: {response.message[:160]!r}")
    return [response.message for response in parsed]


def check_progress(responses: list[bytes], steps: int) -> None:
    """So many signs of progress before each answer, one more than the last."""
    for response in responses:
        messages = map(json.loads, _data(_taken_apart(response)[1]))
        seen = [message["params"]["progress"] for message in messages if "params" in message]
        if seen != list(range(1, steps + 1)):
            raise WrongAnswer(f"progress {seen}: {response[:160]!r}")


def _joined(body: bytes) -> bytes:
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :] if length else b""
    return b"".join(parts)


def _data(body: bytes) -> list[bytes]:
    """The data of all events that carry some; the one that begins a stream may be empty."""
    lines = (line[5:].strip() for line in body.splitlines() if line.startswith(b"data:"))
    return [line for line in lines if line]


def _last_event(body: bytes) -> bytes:
    data = _data(body)
    if not data:
        raise WrongAnswer(f"a stream without an answer: {body[:160]!r}")
    return data[-1]


# ---- a call that asks twice ----


class AskedCall:
    """The three rounds of one call. Only what a client must do is done between them: take the state, send it back."""

    def __init__(self, port: int) -> None:
        self._first = post(port, "add_asked", _asked_body({}))
        self._head = self._first.partition(b"Content-Length")[0] + b"Content-Length: %d\r\n\r\n"
        self._later = [_asked_body(answers, "<state>").split(b"<state>") for answers in _ANSWERS]

    def request(self, number: int, response: bytes) -> bytes:
        """The request of this round; `response` is what the round before it brought."""
        if number == 0:
            return self._first
        begin = response.find(_STATE_BEGIN) + len(_STATE_BEGIN)
        before, after = self._later[number - 1]
        body = before + response[begin : response.index(b'"', begin)] + after
        return self._head % len(body) + body


ROUNDS = 3
_ANSWERS: tuple[dict[str, int], ...] = ({"first": 20}, {"second": 22})


def _asked_body(answers: dict[str, int], state: str | None = None) -> bytes:
    params: dict[str, object] = {"name": "add_asked", "arguments": {}, "_meta": _ASKED_META}
    if state is not None:
        params["inputResponses"] = {
            key: {"action": "accept", "content": {"value": value}} for key, value in answers.items()
        }
        params["requestState"] = state
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


_ASKED_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS.name,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def check_asked(responses: list[bytes]) -> None:
    """Two questions, each with its own key, then the sum of both answers."""
    results = [json.loads(message).get("result", {}) for message in messages_of(responses)]
    asked = [list(result.get("inputRequests", ())) for result in results]
    if asked != [["first"], ["second"], []]:
        raise WrongAnswer(f"asked {asked}: {responses[0][-160:]!r}")
    if results[-1].get("content", [{}])[0].get("text") != "42":
        raise WrongAnswer(f"20 + 22 is not {responses[-1][-160:]!r}")
