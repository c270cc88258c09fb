"""transport/http/headers.py: what headers say again, and the status of every outcome."""

import base64
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.protocol.server.responder import refuse
from interlock.revisions.table import NEWEST, REVISIONS
from interlock.transport.http.header_codec import encode_value
from interlock.transport.http.headers import (
    STATUS,
    check_params,
    check_routing,
    check_said,
    is_modern,
    routing_value,
    status_of,
)
from interlock.transport.http.param_headers import ParamHeader
from interlock.web.asgi.message import Headers, HttpRefusal
from interlock.wire.errors import (
    CLASS_OF,
    CannotAsk,
    HeaderMismatch,
    InternalError,
    LocalError,
    MethodNotFound,
    Refused,
    ResourceNotFound,
)
from interlock.wire.messages import encode_error, encode_result, read_frame
from support.properties import TEXT, many

V = NEWEST.name


def headers(**said):
    return Headers([(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in said.items()])


def routed(version=V, method="tools/call", name="hi", **changes):
    said = {"mcp_protocol_version": V, "mcp_method": "tools/call", "mcp_name": "hi", **changes}
    found = headers(**{key: value for key, value in said.items() if value is not None})
    check_routing(found, version, method, name, named=True)


def b64(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


# --- status ---


@pytest.mark.parametrize(("code", "status"), sorted(STATUS.items()))
def test_a_code_has_its_status(code, status):
    assert status_of(encode_error(1, Refused("no", code=code))) == status


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (MethodNotFound("x"), 404),
        (ResourceNotFound("x", {"uri": "a:b"}), 400),
        (CannotAsk("x"), 400),
        (InternalError("x"), 200),
        (Refused("the author's own", code=7), 200),
        (Refused("a reserved code is told as internal", code=-32050), 200),
        (Refused("retired: told as invalid params", code=-32002), 400),
    ],
)
def test_the_status_is_that_of_the_code_which_is_told(refused, status):
    assert status_of(refuse(NEWEST, 1, refused)) == status


def test_a_result_is_200_whatever_stands_in_it():
    assert status_of(encode_result("error", {"error": {"code": -32601}})) == 200


def test_every_code_of_ours_was_thought_of():
    assert set(CLASS_OF) - set(STATUS) == {-32603, -32042}


def test_a_refusal_without_a_request_is_an_error_without_an_id():
    told = HttpRefusal.saying(403, "no", ("x-a", "b"))
    frame = read_frame(told.body)
    assert (told.status, told.headers[1:]) == (403, (("x-a", "b"),))
    assert frame.id is not None and not frame.id  # unset


# --- the lines ---


def test_white_space_around_values_is_not_part_of_them():
    assert routing_value(headers(mcp_method=" \t tools/list \t"), b"mcp-method") == "tools/list"


def test_what_came_twice_is_known():
    found = Headers([(b"a", b"1"), (b"b", b"2"), (b"a", b"1")])
    assert found.repeated == {b"a"}
    with pytest.raises(HeaderMismatch):
        routing_value(found, b"a")
    assert routing_value(found, b"b") == "2"


def test_accept_may_come_in_pieces():
    found = Headers([(b"accept", b"application/json"), (b"accept", b"text/event-stream")])
    assert found.values[b"accept"] == b"application/json, text/event-stream"


# --- routing ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mcp_name": "  hi  "},
        {"mcp_name": b64("hi")},
        {"mcp_name": b64("hé"), "name": "hé"},
        {"mcp_name": b64("=?base64?aGk=?="), "name": "=?base64?aGk=?="},
        {"mcp_name": "=?BASE64?aGk=?=", "name": "=?BASE64?aGk=?="},
        {"mcp_name": "=?base64?aGk=", "name": "=?base64?aGk="},
        {"mcp_name": "a b", "name": "a b"},
        {"mcp_name": "", "name": ""},
        {"mcp_name": None, "name": None},  # the params are what is wrong
    ],
)
def test_headers_that_say_the_same_pass(changes):
    routed(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": ""},
        {"mcp_method": None},
        {"mcp_method": "tools/list"},
        {"mcp_method": "TOOLS/CALL"},
        {"mcp_method": b64("tools/call")},
        {"mcp_name": None},
        {"mcp_name": "ho"},
        {"mcp_name": "HI"},
        {"mcp_name": "h\x01i"},
        {"mcp_name": "=?base64?aGk?="},
        {"mcp_name": "=?base64?aG!k=?="},
        {"mcp_name": "=?base64?aGk=?=", "name": "=?base64?aGk=?="},
        {"mcp_name": "hé", "name": "hé"},
        {"name": None},
    ],
)
def test_headers_that_lack_or_differ_are_refused(changes):
    with pytest.raises(HeaderMismatch):
        routed(**changes)


def test_a_method_without_a_name_needs_no_name_header():
    check_routing(headers(mcp_protocol_version=V, mcp_method="tools/list"), V, "tools/list", None, named=False)


def test_a_name_of_non_ascii_bytes_is_refused_as_it_is():
    with pytest.raises(HeaderMismatch):
        routed(mcp_name="hé".encode().decode("latin-1"), name="hé")


@pytest.mark.parametrize("said", [{}, {"mcp_method": "notifications/x"}, {"mcp_protocol_version": V}])
def test_a_notification_may_leave_headers_out(said):
    check_said(headers(**said), V, "notifications/x")


