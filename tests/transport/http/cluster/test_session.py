"""transport/http/cluster/session.py: one worker's part of a session, looked at alone (more in
test_shared_sessions.py)."""

import asyncio
from contextlib import asynccontextmanager

import msgspec

from interlock import Context, Server
from interlock.revisions.table import pick
from interlock.transport.http.cluster.membership import Sharing
from interlock.transport.http.cluster.session import SharedSession
from interlock.transport.http.server.event_stream import Keeping
from interlock.transport.http.server.replay_buffer import Shelf
from interlock.transport.http.server.session import Surroundings
from interlock.wire.exchange import ANONYMOUS
from interlock.wire.limits import DEFAULT_LIMITS
from interlock.wire.messages import Frame, read_frame

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}


def frame(**members) -> Frame:
    return read_frame(msgspec.json.encode({"jsonrpc": "2.0", **members}))


@asynccontextmanager
async def opened(path):
    """A session that was introduced, and the sharing it is part of."""
    server = Server("s")

    @server.notification("notifications/x/hello")
    async def hello(ctx: Context) -> None:
        await ctx.log("info", "heard")

    sharing = Sharing(path, "x", lease=5.0)
    await sharing.ready()
    keeping = Keeping()
    around = Surroundings(
        server, pick(None), DEFAULT_LIMITS, keeping, Shelf(keeping), False, lambda session: None,
        sharing.colleagues.first_name,
    )  # fmt: skip
    session = SharedSession("id", ANONYMOUS, around, "", sharing, 60.0)
    stream, _ = session.requests([frame(id=1, method="initialize", params=HELLO)], "", True)
    while not stream.ended:
        await stream.changed()
    try:
        yield session, sharing
    finally:
        session.finish()
        await sharing.leave()


async def test_the_first_that_hears_of_a_ready_client_speaks(tmp_path):
    async with opened(tmp_path / "s.db") as (session, sharing):
        assert session.record().speaker == 0
        session.notified(frame(method="notifications/initialized"))
        assert (session.record().speaker, session.ready) == (sharing.colleagues.number, True)
        assert session.attend() and not session.attend()


async def test_whoever_was_asked_to_speak_goes_before_whoever_was_not(tmp_path):
    """A GET reached another worker while the client said here that it is ready."""
    async with opened(tmp_path / "s.db") as (session, sharing):
        session.saved, session.version = session.record(), 1
        session.notified(frame(method="notifications/initialized"))
        assert session.adopt(msgspec.structs.replace(session.saved, speaker=9), 2)
        assert (session.record().speaker, session.may_listen) == (9, True)  # until all have heard of the other one
        session.heard_who_speaks(9, 2)
        assert not session.may_listen
        assert session.speak() == 9
        assert session.adopt(msgspec.structs.replace(session.saved, speaker=8), 3)
        assert session.record().speaker == sharing.colleagues.number


async def test_all_agree_on_the_one_who_tells_of_changes(tmp_path):
    """Whoever came later by the record tells, also where its word came first."""
    async with opened(tmp_path / "s.db") as (session, sharing):
        session.notified(frame(method="notifications/initialized"))
        assert session.attend()
        told = []
        for worker, version in ((9, 5), (sharing.colleagues.number, 4), (sharing.colleagues.number, 7), (8, 0)):
            session.heard_who_speaks(worker, version)
            told.append((session.may_listen, session.attend()))
        assert told == [(False, False), (False, False), (True, True), (True, False)]


async def test_what_is_not_yet_written_survives_what_others_wrote(tmp_path):
    async with opened(tmp_path / "s.db") as (session, _):
        session.saved, session.version = session.record(), 1
        session.requests([frame(id=2, method="logging/setLevel", params={"level": "error"})], "", True)
        mine = session.record()
        theirs = msgspec.structs.replace(session.saved, watched=frozenset({"note://1"}), speaker=9)
        assert session.adopt(theirs, 2)
        now = session.record()
        assert (now.log_level, now.watched, now.speaker) == (mine.log_level, {"note://1"}, 9)
        assert (session.version, session.saved) == (2, theirs)


async def test_a_revision_that_is_not_spoken_here_cannot_be_adopted(tmp_path):
    async with opened(tmp_path / "s.db") as (session, sharing):
        other = SharedSession("other", ANONYMOUS, session._around, "", sharing, 60.0)
        assert not other.adopt(msgspec.structs.replace(session.record(), revision="none"), 1)
        other.finish()


async def test_only_what_is_not_for_this_worker_goes_out(tmp_path):
    async with opened(tmp_path / "s.db") as (session, sharing):
        here, there = sharing.colleagues.first_name + 1, (9 << 32) + 1
        for id in (here, there, 5, "x"):
            session.answered(frame(id=id, result={}))
            session.notified(frame(method="notifications/progress", params={"progressToken": id, "progress": 1}))
        session.notified(frame(method="notifications/cancelled", params={"requestId": 77}))
        session.notified(frame(method="notifications/cancelled", params={"requestId": []}))
        assert [(to, msgspec.json.decode(mail.data).get("method")) for to, mail in session.outgoing] == [
            (9, None),
            (9, "notifications/progress"),
            (0, "notifications/cancelled"),
        ]


async def test_what_belongs_to_no_request_goes_to_who_speaks(tmp_path):
    async with opened(tmp_path / "s.db") as (session, _):
        await session.tell("notifications/message", {"level": "info", "data": "here"})
        [standing] = session._standing
        await standing.settle()
        session.speaker = 9  # who is not there: it waits here
        await session.tell("notifications/message", {"level": "info", "data": "there"})
        session.say(b'{"said":1}')
        async with asyncio.timeout(30):
            while len(standing.answers()) < 3:
                await asyncio.sleep(0.005)
        told = [msgspec.json.decode(each) for each in standing.answers()]
        assert [each.get("params", each).get("data", each.get("said")) for each in told] == ["here", "there", 1]


async def test_who_hands_over_sends_what_waits_and_keeps_what_is_read(tmp_path):
    async with opened(tmp_path / "s.db") as (session, _):
        read = session.standing()
        read.attach()
        waiting = session.standing()
        waiting.put(b'{"a":1}')
        resumed = session._new()
        resumed.begun = True
        session._standing.append(resumed)
        letters = await session.hand_over(9, resumed.name)
        assert [(to, mail.kind, mail.data) for to, mail in letters] == [(9, "say", b'{"a":1}')]
        assert session._standing == [read] and resumed.ended and waiting.ended and not read.ended


async def test_a_cancellation_for_all_is_as_short_as_it_can_be(tmp_path):
    """Whatever its client wrote into it: all workers read it, from a stream that holds only so much."""
    async with opened(tmp_path / "s.db") as (session, _):
        for id in (7, "i" * 512, "i" * 513, None):
            session.notified(
                frame(
                    method="notifications/cancelled",
                    params={"requestId": id, "reason": "r" * 10_000, "x": "y" * 10_000},
                )
            )
        told = [(to, msgspec.json.decode(mail.data)["params"]) for to, mail in session.outgoing]
        assert told == [(0, {"requestId": id, "reason": "r" * 200}) for id in (7, "i" * 512)]
