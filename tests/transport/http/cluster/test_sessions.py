"""transport/http/cluster/sessions.py: two workers in one process, with nothing in common but a file."""

import asyncio
import json

import msgspec
import pytest

from interlock import Context, Server
from interlock.state.sqlite import database
from interlock.state.sqlite.database import connect
from interlock.state.sqlite.store import SQLiteStore
from interlock.state.store import Bounds
from interlock.transport.http.cluster.membership import owner_of
from interlock.transport.http.cluster.message_bus import Mail
from interlock.transport.http.server.app import HttpApp, SessionBounds
from interlock.transport.http.server.event_stream import Keeping
from interlock.transport.http.server.session_headers import TurnedAway
from interlock.wire.errors import StoreError
from interlock.wire.exchange import ANONYMOUS, Principal
from support.asgi import call_tool, post
from support.sessions import OverSession, events_of, said, send

BOUNDS = SessionBounds(lease=20.0)  # on a machine that is busy a worker may be slow to say that it lives
SHORT = SessionBounds(lease=0.4)


class Worker:
    """One process of several, as far as one process can play it."""

    def __init__(self, path, **options):
        self.server = server = Server("s")
        self.go, self.cancelled, self.levels = asyncio.Event(), [], []

        @server.tool
        async def wait(ctx: Context, steps: int = 0) -> str:
            try:
                for step in range(steps):
                    await ctx.progress(step)
                await self.go.wait()
                for step in range(steps):
                    await ctx.progress(steps + step)
            except asyncio.CancelledError:
                self.cancelled.append("wait")
                raise
            return "waited"

        @server.tool
        async def poll(ctx: Context) -> str:
            released = await ctx.release_stream(20)
            await self.go.wait()
            return f"released: {released}"

        @server.tool
        async def where(ctx: Context) -> str:
            return (await ctx.roots())[0].uri

        @server.tool
        async def log(ctx: Context, level: str) -> str:
            await ctx.log(level, "said")
            return "logged"

        @server.resource("note://1")
        async def note() -> str:
            return "note"

        self.app = HttpApp(server, state=path, **{"sessions": BOUNDS, **options})

    async def close(self):
        self.app.stop()
        await self.app.settle(0)
        await self.app._lifecycle.leave()

    async def stand_still(self):
        """As SIGSTOP would, as far as others can see it: it renews no lease and reads no mail."""
        colleagues = self.app._sharing.colleagues
        for task in colleagues._tasks:
            task.cancel()
        self._read = [(to, await colleagues._state.last(colleagues._stream(to))) for to in (0, colleagues.number)]

    async def go_on(self, *, renew=True):
        """What it reads first, or that it has its lease back: after SIGCONT either may come first."""
        colleagues, start = self.app._sharing.colleagues, asyncio.get_running_loop().create_task
        if renew:
            await colleagues._sign()
        reading = [start(colleagues._read(to, position)) for to, position in self._read]
        colleagues._tasks = [start(colleagues._live()), *reading]

    async def counts_as_dead(self, number):
        async with asyncio.timeout(30):
            while await self.app._sharing.colleagues.alive(number):
                await asyncio.sleep(0.02)

    async def die(self):
        """As kill -9 would: it says nothing to anybody, and nothing of it goes on."""
        sharing = self.app._sharing
        for task in (*sharing.colleagues._tasks, *sharing._errands, self.app._sessions._upkeep):
            task.cancel()
        for close in sharing.on_leave:  # descriptors end with a process
            close()
        await sharing.state.close()
        sharing._joining = None
        for session in list(self.app._sessions._by_id.values()):
            session.finish()
        await asyncio.sleep(0)


class Office:
    def __init__(self, folder, count=2, **options):
        self.workers = [Worker(folder / "state.db", **options) for _ in range(count)]

    async def __aenter__(self):
        for worker in self.workers:
            await worker.app._sharing.ready()
        return self

    async def __aexit__(self, *error):
        for worker in self.workers:
            await worker.close()

    def __getitem__(self, number):
        return self.workers[number]

    def open(self, revision="2025-11-25", **more):
        return OverSession(self[0].app, revision, **more)


def at(peer, worker):
    """The same client, whose next requests reach this worker."""
    peer.app = worker.app
    return peer


def texts(talk):
    """What was said, in short."""
    found = []
    for each in said(talk):
        if "method" not in each:
            found.append(each["result"]["content"][0]["text"] if "result" in each else each["error"]["message"])
        elif each["method"] == "notifications/progress":
            found.append(each["params"]["progress"])
        else:
            found.append(each["method"].removeprefix("notifications/"))
    return found


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def leave(talk):
    talk.disconnect()
    await talk.task


