"""Tokens taken apart and their claims judged; forgeries as a whole are in test_judging.py."""

from __future__ import annotations

import pytest

from interlock.auth.jose.jwk import keys_in
from interlock.auth.jose.jwt import BadToken, Times, audiences_of, check_times, read_written, text_of
from interlock.auth.jose.signer import base64url
from support.auth_tokens import NOW, jwk_of, prover, signer, token

KEYS = keys_in([jwk_of(signer)], ["ES256"])


def test_a_token_is_read_and_its_signature_checked():
    written = read_written(token())
    written.check(KEYS, ("ES256",), ("at+jwt",))
    assert written.claims["sub"] == "ada" and "ada" not in repr(written)


def test_the_type_may_have_its_prefix():
    assert read_written(token({"typ": "application/AT+JWT"})).type == "at+jwt"


def test_without_a_name_the_only_key_counts_and_among_two_none():
    bare = signer.signed({"typ": "JWT"}, {})
    read_written(bare).check(KEYS, ("ES256",), ("jwt",))
    two = keys_in([jwk_of(signer, None), jwk_of(prover, None)], ["ES256"])
    with pytest.raises(BadToken, match="key is not known"):
        read_written(bare).check(two, ("ES256",), ("jwt",))


def test_two_keys_of_one_name_are_none():
    two = keys_in([jwk_of(signer), jwk_of(prover)], ["ES256"])
    with pytest.raises(BadToken):
        read_written(token()).check(two, ("ES256",), ("at+jwt",))


def test_times_have_a_leeway():
    times = Times(leeway=30)
    assert check_times({"exp": NOW - 29, "nbf": NOW + 29, "iat": NOW + 29}, NOW, times) == NOW - 29
    for claims in (
        {"exp": NOW - 30},
        {"exp": NOW, "nbf": NOW + 31},
        {},
        {"exp": None},
        {"exp": float("inf")},
        {"exp": 10**400},
    ):
        with pytest.raises(BadToken):
            check_times(claims, NOW, times)


def test_a_life_may_be_bounded():
    times = Times(leeway=0, longest=300)
    assert check_times({"iat": NOW, "exp": NOW + 300}, NOW, times)
    for claims in ({"iat": NOW, "exp": NOW + 301}, {"exp": NOW + 1}):
        with pytest.raises(BadToken, match="longer"):
            check_times(claims, NOW, times)


def test_audiences_and_texts():
    assert audiences_of({"aud": "a"}) == ("a",) and audiences_of({"aud": ["a", "b"]}) == ("a", "b")
    assert audiences_of({"aud": ["a", 1]}) == () == audiences_of({})
    assert text_of({"a": "b"}, "a") == "b" and text_of({"a": 1}, "a") is None and text_of({"a": ""}, "a") is None


# --- what is read before the signature is bounded ---


def written(header: bytes, claims: bytes) -> str:
    return f"{base64url(header)}.{base64url(claims)}.{base64url(b'signature')}"


def test_a_header_has_a_length():
    assert read_written(written(b'{"alg":"ES256","kid":"' + b"x" * 2_000 + b'"}', b"{}"))
    with pytest.raises(BadToken, match="its header is longer than 4096 characters"):
        read_written(written(b'{"alg":"ES256","kid":"' + b"x" * 4_000 + b'"}', b"{}"))


def test_numbers_that_take_long_to_read_are_refused():
    with pytest.raises(BadToken):
        read_written(written(b"{}", b'{"a":[' + b"1e300," * 1_900 + b"0]}"))


@pytest.mark.parametrize("text", [b'{"a":1,"a":1}', b'{"a":{"b":1,"\\u0062":2}}'])
def test_no_name_stands_twice(text):
    for header, claims in ((text, b"{}"), (b"{}", text)):
        with pytest.raises(BadToken):
            read_written(written(header, claims))
