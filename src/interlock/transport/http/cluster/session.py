"""One session as one of several workers sees it: what it is stands in a record that all of them read and write.

A request runs where it came, and what is said for it is written there. What must reach another worker is gathered in
`outgoing` and sent before its client hears that it was accepted: the answer to a question asked elsewhere, the
cancellation of what runs elsewhere. One worker speaks for the session where no request does: the one whose GET stream
was opened last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import msgspec

from ....protocol.server.session_record import SessionRecord, merged
from ....wire.errors import BadFrame, BadResult, ConnectionEnded
from ....wire.exchange import Principal
from ....wire.limits import DEFAULT_LIMITS
from ....wire.messages import Frame, encode_notice
from ...jsonrpc.pending import progress_of
from ..server.event_stream import Stream
from ..server.session import Asked, Session, Surroundings, read_cancelled
from .event_log import LoggedStream, Logs
from .event_log_reader import LogReader
from .membership import Sharing
from .message_bus import Mail, worker_of

__all__ = ["SharedSession"]

log = logging.getLogger("interlock.http")
_ALL = 0
_LAST_WORDS = 5.0  # seconds for one who told of changes to say what it has heard; not for a client that does not read
_REASON = 200  # characters of a cancellation's reason, as many as are logged
_frames = msgspec.json.Decoder(Frame)


class SharedSession(Session):
    def __init__(
        self, id: str, principal: Principal, around: Surroundings, address: str, sharing: Sharing, seconds: float
    ) -> None:
        self._sharing = sharing
        self.keeping = around.keeping
        self.logs = Logs(
            *(sharing.state, f"{sharing.space}/log/{id}", seconds, sharing.spawn),
            on_end=self._stream_ended,
            on_fence=self._stream_fenced,
        )
        self.version = 0
        self.saved: SessionRecord | None = None
        """The record as it was last read or written, in that version."""
        self.kept: tuple[int, int] | None = None
        """The `edition` that is written in it."""
        self.speaker = 0
        self._unasked = False
        """Does it speak only because nobody else did?"""
        self.may_listen = False
        """Is this worker the last of which all heard, in the stream by which changes come, that it speaks? From there
        on it tells of them, and whoever spoke before does not. Never by the record, which changes at another moment."""
        self._tells_since = 0
        self.outgoing: list[tuple[int, Mail]] = []
        self._listening: asyncio.Task[None] | None = None
        self._retired: asyncio.Task[None] | None = None
        self._errands: set[asyncio.Task[None]] = set()
        self._readers: dict[int, LogReader] = {}
        super().__init__(id, principal, around, address)

    # --- its record -------------------------------------------------------------------------------

    def record(self) -> SessionRecord | None:
        return self._side.handshake.record(self.speaker)

    @property
    def edition(self) -> tuple[int, int]:
        """Another one whenever the record would be another one, without the price of making it."""
        return self._side.handshake.edition, self.speaker

    def adopt(self, theirs: SessionRecord, version: int) -> bool:
        """Others have changed it; what was changed here and not yet written stays. False: it cannot be served here."""
        if self._unasked and theirs.speaker and self.saved is not None:
            self.speaker = self.saved.speaker
        mine, unchanged = self.record(), self.kept in (None, self.edition)
        now = theirs if mine is None or self.saved is None else merged(self.saved, mine, theirs)
        if not self._side.handshake.recall(now):
            return False
        self.saved, self.version, self.speaker = theirs, version, now.speaker
        if unchanged:
            self.kept = self.edition
        self.attend()
        return True

    # --- what comes in ----------------------------------------------------------------------------

    def notified(self, frame: Frame) -> None:
        if frame.method == "notifications/initialized":
            self._initialized(frame)
        elif frame.method == "notifications/progress" and self._is_elsewhere(token := progress_of(frame)):
            self._send(worker_of(token), frame)
        elif frame.method != "notifications/cancelled":
            super().notified(frame)
        elif not self._cancel(frame) and (told := _short(frame)) is not None:
            self.outgoing.append((_ALL, Mail("frame", self.id, told)))

    def _initialized(self, frame: Frame) -> None:
        work = self._side.notification(frame)
        if work is not None:
            work.close()  # whoever speaks listens, and that may be another one
            if not self.speaker:
                self.speaker, self.may_listen, self._unasked = self._me, True, True

    def answered(self, frame: Frame) -> None:
        if self._is_elsewhere(frame.id):
            self._send(worker_of(cast(int, frame.id)), frame)
        else:
            super().answered(frame)

    def spoilt(self, bad: BadFrame) -> None:
        if bad.answers is not None and self._is_elsewhere(bad.answers):
            said = Mail("spoilt", self.id, str(bad).encode(), int(bad.answers))
            self.outgoing.append((worker_of(bad.answers), said))
        else:
            super().spoilt(bad)

    @property
    def _me(self) -> int:
        return self._sharing.colleagues.number

    def _is_elsewhere(self, id: Any) -> bool:
        return isinstance(id, int) and worker_of(id) not in (0, self._me)

    def _send(self, to: int, frame: Frame) -> None:
        self.outgoing.append((to, Mail("frame", self.id, msgspec.json.encode(frame))))

    def forwarded(self, data: bytes) -> None:
        """What another worker received for this one."""
        frame = _frames.decode(data)
        if frame.method == "notifications/progress":
            self._calls.progressed(progress_of(frame), frame)
        elif frame.method == "notifications/cancelled":
            self._cancel(frame)
        else:
            super().answered(frame)

    def forwarded_spoilt(self, id: int, told: str) -> None:
        self._calls.spoil(id, BadResult(f"a broken response: {told}"))

    # --- its streams ------------------------------------------------------------------------------

    def _new(self, asked: Sequence[Asked] = (), events: bool = True) -> Stream:
        ids = tuple(frame.id for frame in asked if isinstance(frame, Frame) and isinstance(frame.id, int | str))
        facts = {"events": events, "primed": self.revision is not None and self.revision.polling}
        name = self._sharing.colleagues.next_name(odd=not asked)
        stream = LoggedStream(name, self.keeping, self.logs, ids, expected=len(asked), **facts)
        self._streams[name] = stream
        return stream

    def _stream_ended(self, stream: Stream) -> None:
        if stream.reader is None:
            self.shelve(stream)

    def _stream_fenced(self, stream: LoggedStream, unsaid: list[bytes]) -> None:
        """Its requests were reported as lost elsewhere: they end here without an answer. What belongs to no request is
        said on the stream that took the place of this one."""
        self._around.running -= stream.expects
        self.forget(stream)
        if stream in self._standing:
            self._standing.remove(stream)
        for id in stream.ids:
            self._runs.cancel(id)
        if stream.ids:
            log.warning("! cancelled, because another worker has reported it as lost: request %.100r", stream.ids)
        elif self._end is None:
            for message in unsaid:
                self.say(message)

    def shelve(self, stream: Stream) -> None:
        """It is in its log, if it is anywhere; that is kept a while, and not beside more than a shelf holds."""
        self.forget(stream)
        if isinstance(stream, LoggedStream) and stream.log.size:
            spawn = self._sharing.spawn  # and nothing of this session, which may end before
            kept_log, shelf = stream.log, self._around.shelf
            shelf.put(kept_log, kept_log.size, lambda kept: spawn(kept.drop()), taken=stream.taken, caller=self.caller)

    def open_streams(self) -> list[LoggedStream]:
        return [stream for stream in self._streams.values() if isinstance(stream, LoggedStream) and not stream.ended]

    def standing(self) -> Stream:
        left = self._idle_standing()
        stream = super().standing()
        for other in left:
            self._give_up(other)
        return stream

    # --- who reads what others write --------------------------------------------------------------

    def reads(self, name: int, reader: LogReader) -> None:
        """There is one reader of a stream: whoever was there is sent away, also at other workers once they hear it."""
        before = self._readers.get(name)
        if before is not None:
            before.sent_away = True
        self._readers[name] = reader

    def reads_no_more(self, name: int, reader: LogReader) -> None:
        if self._readers.get(name) is reader:
            del self._readers[name]

    def is_read(self, name: int, *, here: bool) -> None:
        """All hear in the same order who came to read a stream; the last one reads it."""
        stream, reader = self.stream(name), self._readers.get(name)
        if reader is not None:
            reader.sent_away = reader.sent_away or (reader.is_known and not here)
            reader.is_known = reader.is_known or here
        if isinstance(stream, LoggedStream):
            if here and stream.claims:
                stream.claims -= 1
            elif not here and not stream.claims:
                stream.follow()

    async def come_to_rest(self) -> None:
        """All that was said where nobody reads is written, and can be moved."""
        while unsettled := [stream for stream in self._idle_standing() if not stream.settled]:
            await unsettled[0].settle()

    def _idle_standing(self) -> list[LoggedStream]:
        """Those that nobody reads, here or elsewhere."""
        standing = [stream for stream in self._standing if isinstance(stream, LoggedStream)]
        return [stream for stream in standing if stream.reader is None and not stream.followed]

    def _give_up(self, stream: LoggedStream) -> None:
        if stream in self._standing:
            self._standing.remove(stream)
        self.forget(stream)
        stream.discard()

    # --- who speaks -------------------------------------------------------------------------------

    def _listener(self) -> Stream:
        if self.speaker in (0, self._me):
            return super()._listener()
        return _Elsewhere(self, self._sharing, self.speaker)

    def say(self, message: bytes) -> None:
        """What another worker said in this session and belongs to no request."""
        self._listener().put(message)

    def say_here(self, message: bytes) -> None:
        super()._listener().put(message)

    def speak(self) -> int:
        """Its client listens here from now on; returns who spoke before."""
        before, self.speaker, self._unasked = self.speaker, self._me, False
        return before

    def heard_who_speaks(self, worker: int, version: int) -> None:
        """From this version of the record on it is that worker. All hear of it in the same order, so at each place in
        it one tells of changes and all agree which one; the latest by the record is the last of them."""
        if version > self._tells_since:
            self._tells_since, self.may_listen = version, worker == self._me

    def attend(self) -> bool:
        """Listen for changes where this worker is the one who tells of them, and only there. True: it begins to, with
        the next turn of the loop."""
        mine = self.ready and self.may_listen and self._end is None
        if mine and self._listening is None:
            self._listening = self._runs.loop.create_task(self._side.handshake.listen())
            return True
        if not mine and self._listening is not None:
            self._retire(self._listening)
            self._listening = None
        return False

    def _retire(self, listening: asyncio.Task[None]) -> None:
        """It hears of nothing new; what it has heard already, nobody else will tell of."""
        self._side.handshake.stop_hearing()
        if self._retired is not None:
            self._retired.cancel()
        self._retired = listening
        self._runs.loop.call_later(_LAST_WORDS, listening.cancel)

    def spawn(self, errand: Coroutine[Any, Any, None]) -> None:
        """Begin what ends with this session at the latest."""
        task = self._sharing.spawn(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def tell_missed(self) -> None:
        """Whoever spoke before died, and what changed since then was told by nobody: let the client look itself."""
        for method, params in self._side.handshake.missed() if self.ready else ():
            await self.tell(method, params)

    async def hand_over(self, to: int, resumed: int) -> list[tuple[int, Mail]]:
        """Another worker speaks from now on, and reads on where `resumed` ends. What waits here for a reader is to be
        sent there; a stream that is read here stays open."""
        mails: list[tuple[int, Mail]] = []
        for stream in [*self._standing]:
            if isinstance(stream, LoggedStream) and stream.name == resumed:
                self._standing.remove(stream)
                stream.follow()
                stream.close()
                self.forget(stream)
        await self.come_to_rest()
        for stream in self._idle_standing():
            mails.extend((to, Mail("say", self.id, message)) for message in stream.take_unread())
            self._give_up(stream)
        return mails

    # --- the end ----------------------------------------------------------------------------------

    def finish(self, error: ConnectionEnded | None = None) -> None:
        """Of this worker's part; the session itself ends with its record."""
        super().finish(error)
        for task in (self._listening, self._retired, *self._errands):
            if task is not None:
                task.cancel()
        self._listening = self._retired = None


def _short(frame: Frame) -> bytes | None:
    """A cancellation as all workers read it: no longer than it has to be. None: no request has such an id."""
    told = read_cancelled(frame)
    if told is None or len(str(told.request_id)) > DEFAULT_LIMITS.id_bytes:
        return None
    reason = told.reason[:_REASON] if told.reason else ""
    return encode_notice("notifications/cancelled", {"requestId": told.request_id, "reason": reason})


class _Elsewhere(Stream):
    """The stream of another worker: what is said here goes there."""

    def __init__(self, session: SharedSession, sharing: Sharing, speaker: int) -> None:
        super().__init__(0, session.keeping)
        self._session, self._sharing, self._speaker = session, sharing, speaker

    def put(self, message: bytes) -> bool:
        self._sharing.spawn(self.tell(message))
        return True

    async def tell(self, message: bytes) -> None:
        mail = Mail("say", self._session.id, message)
        if not await self._sharing.colleagues.send(self._speaker, mail):
            self._session.say_here(message)  # that worker is gone: it waits here for the next one
