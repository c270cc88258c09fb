"""transport/http/header_codec.py: every text comes back from a header as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.http.header_codec import decode_value, encode_value, text_of
from interlock.wire.errors import HeaderMismatch
from support.properties import many


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("us-west1", "us-west1"),
        ("a b", "a b"),
        ("", ""),
        (" x", "=?base64?IHg=?="),
        ("x ", "=?base64?eCA=?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?open", "=?base64?open"),
        ("SGVsbG8=?=", "SGVsbG8=?="),
    ],
)
def test_what_a_header_can_carry_stays_plain(text, value):
    assert encode_value(text) == value
    assert decode_value(value) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
@many(300)
def test_every_text_comes_back(text):
    value = encode_value(text)
    assert value.isascii() and (value.isprintable() or not value)
    assert decode_value("  " + value + "\t ") == text


@pytest.mark.parametrize(
    "value",
    [
        *("=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "a\x01b", "ü"),
        *(
            "=?base64?YR==?=",
            "=?base64?YWJ=?=",
            "=?base64?YQ==YQ==?=",
            "=?base64?YQ===?=",
        ),  # YQ== and YWI= are "a", "ab"
    ],
)
def test_a_broken_value_is_refused(value):
    with pytest.raises(HeaderMismatch):
        decode_value(value)


def test_the_marks_are_exact():
    assert decode_value("=?BASE64?SGVsbG8=?=") == "=?BASE64?SGVsbG8=?="
    assert decode_value("=?base64?=") == "=?base64?="


def test_values_as_text():
    assert [text_of(value) for value in ("x", 42, -1, True, False)] == ["x", "42", "-1", "true", "false"]
