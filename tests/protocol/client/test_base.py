"""protocol/client/base.py: what the clients of both eras share."""

import pytest

from interlock.protocol.client.base import ClientEdge, NotOffered, meta_of, params_of
from interlock.revisions.table import REVISIONS
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, InvalidParams, LocalError
from interlock.wire.meta import SERVER_INFO
from support.doubles import Link, Spoken, error_frame, notice, result_frame

A, B, C, D, E = REVISIONS.values()


def edge_of(discovered=None, revision=D, link=None):
    return ClientEdge(link or Link(), revision, {"capabilities": {}} if discovered is None else discovered)


@pytest.mark.parametrize(("params", "members"), [(None, {}), ({"a": 1}, {"a": 1}), ([], {}), ("x", {}), (7, {})])
def test_malformed_params_are_read_as_none(params, members):
    assert params_of(notice("notifications/x", params)) == members


def test_malformed_capabilities_are_an_error_of_the_server():
    with pytest.raises(BadResult, match="capabilities"):
        edge_of({"capabilities": {"tools": True}})
    assert not edge_of({}).capabilities.can("tools")


def test_the_server_is_who_it_says():
    info = edge_of({"_meta": {SERVER_INFO: {"name": "s", "version": "2"}}}).server_info
    assert (info.name, info.version) == ("s", "2")


@pytest.mark.parametrize(
    "meta", [None, {}, {SERVER_INFO: None}, {SERVER_INFO: {"name": 7}}, {SERVER_INFO: "x"}, "x", 7, [1]]
)
def test_a_server_without_a_name_is_unknown(meta):
    # Display data: its absence or nonsense must not stop anything.
    assert edge_of({"_meta": meta}).server_info.name == "unknown"


def test_what_asks_whether_a_server_is_alive_exists_in_its_revision():
    assert [edge_of(revision=row).ping_method for row in (A, B, C, D, E)] == ["ping"] * 4 + ["server/discover"]
    assert all(edge_of(revision=row).ping_method in row.requests for row in REVISIONS.values())


# --- only what was negotiated ---


@pytest.mark.parametrize(
    ("method", "capabilities", "offered"),
    [
        ("tools/call", {"tools": {}}, True),
        ("tools/call", {}, False),
        ("resources/subscribe", {"resources": {}}, False),
        ("resources/subscribe", {"resources": {"subscribe": True}}, True),
        ("completion/complete", {}, False),
        ("logging/setLevel", {}, False),
        ("ping", {}, True),
        ("example/own", {}, True),
    ],
)
def test_a_call_behind_an_undeclared_capability_is_not_made(method, capabilities, offered):
    edge = edge_of({"capabilities": capabilities})
    for _ in range(2):  # the second time is answered from memory
        if offered:
            edge.check_offered(method)
        else:
            with pytest.raises(NotOffered, match=method):
                edge.check_offered(method)


def test_what_was_not_offered_is_a_mistake_of_ours():
    assert issubclass(NotOffered, LocalError)


def test_completions_need_no_capability_in_the_first_revision():
    edge_of(revision=A).check_offered("completion/complete")
    with pytest.raises(NotOffered):
        edge_of(revision=B).check_offered("completion/complete")


def test_the_memory_of_what_is_offered_is_bounded():
    edge = edge_of()
    for number in range(10_000):
        edge.check_offered(f"example/{number}")
    assert len(edge._checked) <= 256


# --- carrying a call ---


async def test_a_call_is_carried_with_its_patience_and_told_to_its_caller():
    link = Link(result_frame({"content": []}))
    link.during = [
        ("notifications/progress", notice("notifications/progress", {"progress": 1})),
        ("notifications/message", notice("notifications/message", [])),
    ]
    exchange = Spoken("tools/call", {}, patience=Patience(idle=5))
    found = await edge_of(link=link).carry(exchange, {"name": "a"}, {"k": 1})
    assert found == {"content": []}
    [call] = link.calls
    assert (call["method"], call["params"], call["meta"], call["patience"], call["cancellable"]) == (
        "tools/call",
        {"name": "a"},
        {"k": 1},
        Patience(idle=5),
        True,
    )
    assert exchange.told == [("notifications/progress", {"progress": 1}), ("notifications/message", {})]


async def test_a_call_without_a_word_about_patience_has_the_default():
    link = Link(result_frame({}))
    await edge_of(link=link).carry(Spoken("tools/call", {}), {}, {})
    assert link.calls[0]["patience"] == Patience()


async def test_a_no_of_the_server_is_raised():
    with pytest.raises(InvalidParams, match="unknown tool"):
        await edge_of(link=Link(error_frame(-32602, "unknown tool"))).carry(Spoken("tools/call", {}), {}, {})


async def test_the_base_itself_calls_nothing():
    with pytest.raises(NotImplementedError):
        await edge_of()(Spoken("tools/call", {}))
    assert edge_of().heard(notice("x")) is False


async def test_closing_closes_the_link():
    link = Link()
    await edge_of(link=link).close()
    assert link.closed == 1


@pytest.mark.parametrize(("revision", "method"), [(E, "ping"), (D, "server/discover"), (A, "elicitation/create")])
def test_a_method_of_another_revision_is_not_sent(revision, method):
    with pytest.raises(NotOffered, match="does not exist"):
        edge_of(revision=revision).check_offered(method)


@pytest.mark.parametrize("meta", [None, [], "x", 7])
def test_meta_of_the_wrong_kind_counts_as_none(meta):
    assert meta_of({"_meta": meta}) == {}
    assert meta_of({}) == {}
    assert meta_of({"_meta": {"a": 1}}) == {"a": 1}