@pytest.mark.parametrize("said", [{"mcp_method": "notifications/y"}, {"mcp_protocol_version": "2099-01-01"}])
def test_a_notification_that_contradicts_its_headers_is_refused(said):
    with pytest.raises(HeaderMismatch):
        check_said(headers(**said), V, "notifications/x")


# --- parameters ---

REGION = (ParamHeader("Region", "string", ("region",)), ParamHeader("Count", "integer", ("deep", "count")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (b'{"region":"eu"}', {"mcp_param_region": "eu"}),
        (b'{"region":"eu"}', {"mcp_param_region": " eu "}),
        (b'{"region":"Hello"}', {"mcp_param_region": "=?base64?SGVsbG8=?="}),
        (b'{"region":"SGVsbG8="}', {"mcp_param_region": "SGVsbG8="}),
        (b'{"region":null}', {}),
        (b"{}", {}),
        (b'{"deep":{"count":42}}', {"mcp_param_count": "42.0"}),
        (b'{"region":"eu"}', {"mcp_param_region": "eu", "mcp_param_other": "x"}),
        (b"[1]", {}),  # the params are what is wrong
        (b'{"a":}', {}),
    ],
)
def test_parameters_said_twice_and_alike_pass(arguments, said):
    check_params(headers(**said), REGION, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (b'{"region":"eu"}', {}),
        (b'{"region":"eu"}', {"mcp_param_region": "us"}),
        (b'{"region":"eu"}', {"mcp_param_region": "EU"}),
        (b'{"region":"Hello"}', {"mcp_param_region": "=?base64?SGVsbG8?="}),
        (b'{"region":"Hello"}', {"mcp_param_region": "=?base64?SGVs!!!bG8=?="}),
        (b'{"region":"a"}', {"mcp_param_region": "a\x01"}),
        (b"{}", {"mcp_param_region": "eu"}),
        (b'{"deep":{"count":42}}', {"mcp_param_count": "4.2e1"}),
        (b'{"deep":{"count":42}}', {}),
    ],
)
def test_parameters_that_differ_are_refused(arguments, said):
    with pytest.raises(HeaderMismatch):
        check_params(headers(**said), REGION, arguments)


def test_a_parameter_said_twice_is_refused():
    found = Headers([(b"mcp-param-region", b"eu"), (b"mcp-param-region", b"eu")])
    with pytest.raises(HeaderMismatch):
        check_params(found, REGION, b'{"region":"eu"}')


def test_a_tool_without_annotations_reads_no_arguments():
    check_params(headers(mcp_param_region="x"), (), b"no json")


# --- eras ---


@pytest.mark.parametrize(("version", "modern"), [(V, True), ("2099-01-01", True), ("", True), (None, False)])
def test_a_version_header_tells_the_era(version, modern):
    assert is_modern(version) is modern


@pytest.mark.parametrize("version", [name for name in REVISIONS if name != V])
def test_a_handshake_version_is_not_modern(version):
    assert not is_modern(version)


def test_text_for_hooks_is_complete():
    assert Headers([(b"authorization", b" Bearer x ")]).as_text() == {"authorization": "Bearer x"}


def test_text_for_hooks_has_every_value():
    lines = [(b"x-key", b"good"), (b"x-other", b"1"), (b"x-key", b"bad")]
    assert Headers(lines).as_text() == {"x-key": "good, bad", "x-other": "1"}


@pytest.mark.parametrize("name", [" where", "where ", "a\x7fb", "a\tb"])
def test_a_name_that_headers_cannot_say_as_it_is_is_not_believed_as_it_is(name):
    """It travels encoded; the plain bytes, from a parser that lets them through, say something else."""
    lines = [(b"mcp-protocol-version", V.encode()), (b"mcp-method", b"tools/call")]
    encoded = (b"mcp-name", encode_value(name).encode())
    check_routing(Headers([*lines, encoded]), V, "tools/call", name, True)
    with pytest.raises(HeaderMismatch):
        check_routing(Headers([*lines, (b"mcp-name", name.encode())]), V, "tools/call", name, True)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding"])
def test_a_refusal_does_not_say_itself_how_long_it_is(name):
    with pytest.raises(LocalError, match="no header it can have"):
        HttpRefusal(403, ((name, "5"),)).check()


# --- the short way ---

WORDS = TEXT | st.sampled_from(
    [V, "tools/call", "tools/list", "hi", "", " hi", "hi\t", "h\u00e9", "=?base64?aGk=?=", "=?hi"]
)


def _judged(*said):
    try:
        check_routing(*said)
    except HeaderMismatch as refused:
        return refused.message
    return None


@many(500)
@given(WORDS, WORDS, WORDS | st.none(), st.booleans(), st.data())
def test_the_short_way_decides_as_the_long_one(version, method, name, named, data):
    """For any words in the body, and headers with the same bytes, other bytes, or none."""
    lines = []
    for header, word in (("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)):
        same = st.just((word or "").encode())
        value = data.draw(same | same.map(lambda text: b" " + text) | st.none() | WORDS.map(str.encode), label=header)
        lines += [(header.encode(), value)] if value is not None else []
    lines += data.draw(st.just([]) | st.just(lines[:1]), label="again")
    found = _judged(Headers(lines), version, method, name, named)
    with patch("interlock.transport.http.headers._says_the_same", lambda *_: False):
        assert found == _judged(Headers(lines), version, method, name, named)
