"""Stand-ins for the other side of a seam: a channel, an outlet and a link that record what they were given.

Only what stands *beside* the file under test is ever one of these, never the file itself.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from interlock.wire.channel import Patience
from interlock.wire.errors import ConnectionEnded
from interlock.wire.exchange import Exchange, Peer, Question
from interlock.wire.messages import Frame, encode, encode_call, encode_notice, read_frame

__all__ = [
    "Channel",
    "Link",
    "Outlet",
    "Receiver",
    "Spoken",
    "done",
    "error_frame",
    "notice",
    "request",
    "result_frame",
    "started",
    "turns",
]


async def turns(count: int = 3) -> None:
    """Let everything that is ready run: a number of turns of the loop, not a time."""
    for _ in range(count):
        await asyncio.sleep(0)


async def done(work: Any) -> Any:
    """The answer an edge gave at once, or the one its work leads to."""
    return json.loads(work if isinstance(work, bytes) else await work[0])


def started(work: Any) -> asyncio.Task[bytes]:
    """The work of an edge, under way."""
    return asyncio.get_running_loop().create_task(work[0])


def request(method: str, params: Any = None, id: Any = 1) -> Frame:
    return read_frame(encode_call(id, method, params))


def notice(method: str, params: Any = None) -> Frame:
    return read_frame(encode_notice(method, params))


def result_frame(result: Any, id: Any = 1) -> Frame:
    return read_frame(encode({"jsonrpc": "2.0", "id": id, "result": result}))


def error_frame(code: int, message: str = "no", data: Any = None, id: Any = 1) -> Frame:
    told = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return read_frame(encode({"jsonrpc": "2.0", "id": id, "error": told}))


class Channel:
    """A carrier in the test's hand: `sent` is what went out, `receiver` is whom to tell what comes in."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.receiver: Any = None
        self.closed = 0
        self.backlog = 0
        self.delivered: int | None = None
        self.positions: list[int | None] = []
        self.drained = asyncio.Event()
        self.on_send: Callable[[bytes], None] = lambda message: None

    async def open(self, receiver: Any) -> None:
        self.receiver = receiver

    def send(self, message: bytes) -> int | None:
        self.sent.append(message)
        self.on_send(message)
        return self.positions.pop(0) if self.positions else None

    async def drain(self) -> None:
        await self.drained.wait()

    async def close(self) -> None:
        self.closed += 1

    def frames(self) -> list[Any]:
        return [json.loads(message) for message in self.sent]

    def last(self) -> Any:
        return json.loads(self.sent[-1])


class Receiver:
    """Whom a channel tells; keeps everything."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.too_long: list[tuple[bytes, int]] = []
        self.ends: list[ConnectionEnded] = []
        self.news = asyncio.Event()

    def received(self, message: bytes) -> None:
        self.messages.append(message)
        self.news.set()

    def oversized(self, beginning: bytes, size: int) -> None:
        self.too_long.append((beginning, size))
        self.news.set()

    def ended(self, error: ConnectionEnded) -> None:
        self.ends.append(error)
        self.news.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something was told that makes `condition` true."""
        while not condition():
            self.news.clear()
            await self.news.wait()


class Outlet:
    """Where a served request speaks: `told` keeps notifications, `asked` the questions, `answers` the replies."""

    def __init__(self, *answers: Frame) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[str, dict[str, Any], dict[str, Any], Patience]] = []
        self.answers = list(answers)

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.told.append((method, dict(params or {})))

    async def call(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], *, patience: Patience
    ) -> Frame:
        self.asked.append((method, dict(params), dict(meta), patience))
        return self.answers.pop(0)


class Link:
    """A client's way to a server: answers come from `answers` (frames, exceptions to raise, or functions of the
    link that give one, now or later), in order."""

    def __init__(self, *answers: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self.told: list[tuple[str, Any]] = []
        self.answers = list(answers)
        self.closed = 0
        self.end: ConnectionEnded | None = None
        self.adopted: list[Any] = []
        self.is_unread = False
        self.during: list[tuple[str, Frame]] = []
        """Notifications handed to the caller while it waits."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        *,
        patience: Patience,
        told: Any = None,
        cancellable: bool = True,
    ) -> Frame:
        self.calls.append(
            {
                "method": method,
                "params": dict(params or {}),
                "meta": meta,
                "patience": patience,
                "cancellable": cancellable,
            }
        )
        for said, frame in self.during:
            await told(said, frame)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(self)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            if isinstance(answer, ConnectionEnded):
                self.end = answer
            raise answer
        return answer

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.told.append((method, params))

    def adopt(self, edge: Any) -> None:
        """Told which edge answers for this side, before anything else may be asked."""
        self.adopted.append((edge, len(self.told)))

    async def close(self) -> None:
        self.closed += 1


class Spoken(Exchange):
    """An exchange that keeps what was said through it."""

    def __init__(self, method: str, params: Any, peer: Peer | None = None, **facts: Any) -> None:
        super().__init__(method, params, peer=peer or Peer(), **facts)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[Question] = []

    async def notify(self, method: str, params: Any) -> None:
        self.told.append((method, dict(params)))

    async def ask(self, question: Question) -> dict[str, Any]:
        self.asked.append(question)
        return {"answered": question.method}
