"""Deeds: what was decided on is what is sent, and nothing that cannot be sent becomes a deed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.host.gate.action import KINDS, Deed, Denied, Verdict, canonical, keep, matter_of
from interlock.wire.errors import LocalError
from interlock.wire.exchange import LOCAL, Principal
from interlock.wire.types.tools import ToolAnnotations
from support.properties import many

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def test_a_deed_keeps_what_it_was_given_whatever_happens_to_the_original():
    given_arguments = {"path": "/a", "deep": {"list": [1]}}
    deed = Deed("tool", "files", "write", given_arguments)
    given_arguments["path"] = "/etc/passwd"
    given_arguments["deep"]["list"].append(2)
    deed.arguments["path"] = "/elsewhere"  # a copy
    assert deed.arguments == {"path": "/a", "deep": {"list": [1]}}


def test_a_deed_does_not_change():
    deed = Deed("tool", "files", "write")
    with pytest.raises(AttributeError, match="does not change"):
        deed.server = "other"  # pyright: ignore
    assert deed.server == "files"


@given(VALUES)
@many(60)
def test_the_same_arguments_in_another_order_are_the_same_deed(value):
    def turned(each):
        if isinstance(each, dict):
            return {name: turned(member) for name, member in reversed(each.items())}
        return [turned(item) for item in each] if isinstance(each, list) else each

    one, other = Deed("tool", "s", "t", value), Deed("tool", "s", "t", turned(value))
    assert one == other and hash(one) == hash(other) and one.digest == other.digest
    assert one.arguments == value


def test_texts_that_only_look_alike_are_different():
    assert canonical("é") != canonical("e\u0301")
    assert Deed("tool", "s", "t", {"a": "é"}).digest != Deed("tool", "s", "t", {"a": "e\u0301"}).digest


@pytest.mark.parametrize("value", [{"a": object()}, {"a": "\ud800"}, {1.5: {object()}}])
def test_what_cannot_be_said_in_json_is_no_deed(value):
    with pytest.raises(LocalError, match="cannot be said in JSON"):
        Deed("tool", "s", "t", value)


def test_arguments_nested_without_end_are_no_deed():
    value: list[object] = []
    value.append(value)
    with pytest.raises(LocalError, match="cannot be said in JSON"):
        Deed("tool", "s", "t", value)


def test_an_unknown_kind_is_no_deed():
    with pytest.raises(LocalError, match="one of launch, definitions"):
        Deed("anything", "s", "t")  # pyright: ignore
    assert [Deed(kind, "s", "t").kind for kind in KINDS] == list(KINDS)


def test_the_data_of_the_server_itself_is_not_foreign():
    assert Deed("tool", "mail", "send", sources={"mail"}).foreign == frozenset()
    assert Deed("tool", "mail", "send", sources=["mail", "files"]).foreign == {"files"}


def test_an_edited_deed_differs_in_its_arguments_only():
    deed = Deed("tool", "mail", "send", {"to": "a"}, sources={"files"}, principal=Principal("i", "s"))
    edited = deed.edited({"to": "b"})
    assert edited.arguments == {"to": "b"} and deed.arguments == {"to": "a"}
    assert edited.edited({"to": "a"}) == deed


def test_a_deed_gets_its_principal_and_keeps_its_bytes():
    deed = Deed("tool", "mail", "send", {"b": 1, "a": [2]})
    assert deed.principal is None and deed.by(LOCAL).principal == LOCAL
    assert deed.by(LOCAL).payload == deed.payload == b'{"b":1,"a":[2]}'
    assert deed.by(LOCAL) == Deed("tool", "mail", "send", {"a": [2], "b": 1}, principal=LOCAL)


def test_what_is_shown_of_a_deed_holds_no_arguments_and_moves_no_cursor():
    deed = Deed("tool", "mail\x1b[2J", "send\u202e", {"password": "hunter22"})
    for text in (repr(deed), str(deed), str(Denied(deed, "no"))):
        assert "hunter22" not in text and text.isprintable()


def test_a_denial_says_what_why_and_what_to_do():
    deed = Deed("tool", "mail", "send", {"to": "a"})
    error = Denied(deed, "a rule says so", rule="no mail")
    assert error.deed is deed and error.because == "a rule says so" and error.rule == "no mail"
    assert "tool 'send' of 'mail' was not done: a rule says so" in error.explain() and "hint: allow" in error.explain()
    assert Denied(deed, "x", hint="do that").hint == "do that"


def test_a_verdict_offers_all_scopes_unless_told():
    assert json.loads(json.dumps(Verdict("ask", "why").scopes)) == ["once", "session", "always"]


def test_what_is_about_the_same_is_one_matter_and_deeds_are_made_of_it():
    hints = ToolAnnotations(read_only_hint=True)
    one = matter_of("tool", "s", "t", hints=hints, principal=LOCAL)
    assert one is matter_of("tool", "s", "t", hints=ToolAnnotations(read_only_hint=True), principal=LOCAL)
    others = [
        matter_of("tool", "s", "t", hints=ToolAnnotations(read_only_hint=False), principal=LOCAL),
        matter_of("tool", "s", "t", frozenset({"mail"}), hints, LOCAL),
        matter_of("tool", "s", "t", hints=hints, principal=Principal("i", "ada")),
        matter_of("prompt", "s", "t", hints=hints, principal=LOCAL),
    ]
    assert one not in others and len({*others}) == len(others)
    assert Deed.of(one, {"a": 1}) == Deed("tool", "s", "t", {"a": 1}, hints=hints, principal=LOCAL)


def test_hints_that_are_changed_later_are_not_changed_in_a_matter():
    hints = ToolAnnotations(read_only_hint=True)
    matter = matter_of("tool", "s", "changed later", hints=hints)
    hints.read_only_hint = False
    assert matter.hints is not None and matter.hints.read_only_hint is True
    assert matter_of("tool", "s", "changed later", hints=hints) is not matter


def test_what_is_kept_is_bounded_in_number_and_in_length():
    table: dict[object, object] = {}
    for number in range(5):
        matter = matter_of("tool", "s", f"t{number}")
        keep(table, matter, matter, number, 3)
    assert len(table) == 2
    long = matter_of("resource", "s", "file:///" + "a" * 2000)
    titled = matter_of("tool", "s", "t", hints=ToolAnnotations(title="a" * 2000))
    for each in (long, titled):
        keep(table, each, each, 0, 3)
        assert each not in table
    assert Deed("resource", "s", long.name) == Deed("resource", "s", long.name)
