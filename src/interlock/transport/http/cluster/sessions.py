"""The sessions of an endpoint that several processes serve: any of them takes any request of any session.

What a session is stands in the store, bound to its owner (protocol/server/session_record.py). Each request looks there
first, so what ended anywhere is 404 everywhere; what a worker keeps of a session in memory is only what runs there.
What is written is written before its client hears of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any

import msgspec

from ....protocol.server.session_record import decode_record, encode_record
from ....state.store import Entry
from ....web.asgi.message import Headers, HttpRefusal
from ....wire.errors import InternalError, LocalError, StoreFull
from ....wire.exchange import Principal
from ....wire.messages import Frame
from ....wire.quota import caller_of
from ..server.event_stream import Reader, Stream
from ..server.request import HttpCall
from ..server.session import Asked, Session
from ..server.session_headers import FULL, UNKNOWN, UNRESUMABLE, TurnedAway, asked_session, seen_event
from ..server.sessions import ENDED, NO_EVENTS, Sessions
from .event_log import LoggedStream
from .event_log_reader import LogReader
from .membership import UNUSABLE, Sharing, owner_of
from .message_bus import Mail
from .session import SharedSession

__all__ = ["SharedSessions"]

log = logging.getLogger("interlock.http")
_SLACK = 1.25  # a record lasts longer than its session may rest, so that not every request has to write it
_UPKEEP = 4  # looks at what is kept here, in the shortest time after which a session ends
_TO_ALL = 0
_NO_STORE = InternalError("The store of the sessions does not answer: try again")
_FAILED = HttpRefusal.saying(503, _NO_STORE, ("retry-after", "1"))
_UNWRITTEN = InternalError("The server could not write the session to its store: try again later")
_NOT_WRITTEN = HttpRefusal.saying(503, _UNWRITTEN, ("retry-after", "10"))
_TOO_LARGE = HttpRefusal.saying(400, "What was said about the client is too large to be kept")


class SharedSessions(Sessions):
    def __init__(self, sharing: Sharing, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self._sharing = sharing
        self._upkeep: asyncio.Task[None] | None = None
        sharing.on_ready.append(self._joined)
        sharing.on_lapse.append(self._check_fences)
        sharing.hear(
            changed=self._changed,
            ended=self._ended_elsewhere,
            frame=self._forwarded,
            spoilt=self._spoilt,
            say=self._say,
            speaker=self._speaks,
            reading=self._reading,
        )

    async def _joined(self) -> None:
        self._around.first_id = self._sharing.colleagues.first_name
        self._upkeep = asyncio.get_running_loop().create_task(self._keep_up())

    # --- requests ---------------------------------------------------------------------------------

    async def post(self, call: HttpCall, body: bytes, headers: Headers, principal: Principal) -> None:
        await _guarded(call, self._post(call, body, headers, principal))

    async def get(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        await _guarded(call, self._get(call, headers, principal))

    async def delete(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        await _guarded(call, self._delete(call, headers, principal))

    async def _post(self, call: HttpCall, body: bytes, headers: Headers, principal: Principal) -> None:
        await self._bring(call, headers, principal)
        await super().post(call, body, headers, principal)

    async def _get(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        await self._bring(call, headers, principal)
        session = _shared(self._named(call, headers, principal))
        if not call.accepts.events:
            raise TurnedAway(NO_EVENTS)
        seen = seen_event(headers)
        if seen is None:
            await self._speak(session)
            await self._listen(call, session)
        else:
            await self._resume(call, session, *seen)

    async def _delete(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        await self._bring(call, headers, principal)
        session = self._named(call, headers, principal)
        await self._sharing.state.delete(self._sharing.session_key(session.id), owner=owner_of(principal))
        session.finish()
        await self._sharing.colleagues.tell_all(Mail("ended", session.id))
        await call.refuse(ENDED)

    def _serve_one(self, call: HttpCall, session: Session, frame: Frame) -> Awaitable[None]:
        return self._serve(call, session, [frame])

    async def _serve(self, call: HttpCall, session: Session, asked: list[Asked], *, array: bool = False) -> None:
        self._check_busy()
        stream, reader = session.requests(asked, call.address, call.accepts.events)
        await self._deliver(call, session, stream, reader, array)  # also what is answered: it may have to be written

    async def _accept(self, call: HttpCall, session: Session) -> None:
        await self._settle(_shared(session))
        await super()._accept(call, session)

    async def _deliver(
        self, call: HttpCall, session: Session, stream: Stream, reader: Reader, array: bool, *, resumed: bool = False
    ) -> None:
        try:
            await self._settle(_shared(session))
            if stream.begun and isinstance(stream, LoggedStream):
                await stream.noted()  # who comes back to another worker finds it
        except BaseException:
            stream.detach(reader)
            if stream.ended:
                session.forget(stream)  # what runs on is forgotten with its answer
            raise
        await super()._deliver(call, session, stream, reader, array, resumed=resumed)

    async def _settle(self, session: SharedSession) -> None:
        """What came changed the session, or concerns another worker: that is seen to before anything is answered."""
        while session.outgoing:
            await self._send(session.outgoing.pop(0))
        if session.end is None:
            await self._keep(session)
            await _attend(session)

    async def _send(self, letter: tuple[int, Mail]) -> None:
        to, mail = letter
        if to == _TO_ALL:
            await self._sharing.colleagues.tell_all(mail)
        else:
            await self._sharing.colleagues.send(to, mail, late=True)

    # --- the record -------------------------------------------------------------------------------

    def _begin(self, id: str, principal: Principal, address: str) -> Session:
        seconds = self._bounds.idle * _SLACK
        return SharedSession(id, principal, self._around, address, self._sharing, seconds)

    async def _bring(self, call: HttpCall, headers: Headers, principal: Principal) -> None:
        """The session that is asked for as it is now, or nothing where it is not any more."""
        id = asked_session(headers)
        if id is None:
            return
        entry = await self._sharing.state.get(self._sharing.session_key(id), owner=owner_of(principal))
        self._now(asyncio.get_running_loop())
        session = self._by_id.get(id)
        if entry is None:
            if session is not None and session.principal == principal:
                session.finish()
            return
        if session is None:
            session = self._rebuild(id, principal, call.address, entry)
        elif _shared(session).version < entry.version and not self._adopt(_shared(session), entry):
            session.finish()
            return
        await self._touch(_shared(session), entry)

    def _rebuild(self, id: str, principal: Principal, address: str, entry: Entry) -> Session:
        self._check_room(caller_of(principal, address), len(entry.value))
        session = self._begin(id, principal, address)
        if not self._adopt(_shared(session), entry):
            raise TurnedAway(UNKNOWN)
        self._enter(session, len(entry.value))
        self._add(session)
        return session

    def _adopt(self, session: SharedSession, entry: Entry) -> bool:
        """False: it cannot be served here any more. What another version of this library wrote may be unreadable."""
        try:
            record = decode_record(entry.value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            log.warning("! the record of a session cannot be read: its client has to begin again")
            return False
        return session.adopt(record, entry.version)

    async def _touch(self, session: SharedSession, entry: Entry) -> None:
        """It is in use. Written only now and then."""
        if entry.until - time.time() < self._patience(session):
            owner = owner_of(session.principal)
            until = time.time() + self._patience(session) * _SLACK
            version = await self._sharing.state.put(
                entry.key, entry.value, until=until, owner=owner, expect=entry.version
            )
            if version and session.version == entry.version:
                session.version = version

    def _patience(self, session: SharedSession) -> float:
        return self._bounds.idle if session.ready else self._bounds.unready

    async def _keep(self, session: SharedSession) -> None:
        """Write what has changed, on top of what others wrote meanwhile, and let them know."""
        key, owner = self._sharing.session_key(session.id), owner_of(session.principal)
        while session.edition != session.kept and (mine := session.record()) is not None:
            until, known = time.time() + self._patience(session) * _SLACK, session.version
            edition = session.edition
            version = await self._put(session, key, encode_record(mine), until=until, owner=owner, expect=known)
            if version:
                session.version, session.saved, session.kept = version, mine, edition
                if known:
                    await self._sharing.colleagues.tell_all(Mail("changed", session.id))
                continue
            entry = await self._sharing.state.get(key, owner=owner)
            if entry is None or not self._adopt(session, entry):
                session.finish()
                raise TurnedAway(UNKNOWN)

    async def _put(self, session: SharedSession, key: str, value: bytes, **facts: Any) -> int:
        try:
            return await self._sharing.state.put(key, value, **facts)
        except StoreFull:
            refusal = FULL
        except UNUSABLE as error:
            log.error("! a session could not be written: %s", error)
            refusal = _NOT_WRITTEN
        except LocalError:
            refusal = _TOO_LARGE
        if not session.version:
            session.finish()  # its client never heard of it
        raise TurnedAway(refusal)

    # --- streams ----------------------------------------------------------------------------------

    async def _speak(self, session: SharedSession, resumed: int = 0) -> None:
        """From now on this worker says what belongs to no request."""
        me = self._sharing.colleagues.number
        if session.speaker != me or not session.may_listen or resumed:
            before = session.speak()
            await self._keep(session)
            version = session.version if session.speaker == me else 0  # another one came in between: it speaks
            await self._sharing.colleagues.tell_all(Mail("speaker", session.id, number=resumed, version=version))
            if before not in (0, me):
                session.spawn(self._look_back(session, before))

    async def _look_back(self, session: SharedSession, before: int) -> None:
        """Does the one live who spoke before? The dead count as living for a while, so the second look decides."""
        colleagues = self._sharing.colleagues
        if await colleagues.alive(before):
            await asyncio.sleep(colleagues.lease)
        if not await colleagues.alive(before):
            await session.tell_missed()

    async def _listen(self, call: HttpCall, session: SharedSession, *, resumed: bool = False) -> None:
        await session.come_to_rest()
        if session.end is not None:  # while this one waited: nobody would ever end a stream that begins now
            raise TurnedAway(UNKNOWN)
        stream = session.standing()
        reader = stream.attach()
        assert isinstance(stream, LoggedStream)
        await stream.settle()
        await self._deliver(call, session, stream, reader, False, resumed=resumed)

    async def _resume(self, call: HttpCall, session: SharedSession, name: int, number: int) -> None:
        """The rest of a stream: from memory where its worker is this one, else from its log."""
        stream = session.stream(name)
        if isinstance(stream, LoggedStream) and stream.can_resume(number):
            await self._resume_here(call, session, stream, number)
        else:
            await self._resume_log(call, session, name, number)

    async def _resume_here(self, call: HttpCall, session: SharedSession, stream: LoggedStream, number: int) -> None:
        if _is_standing(stream.name):
            await self._speak(session)
        else:
            stream.claims += 1
            try:
                await self._say_who_reads(session, stream.name)
            except BaseException:
                stream.claims -= 1
                raise
        await self._deliver(call, session, stream, stream.attach(number), False, resumed=True)

    async def _resume_log(self, call: HttpCall, session: SharedSession, name: int, number: int) -> None:
        reader, standing = LogReader(self._sharing.colleagues, session.logs.of(name), name), _is_standing(name)
        if not await reader.begin(number, standing=standing):
            raise TurnedAway(UNRESUMABLE)
        session.busy += 1
        try:
            if standing:
                await self._speak(session, name)
            else:
                session.reads(name, reader)
                await self._say_who_reads(session, name)
            await reader.follow(call, lambda: session.end is not None, last=not standing)
        finally:
            session.busy -= 1
            session.used = asyncio.get_running_loop().time()
            session.reads_no_more(name, reader)
        if standing:
            await self._listen(call, session, resumed=True)  # what comes next is said here

    async def _say_who_reads(self, session: SharedSession, name: int) -> None:
        await self._sharing.colleagues.tell_all(Mail("reading", session.id, number=name))

    # --- what other workers say -------------------------------------------------------------------

    def _here(self, mail: Mail) -> SharedSession | None:
        session = self._by_id.get(mail.session)
        return None if session is None else _shared(session)

    async def _changed(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is None or mail.sender == self._sharing.colleagues.number:
            return
        entry = await self._sharing.state.get(self._sharing.session_key(session.id), owner=owner_of(session.principal))
        if entry is None or (session.version < entry.version and not self._adopt(session, entry)):
            session.finish()

    async def _ended_elsewhere(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is not None:
            session.finish()

    async def _forwarded(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is not None:
            session.forwarded(mail.data)

    async def _spoilt(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is not None:
            session.forwarded_spoilt(mail.number, mail.data.decode())

    async def _say(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is not None:
            session.say(mail.data)

    async def _speaks(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is None:
            return
        session.heard_who_speaks(mail.sender, mail.version)
        await _attend(session)
        if mail.sender == self._sharing.colleagues.number:
            return
        await self._changed(mail)
        for letter in await session.hand_over(mail.sender, mail.number):
            await self._send(letter)

    async def _reading(self, mail: Mail) -> None:
        session = self._here(mail)
        if session is not None:
            session.is_read(mail.number, here=mail.sender == self._sharing.colleagues.number)

    # --- how one ends -----------------------------------------------------------------------------

    def _set_sweeper(self) -> None:
        """Records end by themselves."""

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(min(self._bounds.idle, self._bounds.unready) / _UPKEEP)
            for session in list(self._by_id.values()):
                try:
                    await self._look_after(_shared(session))
                except (*UNUSABLE, TurnedAway):
                    pass  # the store does not answer: the next round sees to it

    async def _check_fences(self) -> None:
        """This worker stood still: what was reported as lost meanwhile ends."""
        streams = [stream for session in self._by_id.values() for stream in _shared(session).open_streams()]
        for stream in streams:
            await stream.lasts()

    async def _look_after(self, session: SharedSession) -> None:
        """What is in use lasts; what has ended elsewhere, or is not used here, is forgotten here."""
        entry = await self._sharing.state.get(self._sharing.session_key(session.id), owner=owner_of(session.principal))
        if entry is None:
            session.finish()
        elif session.busy:
            await self._touch(session, entry)
            for stream in session.open_streams():
                await stream.lasts()
        elif self._is_unused(session):
            session.finish()

    def _is_unused(self, session: SharedSession) -> bool:
        rested = asyncio.get_running_loop().time() - session.used >= self._bounds.unready
        speaks = session.may_listen or session.speaker == self._sharing.colleagues.number
        return rested and session.idle and not speaks

    async def close(self) -> None:
        """End what is here. The sessions themselves go on at other workers, or when this one comes back."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            self._upkeep = None
        await super().close()


async def _guarded(call: HttpCall, work: Awaitable[None]) -> None:
    """What is turned away is told why; without its store an endpoint is 503. A stream that has begun ends instead."""
    try:
        await work
        return
    except TurnedAway as away:
        refusal = away.refusal
    except UNUSABLE as error:
        log.warning("! a request of a session was refused: %s", error)
        refusal = _FAILED
    await (call.end_events(b"") if call.streaming else call.refuse(refusal))


async def _attend(session: SharedSession) -> None:
    """What changes after its client was answered is told."""
    if session.attend():
        await asyncio.sleep(0)


def _shared(session: Session) -> SharedSession:
    assert isinstance(session, SharedSession)
    return session


def _is_standing(name: int) -> bool:
    """Does the stream of this name belong to no request?"""
    return bool(name & 1)
