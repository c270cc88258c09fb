"""A server of ours and the requests its client gives up: handshake CANC, modern CANCEL and STDIO-011, -012.

Over "memory" a frame is delivered by a plain call: when `send` returns, the server has read it. Races are
therefore judged strictly there, and over a real pipe as far as the wire allows.
"""

import asyncio
import contextlib
import json
import logging
import sys
import threading

import pytest

from interlock import Context, Server
from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from interlock.wire.limits import Limits
from support.raw_process import call, command, opening, raw_process, request
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, WAIT, WirePeer, server_under_test

CAN_BE_ASKED = {"roots": {}, "sampling": {}, "elicitation": {}}
GOOD_ANSWER = {
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "hi"},
        "model": "some",
    },
    "elicitation/create": {"action": "decline"},
}

QUESTIONS = [
    (revision, method)
    for revision in HANDSHAKE
    for method in GOOD_ANSWER
    if method != "elicitation/create" or revision >= "2025-06-18"
]


def cancel(peer, id, reason="no longer needed"):
    peer.notify("notifications/cancelled", {"requestId": id, "reason": reason})


async def start(peer, tool, /, token="t", id=None, **arguments):
    """Send a call and wait for its first progress: from then on the handler certainly runs."""
    frame = peer.frame("tools/call", {"name": tool, "arguments": arguments}, id=id, meta={"progressToken": token})
    peer.send(frame)
    await peer.expect("notifications/progress")
    return frame["id"]


async def tool_text(peer, tool, /, **arguments):
    result = await peer.result("tools/call", {"name": tool, "arguments": arguments})
    return result["content"][0]["text"]


def answers(peer, id):
    """The responses with that id among what was heard beside the awaited answers."""
    return [frame for frame in said(peer) if "method" not in frame and frame.get("id") == id]


def said(peer):
    """What was heard, batches taken apart."""
    return [part for frame in peer.heard for part in (frame if isinstance(frame, list) else [frame])]


def told_for(peer, token):
    return [params for params in peer.notices("notifications/progress") if params["progressToken"] == token]


@contextlib.asynccontextmanager
async def connected(server, revision):
    """A peer of a server made in the test itself."""
    near, far = memory_pair()
    duplex = serve_channel(server, far)
    await duplex.open()
    peer = WirePeer(near, revision, "client")
    await near.open(peer)
    try:
        await peer.open()
        yield peer
        peer.transcript.check()
    finally:
        await near.close()
        await duplex.close()


async def until_noted(peer, note):
    """Ask the server until a handler wrote that down; the pause leaves the machine to handlers in threads."""
    async with asyncio.timeout(WAIT):
        while note not in await tool_text(peer, "noted"):
            await asyncio.sleep(0.001)


# --- the run stops and nothing more is said ---


