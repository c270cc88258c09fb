"""One request and its response on a connection of `run`, with one write for a response that comes in one piece.

uvicorn writes the head of a response before it knows the body: two system calls, two packets, and a client that wakes
up twice. ASGI asks servers to wait for the first piece of the body, and so does this one.

What most calls are, a body that is here and an answer in one piece, our own application takes and gives without the
messages of ASGI; it finds these ways by itself, where nothing stands between it and this cycle
(transport/http/server/request.py)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from ....wire.aio import Flag

__all__ = ["Cycle", "errors"]

errors = logging.Logger("interlock.http.errors", logging.ERROR)
"""For what uvicorn wants logged: how many warnings there are is decided by strangers, so there are none."""
errors.parent = logging.getLogger("interlock.http")

_NONE: list[tuple[bytes, bytes]] = []
_FRAMING = frozenset({b"connection", b"transfer-encoding"})
_JSON_OF = b"content-type: application/json\r\ncontent-length: "
_FAILED, _STOPPED = 500, 503
_COPIED = 64 * 1024  # bytes of a body up to which it is copied behind its head; longer ones are handed over as they are


class Cycle(RequestResponseCycle):
    """Everything that is not a whole answer to a POST on a connection that stays is uvicorn's affair."""

    # What is the same for all of them, or for all as they begin.
    logger = access_logger = errors
    access_log = False
    default_headers = _NONE
    disconnected = response_started = response_complete = False
    more_body = True
    chunked_encoding: bool | None = None
    expected_content_length = 0
    task: asyncio.Task[None] | None = None  # in which it is served
    tasks: Any = None  # all of the server, of which that is one
    context: Any = None  # of one that waits for others: it begins in their task, and finds nothing of theirs
    unframed = False  # is its end that of the connection?
    held: Any = None  # the beginning of a response, until something of its body comes

    def __init__(
        self, scope: Any, transport: Any, flow: Any, keep_alive: bool, awaits_100: bool, on_response: Callable[[], None]
    ) -> None:
        """Not uvicorn's, which is given twice as much and sets all of it for every request."""
        self.scope = scope
        self.transport = transport
        self.flow = flow
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = awaits_100
        self.on_response = on_response
        self.message_event: Any = Flag()
        self.body: Any = b""

    def add(self, body: bytes) -> int:
        """More of its body; the bytes that nobody has taken yet."""
        if self.body:
            self.body = bytearray(self.body) if isinstance(self.body, bytes) else self.body
            self.body += body
        else:
            self.body = body
        self.message_event.set()
        return len(self.body)

    async def run_asgi(self, app: Any) -> None:
        """An answer that was begun and breaks off is cut, so that nobody takes it for a whole one.

        Only what failed is an error: a client that does not read ends its answer as well, and so does a server that
        has to stop, where what is thrown away with the loop is not looked at any more.
        """
        try:
            try:
                await app(self.scope, self.receive, self.send)
            except asyncio.CancelledError:
                await self.break_off(_STOPPED)
            except Exception as error:
                self.logger.error("! the application failed", exc_info=error)
            if not self.response_complete:
                await self.break_off(_FAILED)
        finally:  # also when it is cancelled once more, while a client that does not read is told
            self.on_response = _nothing
            if self.task is not None:
                self.tasks.discard(self.task)
                self.task = None

    async def break_off(self, status: int) -> None:
        """For what is not answered by now."""
        if self.response_complete or self.disconnected:
            return
        if self.response_started:
            self.transport.close()
            return
        if status == _FAILED:
            await self.send_500_response()
            return
        headers = [(b"retry-after", b"1"), (b"connection", b"close"), (b"content-length", b"0")]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def send(self, message: Any) -> None:
        held = self.held
        if message["type"] == "http.response.start" and not self.response_started:
            self.held = message  # the last one counts: uvicorn's own 500, when the application failed behind its head
            return
        if held is None:
            await self.hand_on(message)
            return
        self.held = None
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        head = None if message.get("more_body") else self.head_of(held, message)
        if head is None:
            await self.hand_on(held)
            await self.hand_on(message)
        elif not self.disconnected:
            self.put(head, message["body"])

    async def hand_on(self, message: Any) -> None:
        """To uvicorn, which writes what has no length in chunks. HTTP/1.0 knows none: there the connection ends with
        the body, and the body with the connection (RFC 9112 §6.1, §6.3)."""
        if self.scope.get("http_version") == "1.0":
            if message["type"] == "http.response.start" and not self.response_started:
                self.unframed = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                self.chunked_encoding = False if self.unframed else None
            elif self.unframed:
                self.expected_content_length = len(message.get("body", b""))
        await super().send(message)

    def head_of(self, start: Any, message: Any) -> bytes | None:
        """The bytes before the body; None for a response that is not framed by nothing but its length."""
        if message["type"] != "http.response.body" or self.scope["method"] != "POST" or not self.keep_alive:
            return None
        lines = [STATUS_LINE[start["status"]]]
        framed = False
        for name, value in start["headers"]:
            if name in _FRAMING or 0x0A in value or 0x0D in value:
                return None
            framed = framed or (name == b"content-length" and int(value) == len(message["body"]))
            lines.append(b"%s: %s\r\n" % (name, value))
        lines.append(b"\r\n")
        return b"".join(lines) if framed else None

    # --- without messages -------------------------------------------------------------------------

    def take_body(self) -> bytes | None:
        """The whole body, when it is here: instead of the first `receive`."""
        if self.more_body or self.disconnected or self.response_complete or self.waiting_for_100_continue:
            return None
        body, self.body = bytes(self.body), b""
        if self.flow.read_paused:
            self.flow.resume_reading()
        self.message_event.clear()
        return body

    def answer_json(self, status: int, body: bytes) -> bool:
        """A whole answer. False: it has to be sent as any other."""
        if self.response_started or self.held is not None or not self.keep_alive or self.scope["method"] != "POST":
            return False
        if self.disconnected or self.flow.write_paused:
            return False
        self.put(b"%b%b%d\r\n\r\n" % (STATUS_LINE[status], _JSON_OF, len(body)), body)
        return True

    def put(self, head: bytes, body: bytes) -> None:
        if len(body) <= _COPIED:
            self.transport.write(head + body)
        else:
            self.transport.writelines((head, body))
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False  # else who listens on for the end would write that behind the answer
        self.message_event.set()
        self.on_response()


def _nothing() -> None: ...
