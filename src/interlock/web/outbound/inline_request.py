"""A POST that is made on the spot by whoever calls, without a task of its own.

Most answers of a server on this machine come whole, head and body in one piece. For that nobody has to stand by: the
request is written on a connection that waits, and its answer is taken where it is read. What needs more (a stream, a
redirect, a refusal, a body in pieces) is the business of a task, which goes on with what was begun (`Outbound.sent`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from .http11 import PlainConnection, PlainResponse
from .reply import JSON, Reply

__all__ = ["Begun", "Then", "PLAIN_YES"]

PLAIN_YES = Reply(status=200, content_type=JSON)
"""What is known of a response whose body `Begun.plain_yes` gave."""


class Begun:
    """One such request. It holds a place among those that have a socket until it is over or was handed over."""

    __slots__ = ("_connection", "_give_back", "_response", "_then", "context", "over")

    def __init__(self, connection: PlainConnection, then: Then, give_back: Callable[[Begun], None]) -> None:
        self._connection = connection
        self._then: Then | None = then
        self._give_back = give_back
        self._response: PlainResponse | None = None
        self.context = copy_context()
        """Of the caller. The task that may go on with it is started within it, rather than with `context=`, which not
        every task factory takes."""
        self.over = False

    @property
    def transport(self) -> asyncio.Transport:
        return self._connection.transport

    def came(self, outcome: PlainResponse | Exception) -> None:
        """From the connection, once: the head of the response, or why there is none."""
        then, self._then = self._then, None
        if then is None:
            return  # given up meanwhile
        if isinstance(outcome, Exception):
            self._end()
            then(self, outcome)
        else:
            self._response = outcome
            then(self, None)

    def plain_yes(self, limit: int) -> bytes | None:
        """The body of a response that is nothing but JSON, is whole, and of at most so many bytes; then it is over.
        None: it has to be looked at more closely, and goes on."""
        response = self._response
        if response is None or not response.is_eof() or response.status != 200 or response.held > limit:
            return None
        get = response.headers.get
        if get("content-type") != JSON or get("content-encoding") is not None:
            return None
        self._end()
        return response.read_nowait()

    def pass_on(self, start: Callable[..., asyncio.Task[None]], *given: Any) -> None:
        """To a task, which is started as its caller would have: one that ends before it took over gives it back."""
        self.context.run(start, *given).add_done_callback(lambda _: self.cancel())

    def hand_over(self) -> PlainResponse:
        """To somebody who cares for the response, its connection and its place from here on."""
        assert self._response is not None
        self.over = True
        return self._response

    def cancel(self) -> None:
        """Nobody wants it any more; nothing if it is over or was handed over."""
        if not self.over:
            self._then = None
            self._connection.abort()
            self._end()

    def _end(self) -> None:
        self.over = True
        self._give_back(self)

    @property
    def answered_on(self) -> PlainConnection | None:
        """The connection, when all of the response has come on it."""
        return self._connection if self._response is not None and self._response.is_eof() else None


Then = Callable[[Begun, Exception | None], None]
"""What is done with it when its head has come, or when it broke before that."""
