"""What a client of ours answers when the server asks: ping, roots, sampling, elicitation, and everything else."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock import Refused, RemoteError
from interlock.protocol.client import handshake
from interlock.wire.errors import BadResult
from support.talking import reply, settled, start, talking, text
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_modern = pytest.mark.parametrize("revision", MODERN)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "small"}
FORM = {"type": "object", "properties": {"size": {"type": "number"}}}
ELICITING = {"message": "How big?", "requestedSchema": FORM}
CODES_OF_JSON_RPC = {-32700, -32600, -32601, -32602, -32603}


def questions(revision: str) -> dict[str, dict]:
    found = {"roots/list": {}, "sampling/createMessage": SAMPLING}
    return found if revision < "2025-06-18" else {**found, "elicitation/create": ELICITING}


# --- ping ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PING-01", "PING-03", "BASE-06", "BASE-07", "BASE-11")
@over_carriers
@over_handshake
async def test_a_ping_is_answered_with_nothing_under_the_very_same_id(carrier, revision):
    async with talking(carrier, revision) as (_, peer):
        for id in (7, "7", 0, -1, "", "ü", 2**53 - 1):
            answer = await peer.request("ping", id=id)
            assert answer == {"jsonrpc": "2.0", "id": id, "result": {}}
            assert type(answer["id"]) is type(id)
        assert "result" in await peer.request("ping", {"_meta": {"com.example/a": 1}}, id="with meta")


@pytest.mark.requirement("PING-01", "PING-02")
@over_carriers
@over_handshake
async def test_a_ping_is_answered_while_the_client_is_busy(carrier, revision):
    """A question that takes its time and a call in flight do not keep it waiting."""
    go = asyncio.Event()

    async def sample(_):
        await go.wait()
        return SAMPLED

    async with talking(carrier, revision, sample=sample) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        peer.send(peer.frame("sampling/createMessage", SAMPLING, id="slow"))
        assert (await peer.request("ping", id="quick"))["result"] == {}
        go.set()
        assert (await peer.response("slow"))["result"] == SAMPLED
        reply(peer, request, text("done"))
        await call


# --- questions it can answer --------------------------------------------------------------------------------


async def slowly() -> list:
    await asyncio.sleep(0)
    return [{"uri": "file:///home/ada", "name": "Ada"}]


ROOTS = {"list": ["file:///home/ada"], "function": lambda: ["file:///home/ada"], "async function": slowly}


@pytest.mark.requirement("CAP-02", "BASE-11")
@over_carriers
@over_handshake
@pytest.mark.parametrize(
    "roots", [["file:///home/ada"], lambda: ["file:///home/ada"], slowly], ids=["list", "function", "async"]
)
async def test_roots_are_told_as_often_as_asked(carrier, revision, roots):
    async with talking(carrier, revision, roots=roots) as (_, peer):
        for _ in range(3):
            told = await peer.result("roots/list")
            assert [root["uri"] for root in told["roots"]] == ["file:///home/ada"]


@pytest.mark.requirement("CAP-02", "SCH-23")
@over_carriers
@over_handshake
async def test_sampling_reaches_its_callback_with_everything_that_was_said(carrier, revision):
    seen = []

    def sample(params):
        seen.append(params)
        return SAMPLED

    async with talking(carrier, revision, sample=sample) as (_, peer):
        asked = {**SAMPLING, "temperature": 0.5, "unknown": {"a": [1]}}
        assert await peer.result("sampling/createMessage", asked) == SAMPLED
        assert seen == [asked]


@pytest.mark.requirement("SCH-19", "ELIC-12", "ELIC-19")
@over_carriers
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_fraction_survives_elicitation(carrier, revision):
    """The generated JSON schema narrows numbers to integers; the specification does not."""
    answer = {"action": "accept", "content": {"size": 3.14, "name": "Ada", "sure": True}}
    async with talking(carrier, revision, elicit=lambda _: answer, check=False) as (_, peer):
        assert await peer.result("elicitation/create", ELICITING) == answer


@pytest.mark.requirement("BASE-05", "BASE-06")
@over_carriers
@over_handshake
async def test_questions_are_answered_side_by_side(carrier, revision):
    both = asyncio.Barrier(2)

    async def sample(params):
        await both.wait()  # passes only when two questions are open at once
        return {**SAMPLED, "model": params["systemPrompt"]}

    async with talking(carrier, revision, sample=sample) as (_, peer):
        for id in ("a", "b"):
            peer.send(peer.frame("sampling/createMessage", {**SAMPLING, "systemPrompt": id}, id=id))
        answers = [await peer.receive(), await peer.receive()]
        assert {answer["id"]: answer["result"]["model"] for answer in answers} == {"a": "a", "b": "b"}


@over_carriers
@over_handshake
async def test_a_callback_may_call_the_server_itself(carrier, revision):
    async with talking(carrier, revision, sample=lambda _: think()) as (client, peer):

        async def think():
            return {**SAMPLED, "model": (await client.call_tool("model")).text}

        peer.send(peer.frame("sampling/createMessage", SAMPLING, id="q"))
        reply(peer, await peer.expect("tools/call"), text("big"))
        assert (await peer.response("q"))["result"]["model"] == "big"


# --- questions it cannot answer -----------------------------------------------------------------------------


@pytest.mark.requirement("BASE-22", "LIFE-16", "BASE-08", "BASE-09", "ROOTS-05")
@over_carriers
@over_handshake
async def test_what_was_not_declared_is_refused(carrier, revision):
    unknown = ("foo/bar", "tools/list", "server/discover", "initialize", "shutdown", "", "tasks/get")
    async with talking(carrier, revision) as (_, peer):
        for method in (*questions(revision), *unknown):
            error = await peer.error(method, questions(revision).get(method), judged=False)
            assert error["code"] == -32601, method
            assert isinstance(error["message"], str)


@pytest.mark.requirement("BASE-22", "LIFE-15")
@over_carriers
@pytest.mark.parametrize("revision", [name for name in HANDSHAKE if name < "2025-06-18"])
async def test_a_question_of_a_later_revision_is_unknown(carrier, revision):
    asked = []
    async with talking(carrier, revision, elicit=asked.append) as (_, peer):
        assert (await peer.error("elicitation/create", ELICITING, judged=False))["code"] == -32601
        assert asked == []


@pytest.mark.requirement("BASE-21", "BASE-25")
@over_carriers
@over_handshake
async def test_params_that_are_no_object_are_refused(carrier, revision):
    asked = []

    def sample(params):
        asked.append(params)
        return SAMPLED

    async with talking(carrier, revision, sample=sample, roots=[]) as (_, peer):
        for method in ("sampling/createMessage", "roots/list"):
            for params in ([], [1], "x", 5):
                id = f"{method} {params}"
                peer.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, judged=False)
                answer = await peer.response(id)
                assert answer.get("error", {}).get("code") in (-32602, -32600), answer
        assert asked == []


@pytest.mark.requirement("BASE-02", "BASE-03")
@over_carriers
@over_handshake
@pytest.mark.parametrize("id", [None, 1.5, True, {}, [1]], ids=repr)
async def test_a_request_with_an_impossible_id_is_neither_obeyed_nor_taken_for_a_notification(carrier, revision, id):
    asked = []
    options = {
        "sample": lambda params: asked.append(params) or SAMPLED,
        "on_notification": lambda *told: asked.append(told),
    }
    async with talking(carrier, revision, **options) as (client, peer):
        peer.send({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": SAMPLING}, judged=False)
        await settled(client, peer)
        assert asked == []
        assert not any("result" in frame for frame in peer.heard)


@pytest.mark.requirement("BASE-21")
@over_carriers
@over_handshake
async def test_an_id_that_is_still_open_is_not_taken_twice(carrier, revision):
    go = asyncio.Event()

    async def sample(_):
        await go.wait()
        return SAMPLED

    async with talking(carrier, revision, sample=sample, check=False) as (_, peer):
        for _ in range(2):
            peer.send(peer.frame("sampling/createMessage", SAMPLING, id="q"), judged=False)
        assert (await peer.response("q"))["error"]["code"] == -32600
        go.set()
        assert (await peer.response("q"))["result"] == SAMPLED


# --- callbacks that fail ------------------------------------------------------------------------------------


@pytest.mark.requirement("BASE-08", "BASE-09", "SAMP-18")
@over_carriers
@over_handshake
async def test_a_callback_may_say_no(carrier, revision):
    """-1 is how the specification's example says that the user rejected it."""

    def sample(_):
        raise Refused("User rejected sampling request", {"why": "no"}, code=-1)

    async with talking(carrier, revision, sample=sample) as (_, peer):
        error = await peer.error("sampling/createMessage", SAMPLING)
        assert error == {"code": -1, "message": "User rejected sampling request", "data": {"why": "no"}}


