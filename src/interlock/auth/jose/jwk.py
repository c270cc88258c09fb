"""Public keys that somebody publishes (JWK, RFC 7517), and what is signed with them.

A key is used with one algorithm of those that its owner was configured with, and only if its kind fits: nothing that a
token says chooses among kinds. Keys for encryption, shared secrets and anything that is read wrongly are passed over.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from ...wire.json.reader import JsonReader

__all__ = ["ALGORITHMS", "PublicKey", "keys_in", "public_jwk_of", "read_set", "unbase64url"]

_CURVES = {"ES256": ("SECP256R1", 32), "ES384": ("SECP384R1", 48), "ES512": ("SECP521R1", 66)}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = frozenset({*_CURVES, *_RSA, "EdDSA"})
"""All of them need two different keys. One with a shared secret is not here, and `none` least of all."""
_MOST_KEYS = 64  # of one set; what comes behind is not used
_LEAST_BITS, _MOST_BITS = 2048, 8192  # of an RSA key: shorter is weak, longer costs us too much
_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}


def unbase64url(text: str) -> bytes:
    """Only the one spelling: no padding, no white space, no loose bits. ValueError for others."""
    raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if base64.urlsafe_b64encode(raw).rstrip(b"=") != text.encode("ascii"):
        raise ValueError("another spelling of base64url")
    return raw


class PublicKey:
    """One key with its name, for the algorithms that fit it."""

    __slots__ = ("_key", "algorithms", "id")

    def __init__(self, id: str | None, key: Any, algorithms: frozenset[str]) -> None:
        self.id, self._key, self.algorithms = id, key, algorithms

    def __repr__(self) -> str:
        return f"PublicKey({self.id!r})"

    def signed(self, algorithm: str, data: bytes, signature: bytes) -> bool:
        """Was this signed with the other half of the key?"""
        from cryptography.exceptions import InvalidSignature

        if algorithm not in self.algorithms:
            return False
        try:
            self._verify(algorithm, data, signature)
        except (InvalidSignature, ValueError):
            return False
        return True

    def _verify(self, algorithm: str, data: bytes, signature: bytes) -> None:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if algorithm == "EdDSA":
            self._key.verify(signature, data)
            return
        digest = getattr(hashes, f"SHA{algorithm[2:]}")()
        if algorithm in _CURVES:
            size = _CURVES[algorithm][1]
            if len(signature) != 2 * size:
                raise ValueError("a signature of another length")
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            self._key.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(digest))
        elif algorithm.startswith("PS"):
            self._key.verify(signature, data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        else:
            self._key.verify(signature, data, padding.PKCS1v15(), digest)


def keys_in(found: Iterable[Any], algorithms: Iterable[str]) -> tuple[PublicKey, ...]:
    """The keys of a set that can be used with one of these algorithms."""
    wanted = frozenset(algorithms) & ALGORITHMS
    keys: list[PublicKey] = []
    for jwk in found:
        key = _read(cast("Mapping[str, Any]", jwk), wanted) if isinstance(jwk, Mapping) else None
        if key is not None:
            keys.append(key)
        if len(keys) == _MOST_KEYS:
            break
    return tuple(keys)


def public_jwk_of(jwk: Mapping[str, Any]) -> dict[str, str] | None:
    """What of a key its name is made of (RFC 7638 §3.2); None for one that is private, shared or of no known kind."""
    members = _MEMBERS.get(str(jwk.get("kty")), ())
    found = {name: jwk.get(name) for name in members}
    if not members or "d" in jwk or "k" in jwk or not all(isinstance(value, str) for value in found.values()):
        return None
    return cast("dict[str, str]", found)


def _read(jwk: Mapping[str, Any], wanted: frozenset[str]) -> PublicKey | None:
    """None for what is no key to check signatures with: a set may hold others, too (RFC 7517 §5)."""
    id, alg, operations = jwk.get("kid"), jwk.get("alg"), jwk.get("key_ops")
    if jwk.get("use") not in (None, "sig") or public_jwk_of(jwk) is None:
        return None
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return None
    if id is not None and not isinstance(id, str):
        return None
    try:
        key, fit = _KINDS[jwk["kty"]](jwk)
    except (ValueError, TypeError, KeyError, binascii.Error, UnicodeEncodeError):
        return None
    usable = fit & wanted if alg is None else fit & wanted & {alg} if isinstance(alg, str) else frozenset[str]()
    return PublicKey(id, key, usable) if usable else None


def _elliptic(jwk: Mapping[str, Any]) -> tuple[Any, frozenset[str]]:
    from cryptography.hazmat.primitives.asymmetric import ec

    algorithm = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[jwk["crv"]]
    curve, size = _CURVES[algorithm]
    x, y = unbase64url(jwk["x"]), unbase64url(jwk["y"])
    if len(x) != size or len(y) != size:
        raise ValueError("a point of another length")
    numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), getattr(ec, curve)())
    return numbers.public_key(), frozenset({algorithm})


def _rsa(jwk: Mapping[str, Any]) -> tuple[Any, frozenset[str]]:
    from cryptography.hazmat.primitives.asymmetric import rsa

    n, e = (int.from_bytes(unbase64url(jwk[name]), "big") for name in ("n", "e"))
    if not _LEAST_BITS <= n.bit_length() <= _MOST_BITS or e.bit_length() > 32:
        raise ValueError("a key of a length that is not used")
    return rsa.RSAPublicNumbers(e, n).public_key(), frozenset(_RSA)


def _edwards(jwk: Mapping[str, Any]) -> tuple[Any, frozenset[str]]:
    from cryptography.hazmat.primitives.asymmetric import ed25519

    if jwk["crv"] != "Ed25519":
        raise ValueError("another curve")
    return ed25519.Ed25519PublicKey.from_public_bytes(unbase64url(jwk["x"])), frozenset({"EdDSA"})


_KINDS = {"EC": _elliptic, "RSA": _rsa, "OKP": _edwards}


class _Set(msgspec.Struct):
    keys: list[Any]


def read_set(body: bytes, algorithms: Iterable[str]) -> tuple[PublicKey, ...] | None:
    """The keys of a published set; None for what is none."""
    try:
        return keys_in(JsonReader(_Set).decode(body).keys, algorithms)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