@pytest.mark.requirement("CANC-05", "CANC-06", "CANC-07", "CANCEL-005", "STDIO-011", "STDIO-012")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_cancelled_run_stops_and_is_not_answered(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        id = await start(peer, "forever", name="one")
        cancel(peer, id)
        await until_noted(peer, "stopped one")
        await peer.settle()
        assert answers(peer, id) == []


@pytest.mark.requirement("CANC-07", "PROG-07", "PROGRESS-006", "STDIO-012", "CANCEL-005")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_that_cleans_up_says_nothing_more(carrier, revision):
    """`forever` reports progress in its `finally`, when its token is no longer one of an active request."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        id = await start(peer, "forever", token="mine", name="one")
        peer.heard.clear()
        cancel(peer, id)
        await until_noted(peer, "stopped one")
        await peer.settle()
        assert told_for(peer, "mine") == []


@pytest.mark.requirement("CANC-07", "CANCEL-005", "STDIO-012")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_that_swallows_its_cancellation_is_not_heard(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        id = await start(peer, "deaf", token="mine")
        peer.heard.clear()
        cancel(peer, id)
        await tool_text(peer, "release")
        await until_noted(peer, "deaf ended")
        await peer.settle()
        assert answers(peer, id) == []
        assert told_for(peer, "mine") == []


@pytest.mark.requirement("CANC-07", "CANCEL-005", "STDIO-012")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_in_a_thread_learns_of_it_and_is_not_heard(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        id = await start(peer, "blocked", token="mine")
        peer.heard.clear()
        cancel(peer, id)
        await tool_text(peer, "release")
        await until_noted(peer, "blocked ended")
        assert "blocked saw True" in await tool_text(peer, "noted")
        await peer.settle()
        assert answers(peer, id) == []
        assert told_for(peer, "mine") == []


@pytest.mark.requirement("CANC-05", "CANCEL-005", "STDIO-011")
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_that_waits_for_a_thread_never_starts_once_it_is_cancelled(revision):
    server = Server("narrow", threads=1)
    go, ran = threading.Event(), []

    @server.tool
    def hold(ctx: Context) -> str:
        ctx.progress(1)
        go.wait()
        return "held"

    @server.tool
    def mark(name: str) -> str:
        ran.append(name)
        return name

    async with connected(server, revision) as peer:
        held = await start(peer, "hold")
        waiting = peer.frame("tools/call", {"name": "mark", "arguments": {"name": "cancelled"}})
        peer.send(waiting)
        await peer.result("tools/list", {})  # a run of its own: by its answer `mark` stands in the queue
        cancel(peer, waiting["id"])
        go.set()
        assert (await peer.response(held))["result"]["content"][0]["text"] == "held"
        assert await tool_text(peer, "mark", name="wanted") == "wanted"  # behind it in the same queue
        assert ran == ["wanted"]


def test_a_thread_that_outlives_its_loop_ends_in_peace():
    """What it says goes nowhere; it neither fails nor waits for ever, and no coroutine is left unawaited."""

    async def abandon():
        async with server_under_test("memory", ALL[-1], server="utilities") as peer:
            await start(peer, "blocked")

    asyncio.run(abandon())
    module = sys.modules["support.servers.utilities"]
    module.released.set()
    assert module.blocked_over.wait(WAIT)
    assert "blocked ended" in module.notes


@pytest.mark.requirement("CANC-06", "CANCEL-005")
@pytest.mark.parametrize("revision", ALL)
async def test_a_cancelled_run_makes_room_for_another(revision):
    """Even one that goes on working: nobody waits for it, so it counts for nothing."""
    async with server_under_test("memory", revision, server="utilities", limits=Limits(in_flight=1)) as peer:
        id = await start(peer, "deaf")
        refused = await peer.error("tools/call", {"name": "echo", "arguments": {"text": "a"}})
        assert refused["code"] == -32603  # at the limit
        cancel(peer, id)
        assert await tool_text(peer, "echo", text="b") == "b"
        assert await tool_text(peer, "release") == "released"
        await until_noted(peer, "deaf ended")


@pytest.mark.requirement("CANC-06", "CANCEL-005")
@pytest.mark.parametrize("revision", ALL)
async def test_a_thousand_cancelled_runs_leave_nothing(revision):
    async with server_under_test("memory", revision, server="utilities") as peer:
        before = len(asyncio.all_tasks())
        for number in range(1000):
            id = await start(peer, "forever", token=number)
            cancel(peer, id)
        await peer.settle()
        await until_noted(peer, "stopped")
        assert len(asyncio.all_tasks()) <= before + 1  # the worker that waits for nothing any more


@pytest.mark.requirement("CANC-07")
@pytest.mark.parametrize("carrier", CARRIERS)
async def test_the_rest_of_a_batch_is_answered_when_one_of_it_is_cancelled(carrier):
    async with server_under_test(carrier, "2025-03-26", server="utilities") as peer:
        slow = peer.frame("tools/call", {"name": "forever", "arguments": {}}, id="slow", meta={"progressToken": 1})
        quick = peer.frame("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id="quick")
        peer.send([slow, quick])
        await peer.expect("notifications/progress")
        cancel(peer, "slow")
        batch = await peer.receive()
        while not isinstance(batch, list):
            batch = await peer.receive()
        assert [answer["id"] for answer in batch] == ["quick"]


# --- cancellations that mean nothing ---


NO_CANCELLATION = {
    "an unknown integer": {"requestId": 987654},
    "an unknown string": {"requestId": "nobody"},
    "no params": None,
    "no request id": {},
    "only a reason": {"reason": "because"},
    "null": {"requestId": None},
    "true": {"requestId": True},
    "false": {"requestId": False},
    "a fraction": {"requestId": 1.5},
    "an array": {"requestId": [1]},
    "an object": {"requestId": {"id": 1}},
    "a number beyond 64 bits": {"requestId": 2**70},
    "a reason that is a number": {"requestId": 987654, "reason": 7},
    "params that are an array": [1],
    "params that are a string": "1",
    "params that are null": "null",
}


@pytest.mark.requirement("CANC-08", "CANC-13", "CANC-14", "CANCEL-006", "CANCEL-009")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_unknown_and_malformed_cancellations_are_ignored_in_silence(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        running = await start(peer, "forever", id=1)  # what True, 1.5 and [1] must not be taken for
        for params in NO_CANCELLATION.values():
            frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            if params is None:
                del frame["params"]
            elif params == "null":
                frame["params"] = None
            peer.send(frame, judged=False)
        peer.heard.clear()
        await peer.settle()
        assert peer.heard == []
        assert "stopped" not in await tool_text(peer, "noted")
        cancel(peer, running)
        await until_noted(peer, "stopped")


@pytest.mark.requirement("CANC-13", "CANC-14", "CANCEL-009")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_an_id_is_its_value_and_its_type(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        await start(peer, "forever", id=50_000, token="a", name="number")
        await start(peer, "forever", id="50001", token="b", name="text")
        cancel(peer, "50000")
        cancel(peer, 50_001)
        await peer.settle()
        assert "stopped" not in await tool_text(peer, "noted")
        cancel(peer, "50001")
        await until_noted(peer, "stopped text")
        assert "stopped number" not in await tool_text(peer, "noted")
        cancel(peer, 50_000)
        await until_noted(peer, "stopped number")


@pytest.mark.requirement("CANC-08", "CANC-10", "CANC-13", "CANCEL-006", "CANCEL-008", "CANCEL-009")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_cancellation_that_comes_too_late_is_ignored(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        answered = await peer.request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        cancel(peer, answered["id"])
        cancel(peer, answered["id"])
        id = await start(peer, "forever")
        cancel(peer, id)
        cancel(peer, id)  # twice: the second finds nothing to stop
        peer.heard.clear()
        await peer.settle()
        assert peer.heard == []


# --- races ---


@pytest.mark.requirement("CANC-10", "CANCEL-008", "STDIO-012")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("tool", ["echo", "flood", "flood_in_thread", "wobble"])
async def test_cancelling_at_every_moment_of_a_run(revision, tool):
    """After so many turns of the loop the cancellation is read; what was not said by then never is."""
    arguments = {"count": 3} if tool.startswith("flood") else {}
    async with server_under_test("memory", revision, server="utilities") as peer:
        for turns in range(24):
            frame = peer.frame("tools/call", {"name": tool, "arguments": arguments}, meta={"progressToken": "r"})
            peer.send(frame)
            for _ in range(turns):
                await asyncio.sleep(0)
            cancel(peer, frame["id"])
            before = len(peer.raw)
            await peer.settle()
            late = [json.loads(raw) for raw in peer.raw[before:]]
            assert [each for each in late if concerns(each, frame["id"], "r")] == [], f"after {turns} turns"


def concerns(frame, id, token):
    if "method" in frame:
        return frame.get("params", {}).get("progressToken") == token
    return frame["id"] == id


@pytest.mark.requirement("CANC-10", "CANCEL-008")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_cancellations_right_behind_their_requests(carrier, revision):
    """Hundreds of both in one write: each request gets its result or nothing, and the server lives."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        ids = [f"race-{number}" for number in range(300)]
        for number, id in enumerate(ids):
            frame = peer.frame("tools/call", {"name": "echo", "arguments": {"text": id}}, id=id)
            peer.send(frame)  # both are written together, in the next turn
            cancel(peer, ids[number // 2])
        await peer.settle()
        for id in ids:
            found = answers(peer, id)
            assert len(found) <= 1
            assert all(answer["result"]["content"][0]["text"] == id for answer in found)


@pytest.mark.requirement("CANCEL-008", "STDIO-012")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
async def test_a_late_answer_is_not_taken_for_that_of_a_new_request(carrier, revision):
    """Ids are unique among requests in flight, and a cancelled one is none: its id may come again."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        id = await start(peer, "deaf", id="again", token="old")
        cancel(peer, id)
        frame = peer.frame("tools/call", {"name": "echo", "arguments": {"text": "new"}}, id="again")
        peer.send(json.dumps(frame).encode())  # bytes: for the transcript the first one is still open
        answer = await peer.response("again")
        assert answer["result"]["content"][0]["text"] == "new"
        await tool_text(peer, "release")
        await until_noted(peer, "deaf ended")
        await peer.settle()
        assert answers(peer, "again") == []


# --- initialize ---


@pytest.mark.requirement("CANC-13")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_initialize_cannot_be_cancelled(carrier, revision):
    """A client must not; one that does gets its answer all the same, and a session that works."""
    async with server_under_test(carrier, revision, opened=False) as peer:
        hello = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        frame = peer.frame("initialize", hello, id=1)
        peer.transcript.sent(frame, sender="client")
        peer.channel.send(json.dumps(frame).encode())
        peer.channel.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
        peer._ids = 1
        assert (await peer.response(1))["result"]["protocolVersion"] == revision
        peer.notify("notifications/initialized")
        assert await tool_text(peer, "echo", text="alive") == "alive"


# --- questions of ours ---


@pytest.mark.requirement("CANC-01", "CANC-02", "CANC-09", "CANC-14")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("revision", "method"), QUESTIONS)
async def test_our_question_is_withdrawn_with_the_run_that_asked(carrier, revision, method):
    async with server_under_test(carrier, revision, capabilities=CAN_BE_ASKED) as peer:
        frame = peer.frame("tools/call", {"name": "question", "arguments": {"method": method}})
        peer.send(frame)
        question = await peer.expect(method)
        cancel(peer, frame["id"])
        withdrawn = await peer.expect("notifications/cancelled")
        assert withdrawn["params"]["requestId"] == question["id"]
        assert isinstance(withdrawn["params"].get("reason", ""), str)
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": GOOD_ANSWER[method]})  # too late
        peer.heard.clear()
        await peer.settle()
        assert peer.heard == []


@pytest.mark.requirement("CANC-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_question_that_was_answered_is_not_withdrawn(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities", capabilities=CAN_BE_ASKED) as peer:
        frame = peer.frame("tools/call", {"name": "ask_then_wait", "arguments": {}}, meta={"progressToken": 1})
        peer.send(frame)
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        await peer.expect("notifications/progress")
        cancel(peer, frame["id"])
        await peer.settle()
        assert peer.notices("notifications/cancelled") == []


@pytest.mark.requirement("CANC-01", "CANC-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_question_is_cancelled_by_its_own_id_only(carrier, revision):
    """Ids of the two directions are apart: the client's id 1 and the server's id 1 are different requests."""
    async with server_under_test(carrier, revision, capabilities=CAN_BE_ASKED) as peer:
        first, second = (
            peer.frame("tools/call", {"name": "question", "arguments": {"method": "roots/list"}}) for _ in range(2)
        )
        peer.send(first)
        asked = await peer.expect("roots/list")
        peer.send(second)
        asked_too = await peer.expect("roots/list")
        cancel(peer, second["id"])
        withdrawn = await peer.expect("notifications/cancelled")
        assert withdrawn["params"]["requestId"] == asked_too["id"] != asked["id"]
        peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        answer = await peer.response(first["id"])
        assert "roots" in answer["result"]["content"][0]["text"]
        assert peer.notices("notifications/cancelled") == []


# --- the log ---


@pytest.mark.requirement("CANC-11", "CANC-15", "CANCEL-010")
@pytest.mark.parametrize("revision", ALL)
async def test_the_reason_is_logged(revision, caplog):
    caplog.set_level(logging.INFO, logger="interlock")
    async with server_under_test("memory", revision, server="utilities") as peer:
        id = await start(peer, "forever")
        cancel(peer, id, "the user pressed stop")
        await peer.settle()
    (told,) = [record for record in caplog.records if "the user pressed stop" in record.getMessage()]
    assert repr(id) in told.getMessage()
    assert told.levelno >= logging.INFO


@pytest.mark.requirement("CANC-11", "CANCEL-010")
@pytest.mark.parametrize("revision", ALL)
async def test_a_reason_cannot_forge_a_line_of_the_log(revision, caplog):
    caplog.set_level(logging.INFO, logger="interlock")
    async with server_under_test("memory", revision, server="utilities") as peer:
        id = await start(peer, "forever")
        cancel(peer, id, "stop\n2026-01-01 CRITICAL all is lost\x1b[2J")
        await peer.settle()
    text = "".join(record.getMessage() for record in caplog.records)
    assert "all is lost" in text
    assert "\n" not in text and "\x1b" not in text


# --- listen, and what a stateless server may cancel ---


def tools_changed(peer):
    return peer.frame("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


@pytest.mark.requirement("CANCEL-005", "STDIO-012")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
async def test_a_cancelled_listen_stream_is_silent(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        frame = tools_changed(peer)
        peer.send(frame)
        await peer.expect("notifications/subscriptions/acknowledged")
        assert await tool_text(peer, "grow") == "added"
        await peer.expect("notifications/tools/list_changed")
        cancel(peer, frame["id"])
        peer.heard.clear()
        assert await tool_text(peer, "grow") == "removed"
        await peer.settle()
        assert peer.heard == []


@pytest.mark.requirement("CANCEL-003")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
async def test_a_stateless_server_cancels_nothing_of_its_clients(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for how in ("tool", "bug", "cancel", "exit", "group"):
            await peer.request("tools/call", {"name": "fail", "arguments": {"how": how}})
        await peer.request("tools/call", {"name": "question", "arguments": {"method": "roots/list"}})
        cancel(peer, await start(peer, "forever"))
        cancel(peer, await start(peer, "stubborn"))
        listen = tools_changed(peer)
        peer.send(listen)
        await peer.expect("notifications/subscriptions/acknowledged")
        cancel(peer, listen["id"])
        await peer.settle()
        assert peer.notices("notifications/cancelled") == []


@pytest.mark.requirement("CANCEL-004", "CANCEL-003")
@pytest.mark.parametrize("revision", MODERN)
async def test_a_server_that_goes_ends_its_listen_streams(revision):
    """The result first, then the notification (modern.md §13.1: page and schema differ, both are served)."""
    async with server_under_test("memory", revision) as peer:
        frame = tools_changed(peer)
        peer.send(frame)
        await peer.expect("notifications/subscriptions/acknowledged")
        sys.modules["support.servers.basic"].server.stop_listening()
        answer = await peer.response(frame["id"])
        assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == frame["id"]
        ended = await peer.expect("notifications/cancelled")
        assert ended["params"]["requestId"] == frame["id"]


@pytest.mark.requirement("CANCEL-004")
@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
async def test_a_process_that_goes_ends_its_listen_streams(revision, how):
    async with raw_process(command("utilities")) as child:
        child.write(opening(revision))
        await child.answer("open")
        wanted = {"notifications": {"toolsListChanged": True}}
        child.write(request(revision, "l-1", "subscriptions/listen", wanted))
        await child.notice("notifications/subscriptions/acknowledged")
        if how == "SIGTERM":
            child.write(call(revision, "hit", "hit", {"name": "SIGTERM"}))
            await child.rest()
        else:
            await child.finish()
        assert await child.exit_code() == 0
        assert [answer["result"]["resultType"] for answer in child.answers("l-1")] == ["complete"]
        ended = [
            frame["params"]["requestId"] for frame in child.frames if frame.get("method") == "notifications/cancelled"
        ]
        assert ended == ["l-1"]