@pytest.mark.requirement("BASE-21", "SAMP-19")
@over_carriers
@over_handshake
@pytest.mark.parametrize("mistake", [RuntimeError, ValueError, TypeError, KeyError, ExceptionGroup])
async def test_a_callback_that_breaks_is_our_internal_error(carrier, revision, mistake):
    """The server hears that it failed, not how: what is inside is none of its business."""

    def sample(_):
        raise ExceptionGroup("secret", [ValueError("secret")]) if mistake is ExceptionGroup else mistake("secret")

    async with talking(carrier, revision, sample=sample) as (client, peer):
        error = await peer.error("sampling/createMessage", SAMPLING)
        assert "secret" not in json.dumps(error)
        assert error["code"] == -32603
        await settled(client, peer)


@pytest.mark.requirement("BASE-21")
@over_carriers
@over_handshake
@pytest.mark.parametrize("given", [None, "text", [], {"model": object()}], ids=["None", "text", "list", "no JSON"])
async def test_a_callback_that_returns_nonsense_is_our_internal_error(carrier, revision, given):
    async with talking(carrier, revision, sample=lambda _: given) as (client, peer):
        assert (await peer.error("sampling/createMessage", SAMPLING))["code"] == -32603
        await settled(client, peer)


@pytest.mark.requirement("BASE-21")
@over_carriers
@over_handshake
async def test_a_callback_that_cancels_itself_is_answered(carrier, revision):
    """Nobody withdrew the question, so the server waits for an answer."""

    async def sample(_):
        raise asyncio.CancelledError

    async with talking(carrier, revision, sample=sample) as (_, peer):
        assert (await peer.error("sampling/createMessage", SAMPLING))["code"] == -32603


