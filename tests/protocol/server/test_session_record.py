"""protocol/server/session_record.py: a session written down, and what two who changed it at once agree on."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.protocol.server.session_record import SessionRecord, decode_record, encode_record, merged
from interlock.wire.types.capabilities import ClientCapabilities, ServerCapabilities
from interlock.wire.types.common import Implementation
from support.properties import many

FIRST = SessionRecord(
    revision="r",
    client=Implementation(name="c", version="1", title="C"),
    capabilities=ClientCapabilities(roots={"listChanged": True}, experimental={"x": {"y": [1]}}),
    offered=ServerCapabilities(logging={}),
    log_level="info",
    watched=frozenset({"note://1", "note://ü"}),
)

changes = st.fixed_dictionaries(
    {},
    optional={
        "log_level": st.sampled_from([None, "debug", "error"]),
        "watched": st.frozensets(st.sampled_from("abcd")),
        "ready": st.booleans(),
        "speaker": st.integers(0, 3),
    },
)


def changed(record, facts):
    return msgspec.structs.replace(record, **facts)


def test_a_record_is_read_as_it_was_written():
    assert decode_record(encode_record(FIRST)) == FIRST


@given(changes)
@many(50)
def test_who_changed_nothing_takes_what_the_other_has(facts):
    theirs = changed(FIRST, facts)
    assert merged(FIRST, FIRST, theirs) == theirs
    assert merged(FIRST, theirs, FIRST) == theirs


@given(changes, st.frozensets(st.sampled_from("abcd")), st.frozensets(st.sampled_from("abcd")))
@many(100)
def test_each_change_of_both_is_kept(facts, mine, theirs):
    base = changed(FIRST, facts)
    found = merged(base, changed(base, {"watched": mine}), changed(base, {"watched": theirs, "log_level": "alert"}))
    assert found.log_level == "alert"
    assert found.watched >= (mine | theirs) - base.watched  # what either began to watch
    assert not found.watched & ((base.watched - mine) | (base.watched - theirs))  # what either gave up


def test_what_was_negotiated_stays_and_ready_is_never_taken_back():
    mine = changed(FIRST, {"revision": "other", "ready": True})
    found = merged(FIRST, mine, changed(FIRST, {"speaker": 2}))
    assert (found.revision, found.ready, found.speaker) == ("r", True, 2)
