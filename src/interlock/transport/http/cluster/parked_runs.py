"""Runs that wait for answers in the memory of one worker, when the answers reach another.

A state names the worker that has its run. Whoever gets a request with such a state sends it there whole, and hands on
what is said and answered there: the run goes on as if its client had come back to it (protocol/input/parking.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from ....protocol.input.parking_lot import Parking
from ....protocol.input.rounds import STATE_REFUSED
from ....web.asgi.message import Headers
from ....wire.channel import Outlet, Patience
from ....wire.errors import Fenced, InternalError, InvalidParams
from ....wire.exchange import Principal, Silenced, Work
from ....wire.json.reader import read_own_json
from ....wire.messages import ErrorAnswer, Frame, encode_error
from ..server.stateless import HttpSide, OfSession
from .event_log import Log, Mark
from .membership import Sharing
from .message_bus import UNUSABLE, Mail

__all__ = ["ParkedSide"]

log = logging.getLogger("interlock.http")
_KEPT = 600.0  # seconds that what is said of a round waits to be handed on
_LOOKS = 2  # at a worker from which nothing comes, in the time after which it counts as dead
_SAID, _ANSWER = b"m", b"a"
_NO_STORE = InternalError("The store of what waits for answers does not answer: try again")


class _State(msgspec.Struct):
    requestState: Any = None


class _Request(msgspec.Struct, frozen=True):
    """A request as it goes to another worker."""

    frame: bytes
    headers: list[tuple[bytes, bytes]]
    repeated: list[bytes]
    principal: Principal
    address: str


_states = msgspec.json.Decoder(_State)
_frames = msgspec.json.Decoder(Frame)
_requests = msgspec.msgpack.Decoder(_Request)
_answers = msgspec.msgpack.Decoder(tuple[int, bytes])
_notices = msgspec.msgpack.Decoder(tuple[str, dict[str, Any] | None])


class ParkedSide(HttpSide):
    def __init__(self, sharing: Sharing, parking: Parking, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self._sharing, self._parking = sharing, parking
        self._rounds: dict[int, tuple[asyncio.Task[None], Silenced | None]] = {}
        sharing.on_ready.append(self._joined)
        sharing.on_lapse.append(self._check_fences)
        sharing.hear(round=self._serve, round_over=self._give_up)

    async def _joined(self) -> None:
        self._parking.worker = self._sharing.colleagues.number

    # --- where the request came -------------------------------------------------------------------

    def request(self, frame: Frame, headers: Headers, principal: Principal, outlet: Outlet) -> bytes | Work:
        worker = self._worker_of(frame)
        if worker in (0, self._sharing.colleagues.number):
            return super().request(frame, headers, principal, outlet)
        return _guarded(frame, self._hand_on(worker, frame, headers, principal, outlet)), None

    def _worker_of(self, frame: Frame) -> int:
        raw = frame.params if frame.params is not UNSET else b""
        if b"requestState" not in bytes(raw):
            return 0
        try:
            sealed = _states.decode(raw).requestState
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0
        return self._parking.worker_of(sealed) if isinstance(sealed, str) else 0

    async def _hand_on(
        self, worker: int, frame: Frame, headers: Headers, principal: Principal, outlet: Outlet
    ) -> bytes:
        name = self._sharing.colleagues.next_name()
        address = getattr(outlet, "address", "")
        lines, repeated = list(headers.values.items()), list(headers.repeated)
        asked = _Request(msgspec.json.encode(frame), lines, repeated, principal, address)
        letter = Mail("round", data=msgspec.msgpack.encode(asked), number=name)
        if not await self._sharing.colleagues.send(worker, letter):
            return _refused(frame)  # and its runs are gone with it
        log = self._log(name)
        try:
            answer = await self._follow(log, worker, outlet)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self._sharing.spawn(self._tell_over(worker, name))
            self._sharing.spawn(log.drop())
            raise
        if answer is None:  # the log stays a while: its fence keeps out a worker that stood still
            return _refused(frame)
        self._sharing.spawn(log.drop())
        return answer

    async def _follow(self, log: Log, worker: int, outlet: Outlet) -> bytes | None:
        """Say here what is said there, until the answer; None: that worker is gone, and locked out."""
        position, colleagues = 0, self._sharing.colleagues
        while True:
            for event in await log.read(position):
                position = event.id
                if event.data[:1] == _ANSWER:
                    return _answer(event.data[1:])
                if event.data[:1] == Mark.BROKEN:
                    return None
                method, params = _notices.decode(event.data[1:])
                await outlet.tell(method, params)
            if not await log.wait(position, colleagues.lease / _LOOKS) and not await colleagues.alive(worker):
                await log.fence()

    async def _tell_over(self, worker: int, name: int) -> None:
        await self._sharing.colleagues.send(worker, Mail("round_over", number=name))

    def _log(self, name: int) -> Log:
        return Log(self._sharing.state, f"{self._sharing.space}/round/{name}", _KEPT)

    # --- where the run is -------------------------------------------------------------------------

    async def _serve(self, mail: Mail) -> None:
        asked = _requests.decode(mail.data)
        frame, headers = _frames.decode(asked.frame), Headers(asked.headers)
        headers.repeated = frozenset(asked.repeated)
        log = self._log(mail.number)
        await log.lasts()  # raises where the client was told already that this worker is gone
        outlet = _There(log, asked.address)
        try:
            work = super().request(frame, headers, asked.principal, outlet)
        except OfSession:
            work = _refused(frame)
        if isinstance(work, bytes):
            await _tell(log, work)
            return
        task = self._sharing.spawn(_run(log, work[0]))
        self._rounds[mail.number] = task, work[1]
        task.add_done_callback(lambda _: self._rounds.pop(mail.number, None))

    async def _give_up(self, mail: Mail) -> None:
        """Its client went away: that cancels the run, as it does where the run is."""
        task, exchange = self._rounds.get(mail.number, (None, None))
        if exchange is not None:
            exchange.silence()
        if task is not None:
            task.cancel()

    async def _check_fences(self) -> None:
        """This worker stood still: rounds that were given up elsewhere meanwhile end."""
        for number in list(self._rounds):
            try:
                await self._log(number).lasts()
            except Fenced:
                await self._give_up(Mail("round_over", number=number))


class _There:
    """What a run speaks through: the worker that its client is connected to reads it."""

    def __init__(self, log: Log, address: str) -> None:
        self._log = log
        self.address = address

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        plain = read_own_json(msgspec.json.encode(params))
        await self._log.append([_SAID + msgspec.msgpack.encode((method, plain))])

    async def call(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], *, patience: Patience
    ) -> Frame:
        raise InternalError(f"{method}: a stateless client cannot be called")


async def _run(log: Log, work: Coroutine[Any, Any, bytes]) -> None:
    await _tell(log, await work)


async def _tell(log: Log, answer: bytes) -> None:
    """With its code, by which HTTP tells outcomes apart."""
    code = answer.code if isinstance(answer, ErrorAnswer) else 0
    await log.append([_ANSWER + msgspec.msgpack.encode((code, bytes(answer)))])


def _answer(data: bytes) -> bytes:
    code, answer = _answers.decode(data)
    if not code:
        return answer
    told = ErrorAnswer(answer)
    told.code = code
    return told


async def _guarded(frame: Frame, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Without the store nobody can be asked: what waits there may be asked for again."""
    try:
        return await work
    except UNUSABLE as error:
        log.warning("! a round could not be handed on: %s", error)
        id: Any = frame.id
        return encode_error(id, _NO_STORE)


def _refused(frame: Frame) -> bytes:
    id: Any = frame.id
    return encode_error(id, InvalidParams(STATE_REFUSED))
