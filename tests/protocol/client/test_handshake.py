"""protocol/client/handshake.py: the introduction, the calls, and the answers to what a server asks."""

import asyncio
import json

import pytest

from interlock.protocol.client.base import NotOffered
from interlock.protocol.client.handshake import HandshakeClient, initialize
from interlock.protocol.client.identity import Identity
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, InvalidParams, NoCommonRevision, Refused
from interlock.wire.meta import RequestMeta
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, done, error_frame, request, result_frame, started, turns

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
D = REVISIONS["2025-11-25"]
CAPABILITIES = {"roots": {}, "sampling": {}, "elicitation": {}, "extensions": {"com.example/x": {}}}
PATIENCE = Patience(idle=None, total=9)


def me(standing=None, capabilities=None):
    info = Implementation(name="c", version="1", title="T")
    return Identity(info, CAPABILITIES if capabilities is None else capabilities, standing or Spoken("", {}))


def welcome(version="2025-11-25", **more):
    info = {"name": "s", "version": "2"}
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info, **more}


async def opened(*answers, identity=None):
    link = Link(result_frame(welcome()), *answers)
    return await shake(link, identity), link


async def shake(link, identity=None):
    return await initialize(link, D, pick(None), identity or me(), PATIENCE, link.adopt)


# --- the introduction ---


