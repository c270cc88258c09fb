"""wire/redaction.py: what looks like a secret is taken out, what does not stays, in linear time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.redaction import _SECRET_NAMES, REDACTED, may_hold_secrets, redact_secrets
from support.growth import assert_linear
from support.properties import many

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\nabc-def\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: [redacted]"),
        ("authorization=Basic dXNlcjpwYXNz; next", "authorization=[redacted]; next"),
        ("sent bearer 8f3a2b1c to it", "sent bearer [redacted] to it"),
        ("password=hunter2 and on", "password=[redacted] and on"),
        ('{"password": "hunter 2", "user": "ada"}', '{"password": [redacted], "user": "ada"}'),
        ("api_key: 'a b c', x", "api_key: [redacted], x"),
        ("DB_PASSWORD=x&y=1", "DB_PASSWORD=[redacted]&y=1"),
        ("postgres://ada:s3cret@db/notes", "postgres://ada:[redacted]@db/notes"),
        ("redis://:s3cret@cache:6379", "redis://:[redacted]@cache:6379"),
        ("GET /x?key=abc&page=2", "GET /x?key=[redacted]&page=2"),
        ("https://h/cb?code=xyz#top", "https://h/cb?code=[redacted]#top"),
        ("Cookie: a=1; b=2\nHost: h", "Cookie: [redacted]\nHost: h"),
        ("set-cookie: id=5; Path=/", "set-cookie: [redacted]"),
        (f"key:\n{PEM}\nend", "key:\n[redacted]\nend"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted]"),
        (f"got {JWT}.", "got [redacted]."),
        ("use sk-abcdefghijkl1234", "use [redacted]"),
        ("use ghp_0123456789abcdefABCDEF now", "use [redacted] now"),
        ("id AKIAIOSFODNN7EXAMPLE", "id [redacted]"),
        ("xoxb-1234567890-abcdefgh", "[redacted]"),
    ],
)
def test_secrets_go_and_the_text_around_them_stays(text, left):
    assert redact_secrets(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "bearer authentication is required",
        "the password was changed",
        "max_tokens 512, 40 tokens left",
        "https://example.com:8080/a@b",
        "a key, a token and a secret walk into a bar",
        "asking-for-it, task-1, desk-lamp",
        "",
    ],
)
def test_prose_stays(text):
    assert redact_secrets(text) == text


@pytest.mark.parametrize(
    "name", ["password", "dbPassword", "API_KEY", "api-key", "X-Session-Id", "access_token", "clientSecret", "Cookie"]
)
def test_a_name_says_that_its_value_is_secret(name):
    for value in ("x", 1234, ["x"], {"a": "b"}):
        assert redact_secrets({"deep": [{name: value, "user": "ada"}]}) == {"deep": [{name: REDACTED, "user": "ada"}]}
    for value in (None, True, False):
        assert redact_secrets({name: value}) == {name: value}


def test_a_secret_may_stand_in_a_name():
    assert redact_secrets({"token=abc": 1}) == {"token=[redacted]": 1}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner))


@given(values)
@many(100)
def test_any_json_comes_back_as_json_of_the_same_kind(value):
    assert type(redact_secrets(value)) is type(value)


@given(st.text(max_size=50), st.text(alphabet="abcXYZ0189_-", min_size=20, max_size=60), st.text(max_size=50))
@many(100)
def test_a_token_with_a_known_beginning_never_gets_through(before, rest, after):
    secret = "ghp_" + rest
    assert secret not in redact_secrets(f"{before} {secret} {after}")


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "eyJaaaaaaaa-",
        "eyJaaaaaaaa.",
        "sk-",
        "sk-a.",
        "://a:",
        "://",
        "password=",
        'password="',
        "password   ",
        "bearer ",
        "bearer\t\t\t\t",
        "bearer aaaaa",
        "cookie:",
        "?key=",
        "api_",
        "-",
        "a",
        " ",
    ],
)
def test_a_text_made_to_be_slow_is_not(piece):
    for before in ("", "-----BEGIN PRIVATE KEY-----", "password: bearer "):
        # from more characters on than any part may have, so that the bounds do not look like growth
        assert_linear(redact_secrets, lambda size, before=before: before + piece * (size // len(piece)), 8_000)


@pytest.mark.parametrize("text", ["to_ken: x", "pass-word", "ｔoken", "xoxb-1", "https://a:b@c", "?code=1", "bearer"])
def test_what_might_be_secret_is_looked_at(text):
    assert may_hold_secrets(json.dumps({text: text}, ensure_ascii=False).encode())


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=40) | st.sampled_from([PEM, JWT, "Cookie: a", "x=sig=1"]))
)
@many(200)
def test_what_is_passed_over_holds_nothing_that_would_be_found(value):
    if not may_hold_secrets(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        assert redact_secrets(value) == value


def test_ordinary_arguments_are_passed_over():
    assert not may_hold_secrets(b'{"path": "/home/ada/my-notes_1.txt", "limit": 5, "query": "a = b"}')


@pytest.mark.parametrize("name", _SECRET_NAMES)
def test_every_name_of_a_secret_is_looked_at_with_and_without_separators(name):
    for spelled in (name, name.upper(), "_".join(name), "-".join(name), " ".join(name)):
        assert may_hold_secrets(json.dumps({spelled: 1}, separators=(",", ":")).encode())
