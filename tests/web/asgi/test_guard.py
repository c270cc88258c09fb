"""web/asgi/guard.py: who may speak at all, by the headers alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.web.asgi.guard import Accepts, Guard, accepts_of, rather_events, too_large
from interlock.web.asgi.message import Headers
from interlock.wire.errors import LocalError
from support.properties import many

GOOD = {"host": "127.0.0.1:8000", "content-type": "application/json"}


def status(guard=None, **changes):
    said = {**GOOD, **{name.replace("_", "-"): value for name, value in changes.items()}}
    lines = [(name.encode(), value.encode("latin-1")) for name, value in said.items() if value is not None]
    guard, headers = guard or Guard(body_bytes=100), Headers(lines)
    refusal = guard.foreign(headers) or guard.unreadable(headers)
    return refusal and refusal.status


# --- Host and Origin ---


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:80"])
def test_loopback_names_are_known(host):
    assert status(host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example.com",
        "evil.example.com:8000",
        "localhost.evil.example",
        "evil.localhost",
        "localhost:80@evil.example",
        "localhost:",
        "localhost:8000:9000",
        "localhost:http",
        "127.0.0.1.evil.example",
        "::1",
        "[::1",
        "0.0.0.0:8000",
        "a" * 5000,
    ],
)
def test_other_names_are_refused(host):
    assert status(host=host) == 403


def test_more_names_can_be_allowed():
    guard = Guard(["mcp.example.com", "other.example:8443"], body_bytes=100)
    assert status(guard, host="MCP.example.com") is None
    assert status(guard, host="mcp.example.com:443") is None
    assert status(guard, host="other.example:8443") is None
    assert status(guard, host="other.example:8444") == 403
    assert status(guard, host="other.example") == 403
    assert status(guard) is None


def test_the_bound_address_can_be_added():
    guard = Guard(body_bytes=100)
    guard.allow("127.0.0.2")
    assert status(guard, host="127.0.0.2:1") is None


@pytest.mark.parametrize("host", ["http://a.example", "a.example/", ""])
def test_an_address_is_no_name(host):
    with pytest.raises(LocalError):
        Guard([host], body_bytes=1)


@pytest.mark.parametrize("options", [{"hosts": "a.example"}, {"origins": "https://a.example"}])
def test_one_name_is_no_list(options):
    with pytest.raises(LocalError):
        Guard(**options, body_bytes=1)


@pytest.mark.parametrize(
    "origin", [None, "http://localhost:3000", "https://127.0.0.1", "http://[::1]:9", "HTTP://LOCALHOST"]
)
def test_no_origin_and_those_of_our_own_names_are_fine(origin):
    assert status(origin=origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example.com",
        "null",
        "",
        "localhost",
        "file://localhost",
        "http://localhost.evil.example",
        "http://localhost:80@evil.example",
        "http://localhost/evil",
        "http://evil.example,http://localhost",
    ],
)
def test_other_origins_are_refused(origin):
    assert status(origin=origin) == 403


def test_more_origins_can_be_allowed():
    guard = Guard(origins=["https://App.example/"], body_bytes=100)
    assert status(guard, origin="https://app.example") is None
    for other in ("http://app.example", "https://app.example:444", "https://app.example/", "HTTPS://app.example"):
        assert status(guard, origin=other) == 403


def test_a_star_lets_everybody_in_and_no_page_by_itself():
    guard = Guard(["*"], body_bytes=100)
    assert status(guard, host="anything.example") is None
    assert status(guard, host="anything.example", origin="https://anything.example") == 403
    listed = Guard(["*"], ["https://app.example"], body_bytes=100)
    assert status(listed, host="x", origin="https://app.example") is None and status(listed, origin="null") == 403


def test_a_refusal_says_which_option_helps():
    refusal = Guard(body_bytes=1).foreign(Headers([(b"host", b"evil")]))
    told = json.loads(refusal.body)
    assert "id" not in told and "allowed_hosts" in told["error"]["message"]


@pytest.mark.parametrize(
    ("site", "origin", "expected"),
    [
        ("cross-site", None, 403),
        (" cross-site\t", None, 403),
        ("cross-site", "http://localhost:3000", None),  # what Origin says is judged instead
        ("cross-site", "https://evil.example", 403),
        ("same-site", None, None),
        ("same-origin", None, None),
        ("none", None, None),
        (None, None, None),
    ],
)
def test_pages_of_other_sites_that_name_no_origin_are_refused(site, origin, expected):
    assert status(sec_fetch_site=site, origin=origin) == expected


def test_they_may_lead_to_what_is_only_read():
    headers = Headers([(b"host", b"localhost"), (b"sec-fetch-site", b"cross-site")])
    guard = Guard(body_bytes=1)
    assert guard.foreign(headers, reads=True) is None and guard.foreign(headers).status == 403


@pytest.mark.parametrize(
    "name", [b"host", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"authorization"]
)
def test_what_decides_is_said_once(name):
    lines = [(key.encode(), value.encode()) for key, value in GOOD.items()]
    values = {b"host": b"localhost", b"content-type": b"application/json", b"content-length": b"1"}
    value = values.get(name, b"http://localhost")
    refusal = Guard(body_bytes=100).foreign(Headers([*lines, (name, value), (name, value)]))
    assert refusal.status == 400


@pytest.mark.parametrize("name", ["host", "origin", "content-type", "content-encoding"])
def test_white_space_around_a_value_is_no_part_of_it(name):
    """Not every HTTP parser takes it away (RFC 9110 §5.5)."""
    said = {**GOOD, "origin": "http://localhost", "content-encoding": "identity"}
    assert status(**{**said, name: f" \t{said[name]}\t "}) is None
    assert status(**{**said, name: f" x{said[name]} "}) in (403, 415)


def test_credentials_that_come_twice_are_refused_on_the_short_way_too():
    lines = [(key.encode(), value.encode()) for key, value in {**GOOD, "content-length": "2"}.items()]
    guard, key = Guard(body_bytes=100), (b"authorization", b"Bearer x")
    assert guard.lets_through(Headers(lines)) and guard.lets_through(Headers([*lines, key]))
    assert not guard.lets_through(Headers([*lines, key, key]))


def test_nobody_is_let_through_by_rules_that_have_changed():
    lines = [(key.encode(), value.encode()) for key, value in {**GOOD, "content-length": "2"}.items()]
    guard, page = Guard(body_bytes=100), (b"origin", b"http://localhost")
    assert guard.lets_through(Headers([*lines, page]))
    guard.allow("*")  # every host is ours: that a page comes from one of them says nothing any more
    assert not guard.lets_through(Headers([*lines, page]))


# --- the body ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("application/json", None),
        ("application/json; charset=utf-8", None),
        ("Application/JSON ;charset=UTF-8", None),
        (None, 415),
        ("", 415),
        ("text/plain", 415),
        ("application/jsonx", 415),
        ("text/plain; x=application/json", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
def test_only_json_is_read(kind, expected):
    assert status(content_type=kind) == expected


@pytest.mark.parametrize(("coding", "expected"), [("identity", None), ("gzip", 415), ("br", 415)])
def test_nothing_packed_is_read(coding, expected):
    assert status(content_encoding=coding) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("100", None),
        ("0", None),
        ("101", 413),
        ("9" * 30, 413),
        ("9" * 5000, 413),
        ("-1", 400),
        ("1e1", 400),
        ("²", 400),
    ],
)
def test_a_body_that_says_it_is_too_long_is_not_read(length, expected):
    assert status(content_length=length) == expected


def test_too_large_says_the_limit_and_leaves_the_connection_to_whoever_still_writes():
    refusal = too_large(7)
    assert b"7 bytes" in refusal.body and "connection" not in dict(refusal.headers)


# --- Accept ---


@pytest.mark.parametrize(
    ("accept", "json", "events"),
    [
        (None, True, True),
        (b"application/json, text/event-stream", True, True),
        (b"application/json", True, False),
        (b"text/event-stream", False, True),
        (b"*/*", True, True),
        (b"application/*", True, False),
        (b"text/*;q=0.5", False, True),
        (b"APPLICATION/JSON;q=1", True, False),
        (b"application/json;q=0, */*", False, True),
        (b"application/json;q=0.000", False, False),
        (b"application/json;q=0.001", True, False),
        (b"text/html", False, False),
        (b"", False, False),
        (b";;,,", False, False),
    ],
)
def test_accept_says_what_is_read(accept, json, events):
    assert accepts_of(accept) == Accepts(json, events)
    assert rather_events(accept) == Accepts(json and not events, events)


@pytest.mark.parametrize(("accept", "expected"), [("text/html", 406), ("application/json", None), ("*/*", None)])
def test_who_reads_neither_form_is_refused(accept, expected):
    assert status(accept=accept) == expected


@pytest.mark.parametrize("text", ["{}", "http://{}", "https://{}"])
def test_a_name_is_not_known_by_its_beginning(text):
    long = text.format("localhost:" + "0" * 600 + ".evil.example")
    assert status(**{"host" if text == "{}" else "origin": long}) == 403


@pytest.mark.parametrize(
    ("coding", "expected"), [("chunked", None), ("Chunked", None), ("gzip, chunked", 501), ("gzip", 501), ("", 501)]
)
def test_only_chunks_are_unpacked(coding, expected):
    assert status(transfer_encoding=coding) == expected
    assert status(transfer_encoding=coding, content_length="3") is None, "the parser decides which of them counts"


def test_a_coding_in_pieces_is_read_as_a_whole():
    lines = [(name.encode(), value.encode()) for name, value in GOOD.items()]
    headers = Headers([*lines, (b"content-encoding", b"gzip"), (b"content-encoding", b"identity")])
    refusal = Guard(body_bytes=100).unreadable(headers)
    assert refusal is not None and refusal.status == 415


# --- the short way ---

VALUES = {
    b"host": ["localhost", "127.0.0.1:8000", " localhost", "evil.example", "page.example", "", "*"],
    b"origin": ["http://localhost:1", "https://page.example", "http://evil.example", "null", ""],
    b"content-type": ["application/json", "Application/JSON; charset=utf-8", "text/plain", " application/json\t", ""],
    b"accept": ["application/json", "text/event-stream", "*/*", "*/*;q=0", "application/json;q=0, text/html", ""],
    b"content-encoding": ["identity", "", "gzip"],
    b"transfer-encoding": ["chunked", "CHUNKED", "gzip, chunked", ""],
    b"content-length": ["0", "100", "101", " 7", "-1", "1e1", "\u00b2", "0" * 15, "0" * 16, "9" * 15, ""],
    b"authorization": ["a", "b"],
    b"sec-fetch-site": ["cross-site", "same-origin", ""],
}
LINE = st.sampled_from([(name, value.encode("latin-1")) for name, values in VALUES.items() for value in values])
GOOD_LINES = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"7")]


@many(300)
@given(st.lists(st.lists(LINE, max_size=6), min_size=1, max_size=8), st.booleans(), st.sampled_from([None, "*", "n"]))
def test_the_short_way_lets_nobody_through_whom_the_long_way_would_stop(requests, open_to_all, allowed):
    """Whatever came before, and whatever name was allowed meanwhile."""
    hosts = ["*"] if open_to_all else ["page.example"]
    guard = Guard(hosts, ["https://page.example"], body_bytes=100)
    for number, changes in enumerate([*requests, *requests]):
        if number == len(requests) and allowed is not None:
            guard.allow(allowed)
        kept = [line for line in GOOD_LINES if line[0] not in {name for name, _ in changes}]
        headers = Headers([*kept, *changes])
        refusal = guard.foreign(headers) or guard.unreadable(headers)
        assert not (guard.lets_through(headers) and refusal is not None)


def test_what_is_remembered_of_strangers_is_bounded():
    guard = Guard(body_bytes=100)
    for number in range(1000):
        for accept in (f"application/json, x/{number}", "application/json," + "x" * 600 + str(number)):
            lines = [*GOOD_LINES, (b"accept", accept.encode())]
            assert guard.lets_through(Headers(lines))
    assert len(guard._familiar) == 256
    assert all(sum(len(value or b"") for value in said) < 512 for said in guard._familiar)


@pytest.mark.parametrize("name", [b"authorization", b"host", b"origin", b"content-length"])
def test_what_came_twice_is_not_let_through_among_what_is_familiar(name):
    said = {
        b"host": b"localhost",
        b"content-type": b"application/json",
        b"content-length": b"5",
        b"origin": b"https://x",
    }
    lines = [*said.items(), (b"authorization", b"Bearer a")]
    guard = Guard(origins=["https://x"], body_bytes=100)
    assert guard.lets_through(Headers(lines))
    twice = Headers([*lines, (name, dict(lines)[name])])
    assert not guard.lets_through(twice)
    refusal = guard.foreign(twice)
    assert refusal is not None and refusal.status == 400
