"""Which published keys are used, and for what."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

from interlock.auth.jose.jwk import ALGORITHMS, keys_in, public_jwk_of, read_set, unbase64url
from interlock.auth.jose.signer import base64url
from support.auth_tokens import jwk_of, signer

RSA_KEY = rsa.generate_private_key(65537, 2048)
N = RSA_KEY.public_key().public_numbers().n
RSA_JWK = {"kty": "RSA", "n": base64url(N.to_bytes(256, "big")), "e": "AQAB"}
GOOD = jwk_of(signer)


def test_rsa_keys_check_both_paddings_and_nothing_else():
    [key] = keys_in([RSA_JWK], ALGORITHMS)
    plain = RSA_KEY.sign(b"data", padding.PKCS1v15(), hashes.SHA256())
    salted = RSA_KEY.sign(b"data", padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    assert key.signed("RS256", b"data", plain) and key.signed("PS256", b"data", salted)
    assert not key.signed("PS256", b"data", plain) and not key.signed("RS256", b"other", plain)
    assert not key.signed("ES256", b"data", plain) and not key.signed("none", b"data", b"")


def test_edwards_keys():
    made = ed25519.Ed25519PrivateKey.generate()
    raw = made.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    [key] = keys_in([{"kty": "OKP", "crv": "Ed25519", "x": base64url(raw)}], ALGORITHMS)
    assert key.signed("EdDSA", b"data", made.sign(b"data")) and not key.signed("EdDSA", b"data", b"\0" * 64)


@pytest.mark.parametrize(
    "jwk",
    [
        {**GOOD, "use": "enc"},
        {**GOOD, "key_ops": ["sign"]},
        {**GOOD, "key_ops": "verify"},
        {**GOOD, "alg": "RS256"},
        {**GOOD, "alg": 1},
        {**GOOD, "kid": 1},
        {**GOOD, "crv": "P-384"},
        {**GOOD, "crv": "secp256k1"},
        {**GOOD, "x": GOOD["y"]},
        {**GOOD, "x": GOOD["x"] + "="},
        {**GOOD, "x": "A" + GOOD["x"]},
        {**GOOD, "x": 1},
        {**GOOD, "d": "secret"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC"},
        {"kty": ["EC"]},
        {},
        [],
        None,
        "key",
        {**RSA_JWK, "n": base64url(b"\xff" * 128)},
        {**RSA_JWK, "n": base64url(b"\xff" * 2000)},
        {**RSA_JWK, "e": base64url(b"\xff" * 9)},
        {"kty": "OKP", "crv": "X25519", "x": base64url(b"x" * 32)},
        {"kty": "OKP", "crv": "Ed25519", "x": base64url(b"x" * 31)},
    ],
)
def test_other_keys_are_passed_over(jwk):
    assert [key.id for key in keys_in([jwk, GOOD], ALGORITHMS)] == ["k1"]


def test_only_configured_algorithms_count():
    assert keys_in([GOOD], ["RS256"]) == () and keys_in([GOOD], ["HS256", "none"]) == ()
    assert "none" not in ALGORITHMS and not any(name.startswith("HS") for name in ALGORITHMS)


def test_a_set_is_read_up_to_a_bound():
    assert len(read_set(json.dumps({"keys": [GOOD] * 100}).encode(), ALGORITHMS) or ()) == 64
    for broken in (b"", b"[]", b"{}", b'{"keys": 1}', b"\xff", b'{"keys":' + b"[" * 9000):
        assert read_set(broken, ALGORITHMS) is None


def test_the_public_half_is_what_a_key_is_named_by():
    assert public_jwk_of({**GOOD, "use": "sig"}) == signer.public_jwk()
    assert public_jwk_of({**GOOD, "d": "x"}) is None and public_jwk_of({"kty": "oct", "k": "x"}) is None


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y Q", "Y\nQ", "YQ+", "Y/", "ä", "A"])
def test_there_is_one_spelling_of_base64url(text):
    assert unbase64url("YQ") == b"a"
    with pytest.raises(ValueError):
        unbase64url(text)
