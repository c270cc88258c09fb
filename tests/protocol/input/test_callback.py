"""protocol/input/callback.py: no question that was not declared, and what an answer is worth."""

import msgspec
import pytest

from interlock.protocol.input.callback import QUESTION_PATIENCE, answerable, call_back, check_can_ask, result_of
from interlock.protocol.request import Served
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import BadResult, CannotAsk, InvalidParams, Refused, ResourceNotFound
from interlock.wire.exchange import Peer, Question
from interlock.wire.messages import read_frame
from interlock.wire.meta import NO_META, RequestMeta
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import Outlet, error_frame, result_frame

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
A, B, C, D, E = REVISIONS.values()
EVERYTHING = Peer(
    capabilities=ClientCapabilities(roots={}, sampling={"tools": {}}, elicitation={"form": {}, "url": {}})
)


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=lambda row: row.name)
@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create"])
def test_a_declared_question_of_the_revision_may_be_asked(revision, method):
    if method in revision.questions:
        check_can_ask(revision, EVERYTHING, Question(method, {}))
    else:
        with pytest.raises(CannotAsk, match="no elicitation/create"):
            check_can_ask(revision, EVERYTHING, Question(method, {}))


@pytest.mark.parametrize(
    ("revision", "kept"),
    [
        (A, {"roots": {}, "sampling": {}}),
        (B, {"roots": {}, "sampling": {}}),
        (C, {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}),
        (D, {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}),
        (E, {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}),
    ],
)
def test_what_the_revision_has_no_words_for_counts_as_not_declared(revision, kept):
    assert msgspec.to_builtins(answerable(revision, EVERYTHING.capabilities)) == kept


def test_pages_alone_are_nothing_where_there_are_only_forms():
    declared = ClientCapabilities(elicitation={"url": {}}, experimental={"x": {}}, extensions={"com.example/x": {}})
    found = answerable(C, declared)
    assert not found.can("elicitation") and found.can("extensions.com.example/x") and found.can("experimental")
    assert answerable(C, ClientCapabilities(elicitation={})).can("elicitation.form")


def refused(peer, method, *needs):
    with pytest.raises(CannotAsk) as caught:
        check_can_ask(D, peer, Question(method, {}, needs))
    return caught.value


def test_an_undeclared_one_names_what_is_missing():
    # data.requiredCapabilities is a ClientCapabilities object (META-009).
    assert refused(Peer(), "roots/list").data == {"requiredCapabilities": {"roots": {}}}
    found = refused(Peer(capabilities=ClientCapabilities(elicitation={})), "elicitation/create", "elicitation.url")
    assert found.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    found = refused(Peer(capabilities=ClientCapabilities(sampling={})), "sampling/createMessage", "sampling.tools")
    assert found.data == {"requiredCapabilities": {"sampling": {"tools": {}}}}


def test_all_that_is_missing_is_named_at_once():
    """A client that declares what it is told must not be told of the rest the next time."""
    found = refused(Peer(), "elicitation/create", "elicitation.url")
    assert (found.data, "elicitation.url" in found.message) == (
        {"requiredCapabilities": {"elicitation": {"url": {}}}},
        True,
    )
    found = refused(Peer(), "sampling/createMessage", "sampling", "sampling.tools")
    assert found.data == {"requiredCapabilities": {"sampling": {"tools": {}}}}


def test_forms_come_with_elicitation_as_a_whole():
    assert refused(Peer(), "elicitation/create", "elicitation.form").data == {
        "requiredCapabilities": {"elicitation": {}}
    }
    pages = Peer(capabilities=ClientCapabilities(elicitation={"url": {}}))
    found = refused(pages, "elicitation/create", "elicitation.form")
    assert found.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    ("method", "need"), [("elicitation/create", "elicitation.url"), ("sampling/createMessage", "sampling.tools")]
)
def test_what_a_revision_has_no_words_for_is_not_asked_whatever_was_declared(method, need):
    with pytest.raises(CannotAsk, match=need):
        check_can_ask(C, EVERYTHING, Question(method, {}, (need,)))
    check_can_ask(D, EVERYTHING, Question(method, {}, (need,)))