def last_id(talk):
    return [event.id for event in events_of(talk) if event.id][-1]


# --- one session, many workers ---


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_any_worker_serves_any_request_of_a_session(tmp_path, revision):
    async with Office(tmp_path) as office, office.open(revision) as peer:
        for number in (1, 0, 1):
            at(peer, office[number])
            assert len((await peer.call("tools/list").answer()).json["result"]["tools"]) == 4
            assert (await peer.post(peer.hello).answer()).error["code"] == -32600
        assert (await peer.call("ping", mcp_protocol_version="x").answer()).status == 200


async def test_what_ended_at_one_is_unknown_to_all(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        running = peer.tool("wait", steps=1)
        await running.heard(2)
        assert (await at(peer, office[1]).send("DELETE").answer()).status == 204
        await running.answer()  # its stream ends
        assert office[0].cancelled == ["wait"]
        for worker in office.workers:
            at(peer, worker)
            assert [(await peer.send(verb).answer()).status for verb in ("GET", "DELETE")] == [404, 404]
            assert (await peer.call("ping").answer()).status == 404
            assert len(worker.app._sessions) == 0


async def test_a_session_belongs_to_who_began_it_at_every_worker(tmp_path):
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    async with Office(tmp_path, authenticate=check) as office, office.open(x_who="ann") as peer:
        at(peer, office[1])
        for _ in range(2):  # before and after this worker knows the session
            for verb in ("GET", "DELETE"):
                assert (await peer.send(verb, x_who="bob").answer()).status == 404
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert (await peer.post(ping, x_who="bob").answer()).status == 404
            assert (await peer.post(ping).answer()).status == 200


async def test_who_names_anothers_session_ends_nothing_in_it(tmp_path):
    def check(headers):
        return Principal("test", headers.get("x-who", "nobody"))

    async with Office(tmp_path, authenticate=check) as office, office.open(x_who="ann") as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        for verb in ("GET", "DELETE"):
            assert (await peer.send(verb, x_who="bob").answer()).status == 404
        office[0].go.set()
        assert texts(await talk.answer()) == [0, 1, "waited"]


async def test_where_everything_is_a_stream_the_answer_is_found_at_any_worker(tmp_path):
    async with Office(tmp_path, always_stream=True) as office, office.open() as peer:
        talk = peer.tool("wait", 7)
        await talk.heard(2)  # nothing was said yet, and it can be resumed
        await leave(talk)
        office[0].go.set()
        assert texts(await at(peer, office[1]).get(last_id(talk)).answer()) == ["waited"]
        listed = await peer.call("tools/list", 8).answer()
        assert listed.headers["content-type"] == "text/event-stream"
        for worker in office.workers:
            again = await at(peer, worker).get(events_of(listed)[0].id).answer()
            assert [part["id"] for part in said(again)] == [8]
            assert said(await peer.get(last_id(listed)).answer()) == []


@pytest.mark.parametrize("second", [0, 1], ids=["at its own worker", "at the same one"])
async def test_a_stream_that_is_resumed_twice_has_one_reader(tmp_path, second):
    async with Office(tmp_path) as office, office.open() as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        first = at(peer, office[1]).get(last_id(talk))
        await first.heard(2)
        (reader,) = office[1].app._sessions._by_id[peer.id]._readers.values()
        again = at(peer, office[second]).get(last_id(talk))
        await again.heard(2)
        await until(lambda: reader.sent_away)
        office[0].go.set()
        assert texts(await again.answer()) == [1, "waited"]
        assert texts(await first.answer()) == []


async def test_an_answer_that_fills_its_log_is_found_at_any_worker_whatever_numbers_its_store_gives(tmp_path):
    store = SQLiteStore(tmp_path / "state.db", Bounds(stream_bytes=3000))
    for _ in range(3):  # from now on this store begins above 1
        await store.append("x", [b"1", b"2"], until=0.0)
    await store.drop("x")
    office = [Worker(store, always_stream=True) for _ in range(2)]
    office[0].server.tool(lambda: "x" * 5000, name="large")
    try:
        async with OverSession(office[0].app) as peer:
            await office[1].app._sharing.ready()
            talks = [await peer.tool(name, number).answer() for number, name in ((1, "large"), (2, "nobody"))]
            at(peer, office[1])
            for number, talk in enumerate(talks, 1):
                again = await peer.get(events_of(talk)[0].id).answer()
                assert [part["id"] for part in said(again)] == [number]
            at(peer, office[0])
    finally:
        for worker in office:
            await worker.close()
        await store.close()


async def test_of_ended_calls_no_more_logs_are_kept_than_a_shelf_holds(tmp_path):
    bounds = SessionBounds(lease=20.0, keeping=Keeping(ended_streams=2))
    async with Office(tmp_path, always_stream=True, sessions=bounds) as office, office.open() as peer:
        talks = [await peer.call("ping", number).answer() for number in range(1, 6)]
        at(peer, office[1])
        await until(lambda: not office[0].app._sharing._errands)
        found = [(await peer.get(events_of(talk)[0].id).answer()).status for talk in talks]
        assert found == [400, 400, 400, 200, 200]


async def test_of_the_logs_too_each_caller_has_a_share(tmp_path):
    bounds = SessionBounds(lease=20.0, keeping=Keeping(ended_streams=8))
    near, far = [{"client": (f"198.51.100.{number}", 1)} for number in (1, 2)]
    async with (
        Office(tmp_path, always_stream=True, sessions=bounds) as office,
        office.open(**near) as peer,
        office.open(**far) as other,
    ):
        first = await peer.call("ping", 1).answer()
        talks = [await other.call("ping", number).answer() for number in range(1, 10)]
        await until(lambda: not office[0].app._sharing._errands)
        assert (await peer.get(events_of(first)[0].id).answer()).status == 200
        found = [(await other.get(events_of(talk)[0].id).answer()).status for talk in talks]
        assert found == [400] * 7 + [200] * 2


async def test_an_answer_that_the_store_does_not_take_is_given_all_the_same(tmp_path):
    store = SQLiteStore(tmp_path / "state.db", Bounds(event_bytes=2000))
    worker = Worker(store, always_stream=True)
    worker.server.tool(lambda: "x" * 5000, name="large")
    try:
        async with OverSession(worker.app) as peer:
            assert texts(await peer.tool("large").answer()) == ["x" * 5000]
            worker.go.set()
            assert texts(await peer.tool("wait", steps=1).answer()) == [0, 1, "waited"]
    finally:
        await worker.close()
        await store.close()


async def test_a_call_that_could_not_be_written_down_leaves_no_stream(tmp_path):
    async def fail(session):
        raise StoreError("locked")

    async with Office(tmp_path) as office, office.open() as peer:
        sessions = office[0].app._sessions
        settle, sessions._settle = sessions._settle, fail
        assert (await peer.call("ping").answer()).status == 503
        assert (await peer.tool("wait", 7).answer()).status == 503
        office[0].go.set()
        await until(lambda: not sessions.running)
        sessions._settle = settle
        assert not [name for name in sessions._by_id[peer.id]._streams if not name & 1]


async def test_a_session_that_nobody_uses_ends_at_all(tmp_path):
    bounds = SessionBounds(idle=0.2, unready=0.2, lease=0.4)
    async with Office(tmp_path, sessions=bounds) as office, office.open() as peer:
        assert (await at(peer, office[1]).call("ping").answer()).status == 200
        await until(lambda: not any(len(worker.app._sessions) for worker in office.workers))
        assert (await peer.call("ping").answer()).status == 404


async def test_a_session_counts_for_its_caller_at_every_worker_that_serves_it(tmp_path):
    one, other = ("192.0.2.1", 1), ("192.0.2.2", 1)
    async with Office(tmp_path, sessions=SessionBounds(lease=20.0, each=1)) as office:
        apps = [worker.app for worker in office.workers]
        hello = OverSession(None).hello
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        opened = [await send(app, "POST", hello, client=one).answer() for app in (*apps, *apps)]
        assert [talk.status for talk in opened] == [200, 200, 503, 503]
        first = opened[0].headers["mcp-session-id"]
        statuses = [
            (await send(app, "POST", ping, client=client, mcp_session_id=first).answer()).status
            for app, client in ((apps[0], one), (apps[1], one), (apps[1], other))
        ]
        assert statuses == [200, 503, 200]


async def test_sessions_outlive_their_workers(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        for worker in office.workers:
            await worker.close()
        again = Worker(tmp_path / "state.db")
        assert (await at(peer, again).call("ping").answer()).status == 200
        assert (await peer.send("DELETE").answer()).status == 204
        await again.close()


async def test_endpoints_of_another_name_share_nothing(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        other = HttpApp(Server("other"), state=tmp_path / "state.db")
        assert (await send(other, "DELETE", mcp_session_id=peer.id).answer()).status == 404
        await other.settle(0)
        assert (await peer.call("ping").answer()).status == 200


# --- what a session is ---


async def test_the_log_level_holds_at_all(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        assert (await at(peer, office[1]).call("logging/setLevel", level="error").answer()).json["result"] == {}
        at(peer, office[0])
        assert texts(await peer.tool("log", level="error").answer()) == ["message", "logged"]
        quiet = await peer.tool("log", level="info").answer()
        assert quiet.json["result"]["content"][0]["text"] == "logged"


async def test_changes_made_at_the_same_time_are_all_kept(tmp_path):
    async with Office(tmp_path, 3) as office, office.open() as peer:
        for worker in office.workers:
            await at(peer, worker).call("ping").answer()
        talks = []
        for number in range(30):
            at(peer, office[number % 3])
            talks.append(peer.call("resources/subscribe", uri=f"note://{number}"))
        assert [(await talk.answer()).json["result"] for talk in talks] == [{}] * 30
        await asyncio.gather(*(at(peer, office[n % 3]).call("ping").answer() for n in range(3)))
        for worker in office.workers:
            [session] = worker.app._sessions._by_id.values()
            assert session.record().watched == {f"note://{number}" for number in range(30)}


# --- streams ---


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_stream_that_broke_is_resumed_at_another_worker(tmp_path, revision):
    async with Office(tmp_path) as office, office.open(revision) as peer:
        first, other = peer.tool("wait", steps=3), peer.tool("wait", steps=2)
        for talk, count in ((first, 3), (other, 2)):
            await until(lambda talk=talk, count=count: talk.sent and len(said(talk)) == count)
        seen = [event.id for event in events_of(first) if event.data]
        await leave(first)
        resumed = at(peer, office[1]).get(seen[0])
        await until(lambda: resumed.sent and len(said(resumed)) == 2)
        office[0].go.set()
        assert texts(await resumed.answer()) == [1, 2, 3, 4, 5, "waited"]
        again = await peer.get(seen[2]).answer()
        assert texts(again) == [3, 4, 5, "waited"]
        assert [event.id for event in events_of(again)] == [event.id for event in events_of(resumed)][-4:]
        assert texts(await other.answer()) == [0, 1, 2, 3, "waited"]


async def test_what_cannot_be_resumed_is_400_at_every_worker(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer, office.open() as stranger:
        office[0].go.set()
        ended = await peer.tool("wait", steps=1).answer()
        name, _, number = last_id(ended).partition("-")
        for worker in office.workers:
            at(peer, worker), at(stranger, worker)
            for seen in (f"{name}-{int(number) + 99}", f"{int(name) + 2}-1", "1-1"):
                assert (await peer.get(seen).answer()).status == 400
            assert (await stranger.get(last_id(ended)).answer()).status == 400
            assert texts(await peer.get(f"{name}-{int(number) - 1}").answer()) == ["waited"]


async def test_a_client_that_was_sent_away_comes_back_to_another_worker(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        away = await peer.tool("poll").answer()
        assert b"retry: 20" in away.body
        back = at(peer, office[1]).get(last_id(away))
        await back.heard(2)
        office[0].go.set()
        assert texts(await back.answer()) == ["released: True"]


async def test_a_batch_is_resumed_with_all_its_answers(tmp_path):
    async with Office(tmp_path) as office, office.open("2025-03-26") as peer:
        call = {"name": "wait", "arguments": {"steps": 1}, "_meta": {"progressToken": 1}}
        frames = [("ping", {}), ("tools/call", call)]
        talk = peer.post([{"jsonrpc": "2.0", "id": n, "method": m, "params": p} for n, (m, p) in enumerate(frames)])
        await until(lambda: talk.sent and len(said(talk)) == 2)
        first = next(event.id for event in events_of(talk) if event.id)
        await leave(talk)
        office[0].go.set()
        assert texts(await at(peer, office[1]).get(first).answer()) == [0, 1, "waited"]


# --- questions, cancellations, change notices ---


async def test_a_question_is_answered_by_way_of_another_worker(tmp_path):
    async with Office(tmp_path) as office, office.open(can={"roots": {}}) as peer:
        asking = [at(peer, worker).tool("where") for worker in office.workers]
        for number, talk in enumerate(asking):
            await until(lambda talk=talk: talk.sent and said(talk))
            at(peer, office[1 - number])
            answered = peer.reply(said(talk)[0]["id"], roots=[{"uri": f"file:///{number}"}])
            assert (await answered.answer()).status == 202
            assert texts(await talk.answer())[-1] == f"file:///{number}"


async def test_a_broken_answer_reaches_who_asked(tmp_path):
    async with Office(tmp_path) as office, office.open(can={"roots": {}}) as peer:
        talk = peer.tool("where")
        await until(lambda: talk.sent and said(talk))
        broken = {"jsonrpc": "2.0", "id": said(talk)[0]["id"], "result": {}, "error": 5}
        assert (await at(peer, office[1]).post(broken).answer()).status in (202, 400)
        assert said(await talk.answer())[-1]["result"]["isError"] is True


async def test_an_answer_to_nobody_is_accepted_and_dropped(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        for id in (1, (77 << 32) + 1, 1 << 60, "x"):
            assert (await peer.reply(id).answer()).status == 202


async def test_a_run_is_cancelled_by_way_of_another_worker(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        running = peer.tool("wait", 7, steps=1)
        await running.heard(2)
        cancel = at(peer, office[1]).tell("notifications/cancelled", requestId=7, reason="enough")
        assert (await cancel.answer()).status == 202
        assert texts(await running.answer()) == [0]
        assert office[0].cancelled == ["wait"]


async def test_changes_reach_the_stream_wherever_it_is(tmp_path):
    async with Office(tmp_path, 3) as office, office.open() as peer:
        listening = at(peer, office[1]).get()
        await listening.heard(2)
        assert (await at(peer, office[2]).call("resources/subscribe", uri="note://1").answer()).json["result"] == {}
        for number, worker in enumerate(office.workers, 1):
            worker.server.resource_changed("note://1")
            await until(lambda number=number: len(said(listening)) >= number)
        office[0].server.remove_tool("poll")
        await until(lambda: len(said(listening)) == 4)
        assert texts(listening) == ["resources/updated"] * 3 + ["tools/list_changed"]
        await at(peer, office[0]).call("resources/unsubscribe", uri="note://1").answer()
        office[0].server.resource_changed("note://1")
        office[0].server.remove_tool("where")
        await until(lambda: len(said(listening)) == 5)
        assert texts(listening)[-1] == "tools/list_changed"
        await leave(listening)


async def test_the_standing_stream_moves_without_a_gap(tmp_path):
    async with Office(tmp_path, 3) as office, office.open() as peer:
        await peer.call("resources/subscribe", uri="note://1").answer()
        stream = at(peer, office[1]).get()
        await stream.heard(2)
        heard = []
        for number in (2, 0, 1):
            office[number].server.resource_changed("note://1")
            await until(lambda stream=stream: said(stream))
            heard.append(texts(stream))
            await leave(stream)
            office[0].server.remove_tool(["wait", "poll", "where"][number])  # while nobody reads
            stream = at(peer, office[number]).get(last_id(stream))
            await until(lambda stream=stream: stream.sent and said(stream))
            assert texts(stream) == ["tools/list_changed"]
            stream.sent[1:] = [{"body": f"id: {last_id(stream)}\n\n".encode(), "more_body": True}]
        assert heard == [["resources/updated"]] * 3
        await leave(stream)


def overheard(worker, kind):
    """How often this worker has dealt with such a message of others, or its own to all."""
    heard, count = worker.app._sharing._heard[kind], []

    async def counted(mail):
        await heard(mail)
        count.append(mail)

    worker.app._sharing.hear(**{kind: counted})
    return count


def held_up(worker, how, kind, meanwhile):
    """Before this worker sends such a message, `meanwhile` happens."""
    colleagues = worker.app._sharing.colleagues
    send = getattr(colleagues, how)

    async def late(*what):
        if what[-1].kind == kind:
            await meanwhile()
        return await send(*what)

    setattr(colleagues, how, late)


@pytest.mark.parametrize("resumed", [False, True])
async def test_what_changes_between_the_record_of_a_speaker_and_its_word_is_told_once(tmp_path, resumed):
    """The record says already that another one speaks, and not all have heard it yet."""
    async with Office(tmp_path) as office, office.open() as peer:
        heard = [overheard(worker, "change") for worker in office.workers]
        first = peer.get()
        await first.heard(2)
        if resumed:
            await leave(first)

        async def change():
            assert (await peer.call("ping").answer()).status == 200  # worker 0 reads the record, too
            office[0].server.remove_tool("poll")
            await until(lambda: all(heard))

        held_up(office[1], "tell_all", "speaker", change)
        get = at(peer, office[1]).get(last_id(first) if resumed else None)
        at(peer, office[0])
        await until(lambda: get.sent and said(get))
        office[1].server.remove_tool("where")
        await until(lambda: len(said(get)) == 2)
        assert texts(get) == ["tools/list_changed"] * 2
        await leave(get)
        await leave(first)


async def test_what_the_last_speaker_has_heard_it_still_says(tmp_path):
    """It is told that another one speaks while it is about to pass a change on to that one."""
    async with Office(tmp_path) as office, office.open() as peer:
        heard, told = overheard(office[0], "speaker"), overheard(office[0], "change")

        async def change():
            office[0].server.remove_tool("poll")
            office[0].server.resource_changed("note://1")
            await until(lambda: len(told) == 2)

        await peer.call("resources/subscribe", uri="note://1").answer()
        held_up(office[1], "tell_all", "speaker", change)
        held_up(office[0], "send", "say", lambda: until(lambda: heard))
        stream = at(peer, office[1]).get()
        await until(lambda: stream.sent and len(said(stream)) == 2)
        assert texts(stream) == ["tools/list_changed", "resources/updated"]
        await leave(stream)


async def test_what_waits_for_a_reader_waits_for_the_first_at_any_worker(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        office[0].server.remove_tool("poll")
        await until(lambda: office[0].app._sessions._by_id[peer.id]._standing)
        listening = at(peer, office[1]).get()
        await until(lambda: listening.sent and said(listening))
        assert texts(listening) == ["tools/list_changed"]
        second = at(peer, office[0]).get()  # the one opened last is told; the other stays open
        await second.heard(2)
        await until(lambda: office[1].app._sessions._by_id[peer.id].speaker != office[1].app._sharing.colleagues.number)
        office[1].server.remove_tool("where")
        await until(lambda: said(second))
        assert (len(said(listening)), listening.complete) == (1, False)
        await leave(second)
        await leave(listening)


# --- the stateless era ---


async def test_states_between_rounds_hold_at_all_and_count_once(tmp_path):
    async with Office(tmp_path) as office:
        for worker in office.workers:

            @worker.server.tool(single_use=True)
            async def name(ctx: Context) -> str:
                return (await ctx.roots())[0].uri

        can = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
        asked = (await post(office[0].app, call_tool("name", **can)).answer()).json["result"]
        again = call_tool("name", **can)
        [key] = asked["inputRequests"]
        again["params"]["inputResponses"] = {key: {"roots": [{"uri": "file:///x"}]}}
        again["params"]["requestState"] = asked["requestState"]
        answers = [(await post(office[number].app, again).answer()).json for number in (1, 0)]
        assert answers[0]["result"]["content"][0]["text"] == "file:///x"
        assert answers[1]["error"]["code"] == -32602


# --- workers that die ---


async def test_a_stream_whose_worker_died_ends_with_an_error(tmp_path):
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        running = peer.tool("wait", 7, steps=2)
        await until(lambda: running.sent and len(said(running)) == 2)
        first = next(event.id for event in events_of(running) if event.data)
        await at(peer, office[1]).call("ping").answer()
        await leave(running)
        await office[0].die()
        answer = await peer.get(first).answer()
        assert texts(answer) == [1, "Cancelled: the worker that served this request is gone"]
        assert said(answer)[-1]["id"] == 7


async def test_the_standing_stream_of_a_worker_that_died_goes_on(tmp_path):
    """What changed while nobody spoke was told by nobody: everything that is watched may have."""
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        await peer.call("resources/subscribe", uri="note://1").answer()
        stream = peer.get()
        await stream.heard(2)
        office[0].server.remove_tool("poll")
        await until(lambda: said(stream))
        primed = next(event.id for event in events_of(stream) if event.id)
        await leave(stream)
        await office[0].die()
        office[1].server.resource_changed("note://1")
        stream = at(peer, office[1]).get(primed)
        missed = ["tools/list_changed", "resources/list_changed", "resources/updated"]
        await until(lambda: stream.sent and len(said(stream)) == 4)
        assert texts(stream) == ["tools/list_changed", *missed]
        office[1].server.remove_tool("where")
        await until(lambda: len(said(stream)) == 5)
        assert texts(stream)[-1] == "tools/list_changed"
        await leave(stream)


async def test_a_new_stream_after_a_worker_that_died_begins_with_what_may_have_been_missed(tmp_path):
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        await at(peer, office[1]).call("ping").answer()
        await office[0].die()
        stream = peer.get()
        await until(lambda: stream.sent and len(said(stream)) == 2)
        assert texts(stream) == ["tools/list_changed", "resources/list_changed"]
        await leave(stream)


# --- workers that stand still ---

GONE = "Cancelled: the worker that served this request is gone"


@pytest.mark.parametrize("renews_first", [True, False])
async def test_a_call_whose_worker_stood_still_has_one_outcome(tmp_path, caplog, renews_first):
    """Others report it as lost; then the worker goes on, with the client's first connection still open."""
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        running = peer.tool("wait", 7, steps=2)
        await until(lambda: running.sent and len(said(running)) == 2)
        first = next(event.id for event in events_of(running) if event.data)
        await office[0].stand_still()
        told = await at(peer, office[1]).get(first).answer()
        assert texts(told) == [1, GONE]
        if renews_first:
            await office[0].go_on()
            await until(lambda: office[0].cancelled)  # the handler says nothing, and ends all the same
        office[0].go.set()
        await running.task
        assert texts(running) == [0, 1]
        await until(lambda: "has reported it as lost: request (7,)" in caplog.text)
        assert [texts(await at(peer, worker).get(first).answer()) for worker in office.workers] == [[1, GONE]] * 2
        assert (office[0].app._sessions.running, office[1].app._sessions.running) == (0, 0)
        again = at(peer, office[0]).tool("wait", 8, steps=1)  # and serves as before
        assert texts(await again.answer()) == [0, 1, "waited"]


async def test_a_call_that_nobody_asked_for_elsewhere_goes_on_when_its_worker_does(tmp_path):
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        streaming, plain = peer.tool("wait", 7, steps=1), peer.tool("wait", 8)
        await until(lambda: streaming.sent and said(streaming))
        await office[0].stand_still()
        await office[1].counts_as_dead(1)
        await office[0].go_on()
        office[0].go.set()
        assert texts(await streaming.answer()) == [0, 1, "waited"]
        assert (await plain.answer()).json["result"]["content"][0]["text"] == "waited"


async def test_an_answer_to_a_question_waits_for_a_worker_that_stands_still(tmp_path):
    async with Office(tmp_path, sessions=SHORT) as office, office.open(can={"roots": {}}) as peer:
        asking = peer.tool("where", 7)
        await until(lambda: asking.sent and said(asking))
        [question] = said(asking)
        await office[0].stand_still()
        await office[1].counts_as_dead(1)
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///x"}]}}
        assert (await at(peer, office[1]).post(answer).answer()).status == 202
        await office[0].go_on()
        assert texts(await asking.answer())[-1] == "file:///x"


@pytest.mark.parametrize("renews_first", [True, False])
async def test_what_a_worker_that_stood_still_says_of_no_request_reaches_who_took_its_place(tmp_path, renews_first):
    async with Office(tmp_path, sessions=SHORT) as office, office.open() as peer:
        stream = peer.get()
        await until(lambda: stream.sent and [event.id for event in events_of(stream) if event.id])
        primed = last_id(stream)
        [session] = office[0].app._sessions._by_id.values()
        await leave(stream)
        await office[0].stand_still()
        stream = at(peer, office[1]).get(primed)
        missed = ["tools/list_changed", "resources/list_changed"]
        await until(lambda: stream.sent and len(said(stream)) == 2)
        await session.tell("notifications/message", {"level": "info", "data": "late"})
        await office[0].go_on(renew=renews_first)
        await until(lambda: len(said(stream)) == 3)
        assert texts(stream) == [*missed, "message"]
        await leave(stream)


# --- the store ---


async def test_a_full_disk_is_not_told_as_too_many_sessions(tmp_path, caplog, monkeypatch):
    def small(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 60")
        return connection

    monkeypatch.setattr(database, "connect", small)
    store = SQLiteStore(tmp_path / "state.db")
    app = HttpApp(Server("s"), state=store)
    async with OverSession(app):
        pass
    for size in (50_000, 5_000, 500, 50):
        with pytest.raises(StoreError, match="the disk is full"):
            for number in range(10_000):
                await store.put(f"{size} {number}", bytes(size), until=float("inf"))
    refused = await send(app, "POST", OverSession(app).hello).answer()
    assert (refused.status, refused.headers["retry-after"]) == (503, "10")
    assert refused.error["message"] == "The server could not write the session to its store: try again later"
    assert "a session could not be written" in caplog.text and "state.db: the disk is full" in caplog.text
    assert len(app._sessions) == 0
    await app.settle(0)
    await app._lifecycle.leave()
    await store.close()


async def test_a_store_that_does_not_answer_is_503(tmp_path, caplog):
    app = HttpApp(Server("s"), state=tmp_path / "no" / "folder" / "state.db")
    assert (await send(app, "POST", OverSession(app).hello).answer()).status == 503
    await app.settle(0)
    store = SQLiteStore(tmp_path / "state.db")
    app = HttpApp(Server("s"), state=store)
    peer = await OverSession(app).__aenter__()
    await app._sharing.colleagues.leave()
    await store.close()
    for verb in ("GET", "DELETE"):
        assert (await peer.send(verb).answer()).status == 503
    refused = await peer.call("ping").answer()
    assert (refused.status, refused.error["code"]) == (503, -32603)  # not the request is wrong
    assert "a request of a session was refused: this store was closed" in caplog.text
    app.stop()
    await app.settle(0)


async def test_what_a_client_says_of_itself_must_fit_into_the_store(tmp_path):
    async with Office(tmp_path) as office:
        hello = office.open(can={"experimental": {"x": {"y": "z" * (1 << 20)}}}).hello
        answer = await send(office[0].app, "POST", json.loads(json.dumps(hello))).answer()
        assert (answer.status, "mcp-session-id" in answer.headers) == (400, False)
        assert len(office[0].app._sessions) == 0


async def scribble(worker, peer, value):
    """Over its record, as another version of this library may."""
    sharing = worker.app._sharing
    key, owner = sharing.session_key(peer.id), owner_of(ANONYMOUS)
    entry = await sharing.state.get(key, owner=owner)
    assert await sharing.state.put(key, value, until=entry.until, owner=owner, expect=entry.version)


@pytest.mark.parametrize("value", [b"\x00\xff", b'{"revision": 5}', b"{}"])
async def test_a_session_whose_record_nobody_can_read_has_ended(tmp_path, value, caplog):
    async with Office(tmp_path) as office, office.open() as peer:
        await scribble(office[0], peer, value)
        for worker in (office[1], office[0]):  # one that never had it, and the one that has it
            for verb in ("GET", "POST"):
                refused = await (at(peer, worker).call("ping") if verb == "POST" else peer.send(verb)).answer()
                assert refused.status == 404
        assert len(office[0].app._sessions) == len(office[1].app._sessions) == 0
    assert "cannot be read" in caplog.text and "Traceback" not in caplog.text


async def test_who_writes_over_a_record_that_nobody_can_read_gives_up(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        session = office[0].app._sessions._by_id[peer.id]
        await scribble(office[0], peer, b"x")
        session.speaker = 999  # something to write
        with pytest.raises(TurnedAway):
            async with asyncio.timeout(20):
                await office[0].app._sessions._keep(session)
        assert session.end is not None


async def test_a_change_that_nobody_can_read_ends_what_is_here(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        sessions = office[0].app._sessions
        await scribble(office[0], peer, b"x")
        await sessions._changed(Mail("changed", peer.id, sender=999))
        assert len(sessions) == 0


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_stream_that_begins_as_its_session_ends_ends_with_it(tmp_path, resumed):
    async with Office(tmp_path) as office, office.open() as peer:
        standing = peer.get()
        await standing.heard(2)
        ending = OverSession(office[0].app)
        ending.id = peer.id
        sessions = office[1].app._sessions

        async def end(*_):
            assert (await ending.send("DELETE").answer()).status == 204
            await until(lambda: not len(sessions))

        sessions._say_who_reads = sessions._speak = end
        talk = at(peer, office[1]).get(last_id(standing) if resumed else None)
        answer = await talk.answer()
        assert answer.complete and answer.status == (200 if resumed else 404)
        assert said(answer) == []


async def test_a_session_in_use_is_written_only_now_and_then(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        sessions, owner = office[0].app._sessions, owner_of(ANONYMOUS)
        session, state = sessions._by_id[peer.id], office[0].app._sharing.state
        before = await state.get(sessions._sharing.session_key(peer.id), owner=owner)
        assert (await peer.call("ping").answer()).status == 200
        assert await state.get(sessions._sharing.session_key(peer.id), owner=owner) == before
        aged = msgspec.structs.replace(before, until=0.0)
        session.version -= 1  # somebody has changed it, which is not known here yet
        await sessions._touch(session, aged)
        assert session.version == before.version - 1  # and will be
        later = await state.get(sessions._sharing.session_key(peer.id), owner=owner)
        assert later.version > before.version and later.until >= before.until


async def test_what_runs_for_nobody_keeps_its_session_at_its_worker(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        talk = peer.tool("wait", 7, steps=1)
        await talk.heard(2)
        await leave(talk)
        sessions = office[0].app._sessions
        session = sessions._by_id[peer.id]
        session.used, session.may_listen, session.speaker = float("-inf"), False, 0
        assert not session.busy and not sessions._is_unused(session)
        office[0].go.set()
        await until(lambda: session.idle)
        assert sessions._is_unused(session)


async def test_what_is_read_lasts_with_its_session(tmp_path):
    async with Office(tmp_path) as office, office.open() as peer:
        talk = peer.get()
        await talk.heard(2)
        session = office[0].app._sessions._by_id[peer.id]
        lasted = []
        for stream in session.open_streams():
            stream.lasts = lambda: lasted.append(1) or asyncio.sleep(0)
        await office[0].app._sessions._look_after(session)
        assert lasted
        await leave(talk)


async def test_the_end_of_a_session_cancels_what_runs_at_another_worker(tmp_path):
    bounds = SessionBounds(lease=20.0, unready=1800.0)  # so long that nobody looks by himself
    async with Office(tmp_path, sessions=bounds) as office, office.open() as peer:
        talk = at(peer, office[1]).tool("wait", 7, steps=1)
        await talk.heard(2)
        await asyncio.sleep(0.05)  # what was said before is heard by now
        assert (await at(peer, office[0]).send("DELETE").answer()).status == 204
        await until(lambda: office[1].cancelled)
        await talk.answer()
