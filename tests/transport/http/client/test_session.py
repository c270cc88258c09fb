"""transport/http/client/session.py: a whole client against a scripted server of the handshake era, byte by byte."""

import asyncio
import gc
import logging
import warnings

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.transport.http.client import event_reader, post_channel, session
from interlock.web.outbound import client as outbound
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionClosed,
    ConnectionLost,
    HandshakeFailed,
    HttpStatus,
    NotOpen,
    Refused,
    SessionGone,
)
from interlock.wire.limits import Limits
from support.http_handshake import asked, ended, final, handshake, sse
from support.http_peer import HttpPeer, chunked, http, notice, refusal
from support.http_session_talk import answered, events, of, ok, talking, until
from support.idle import until_idle


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Waits are short where a test does not say otherwise."""
    monkeypatch.setattr(event_reader, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(event_reader, "_SHORTEST_WAIT", 0.005)
    monkeypatch.setattr(event_reader, "_LONGEST_WAIT", 0.02)


# --- what is sent ---


async def test_without_a_session_there_is_none_to_name_or_to_end():
    async with talking(handshake(session=None, tools_call=ok)) as (client, peer):
        await client.call_tool("t")
    assert not of(peer, "DELETE")
    assert {request.header("mcp-session-id") for request in peer.requests} == {None}


@pytest.mark.parametrize("given", ["a b", "é", "x" * 5000])
async def test_a_session_id_that_is_none_is_refused(given):
    with pytest.raises((HandshakeFailed, ConnectionLost)):
        async with talking(handshake(session=given)):
            pass


@pytest.mark.parametrize("status", [400, 404])
async def test_a_refusal_to_begin_gives_no_session(status):
    peer = HttpPeer(handshake(initialize=lambda r, s: http(status, b"", "Mcp-Session-Id: s1")))
    async with peer:
        client = Client(peer.url, revision="2025-11-25", verdicts=Verdicts())
        with pytest.raises(HttpStatus) as refused:
            await client.open()
        await client.close()
    assert refused.value.status == status
    assert not of(peer, "DELETE") and {each.header("mcp-session-id") for each in peer.requests} == {None}


async def test_a_session_id_is_taken_from_the_answer_to_initialize_only():
    def call(request, stream):
        return ok(request, stream).replace(b"\r\n", b"\r\nMcp-Session-Id: other\r\n", 1)

    async with talking(handshake(tools_call=call)) as (client, peer):
        await client.call_tool("t")
        await client.call_tool("t")
    assert {request.header("mcp-session-id") for request in peer.requests[1:]} == {"s1"}


async def test_a_cancellation_has_the_headers_of_nobody_elses_call():
    async def call(request, stream):
        await stream.gone()

    async with talking(handshake(tools_call=call)) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.call_tool("t", headers={"X-Who": "me"}, timeout=0.05)
        await until(lambda: of(peer, "notifications/cancelled"))
    assert [each.header("x-who") for each in of(peer, "notifications/cancelled")] == [None]


async def test_calls_run_side_by_side():
    arrived = asyncio.Event()

    async def call(request, stream):
        if len(of(peer, "tools/call")) == 5:
            arrived.set()
        await arrived.wait()
        return ok(request, stream)

    async with talking(handshake(tools_call=call)) as (client, peer):
        results = await asyncio.gather(*(client.call_tool("t") for _ in range(5)))
    assert [each.text for each in results] == ["ok"] * 5


# --- answers ---


@pytest.mark.parametrize("cut", [None, 1, 7])
async def test_an_answer_on_a_stream(cut):
    async def call(request, stream):
        await stream.write(events(sse(id="e1"), answered)(request, stream), cut=cut)

    async with talking(handshake(tools_call=call)) as (client, peer):
        assert (await client.call_tool("t")).text == "ok"
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "GET")) <= 1


async def test_news_and_progress_before_the_answer():
    heard, steps = [], []

    def told(request):
        return sse(notice("notifications/message", level="info", data="x")) + sse(
            notice("notifications/progress", progressToken=request.id, progress=1)
        )

    script = handshake(tools_call=events(told, answered))
    async with talking(script, on_notification=lambda method, params: heard.append(method)) as (client, _):
        await client.call_tool("t", on_progress=lambda step, *_: steps.append(step))
    assert (heard, steps) == (["notifications/message"], [1])


@pytest.mark.parametrize("status", [200, 400, 404, 500])
async def test_a_refusal_is_one_with_any_status_if_it_names_the_call(status):
    async with talking(handshake(tools_call=lambda r, s: refusal(r, -32602, status))) as (client, peer):
        with pytest.raises(Refused, match="no"):
            await client.call_tool("t")
        with pytest.raises(Refused):
            await client.call_tool("t")
    assert len(of(peer, "initialize")) == 1


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_a_status_fails_one_call_and_not_the_session(status):
    replies = [lambda r, s: http(status), ok]
    async with talking(handshake(tools_call=lambda r, s: replies.pop(0)(r, s))) as (client, peer):
        with pytest.raises(HttpStatus) as caught:
            await client.call_tool("t")
        assert caught.value.status == status
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "initialize")) == 1


@pytest.mark.parametrize(
    "reply",
    [
        http(200, b'{"jsonrpc":"2.0","id":99999,"result":{}}'),
        http(200, b"nonsense"),
        http(200, b"[]"),
        http(200, b"<html>", kind="text/html"),
        http(204),
        http(202),
    ],
)
async def test_an_answer_that_is_none_fails_the_call_alone(reply):
    replies = [lambda r, s: reply, ok]
    async with talking(handshake(tools_call=lambda r, s: replies.pop(0)(r, s))) as (client, _):
        with pytest.raises(BadResult):
            await client.call_tool("t")
        assert (await client.call_tool("t")).text == "ok"


async def test_a_response_to_another_call_on_the_stream_is_no_answer():
    stray = {"jsonrpc": "2.0", "id": 424242, "result": {}}
    replies = [events(sse(stray), ended), events(sse(stray), answered)]
    async with talking(handshake(tools_call=lambda r, s: replies.pop(0)(r, s))) as (client, _):
        with pytest.raises(ConnectionLost, match="without an answer"):
            await client.call_tool("t")
        assert (await client.call_tool("t")).text == "ok"


async def test_junk_on_a_stream_is_skipped_and_a_broken_answer_fails_its_call():
    replies = [events(sse("no json"), answered), events(lambda r: sse({"jsonrpc": "2.0", "id": r.id}))]
    async with talking(handshake(tools_call=lambda r, s: replies.pop(0)(r, s))) as (client, _):
        assert (await client.call_tool("t")).text == "ok"
        with pytest.raises(BadResult, match="broken"):
            await client.call_tool("t")


async def test_an_event_without_end_is_refused():
    script = handshake(tools_call=events(sse("x" * 3000)))
    async with talking(script, limits=Limits(message_bytes=2000)) as (client, _):
        with pytest.raises(BadResult, match="more than 2000 bytes"):
            await client.call_tool("t")


async def test_batches_on_a_stream_where_the_revision_has_them():
    def call(request, stream):
        return chunked() + sse([notice("notifications/message", level="info", data=1), final(request)]) + ended

    heard = []
    script = handshake(version="2025-03-26", tools_call=call)
    options = {"on_notification": lambda method, params: heard.append(method)}
    async with talking(script, revision="2025-03-26", **options) as (client, _):
        assert (await client.call_tool("t")).text == "ok"
    assert heard == ["notifications/message"]


async def test_a_slow_drip_ends_with_the_deadline():
    async def call(request, stream):
        await stream.write(chunked())
        while True:
            await stream.write(b"1\r\n:\r\n")
            await asyncio.sleep(0.01)

    async with talking(handshake(tools_call=call)) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.call_tool("t", timeout=0.1)
        await until(lambda: of(peer, "notifications/cancelled"))


# --- questions of the server ---


@pytest.mark.parametrize("on", ["POST", "GET"])
async def test_a_question_is_answered_by_a_post_of_its_own(on):
    question = sse(asked("q1", "elicitation/create", message="Seat?", requestedSchema={"type": "object"}))
    replied = asyncio.Event()

    def heard(request, stream):
        assert request.message["id"] == "q1"
        assert request.message["result"] == {"action": "accept", "content": {}}
        replied.set()
        return http(202)

    async def call(request, stream):
        await stream.write(chunked() + (question if on == "POST" else b""))
        await replied.wait()
        await stream.write(answered(request))

    async def listening(request, stream):
        await stream.write(chunked() + (question if on == "GET" else b""))
        await stream.gone()

    script = handshake(GET=listening, tools_call=call, answer=heard)
    async with talking(script, elicit=lambda params: {"action": "accept", "content": {}}) as (client, peer):
        assert (await client.call_tool("t")).text == "ok"
    assert [request.header("mcp-session-id") for request in of(peer, "answer")] == ["s1"]


async def test_questions_are_answered_while_every_socket_waits_for_them(monkeypatch):
    monkeypatch.setattr(outbound, "_CONNECTIONS", 3)
    pending = {}

    def heard(request, stream):
        pending.pop(request.message["id"]).set()
        return http(202)

    async def call(request, stream):
        pending[f"q{request.id}"] = replied = asyncio.Event()
        await stream.write(chunked() + sse(asked(f"q{request.id}", "ping")))
        await replied.wait()
        await stream.write(answered(request))

    async with talking(handshake(tools_call=call, answer=heard)) as (client, _):
        results = await asyncio.gather(*(client.call_tool("t") for _ in range(9)))
    assert [each.text for each in results] == ["ok"] * 9


async def test_an_answer_that_is_refused_is_written_down(caplog):
    caplog.set_level(logging.WARNING, "interlock.client")
    refused = asyncio.Event()

    def heard(request, stream):
        refused.set()
        return http(400)

    async def call(request, stream):
        await stream.write(chunked() + sse(asked("q", "ping")))
        await refused.wait()
        await stream.write(answered(request))

    async with talking(handshake(tools_call=call, answer=heard)) as (client, _):
        assert (await client.call_tool("t")).text == "ok"
        await until(lambda: "did not reach the server" in caplog.text)


# --- the stream of the server ---


async def test_what_the_server_says_on_its_own_is_heard_and_the_stream_opened_anew():
    heard = []
    news = notice("notifications/tools/list_changed")

    numbers = iter(range(1, 9))

    async def listening(request, stream):
        number = next(numbers)
        await stream.write(chunked() + sse(news, id=f"g{number}") + (ended if number < 3 else b""))
        if number == 3:
            await stream.gone()

    script = handshake(GET=listening)
    async with talking(script, on_notification=lambda method, params: heard.append(method)) as (_client, peer):
        await until(lambda: len(heard) == 3)
    assert [request.header("last-event-id") for request in of(peer, "GET")] == [None, "g1", "g2"]


async def test_events_that_come_twice_are_told_once():
    heard = []

    numbers = iter(range(1, 9))

    async def listening(request, stream):
        again = [sse(notice("n/x", number=each), id=f"e{each}") for each in range(3)]
        await stream.write(chunked() + b"".join(again))
        if next(numbers) < 3:
            await stream.write(ended)
            return
        await stream.gone()

    script = handshake(GET=listening)
    options = {"on_notification": lambda method, params: heard.append(params["number"])}
    async with talking(script, **options) as (_client, peer):
        await until(lambda: len(of(peer, "GET")) == 3)
    assert heard == [0, 1, 2]


@pytest.mark.parametrize("status", [400, 410])
async def test_a_stream_that_cannot_be_resumed_any_more_is_begun_anew(status, caplog):
    """Else nothing that the server says on its own would be heard until the session ends."""
    heard = []
    numbers = iter(range(1, 9))

    async def listening(request, stream):
        number = next(numbers)
        if number == 2:
            await stream.write(http(status))
            return
        await stream.write(chunked() + sse(notice("n/x"), id=f"g{number}") + (ended if number == 1 else b""))
        if number == 3:
            await stream.gone()

    script = handshake(GET=listening)
    async with talking(script, on_notification=lambda method, params: heard.append(method)) as (_client, peer):
        await until(lambda: len(heard) == 2)
    assert [request.header("last-event-id") for request in of(peer, "GET")] == [None, "g1", None]
    assert "the stream of the server is not kept since 'g1'" in caplog.text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 501])
async def test_a_server_that_offers_no_stream_is_left_alone(status):
    async with talking(handshake(GET=lambda r, s: http(status), tools_call=ok)) as (client, peer):
        await until(lambda: of(peer, "GET"))
        await until_idle()
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "GET")) == 1
    assert len(of(peer, "initialize")) == 1


async def test_a_stream_that_is_none_is_left_alone():
    async with talking(handshake(GET=lambda r, s: http(200, b"<html>", kind="text/html"))) as (_, peer):
        await until(lambda: of(peer, "GET"))
        await until_idle()
    assert len(of(peer, "GET")) == 1


@pytest.mark.parametrize("breaks", ["status", "reset", "mid-head", "mid-event"])
async def test_a_stream_that_breaks_is_opened_again(breaks):
    numbers = iter(range(1, 9))

    def listening(request, stream):
        if next(numbers) > 3:
            return http(405)
        if breaks == "status":
            return http(503)
        given = {"reset": b"", "mid-head": b"HTTP/1.1 200", "mid-event": chunked() + b"40\r\ndata: {"}[breaks]
        stream.writer.write(given)
        stream.close()
        return None

    async with talking(handshake(GET=listening)) as (_, peer):
        await until(lambda: len(of(peer, "GET")) >= 4)


# --- resuming ---


@pytest.mark.parametrize("breaks", ["reset", "mid-event", "half an answer"])
async def test_a_stream_that_breaks_behind_an_id_is_resumed(breaks):
    async def call(request, stream):
        rest = {"reset": b"", "mid-event": b"40\r\ndata: {", "half an answer": answered(request)[:30]}[breaks]
        await stream.write(chunked() + sse(notice("n/x"), id="a") + rest)
        stream.reset()

    def listening(request, stream):
        if request.header("last-event-id") is None:
            return http(405)
        return chunked() + sse(final(of(peer, "tools/call")[0])) + ended

    async with talking(handshake(GET=listening, tools_call=call)) as (client, peer):
        assert (await client.call_tool("t")).text == "ok"


@pytest.mark.parametrize("written", [b"", b"HTTP/1.1 2", chunked(), chunked() + b"40\r\ndata: {", chunked() + sse()])
async def test_a_stream_that_breaks_without_an_id_fails_the_call_alone(written):
    async def call(request, stream):
        if len(of(peer, "tools/call")) > 1:
            return ok(request, stream)
        await stream.write(written)
        stream.reset()
        return None

    async with talking(handshake(tools_call=call)) as (client, peer):
        with pytest.raises(ConnectionLost):
            await client.call_tool("t")
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "initialize")) == 1


@pytest.mark.parametrize("status", [400, 405])
async def test_a_server_that_does_not_resume_fails_the_call(status):
    script = handshake(GET=lambda r, s: http(status), tools_call=events(sse(id="p1"), ended))
    async with talking(script) as (client, _):
        with pytest.raises(ConnectionLost, match="does not resume") as caught:
            await client.call_tool("t")
    assert caught.value.sent is True


async def test_a_server_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(session, "_TRIES", 3)

    def listening(request, stream):
        return http(405) if request.header("last-event-id") is None else http(503)

    script = handshake(GET=listening, tools_call=events(sse(id="p1"), ended))
    async with talking(script) as (client, peer):
        with pytest.raises(ConnectionLost, match="could not be reached again"):
            await client.call_tool("t")
    assert len([request for request in of(peer, "GET") if request.header("last-event-id")]) == 3


async def test_polling_ends_with_the_deadline_of_the_call():
    def listening(request, stream):
        return http(405) if request.header("last-event-id") is None else chunked() + ended

    script = handshake(GET=listening, tools_call=events(sse(id="p1", retry=0), ended))
    async with talking(script) as (client, peer):
        with pytest.raises(CallTimeout):
            await client.call_tool("t", timeout=0.3)
        await until(lambda: of(peer, "notifications/cancelled"))
        count = len(of(peer, "GET"))
        await until_idle()
        assert len(of(peer, "GET")) == count


# --- giving up ---


async def test_initialize_is_never_cancelled():
    async def silence(request, stream):
        await stream.gone()

    with pytest.raises(CallTimeout):
        async with talking(handshake(initialize=silence), connect_timeout=0.2):
            pass


# --- the end of a session ---


async def test_a_server_that_says_400_for_a_session_it_has_forgotten_is_understood():
    """As servers do that were made after the examples of the TypeScript SDK, when they are restarted."""
    calls = iter(range(1, 9))
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}'

    def call(request, stream):
        return http(400, refusal) if next(calls) in (2, 4, 5) else ok(request, stream)

    async with talking(handshake(tools_call=call)) as (client, peer):
        for _ in range(2):
            assert (await client.call_tool("t")).text == "ok"
        assert len(of(peer, "initialize")) == 2
        with pytest.raises(Refused, match="No valid session ID"):  # also in a session that has answered nothing yet
            await client.call_tool("t")
    assert len(of(peer, "initialize")) == 3


async def test_a_server_that_forgets_every_session_is_not_asked_for_ever():
    async with talking(handshake(tools_call=lambda r, s: http(404))) as (client, peer):
        with pytest.raises(SessionGone):
            await client.call_tool("t")
    assert len(of(peer, "initialize")) == 2


async def test_a_session_lost_in_the_middle_of_a_call_fails_it():
    """The call that waits may have been done: it is not said again by itself."""

    async def call(request, stream):
        if request.params["name"] == "waits":
            await stream.gone()
        return http(404) if request.header("mcp-session-id") == "s1" else ok(request, stream)

    names = ["s1", "s2"]
    script = handshake(initialize=lambda r, s: handshake(session=names.pop(0))(r, s), tools_call=call)
    async with talking(script) as (client, peer):
        waiting = asyncio.ensure_future(client.call_tool("waits"))
        await until(lambda: of(peer, "tools/call"))
        assert (await client.call_tool("t")).text == "ok"
        with pytest.raises(SessionGone) as caught:
            await waiting
        assert caught.value.sent is not False
    assert len(of(peer, "initialize")) == 2


async def test_calls_that_are_turned_away_together_are_all_said_again(monkeypatch):
    """As after a restart of the server: each call hears of it, and one new session serves them all."""
    together = asyncio.Barrier(5)

    async def call(request, stream):
        if request.header("mcp-session-id") == "s1":
            await together.wait()
            await asyncio.sleep(request.id * 0.01)
            return http(404)
        return ok(request, stream)

    names = ["s1", "s2"]
    script = handshake(initialize=lambda r, s: handshake(session=names.pop(0))(r, s), tools_call=call)
    async with talking(script) as (client, peer):
        line, ends = client._edge.link, []
        monkeypatch.setattr(line, "fail", lambda error, fail=line.fail: (ends.append(error), fail(error)))
        results = await asyncio.gather(*(client.call_tool("t") for _ in range(5)))
    assert [each.text for each in results] == ["ok"] * 5
    assert len(of(peer, "initialize")) == 2 and len(ends) == 1
    assert {each.header("mcp-session-id") for each in of(peer, "DELETE")} == {"s2"}  # the other one is gone


async def test_a_404_without_a_session_is_only_a_status():
    async with talking(handshake(session=None, tools_call=lambda r, s: http(404))) as (client, peer):
        with pytest.raises(HttpStatus):
            await client.call_tool("t")
    assert len(of(peer, "initialize")) == 1


async def test_a_notification_finds_out_too():
    script = handshake(notifications_x=lambda r, s: http(404), tools_call=ok)
    async with talking(script) as (client, peer):
        with pytest.raises(SessionGone):
            await client.notify("notifications/x")
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "initialize")) == 2


async def test_the_stream_of_the_server_finds_out_too():
    numbers = iter(range(1, 9))

    def listening(request, stream):
        number = next(numbers)
        return chunked() + sse(notice("n/x"), id="1") + ended if number == 1 else http(404 if number == 2 else 405)

    async with talking(handshake(GET=listening, tools_call=ok)) as (client, peer):
        await until(lambda: client._lost is not None)
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "initialize")) == 2


async def test_resuming_finds_out_too():
    def listening(request, stream):
        return http(405) if request.header("last-event-id") is None else http(404)

    script = handshake(GET=listening, tools_call=events(sse(id="p1"), ended))
    async with talking(script) as (client, _):
        with pytest.raises(SessionGone):
            await client.call_tool("t")


async def test_a_resumed_stream_that_gives_no_place_to_go_on_from_is_lost():
    def listening(request, stream):
        return http(405) if request.header("last-event-id") is None else chunked() + sse(id="\u00e9") + ended

    script = handshake(GET=listening, tools_call=events(sse(id="p1"), ended))
    async with talking(script) as (client, peer):
        with pytest.raises(ConnectionLost, match="ended the stream without an answer"):
            await client.call_tool("t")
    assert [each.header("last-event-id") for each in of(peer, "GET")] == [None, "p1"]


async def test_the_stream_of_the_server_takes_the_place_of_no_call(monkeypatch):
    monkeypatch.setattr(outbound, "_CONNECTIONS", 1)

    async def listening(request, stream):
        await stream.write(chunked())
        await stream.gone()

    async with talking(handshake(GET=listening, tools_call=ok)) as (client, peer):
        await until(lambda: of(peer, "GET"))
        assert (await client.call_tool("t")).text == "ok"


async def test_the_stream_of_the_server_is_asked_for_less_and_less_while_there_is_none(monkeypatch):
    fruitless = []

    def wait(events):
        fruitless.append(events._fruitless)
        return 0.001

    monkeypatch.setattr(event_reader.EventReader, "wait", property(wait))
    async with talking(handshake(GET=lambda r, s: http(503), tools_call=ok)):
        await until(lambda: len(fruitless) >= 3)
    assert fruitless[:3] == [1, 2, 3]


@pytest.mark.parametrize("reply", [http(405), http(404), http(500), b"nonsense", b""])
async def test_nobody_minds_what_is_said_to_the_goodbye(reply):
    def goodbye(request, stream):
        stream.writer.write(reply)
        stream.close()

    async with talking(handshake(DELETE=goodbye)) as (_, peer):
        pass
    assert of(peer, "DELETE")


async def test_a_goodbye_that_is_not_answered_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(session, "_GOODBYE", 0.05)

    async def silence(request, stream):
        await stream.gone()

    async with talking(handshake(DELETE=silence)) as (_, peer):
        pass
    assert len(of(peer, "DELETE")) == 1


async def test_closing_ends_calls_streams_and_questions():
    async def silence(request, stream):
        await stream.write(chunked() + sse(asked("q", "elicitation/create", message="?", requestedSchema={})))
        await stream.gone()

    async def never(params):
        await asyncio.Event().wait()

    async with talking(handshake(GET=silence, tools_call=silence), elicit=never) as (client, peer):
        waiting = [asyncio.ensure_future(client.call_tool("t")) for _ in range(3)]
        await until(lambda: len(of(peer, "tools/call")) == 3)
        await client.close()
        for each in waiting:
            with pytest.raises(ConnectionClosed):
                await each
    assert len(of(peer, "DELETE")) == 1


async def test_a_server_that_is_away_for_a_while_finds_the_session_again():
    async with talking() as (client, peer):
        await until(lambda: of(peer, "GET"))
        await peer.stop()
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool("t")
        assert caught.value.sent is False
        await peer.start()
        assert (await client.call_tool("t")).text == "ok"
    assert len(of(peer, "initialize")) == 1


# --- nothing is left behind ---


async def test_many_calls_given_up_at_any_moment_leave_nothing_behind():
    async def call(request, stream):
        await stream.write(chunked() + sse(notice("notifications/message", level="info", data=1), id=str(request.id)))
        await asyncio.sleep(0)
        await stream.write(answered(request))

    async with talking(handshake(tools_call=call)) as (client, _):
        calls = [asyncio.ensure_future(client.call_tool("t")) for _ in range(60)]
        for turn, each in enumerate(calls):
            for _ in range(turn % 7):
                await asyncio.sleep(0)
            if turn % 2:
                each.cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(each.text == "ok" for each in found[::2])
        assert (await client.call_tool("t")).text == "ok"
        line = client._edge.link
        assert not line._calls.waiting
        await until(lambda: not line._posting._requests and not line._posting._aside)


@pytest.mark.parametrize("turns", [*range(0, 30, 3), 40, 60, 90])
async def test_opening_given_up_at_any_moment_leaves_nothing_behind(turns):
    async def listening(request, stream):
        await stream.write(chunked())
        await stream.gone()

    async with HttpPeer(handshake(GET=listening)) as peer:
        client = Client(peer.url, verdicts=Verdicts())
        opening = asyncio.ensure_future(client.open())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
        await client.close()


async def test_closing_while_the_session_is_found_to_be_gone():
    async with talking(handshake(tools_call=lambda r, s: http(404))) as (client, _):
        calls = [asyncio.ensure_future(client.call_tool("t")) for _ in range(5)]
        await until_idle()
        await client.close()
        for found in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(found, ConnectionError | NotOpen)


def test_a_client_whose_loop_is_gone_can_be_closed():
    async def used():
        async with HttpPeer(handshake(tools_call=ok)) as peer:
            client = Client(peer.url, verdicts=Verdicts())
            await client.open()
            await client.call_tool("t")
            return client, list(client._edge.link._posting._outbound._pool.sockets)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the loop, about transports that went with it
        client, held = asyncio.run(used())
        asyncio.run(client.close())
        assert held and all(each.fileno() < 0 for each in held)
        del client, held
        gc.collect()


async def test_a_thousand_questions_that_nobody_takes_the_answers_of_end_the_session(monkeypatch):
    monkeypatch.setattr(post_channel, "_MOST_ASIDE", 20)
    monkeypatch.setattr(post_channel, "_LAST_WORDS", 0.01)

    async def silence(request, stream):
        await stream.gone()

    async def call(request, stream):
        await stream.write(chunked() + b"".join(sse(asked(number, "ping")) for number in range(50)))
        await stream.gone()

    async with talking(handshake(tools_call=call, answer=silence)) as (client, _):
        with pytest.raises(ConnectionLost, match="has not taken"):
            await client.call_tool("t")
