"""revisions/revision.py: a row evolves into the next one without touching itself."""

import pytest

from interlock.revisions.revision import Era, Revision
from interlock.wire.errors import InvalidParams, MethodNotFound, Refused, ResourceNotFound

FIRST = Revision(
    name="first",
    era=Era.HANDSHAKE,
    requests=frozenset({"a", "b"}),
    questions={"ask": "asking"},
    client_notices=frozenset({"n/both", "n/client"}),
    server_notices=frozenset({"n/both", "n/server"}),
    server_capabilities=frozenset({"tools"}),
    client_capabilities=frozenset({"asking"}),
    unknown=frozenset({"Tool.title", "Tool.icons"}),
    blocks=frozenset({"text"}),
    codes={ResourceNotFound: -32002},
    classes={-32602: InvalidParams, -32002: ResourceNotFound, -32001: ResourceNotFound},
)


def facts(row: Revision) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def test_nothing_changed_is_the_same_under_another_name():
    assert facts(FIRST.evolve("second")) == {**facts(FIRST), "name": "second"}


def test_what_a_revision_adds_and_drops():
    before = facts(FIRST)
    second = FIRST.evolve(
        "second",
        add=["c"],
        drop=["a"],
        ask={"other": "othering"},
        reveal=["Tool.title"],
        blocks=["audio"],
        server_can=["prompts"],
        client_can=["othering"],
        server_tells=["n/new"],
        no_notices=["n/both"],
        means={-1: MethodNotFound},
        batches=True,
        era=Era.STATELESS,
    )
    assert second.requests == {"b", "c"}
    assert second.questions == {"ask": "asking", "other": "othering"}
    assert second.client_notices == {"n/client"}
    assert second.server_notices == {"n/server", "n/new"}
    assert second.server_capabilities == {"tools", "prompts"}
    assert second.client_capabilities == {"asking", "othering"}
    assert second.unknown == {"Tool.icons"}
    assert second.blocks == {"text", "audio"}
    assert second.classes == {**FIRST.classes, -1: MethodNotFound}
    assert second.codes == FIRST.codes
    assert (second.batches, second.era) == (True, Era.STATELESS)
    assert facts(FIRST) == before


def test_a_change_by_name_replaces_what_was_there():
    second = FIRST.evolve("second", codes={}, classes={-5: MethodNotFound})
    assert second.codes == {}
    assert second.classes == {-5: MethodNotFound}


def test_an_unknown_change_is_a_mistake():
    with pytest.raises(TypeError):
        FIRST.evolve("second", request=["c"])


def test_a_row_is_a_key_of_its_own():
    # Walks are remembered by row: two rows of equal facts are still two.
    assert FIRST.evolve("first") != FIRST
    assert {FIRST: 1}[FIRST] == 1


def test_an_error_goes_out_under_the_code_of_the_row():
    assert FIRST.code_of(ResourceNotFound("gone")) == -32002
    assert FIRST.code_of(InvalidParams("no")) == -32602
    assert FIRST.code_of(Refused("own", code=7)) == 7
    assert FIRST.evolve("x", codes={}).code_of(ResourceNotFound("gone")) == -32602


def test_a_code_comes_in_under_the_meaning_of_the_row():
    assert type(FIRST.refusal(-32602, "no")) is InvalidParams
    assert type(FIRST.refusal(-32002, "gone")) is ResourceNotFound
    assert type(FIRST.refusal(-32601, "no")) is Refused
    found = FIRST.refusal(12, "strange", [1])
    assert (type(found), found.code, found.message, found.data) == (Refused, 12, "strange", [1])


def test_a_code_that_must_not_be_used_is_replaced():
    row = FIRST.evolve("second", codes={}, retired={-32042: -32603}, reserved=range(-10, 0))
    assert row.code_of(Refused("x", code=-32042)) == -32603
    assert row.code_of(Refused("x", code=-5)) == -32603
    assert row.code_of(Refused("x", code=-11)) == -11
    known = FIRST.evolve("third", reserved=range(-33000, 0))
    assert known.code_of(InvalidParams("x")) == -32602  # one that the row itself gives a meaning


def test_a_code_of_a_summary_needs_its_uri():
    assert type(FIRST.refusal(-32001, "gone", {"uri": "a:b"})) is ResourceNotFound
    for data in (None, {}, ["uri"], "uri"):
        assert type(FIRST.refusal(-32001, "timeout", data)) is Refused
