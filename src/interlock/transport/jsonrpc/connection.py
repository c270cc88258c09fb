"""One two-way channel as a JSON-RPC connection: who waits for what, and what runs.

Both sides of a connection use it, the client's as its `Link`, the server's as its `Outlet`. Reading never waits for
handling: a request becomes a task, an answer wakes its waiter, and the next message is read. The single end of
the connection fails every waiter and cancels every run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol, cast

import msgspec
from msgspec import UNSET

from ...wire.channel import Channel, Patience, Told
from ...wire.errors import (
    BadFrame,
    BadResult,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InternalError,
    InvalidRequest,
    MessageTooLarge,
    NotOpen,
)
from ...wire.escaping import display
from ...wire.exchange import Work
from ...wire.json.decoder import decoder
from ...wire.limits import DEFAULT_LIMITS, Limits
from ...wire.messages import (
    Frame,
    Id,
    encode_call,
    encode_error,
    encode_notice,
    id_of_beginning,
    is_batch,
    read_batch,
    read_frame,
)
from ...wire.types.notifications import Cancelled
from .executor import Reply, Runs
from .pending import Calls, progress_of

__all__ = ["Duplex", "Side"]

log = logging.getLogger("interlock.wire")
_TURN_AFTER = 16  # calls answered without waiting, after which the others on the loop get a turn
_cancelled = decoder(Cancelled)


class Side(Protocol):
    """The role that stands behind a connection: it answers requests and hears notifications."""

    @property
    def batches(self) -> bool:
        """Does the revision in use have batches?"""
        ...

    def request(self, frame: Frame) -> bytes | Work | None:
        """The response at once, or the work that leads to it, or None where none may be sent."""
        ...

    def notification(self, frame: Frame) -> Coroutine[Any, Any, None] | None:
        """Take note, or return the work it leads to, for which nobody waits."""
        ...

    def junk(self, line: bytes, bad: BadFrame) -> bytes | None:
        """What to answer to bytes that are no message."""
        ...

    def ended(self, error: ConnectionEnded) -> None: ...


class Duplex:
    def __init__(self, channel: Channel, side: Side, limits: Limits = DEFAULT_LIMITS) -> None:
        self._channel = channel
        self._side = side
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._runs = Runs(self._loop, limits.in_flight)
        self._calls = Calls(self._loop, self._withdraw, limits.waiting, owes=lambda: self._runs.by_id)
        self._end: ConnectionEnded | None = None
        self._closing: asyncio.Task[None] | None = None
        self._unwaited = 0
        self._room = 0  # bytes that can be sent before the channel's backlog has to be looked at
        self.heard = 0
        """How many messages came: a peer that goes on talking is alive."""

    # --- state ------------------------------------------------------------------------------------

    @property
    def end(self) -> ConnectionEnded | None:
        """Why the connection is over, or None while it lives."""
        return self._end

    @property
    def idle(self) -> bool:
        return not self._runs.by_id and not self._calls.waiting

    @property
    def in_flight(self) -> int:
        return len(self._runs.by_id)

    async def open(self) -> None:
        await self._channel.open(self)

    # --- what we send -----------------------------------------------------------------------------

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        meta: Mapping[str, Any] | None = None,
        *,
        patience: Patience,
        told: Told | None = None,
        cancellable: bool = True,
    ) -> Frame:
        """Send a request and wait for its answer. With `meta`, the id doubles as progress token."""
        self._check_open()
        call = self._calls.add(method, patience, told, cancellable)
        try:
            if meta is not None:
                params = call.with_token(params, meta)
            call.position = self._send(encode_call(call.id, method, params))
            if call.outcome is not None:
                await self._let_others_run()
            return await call.answer()
        except asyncio.CancelledError:
            if call.outcome is None:  # what was answered, or given up already, is not cancelled (CANC-02)
                self._withdraw(call.id, "the caller gave up", call.cancellable)
            raise
        finally:
            self._calls.remove(call)

    async def _let_others_run(self) -> None:
        """A server in this process may answer at once: who calls it in a loop must not hold up the rest."""
        self._unwaited += 1
        if not self._unwaited % _TURN_AFTER:
            await asyncio.sleep(0)

    def hear(self, id: Id, frame: Frame) -> bool:
        """Hand a notification to the call it belongs to; False when that call is over."""
        return self._calls.told(id, frame)

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification; waits while the peer does not read."""
        self._check_open()
        self._send(encode_notice(method, params))
        if self._channel.backlog > self._limits.pressure_bytes:
            await self._channel.drain()

    def _send(self, message: bytes) -> int | None:
        if len(message) > self._limits.message_bytes:
            raise MessageTooLarge(_over(len(message), self._limits.message_bytes))
        return self._put(message)

    def _put(self, message: bytes) -> int | None:
        channel = self._channel
        try:
            position = channel.send(message)
        except Exception as error:
            self.fail(ConnectionLost(f"the carrier could not send: {display(str(error), 200)}"))
            return None
        self._room -= len(message)
        if self._room < 0:
            self._look_at_backlog()
        return position

    def _look_at_backlog(self) -> None:
        """How much may be sent before the next look: but for its framing, it cannot grow by more than what is sent."""
        backlog = self._channel.backlog
        if backlog > self._limits.outbound_bytes:
            self.fail(ConnectionLost(f"the peer left {backlog} bytes unread"))
        self._room = self._limits.outbound_bytes - backlog

    def _withdraw(self, id: int, reason: str, cancellable: bool) -> None:
        # `initialize` is never cancelled (basic/utilities/cancellation), and nothing is once all is over.
        if cancellable and self._end is None:
            self._send(encode_notice("notifications/cancelled", {"requestId": id, "reason": reason}))

    def _check_open(self) -> None:
        if self._end is not None:
            if isinstance(self._end, ConnectionClosed):
                raise NotOpen("this connection was closed")
            raise self._end.for_call("connection", False)

    # --- what comes in ----------------------------------------------------------------------------

    def received(self, message: bytes) -> None:
        """One message of the peer. Never raises: bad bytes get their answer and the next message is read."""
        if self._end is not None:
            return  # what comes after the end starts nothing
        self.heard += 1
        if len(message) > self._limits.message_bytes:  # of a channel that does not look itself
            self.oversized(message[:1024], len(message))
            return
        try:
            frame = read_frame(message, self._limits)
        except BadFrame as bad:
            if isinstance(bad.refusal, InvalidRequest) and is_batch(message):
                self._receive_batch(message)
            else:
                self._refuse_junk(message, bad)
            return
        if frame.method is not UNSET and frame.id is not UNSET:
            self._requested(frame, None)  # what most messages to a server are
        else:
            self._receive(frame)

    def oversized(self, beginning: bytes, size: int) -> None:
        if self._end is not None:
            return
        told = _over(size, self._limits.message_bytes)
        id = id_of_beginning(beginning)
        answers = id if b'"method"' not in beginning else None
        self._refuse_junk(beginning, BadFrame(InvalidRequest(told), id, answers=answers))

    def _refuse_junk(self, line: bytes, bad: BadFrame) -> None:
        if not self._spoils(bad):
            self._reply(bad.id, self._side.junk(line, bad))

    def _spoils(self, bad: BadFrame) -> bool:
        """A broken response: whoever waits for it is told now, and not when his patience is over."""
        return bad.answers is not None and self._calls.spoil(bad.answers, BadResult(f"a broken response: {bad}"))

    def _receive(self, frame: Frame, batch: _Batch | None = None) -> None:
        if frame.method is UNSET:
            if not self._calls.resolve(frame):
                log.debug("= a response to nothing we asked (id %r) was dropped", frame.id)
        elif frame.id is UNSET:
            self._notified(frame)
        else:
            self._requested(frame, batch)

    def _receive_batch(self, message: bytes) -> None:
        if not self._side.batches:
            self._refuse_junk(message, BadFrame(InvalidRequest("Batches do not exist in this revision")))
            return
        try:
            frames = read_batch(message, self._limits)
        except BadFrame as bad:
            self._refuse_junk(message, bad)
            return
        frames = [frame for frame in frames if not (isinstance(frame, BadFrame) and self._spoils(frame))]
        from .batch import refused_in_batch  # one old revision has batches

        ids: set[Any] = set()
        batch = _Batch(sum(_wants_answer(frame) for frame in frames), self._reply, self._limits.message_bytes)
        for frame in frames:
            if self._end is not None:
                return  # one of them has ended the connection
            if isinstance(frame, BadFrame):
                if frame.refusal is not None:
                    batch.add(frame.id, encode_error(frame.id, frame.refusal))
            elif _wants_answer(frame) and (refused := refused_in_batch(frame, ids)):
                id: Any = frame.id
                batch.add(id, encode_error(id, refused))
            else:
                ids.add(frame.id)
                self._receive(frame, batch)

    def _requested(self, frame: Frame, batch: _Batch | None) -> None:
        id: Any = frame.id
        reply = self._reply if batch is None else batch.add
        if id in self._runs.by_id:
            reply(id, encode_error(id, InvalidRequest("A request with this id is still running")))
            return
        try:
            work = self._side.request(frame)
        except Exception:  # a mistake of ours: one request fails, the next line is read
            log.exception("! request %.100r could not be begun", id)
            work = encode_error(id, InternalError("Internal error"))
        if work is None or isinstance(work, bytes):
            reply(id, work)
            return
        if self._calls.waiting:
            reply = self._then_all_alive(reply)
        # `initialize` is never refused or cancelled (basic/utilities/cancellation): others wait for its end.
        if not self._runs.start(id, work, reply, frame.method != "initialize"):
            work[0].close()
            told = f"More than {self._limits.in_flight} requests at once: wait for answers first"
            reply(id, encode_error(id, InternalError(told)))

    def _then_all_alive(self, reply: Reply) -> Reply:
        """A user who thinks about a question of the server's is no silence of the server's."""

        def replied(id: Id | None, answer: bytes | None) -> None:
            self._calls.all_alive()
            reply(id, answer)

        return replied

    def _reply(self, id: Id | None, answer: bytes | None) -> None:
        if answer is None or self._end is not None:
            return
        if len(answer) > self._limits.message_bytes:
            told = f"The answer is too large. {_over(len(answer), self._limits.message_bytes)}"
            answer = encode_error(id, InternalError(told))
        self._put(answer)

    def _notified(self, frame: Frame) -> None:
        if frame.method == "notifications/progress":
            self._calls.progressed(progress_of(frame), frame)
        elif frame.method != "notifications/cancelled" or not self._cancelled(frame):
            work = self._side.notification(frame)
            if work is not None and not self._runs.hear(work):
                work.close()
                log.warning("! too many notifications are being handled: %.200r was dropped", frame.method)

    def _cancelled(self, frame: Frame) -> bool:
        """Stop the named run. Unknown, late or malformed cancellations are ignored (CANC-08, CANC-13)."""
        try:
            told = _cancelled.decode(cast(bytes, frame.params))
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
            return True
        if not self._runs.cancel(told.request_id):
            return False
        log.info(
            "= request %.100r was cancelled by the peer: %.200r", told.request_id, told.reason or "no reason given"
        )
        return True

    # --- the end ----------------------------------------------------------------------------------

    def ended(self, error: ConnectionEnded) -> None:
        """The single close path: every waiter is told, every run is cancelled, the side is told."""
        if self._end is not None:
            return
        self._end = error
        self._calls.fail(error, self._channel.delivered)
        self._runs.end()
        self._side.ended(error)

    def fail(self, error: ConnectionEnded) -> None:
        """End it from this side because the peer is of no use any more."""
        self.ended(error)
        self._closing = self._loop.create_task(self._channel.close())

    def abandon(self) -> None:
        """End what can be ended without a loop, because the one this lived on is closed."""
        self._end = self._end or ConnectionClosed("the event loop was closed")
        give_up = getattr(self._channel, "abandon", None)
        if give_up is not None:
            give_up()

    async def settle(self, seconds: float) -> None:
        """Wait for the runs in flight, at most so long."""
        await self._runs.settle(seconds)

    async def close(self) -> None:
        self.ended(ConnectionClosed("the connection was closed"))
        await self._runs.settle(1.0)
        await self._channel.close()


class _Batch:
    """Collects the answers of one array; sends them as one array when the last is there (JSON-RPC 2.0 §6)."""

    def __init__(self, expected: int, reply: Reply, limit: int) -> None:
        self._missing = expected
        self._limit = limit
        self._answers: list[tuple[Id | None, bytes]] = []
        self._reply = reply

    def add(self, id: Id | None, answer: bytes | None) -> None:
        self._missing -= 1
        if answer is not None:
            self._answers.append((id, answer))
        if self._missing == 0 and self._answers:
            self._send_all()

    def _send_all(self) -> None:
        size = sum(len(answer) for _, answer in self._answers) + len(self._answers) + 1
        if size <= self._limit:
            self._reply(None, b"[" + b",".join(answer for _, answer in self._answers) + b"]")
            return
        for id, answer in self._answers:  # too much for one message: better apart than not at all
            self._reply(id, answer)


def _wants_answer(frame: Frame | BadFrame) -> bool:
    if isinstance(frame, BadFrame):
        return frame.refusal is not None
    return frame.method is not UNSET and frame.id is not UNSET


def _over(size: int, limit: int) -> str:
    return f"A message of {size} bytes is over the limit of {limit}"