async def test_the_hello_is_in_the_words_of_the_wanted_revision():
    link = Link(result_frame(welcome("2024-11-05")))
    edge = await initialize(link, REVISIONS["2024-11-05"], pick(None), me(), PATIENCE, link.adopt)
    [call] = link.calls
    assert call["method"] == "initialize"
    assert call["params"] == {
        "protocolVersion": "2024-11-05",
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
        "clientInfo": {"name": "c", "version": "1"},
    }
    assert call["patience"] is PATIENCE
    assert not call["cancellable"]  # `initialize` is never cancelled (CANC-03)
    assert call["meta"] is None
    assert link.told == [("notifications/initialized", None)]
    assert link.adopted == [(edge, 0)]  # before `initialized`: the server may ask right behind it
    assert edge.revision is REVISIONS["2024-11-05"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
async def test_the_server_may_answer_with_another_revision_of_ours(version):
    link = Link(result_frame(welcome(version)))
    edge = await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert edge.revision is REVISIONS[version]


@pytest.mark.parametrize("version", ["1999-01-01", "", "2025-11-25"])
async def test_a_revision_we_do_not_have_ends_it_before_initialized(version):
    link = Link(result_frame(welcome(version)))
    rows = pick(("2024-11-05",))
    with pytest.raises(NoCommonRevision) as caught:
        await initialize(link, rows["2024-11-05"], rows, me(), PATIENCE, link.adopt)
    assert caught.value.offered == (version,)
    assert link.told == []


async def test_a_handshake_cannot_agree_on_a_stateless_revision():
    # There is nothing to talk after `initialize` in that era.
    with pytest.raises(NoCommonRevision):
        await shake(Link(result_frame(welcome("2026-07-28"))))


@pytest.mark.parametrize("result", [{}, {"protocolVersion": 7}, {"protocolVersion": None}])
async def test_a_server_that_names_no_version_is_broken(result):
    link = Link(result_frame(result))
    with pytest.raises(BadResult):
        await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert link.told == []


async def test_a_server_that_refuses_is_heard():
    with pytest.raises(Refused, match="go away"):
        await shake(Link(error_frame(-32600, "go away")))


async def test_a_refused_version_is_followed_by_the_newest_that_both_sides_have():
    listed = ["1999-01-01", "2024-11-05", "2025-03-26"]
    link = Link(
        error_frame(-32602, "Unsupported protocol version", {"supported": listed}), result_frame(welcome("2025-03-26"))
    )
    edge = await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert edge.revision.name == "2025-03-26"
    assert [call["params"]["protocolVersion"] for call in link.calls] == ["2025-11-25", "2025-03-26"]


async def test_a_version_is_asked_for_only_once_more():
    refusal = error_frame(-32602, "no", {"supported": ["2024-11-05"]})
    link = Link(refusal, refusal)
    with pytest.raises(InvalidParams):
        await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert len(link.calls) == 2 and not link.told


@pytest.mark.parametrize("code", [-32602, -32022])
async def test_where_no_version_is_common_the_error_shows_both_sides(code):
    link = Link(error_frame(code, "no", {"supported": ["1999-01-01", "2099-01-01"]}))
    rows = pick(("2024-11-05", "2025-11-25"))
    with pytest.raises(NoCommonRevision, match="speaks 1999-01-01, 2099-01-01, this client 2024-11-05, 2025-11-25"):
        await initialize(link, D, rows, me(), PATIENCE, link.adopt)
    assert len(link.calls) == 1


@pytest.mark.parametrize("data", [None, {}, {"supported": []}, {"supported": "x"}, {"supported": ["2025-11-25"]}])
async def test_a_refusal_without_another_version_is_heard(data):
    link = Link(error_frame(-32602, "name is missing", data))
    with pytest.raises(InvalidParams, match="name is missing"):
        await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert len(link.calls) == 1


async def test_malformed_capabilities_end_it_before_initialized():
    link = Link(result_frame({**welcome(), "capabilities": []}))
    with pytest.raises(BadResult):
        await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert link.told == []


async def test_what_the_server_said_is_kept_in_the_words_of_discovery():
    link = Link(result_frame(welcome(instructions="I")))
    edge = await initialize(link, D, pick(None), me(), PATIENCE, link.adopt)
    assert edge.server_info.name == "s"
    assert edge.discovered["supportedVersions"] == ["2025-11-25"]
    assert edge.discovered["instructions"] == "I"
    found = await edge(Spoken("server/discover", {}))
    assert found == edge.discovered  # answered here: no such method on this wire
    assert len(link.calls) == 1


async def test_instructions_of_the_wrong_kind_are_dropped():
    edge = await shake(Link(result_frame(welcome(instructions=7))))
    assert "instructions" not in edge.discovered


# --- calls ---


async def test_a_call_carries_its_meta_and_trace():
    edge, link = await opened(result_frame({"content": []}))
    meta = RequestMeta(traceparent=TRACE)
    exchange = Spoken("tools/call", {"name": "a", "_meta": {"com.example/x": 1}}, meta=meta)
    assert await edge(exchange) == {"content": []}
    assert link.calls[1]["meta"] == {"traceparent": TRACE, "com.example/x": 1}


async def test_a_call_that_is_not_offered_is_not_sent():
    edge, link = await opened()
    with pytest.raises(NotOffered):
        await edge(Spoken("prompts/list", {}))
    assert len(link.calls) == 1


async def test_a_result_needs_no_result_type():
    edge, _ = await opened(result_frame({"content": [], "resultType": "whatever"}))
    assert (await edge(Spoken("tools/call", {})))["resultType"] == "whatever"


# --- what the server asks ---


async def test_a_ping_is_answered_at_once():
    edge, _ = await opened()
    assert edge.asked(request("ping", {}, "p")) == b'{"jsonrpc":"2.0","id":"p","result":{}}'


@pytest.mark.parametrize("method", ["elicitation/create", "tools/call", "tasks/get", "x"])
async def test_what_was_not_declared_does_not_exist(method):
    edge, _ = await opened(identity=me(capabilities={"roots": {}}))
    told = json.loads(edge.asked(request(method, {}, 5)))
    assert (told["id"], told["error"]["code"]) == (5, -32601)


async def test_a_question_outside_of_any_call_goes_to_the_standing_exchange():
    standing = Spoken("", {})
    edge, _ = await opened(identity=me(standing))
    told = await done(edge.asked(request("roots/list", {"a": 1}, 5)))
    assert told == {"jsonrpc": "2.0", "id": 5, "result": {"answered": "roots/list"}}
    assert [(question.method, question.params) for question in standing.asked] == [("roots/list", {"a": 1})]


async def test_a_question_during_a_call_goes_to_the_call():
    standing, exchange = Spoken("", {}), Spoken("tools/call", {})
    edge, link = await opened(identity=me(standing))
    gate = asyncio.Event()

    async def slow(*arguments, **options):
        await gate.wait()
        return result_frame({})

    link.call = slow
    call = asyncio.ensure_future(edge(exchange))
    await turns()
    await done(edge.asked(request("roots/list", {}, 5)))
    gate.set()
    await call
    await done(edge.asked(request("roots/list", {}, 6)))
    assert (len(exchange.asked), len(standing.asked)) == (1, 1)


class Answering(Spoken):
    """Answers a question by raising or returning what it was given."""

    def __init__(self, outcome):
        super().__init__("", {})
        self.outcome = outcome

    async def ask(self, question):
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Refused("User rejected", code=-1), -1),
        (InvalidParams("bad"), -32602),
        (ValueError("bad"), -32603),
        (TypeError("bad"), -32603),
        (RuntimeError("secret"), -32603),
        ({"not": object()}, -32603),
    ],
)
async def test_an_answer_that_fails_is_an_error_to_the_server(outcome, code, caplog):
    edge, _ = await opened(identity=me(Answering(outcome)))
    told = await done(edge.asked(request("roots/list", {}, 5)))
    assert (told["id"], told["error"]["code"]) == (5, code)
    assert "secret" not in told["error"]["message"]


