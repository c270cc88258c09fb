"""Batches: one array of 2025-03-26, answered by one; refused in every other revision (BASE-17 to BASE-20)."""

import json

import pytest

from interlock.wire.limits import DEFAULT_LIMITS, Limits
from support.handshake_talk import answered, barrier, call, can, flat, said_to, together
from support.wire_peer import CARRIERS, HANDSHAKE, server_under_test

BATCHES = ("2025-03-26",)
NO_BATCHES = tuple(revision for revision in HANDSHAKE if revision not in BATCHES)

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)


def _ping(id):
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def _told(method="notifications/example/ring", **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


@pytest.mark.requirement("BASE-17", "BASE-18", "BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_mixed_batch_is_answered_by_one_array(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        listing = peer.frame("tools/list", {}, id="a")
        adding = call(peer, "add", {"a": 1, "b": 2}, id=2)
        unknown = peer.frame("example/none", {}, id=3)
        peer.send([listing, _told(tone="x"), adding, unknown])
        answers = {repr(answer["id"]): answer for answer in await peer.receive()}
        assert answers.keys() == {"'a'", "2", "3"}
        assert "tools" in answers["'a'"]["result"]
        assert answers["2"]["result"]["content"][0]["text"] == "3"
        assert answers["3"]["error"]["code"] == -32601
        assert await peer.result("example/heard", judged=False) == {"heard": ["x"]}
        assert peer.heard == []


@pytest.mark.requirement("BASE-17", "BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_batch_of_one_is_answered_by_an_array_of_one(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        peer.send([_ping(1000)])
        assert await peer.receive() == [{"jsonrpc": "2.0", "id": 1000, "result": {}}]


@pytest.mark.requirement("BASE-19", "BASE-14")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_batch_of_notifications_is_not_answered(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        peer.send([_told(tone="1"), _told("notifications/nothing"), _told(tone="2")])
        await barrier(peer)
        assert peer.heard == []
        assert await peer.result("example/heard", judged=False) == {"heard": ["1", "2"]}


@pytest.mark.requirement("BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_an_empty_batch_is_one_invalid_request(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for line in (b"[]", b" [ ] "):
            (answer,) = await said_to(peer, line)
            assert isinstance(answer, dict), "an empty batch is answered by a single object"
            assert answer["error"]["code"] == -32600 and answer.get("id") is None


@pytest.mark.requirement("LIFE-07", "BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_initialize_in_a_batch_is_refused_and_the_rest_is_served(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        again = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        peer.send([peer.frame("initialize", again, id=70), _ping(71)])
        answers = {answer["id"]: answer for answer in await peer.receive()}
        assert answers[70]["error"]["code"] == -32600
        assert answers[71]["result"] == {}


@pytest.mark.requirement("BASE-14", "BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_initialize_without_an_id_in_a_batch_disturbs_nothing(carrier, revision):
    """It is a notification, so it gets no answer, and the requests beside it still get theirs."""
    async with server_under_test(carrier, revision, check=False) as peer:
        said = await said_to(peer, json.dumps([{"jsonrpc": "2.0", "method": "initialize"}, _ping(71)]).encode())
        assert said == [[{"jsonrpc": "2.0", "id": 71, "result": {}}]]


@pytest.mark.requirement("LIFE-01", "LIFE-07", "BASE-20")
@every_carrier
@every_revision
async def test_a_batch_before_initialize_is_refused(carrier, revision):
    """Which revision is spoken is not known yet, and initialize itself must not stand in a batch."""
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        first = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        peer.send([peer.frame("initialize", first, id=70), _ping(71)], judged=False)
        answer = await peer.receive()
        assert all(part["error"]["code"] == -32600 for part in flat([answer]) if part.get("id") != 71)
        assert (await peer.open())["protocolVersion"] == revision


@pytest.mark.requirement("BASE-17", "BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_too_long_a_batch_is_refused_as_a_whole(carrier, revision):
    limit = DEFAULT_LIMITS.batch
    async with server_under_test(carrier, revision) as peer:
        peer.send([_ping(1000 + number) for number in range(limit)])
        assert len(await peer.receive()) == limit
        said = await said_to(peer, json.dumps([_ping(2000 + number) for number in range(limit + 1)]).encode())
        (answer,) = said
        assert answer["error"]["code"] == -32600


@pytest.mark.requirement("BASE-19", "BASE-21")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_invalid_elements_of_a_batch_get_their_own_errors(carrier, revision):
    """JSON-RPC 2.0 §7: [1, 2, 3] gets three errors; good elements beside bad ones are served."""
    async with server_under_test(carrier, revision, check=False) as peer:
        elements = [
            1,
            None,
            [],
            {},
            _ping(None),
            _ping(1.5),
            {"jsonrpc": "1.0", "id": 80, "method": "ping"},
            _ping(81),
            _told("notifications/nothing"),
            {"jsonrpc": "2.0", "id": 987, "result": {}},
        ]
        (answers,) = await said_to(peer, json.dumps(elements).encode())
        codes = [answer["error"]["code"] if "error" in answer else "served" for answer in answers]
        assert sorted(map(str, codes)) == ["-32600"] * 7 + ["served"]
        assert sorted(answer["id"] for answer in answers if answer.get("id") is not None) == [80, 81]


@pytest.mark.requirement("BASE-19", "BASE-04")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_one_id_twice_in_a_batch(carrier, revision):
    """Two answers come all the same, at most one of them a result: nobody waits for ever."""
    async with server_under_test(carrier, revision, check=False) as peer:
        peer.send([call(peer, "echo", id=90), call(peer, "echo", id=90)], judged=False)
        answers = await peer.receive()
        assert [answer["id"] for answer in answers] == [90, 90]
        assert sorted("result" in answer for answer in answers) == [False, True]


@pytest.mark.requirement("BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_cancelled_request_is_left_out_of_the_answer(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        endless = call(peer, "forever", {"name": "b"}, id=60, meta={"progressToken": "t"})
        peer.send([endless, _ping(61)])
        await peer.expect("notifications/progress")
        peer.notify("notifications/cancelled", {"requestId": 60})
        await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": "b"}})
        await barrier(peer)
        answers = [frame for frame in peer.heard if isinstance(frame, list)]
        assert answers == [[{"jsonrpc": "2.0", "id": 61, "result": {}}]]


@pytest.mark.requirement("BASE-19")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_batch_whose_requests_are_all_cancelled_is_not_answered(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        endless = call(peer, "forever", {"name": "c"}, id=62, meta={"progressToken": "t"})
        peer.send([endless])
        await peer.expect("notifications/progress")
        peer.notify("notifications/cancelled", {"requestId": 62})
        await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": "c"}})
        await barrier(peer)
        assert not [frame for frame in peer.heard if isinstance(frame, list)]


@pytest.mark.requirement("BASE-17")
@every_carrier
@pytest.mark.parametrize("revision", BATCHES)
async def test_a_batch_of_responses_answers_every_question(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        for id in ("p", "q"):
            peer.send(call(peer, "ask", {"method": "roots/list", "params": {}}, id=id))
        questions = [await peer.expect("roots/list") for _ in range(2)]
        peer.send([{"jsonrpc": "2.0", "id": each["id"], "result": {"roots": []}} for each in questions])
        for id in ("p", "q"):
            assert "isError" not in (await answered(peer, id))["result"]


@pytest.mark.requirement("BASE-17", "BASE-19")
@pytest.mark.parametrize("revision", BATCHES)
async def test_an_answer_too_large_for_one_message_still_answers_every_request(revision):
    """Each answer fits, all in one array do not."""
    async with server_under_test("memory", revision, limits=Limits(message_bytes=1500), check=False) as peer:
        peer.send([call(peer, "blocks", {}, id=number) for number in (100, 101, 102)])
        await barrier(peer)
        assert sorted(answer["id"] for answer in flat(peer.heard)) == [100, 101, 102]


@pytest.mark.requirement("BASE-20", "LIFE-15")
@every_carrier
@pytest.mark.parametrize("revision", NO_BATCHES)
async def test_arrays_are_refused_where_batches_do_not_exist(carrier, revision):
    """Deviation §16.2: by the negotiated version only, whatever a summary says about 2025-06-18."""
    async with server_under_test(carrier, revision, check=False) as peer:
        for batch in ([_ping(1000), _ping(1001)], [_told(tone="no")], [_ping(1000)]):
            (answer,) = await said_to(peer, json.dumps(batch).encode())
            assert isinstance(answer, dict), "an array was answered by an array"
            assert answer["error"]["code"] == -32600 and answer.get("id") is None
        assert await peer.result("example/heard", judged=False) == {"heard": []}


@pytest.mark.requirement("BASE-20", "BASE-18")
@every_carrier
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_never_makes_a_batch_of_its_own(carrier, revision):
    """Many requests in one write get one object each."""
    async with server_under_test(carrier, revision) as peer:
        together(peer, *[peer.frame("tools/list", {}, id=number) for number in range(100, 150)])
        for number in range(100, 150):
            await answered(peer, number)
        assert all(isinstance(frame, dict) for frame in peer.transcript.frames("server"))
