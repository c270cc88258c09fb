"""wire/methods.py: the rows against the table of the specification (modern.md §1, handshake.md §2)."""

import msgspec
import pytest

from interlock.revisions.table import REVISIONS
from interlock.wire.methods import AUTHOR_METHOD, METHODS

CACHEABLE = {
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
}
MAY_ASK = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
GATES = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources.subscribe",
    "resources/unsubscribe": "resources.subscribe",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
}


def test_every_request_of_every_revision_has_a_row_and_no_other():
    assert set(METHODS) == set().union(*(row.requests for row in REVISIONS.values()))


def test_the_rows_say_what_the_specification_says():
    assert {name for name, row in METHODS.items() if row.cacheable} == CACHEABLE
    assert {name: row.named_by for name, row in METHODS.items() if row.may_ask} == MAY_ASK
    assert {name: row.gate for name, row in METHODS.items() if row.gate} == GATES
    assert {name: row.name for name, row in METHODS.items()} == {name: name for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_the_params_of_every_method_may_carry_meta(name):
    row = METHODS[name]
    assert "meta" in row.params.__struct_fields__
    with pytest.raises(msgspec.ValidationError):
        row.decoder.decode(b'{"_meta":[]}')  # `_meta` is an object (META-09)
    with pytest.raises(msgspec.ValidationError):
        row.decoder.decode(b"[]")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("tools/call", b"{}"),
        ("tools/call", b'{"name":7}'),
        ("tools/list", b'{"cursor":7}'),
        ("tools/list", b'{"cursor":null}'),
        ("resources/read", b"{}"),
        ("prompts/get", b'{"arguments":{}}'),
        ("prompts/get", b'{"name":"a","arguments":{"x":1}}'),
        ("completion/complete", b'{"ref":{"type":"ref/other"},"argument":{"name":"a","value":""}}'),
        ("completion/complete", b'{"ref":{"type":"ref/prompt","name":"a"}}'),
        ("subscriptions/listen", b"{}"),
        ("initialize", b'{"protocolVersion":"x","capabilities":{}}'),
        ("initialize", b'{"protocolVersion":"x","capabilities":null,"clientInfo":{"name":"a","version":"1"}}'),
        ("logging/setLevel", b"{}"),
        ("logging/setLevel", b'{"level":7}'),
        ("resources/subscribe", b'{"uri":null}'),
    ],
)
def test_params_of_the_wrong_shape_are_refused(name, params):
    with pytest.raises(msgspec.ValidationError):
        METHODS[name].decoder.decode(params)


def test_unknown_members_of_params_harm_nothing():
    assert METHODS["tools/call"].decoder.decode(b'{"name":"a","future":{"x":1}}').name == "a"


def test_the_params_of_an_authors_method_are_read_for_their_meta_alone():
    read = AUTHOR_METHOD.decoder.decode(b'{"anything":[1],"_meta":{"progressToken":"t"}}')
    assert read.meta.progress_token == "t"