async def test_an_answer_can_be_cancelled():
    class Never(Spoken):
        async def ask(self, question):
            await asyncio.Event().wait()

    edge, _ = await opened(identity=me(Never("", {})))
    work = started(edge.asked(request("roots/list", {}, 5)))
    await turns()
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled()


def test_the_edge_knows_its_server_without_an_introduction():
    edge = HandshakeClient(Link(), D, me(), welcome())
    assert edge.capabilities.can("tools")


@pytest.mark.parametrize(
    ("declared", "mode", "answered"),
    [
        ({}, None, True),
        ({}, "form", True),
        ({}, "url", False),
        ({"form": {}}, "form", True),
        ({"form": {}}, "url", False),
        ({"form": {}, "url": {}}, "url", True),
        ({"url": {}}, None, False),
        ({}, "hologram", False),
    ],
)
async def test_elicitation_in_a_mode_that_was_not_declared_is_refused(declared, mode, answered):
    # 2025-11-25 client/elicitation: -32602 for an undeclared mode; an empty declaration means forms.
    edge, _ = await opened(identity=me(capabilities={"elicitation": declared}))
    params = {"message": "Who?"} | ({} if mode is None else {"mode": mode})
    told = await done(edge.asked(request("elicitation/create", params, 5)))
    assert ("result" in told) is answered
    assert answered or told["error"]["code"] == -32602


@pytest.mark.parametrize("mode", [None, 7, [], {}])
async def test_a_mode_that_is_none_is_refused_too(mode):
    edge, _ = await opened()
    told = await done(edge.asked(request("elicitation/create", {"mode": mode}, 5)))
    assert told["error"]["code"] == -32602


async def test_a_question_goes_to_the_newest_of_all_calls():
    edge, link = await opened()
    gate, exchanges = asyncio.Event(), [Spoken("tools/call", {}) for _ in range(3)]

    async def slow(*arguments, **options):
        await gate.wait()
        return result_frame({})

    link.call = slow
    calls = [asyncio.ensure_future(edge(each)) for each in exchanges]
    await turns()
    await done(edge.asked(request("roots/list", {}, 5)))
    gate.set()
    await asyncio.gather(*calls)
    assert [len(each.asked) for each in exchanges] == [0, 0, 1]