def test_a_method_that_is_no_question_is_never_asked():
    assert refused(EVERYTHING, "tools/call").data is None


# --- calling back ---


def served(outlet, peer=EVERYTHING, meta=NO_META):
    return Served("tools/call", {}, None, peer, meta, outlet, D, call_back)


async def test_the_client_is_asked_on_the_requests_own_stream():
    outlet = Outlet(result_frame({"roots": []}))
    meta = RequestMeta(traceparent=TRACE)
    question = Question("roots/list", {"a": 1})
    assert await call_back(served(outlet, meta=meta), question) == {"roots": []}
    assert outlet.asked == [("roots/list", {"a": 1}, {"traceparent": TRACE}, QUESTION_PATIENCE)]


async def test_nothing_is_sent_that_may_not_be_asked():
    outlet = Outlet()
    with pytest.raises(CannotAsk):
        await call_back(served(outlet, Peer()), Question("roots/list", {}))
    assert outlet.asked == []


async def test_a_no_of_the_client_is_raised_in_the_run():
    outlet = Outlet(error_frame(-1, "User rejected sampling request"))
    with pytest.raises(Refused, match="User rejected") as caught:
        await call_back(served(outlet), Question("sampling/createMessage", {}))
    assert caught.value.code == -1


def test_a_question_has_a_deadline_at_last():
    # A person may think, but nothing waits for ever (basic/lifecycle#timeouts).
    assert QUESTION_PATIENCE.idle is None
    assert QUESTION_PATIENCE.total > 60


# --- the worth of an answer ---


def test_a_result_is_its_members():
    assert result_of(result_frame({"a": [1]}), "m", D) == {"a": [1]}


@pytest.mark.parametrize("result", [[], "x", 7, None, True])
def test_a_result_that_is_no_object_is_none(result):
    with pytest.raises(BadResult, match="tools/call"):
        result_of(result_frame(result), "tools/call", D)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":"x"}',
        b'{"jsonrpc":"2.0","id":1,"error":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}',
    ],
)
def test_a_response_that_says_both_or_neither_is_broken(line):
    with pytest.raises(BadResult):
        result_of(read_frame(line), "tools/call", D)


def test_an_error_has_the_meaning_of_the_revision():
    gone = error_frame(-32002, "gone", {"uri": "a:b"})
    with pytest.raises(ResourceNotFound) as caught:
        result_of(gone, "resources/read", D)
    assert caught.value.uri == "a:b"
    with pytest.raises(InvalidParams):
        result_of(error_frame(-32602), "m", E)
    with pytest.raises(Refused) as other:
        result_of(error_frame(-32042), "m", E)
    assert type(other.value) is Refused


@pytest.mark.parametrize(
    ("method", "data", "kind"),
    [
        ("resources/read", {"uri": "a:b"}, ResourceNotFound),
        ("resources/read", {"other": 1}, InvalidParams),
        ("resources/read", None, InvalidParams),
        ("resources/read", ["uri"], InvalidParams),
        ("tools/call", {"uri": "a:b"}, InvalidParams),
    ],
)
def test_a_resource_that_is_not_there_is_known_by_its_uri(method, data, kind):
    # -32602 stands for it since 2026-07-28 and for other mistakes too.
    with pytest.raises(InvalidParams) as caught:
        result_of(error_frame(-32602, "gone", data), method, E)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("name", "told"), [("2025-06-18", {"message": "m"}), ("2025-11-25", {"message": "m", "mode": "form"})]
)
async def test_a_question_is_in_the_words_of_the_revision(name, told):
    outlet = Outlet(result_frame({"action": "decline"}))
    exchange = Served("tools/call", {}, None, EVERYTHING, NO_META, outlet, REVISIONS[name], call_back)
    await call_back(exchange, Question("elicitation/create", {"message": "m", "mode": "form"}))
    assert outlet.asked[0][1] == told
