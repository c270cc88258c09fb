"""Signatures that others can verify, and keys that do not fit."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from interlock.auth.jose.signer import Signer, base64url, new_key, thumbprint
from interlock.auth.secrets import Secret
from interlock.wire.errors import LocalError


def pem_of(key) -> Secret:
    raw = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Secret(raw.decode())


def parts_of(token):
    head, claims, signature = token.split(".")
    raw = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in (head, claims, signature)]
    return json.loads(raw[0]), json.loads(raw[1]), raw[2], f"{head}.{claims}".encode()


CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}


@pytest.mark.parametrize("algorithm", CURVES)
def test_elliptic_signatures_are_of_two_fixed_halves(algorithm):
    key = ec.generate_private_key(CURVES[algorithm])
    signer = Signer(pem_of(key), algorithm)
    head, claims, signature, data = parts_of(signer.signed({"typ": "JWT"}, {"a": 1}))
    assert head == {"typ": "JWT", "alg": algorithm} and claims == {"a": 1}
    half = len(signature) // 2
    numbers = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
    digest = {"ES256": hashes.SHA256(), "ES384": hashes.SHA384(), "ES512": hashes.SHA512()}[algorithm]
    key.public_key().verify(utils.encode_dss_signature(*numbers), data, ec.ECDSA(digest))
    assert signer.public_jwk()["crv"] == {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[algorithm]


def test_rsa_and_edwards_keys_sign_too():
    key = rsa.generate_private_key(65537, 2048)
    *_, signature, data = parts_of(Signer(pem_of(key), "RS256").signed({}, {}))
    key.public_key().verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    *_, signature, data = parts_of(Signer(pem_of(key), "PS256").signed({}, {}))
    key.public_key().verify(signature, data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    edwards = ed25519.Ed25519PrivateKey.generate()
    *_, signature, data = parts_of(Signer(pem_of(edwards), "EdDSA").signed({}, {}))
    edwards.public_key().verify(signature, data)
    with pytest.raises(LocalError, match="elliptic"):
        Signer(pem_of(edwards), "EdDSA").public_jwk()


@pytest.mark.parametrize("algorithm", ["none", "HS256", "", "ES384", "RS256", "EdDSA", "RS1", "es256"])
def test_a_key_is_used_with_its_own_algorithm_only(algorithm):
    with pytest.raises(LocalError):
        Signer(new_key(), algorithm)


def test_what_is_no_key_is_said_without_showing_it():
    with pytest.raises(LocalError) as refused:
        Signer(Secret("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"))
    assert "hunter2" not in str(refused.value) and refused.value.__context__ is None
    assert "PRIVATE" not in repr(Signer(new_key()))


def test_a_public_key_shows_its_public_half_alone_and_has_a_name():
    jwk = Signer(new_key()).public_jwk()
    assert set(jwk) == {"kty", "crv", "x", "y"}
    assert thumbprint(jwk) == thumbprint(dict(reversed(jwk.items()))) and len(thumbprint(jwk)) == 43
    assert base64url(b"\xff\xfe") == "__4"