@pytest.mark.requirement("BASE-23", "BASE-24")
@over_carriers
@over_handshake
async def test_refusals_are_short_and_carry_a_code_of_the_specification(carrier, revision):
    def sample(_):
        raise RuntimeError("x" * 10_000)

    async with talking(carrier, revision, sample=sample) as (_, peer):
        errors = [
            await peer.error("sampling/createMessage", SAMPLING),
            await peer.error("m" * 10_000, judged=False),
            await peer.error("roots/list"),
        ]
        for error in errors:
            assert error["code"] in CODES_OF_JSON_RPC
            assert len(error["message"]) < 300
            assert "\n" not in error["message"]


# --- batches (2025-03-26) -----------------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-47", "SAMP-29")
@over_handshake
async def test_a_server_that_asks_and_asks_is_refused_and_nobody_is_bothered(revision, monkeypatch):
    monkeypatch.setattr(handshake, "monotonic", lambda: 1000.0)  # so that none is allowed again meanwhile
    bothered = []

    def answer(params):
        bothered.append(params)
        return SAMPLED if "messages" in params else {"action": "decline"}

    async with talking("memory", revision, sample=answer, elicit=answer, roots=[]) as (client, peer):
        method, params = [*questions(revision).items()][-1]
        answers = [await peer.request(method, params) for _ in range(240)]
        refused = [each["error"] for each in answers if "error" in each]
        assert (len(bothered), len(refused)) == (200, 40)
        assert refused[0]["code"] == -32603 and "too often" in refused[0]["message"]
        assert "result" in await peer.request("roots/list", {}), "which bothers nobody"
        await settled(client, peer)


