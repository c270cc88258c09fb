"""wire/json/null_members.py: null for an optional member is read as missing; a null that means something stays."""

import json

import msgspec
import pytest
from msgspec import Raw

from interlock.wire.json.null_members import LARGE, MAX_NULLS, MAX_NULLS_OF_LARGE, without_nulls
from interlock.wire.messages import Frame, read_frame
from interlock.wire.methods import METHODS


def frame(method, params):
    return read_frame(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())


def shortened(frame, decode):
    """As a server does it: only what could not be read comes here."""
    try:
        decode(frame.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return without_nulls(frame, decode, error)
    return None


def read(method, params):
    found = shortened(frame(method, params), METHODS[method].decoder.decode)
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
    refused = msgspec.ValidationError("Expected `str`, got `null` - at `$.cursor`")
    assert without_nulls(Frame("2.0", 1, "tools/list"), METHODS["tools/list"].decoder.decode, refused) is None


@pytest.mark.parametrize("params", [b"{", b'{"cursor": null, "cursor": 7}', b"\xff", b"[" * 10_000])
def test_what_cannot_be_read_harms_nothing(params):
    assert shortened(Frame("2.0", 1, "tools/list", Raw(params)), METHODS["tools/list"].decoder.decode) is None


Many = msgspec.defstruct("Many", [(f"m{number}", int, 0) for number in range(2 * MAX_NULLS)])


@pytest.mark.parametrize(("text", "most"), [("", MAX_NULLS), ("x" * LARGE, MAX_NULLS_OF_LARGE)])
def test_a_request_with_more_nulls_than_the_bound_stays_refused(text, most):
    looks = 0

    def decode(params):
        nonlocal looks
        looks += 1
        return msgspec.json.decode(params, type=Many)

    nulls = {f"m{number}": None for number in range(most)}
    found = shortened(frame("example/many", {**nulls, "text": text}), decode)
    assert json.loads(bytes(found.params)) == {"text": text} and looks == most + 1
    looks = 0
    assert shortened(frame("example/many", {**nulls, "m30": None, "text": text}), decode) is None
    assert looks == most + 1


def test_what_is_refused_for_another_reason_is_not_read_again():
    def decode(params):
        raise AssertionError("read again")

    refused = msgspec.ValidationError("Expected `str`, got `array` - at `$.cursor`")
    assert without_nulls(frame("tools/list", {"cursor": []}), decode, refused) is None
