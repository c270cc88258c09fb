"""transport/http/client/messages.py: the headers of a request, and what a response to it means. No sockets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock.transport.http.client.messages import answer_in, form_of, headers_for, message_in
from interlock.transport.http.header_codec import decode_value
from interlock.web.outbound.reply import Reply
from interlock.wire.errors import BadResult, HttpStatus, RemoteError
from interlock.wire.limits import Limits
from interlock.wire.methods import METHODS
from support.properties import many

NEWEST = "2026-07-28"


def reply(status=200, kind="application/json", **more):
    return Reply(status=status, content_type=kind, **more)


def body(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


ERROR = {"code": -32022, "message": "no", "data": {"supported": []}}


# --- the request ---


def test_the_usual_headers():
    assert headers_for("tools/list", {}, NEWEST, {}) == {
        "User-Agent": headers_for("x", {}, None, {})["User-Agent"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "MCP-Protocol-Version": NEWEST,
        "Mcp-Method": "tools/list",
    }


def test_without_a_version_none_is_claimed():
    assert "MCP-Protocol-Version" not in headers_for("x", {}, None, {})


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "add"}, "add"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "file:///a b"}, "file:///a b"),
        ("resources/read", {"name": "n", "uri": "u"}, "u"),
        ("tools/call", {"name": ""}, ""),
        ("tools/call", {"name": "größe"}, "=?base64?Z3LDtsOfZQ==?="),
        ("tools/call", {"name": " x"}, "=?base64?IHg=?="),
    ],
)
def test_the_name_of_what_is_asked_for(method, params, name):
    assert headers_for(method, params, NEWEST, {})["Mcp-Name"] == name


@pytest.mark.parametrize("method", [name for name, row in METHODS.items() if row.named_by is None])
def test_methods_without_an_object_have_no_name(method):
    assert "Mcp-Name" not in headers_for(method, {"name": "x", "uri": "y"}, NEWEST, {})


@pytest.mark.parametrize("name", [None, 7, ["x"]])
def test_a_name_that_is_no_text_is_left_to_the_server(name):
    assert "Mcp-Name" not in headers_for("tools/call", {"name": name}, NEWEST, {})


def test_further_headers_add_and_never_replace():
    headers = headers_for("tools/call", {"name": "t"}, NEWEST, {"X-Key": "k", "Accept": "*/*", "Mcp-Name": "other"})
    assert headers["X-Key"] == "k"
    assert headers["Accept"] == "application/json, text/event-stream"
    assert headers["Mcp-Name"] == "t"
    own = headers_for("x", {}, None, {"user-agent": "mine"})
    assert [value for name, value in own.items() if name.lower() == "user-agent"] == ["mine"]


@many(200)
@given(st.text(), st.text(st.characters(codec="utf-8")))
def test_every_header_is_fit_for_the_wire_and_comes_back(method, name):
    name = name.encode("utf-8", "replace").decode()
    method = method.encode("utf-8", "replace").decode()
    headers = headers_for(method, {"name": name}, NEWEST, {})
    named = headers_for("tools/call", {"name": name}, NEWEST, {})
    for value in (*headers.values(), *named.values()):
        assert value.isascii()
        assert value == "" or value.isprintable()
    assert decode_value(headers["Mcp-Method"]) == method
    assert decode_value(named["Mcp-Name"]) == name


# --- the form of a response ---


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (reply(), "json"),
        (reply(kind="Application/JSON; charset=utf-8"), "json"),
        (reply(kind="text/event-stream"), "events"),
        (reply(kind="text/event-stream;charset=utf-8", content_encoding="identity"), "events"),
        (reply(400), "json"),
        (reply(404, kind=""), "json"),
        (reply(403), "json"),
        (reply(500), "json"),
    ],
)
def test_how_a_body_is_read(given, form):
    assert form_of(given, "x") == form


@pytest.mark.parametrize(
    "given", [reply(kind="text/html"), reply(kind=""), reply(202, kind=""), reply(204), reply(content_encoding="gzip")]
)
def test_a_success_that_is_no_answer_is_a_bad_result(given):
    with pytest.raises(BadResult):
        form_of(given, "x")


@pytest.mark.parametrize(
    "given",
    [
        reply(401),
        reply(403, challenge="Bearer"),
        reply(404, kind="text/html"),
        reply(400, kind="text/event-stream"),
        reply(301, kind=""),
        reply(307, location="/x"),
        reply(503, kind="text/plain"),
    ],
)
def test_a_status_that_speaks_for_itself(given):
    with pytest.raises(HttpStatus) as told:
        form_of(given, "x")
    assert told.value.status == given.status
    assert told.value.challenge == given.challenge


# --- the answer ---


def test_a_result_of_our_id_is_the_answer():
    assert bytes(answer_in(body(id=7, result={"a": 1}), reply(), 7, "x").result) == b'{"a": 1}'


@pytest.mark.parametrize("id", [7, None, UNSET])
def test_an_error_answers_also_without_an_id(id):
    members = {} if id is UNSET else {"id": id}
    assert answer_in(body(**members, error=ERROR), reply(), 7, "x").error is not UNSET


@pytest.mark.parametrize("status", [400, 404, 405, 409, 422])
@pytest.mark.parametrize("id", [7, None, "server-error", 1])
def test_an_error_with_a_status_is_about_this_post(status, id):
    assert answer_in(body(id=id, error=ERROR), reply(status), 7, "x").error is not UNSET


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_a_guard_or_gateway_is_not_the_server(status):
    assert answer_in(body(id=7, error=ERROR), reply(status), 7, "x").error is not UNSET
    with pytest.raises(HttpStatus, match="it said: no"):
        answer_in(body(id=None, error=ERROR), reply(status), 7, "x")


@pytest.mark.parametrize(
    "wrong",
    [
        body(id=8, result={}),
        body(id="7", result={}),
        body(result={}),
        body(id=8, error=ERROR),
        b"",
        b"{",
        b"[" + body(id=7, result={}) + b"]",
        body(id=7),
    ],
)
def test_what_is_no_answer_of_ours_is_a_bad_result(wrong):
    with pytest.raises(BadResult):
        answer_in(wrong, reply(), 7, "x")


@pytest.mark.parametrize("wrong", [body(id=7, method="roots/list"), body(method="notifications/x")])
def test_a_message_that_is_no_response_is_a_broken_rule(wrong):
    with pytest.raises(RemoteError):
        answer_in(wrong, reply(), 7, "x")


@pytest.mark.parametrize("other", [b"", b"<html>", b"{}", body(id=7, result={}), body(method="x"), body(id=7, error=1)])
def test_a_status_without_an_error_object_stays_a_status(other):
    with pytest.raises(HttpStatus) as told:
        answer_in(other, reply(400), 7, "x")
    assert told.value.status == 400


@many(300)
@given(st.binary(max_size=60), st.sampled_from([200, 400, 404, 500]))
def test_any_bytes_give_a_frame_or_one_of_our_errors(data, status):
    try:
        answer_in(data, reply(status), 7, "x")
    except RemoteError:
        pass


def test_a_message_of_a_stream():
    assert message_in(body(method="notifications/x"), "x", Limits(), 7).method == "notifications/x"
    assert message_in(body(id=7, result={}), "x", Limits(), 7).id == 7
    for wrong in (body(id=7, method="ping"), body(id=8, result={}), b"{"):
        with pytest.raises(RemoteError):
            message_in(wrong, "x", Limits(), 7)


def test_text_of_the_server_cannot_move_a_cursor():
    for told in (
        lambda: message_in(body(id=1, method="\x1b[2J"), "x", Limits(), 7),
        lambda: form_of(reply(kind="\x1b[2J"), "x"),
        lambda: form_of(reply(content_encoding="\x1b[2J"), "x"),
        lambda: form_of(reply(302, location="\x1b[2J"), "x"),
        lambda: answer_in(body(error={"code": 1, "message": "\x1b[2J"}), reply(503), 7, "x"),
    ):
        with pytest.raises(RemoteError) as error:
            told()
        assert "\x1b" not in str(error.value)