@over_modern
async def test_a_server_that_asks_too_much_in_one_round_is_given_up(revision):
    asked = {str(n): {"method": "elicitation/create", "params": ELICITING} for n in range(500)}
    async with talking("memory", revision, elicit=lambda params: {"action": "decline"}) as (client, peer):
        call = start(client.call_tool("t"))
        reply(peer, await peer.expect("tools/call"), {"resultType": "input_required", "inputRequests": asked})
        with pytest.raises(RemoteError, match="too often"):
            await call
        await settled(client, peer)


@pytest.mark.parametrize("form", [7, {"properties": 7}, {"properties": {"a": 7}}, {"properties": {}, "required": 7}])
@pytest.mark.parametrize("revision", ALL[2:])
async def test_a_form_that_is_none_bothers_nobody(revision, form):
    bothered = []
    question = {"message": "?", "requestedSchema": form}
    async with talking("memory", revision, check=False, elicit=bothered.append) as (client, peer):
        if revision in MODERN:
            call = start(client.call_tool("t"))
            asked = {"q": {"method": "elicitation/create", "params": question}}
            told = {"resultType": "input_required", "inputRequests": asked}
            reply(peer, await peer.expect("tools/call"), told, judged=False)
            with pytest.raises(BadResult, match="form"):
                await call
        else:
            frame = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}
            peer.send(frame, judged=False)
            assert (await peer.response("q"))["error"]["code"] == -32602
        await settled(client, peer)
    assert bothered == []


@pytest.mark.requirement("BASE-17", "BASE-19", "TRANS-STDIO-06")
@over_carriers
async def test_a_batch_of_questions_gets_one_array_of_answers(carrier):
    told = []
    options = {"roots": ["file:///home/ada"], "on_notification": lambda method, _: told.append(method)}
    async with talking(carrier, "2025-03-26", **options) as (client, peer):
        peer.send(
            [
                {"jsonrpc": "2.0", "id": "p", "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
                {"jsonrpc": "2.0", "id": "r", "method": "roots/list"},
                {"jsonrpc": "2.0", "id": "x", "method": "foo/bar"},
            ]
        )
        answers = await peer.receive()
        assert isinstance(answers, list)
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id.keys() == {"p", "r", "x"}
        assert by_id["p"]["result"] == {}
        assert by_id["r"]["result"]["roots"] == [{"uri": "file:///home/ada"}]
        assert by_id["x"]["error"]["code"] == -32601
        assert told == ["notifications/tools/list_changed"]
        peer.send([{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}] * 2)
        await settled(client, peer)
        assert len(told) == 3
        assert peer.heard == []  # nothing at all for an array of notifications


@pytest.mark.requirement("BASE-20", "TRANS-STDIO-05")
@over_carriers
@pytest.mark.parametrize("revision", [name for name in HANDSHAKE if name != "2025-03-26"])
async def test_no_question_in_an_array_is_answered_anywhere_else(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        peer.send([{"jsonrpc": "2.0", "id": "p", "method": "ping"}], judged=False)
        await settled(client, peer)
        assert not any(isinstance(frame, list) or "result" in frame for frame in peer.heard)


# --- the stateless revision ---------------------------------------------------------------------------------


@pytest.mark.requirement("JSONRPC-018", "STDIO-007", "STDIO-006")
@over_carriers
@over_modern
async def test_a_stateless_client_never_sends_a_response(carrier, revision):
    """Neither to what a handshake server may ask, nor to nonsense."""
    asked = []
    options = {"sample": asked.append, "elicit": asked.append, "roots": ["file:///home/ada"]}
    async with talking(carrier, revision, **options) as (client, peer):
        for method in ("ping", "roots/list", "sampling/createMessage", "elicitation/create", "foo/bar"):
            peer.send({"jsonrpc": "2.0", "id": method, "method": method, "params": {}}, judged=False)
        await settled(client, peer)
        assert asked == []
        assert all("method" in frame for frame in peer.transcript.frames("client"))
