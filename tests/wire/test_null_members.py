"""wire/null_members.py: null for an optional member is read as missing; a null that means something stays."""

import json

import pytest
from msgspec import Raw

from interlock.wire.frames import Frame, read_frame
from interlock.wire.methods import METHODS
from interlock.wire.null_members import MAX_NULLS, without_nulls


def frame(method, params):
    return read_frame(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())


def read(method, params):
    found = without_nulls(frame(method, params), METHODS[method].decoder.decode)
    assert found is None or (found.id, found.method, found.jsonrpc) == (7, method, "2.0")
    return None if found is None else json.loads(bytes(found.params))


CAPABLE = {"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


@pytest.mark.parametrize(
    ("method", "params", "left"),
    [
        ("tools/list", {"cursor": None}, {}),
        ("tools/list", {"cursor": None, "_meta": None, "x": None}, {"x": None}),
        ("tools/list", {"_meta": {"progressToken": None, "own": None}}, {"_meta": {"own": None}}),
        (
            "tools/call",
            {"name": "t", "arguments": {"a": None}, "_meta": None},
            {"name": "t", "arguments": {"a": None}},
        ),
        (
            "initialize",
            {**CAPABLE, "capabilities": {"roots": None}, "clientInfo": {"name": "c", "version": "1", "title": None}},
            CAPABLE,
        ),
    ],
)
def test_null_is_taken_out_where_it_is_refused(method, params, left):
    assert read(method, params) == left


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {"cursor": 7}),
        ("tools/list", {}),
        ("tools/list", None),
        ("tools/list", {"x": None}),
        ("tools/list", [None]),
        ("prompts/get", {"name": "p", "arguments": {"a": None}}),  # the place of an entry is not told
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": None}}),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1", "title": None}}}),
    ],
)
def test_nothing_else_is_changed(method, params):
    assert read(method, params) is None


def test_a_member_that_is_needed_is_then_missing():
    assert read("tools/call", {"name": None}) == {}


def test_a_request_without_params_is_left_alone():
    assert without_nulls(Frame("2.0", 1, "tools/list"), METHODS["tools/list"].decoder.decode) is None


@pytest.mark.parametrize("params", [b"{", b'{"cursor": null, "cursor": 7}', b"\xff", b"[" * 10_000])
def test_what_cannot_be_read_harms_nothing(params):
    assert without_nulls(Frame("2.0", 1, "tools/list", Raw(params)), METHODS["tools/list"].decoder.decode) is None


def test_the_number_of_nulls_is_bounded():
    """Each one that is taken out means another look."""
    looks = []

    def refuse(params):
        looks.append(params)
        return METHODS["tools/list"].decoder.decode(b'{"cursor": null}' if b"cursor" in params else params)

    many = b'{"cursor": null, "a": {"cursor": null}}'
    without_nulls(Frame("2.0", 1, "tools/list", Raw(many)), refuse)
    assert len(looks) <= MAX_NULLS
