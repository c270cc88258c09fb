"""Proofs of others that they hold the key of a token (DPoP, RFC 9449 §4.3), and the nonces we want in them (§8, §9)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any, cast

import msgspec

from ...wire.errors import AuthorizationFailed
from ..urls import checked_url, origin_in
from .jwk import keys_in, public_jwk_of, unbase64url
from .jwt import BadToken, read_written, text_of, time_of
from .signer import base64url, thumbprint

__all__ = ["PROOF_ALGORITHMS", "PROOF_SECONDS", "BadProof", "Nonces", "Proof", "check_proof"]

PROOF_ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "PS256")
PROOF_SECONDS = 300.0
"""How far the time of a proof may lie from ours, on both sides (EXT-DPOP-005)."""
_LONGEST_ID = 256


class BadProof(BadToken):
    """Why a proof is not accepted; `nonce` where a fresh nonce in it would help."""

    def __init__(self, told: str, *, nonce: bool = False) -> None:
        super().__init__(told)
        self.nonce = nonce


class Proof(msgspec.Struct, frozen=True):
    """Who holds the key, and what tells this proof from others."""

    key: str
    """The name of the key: what `cnf.jkt` of a token must say."""
    once: str
    """A name for this very proof, under which its use is remembered."""
    until: float
    """From then on it is too old anyway."""


class Nonces:
    """Nonces that need not be remembered: each says when it was made, and nobody else can make one."""

    def __init__(self, clock: Callable[[], float], seconds: float = 120.0, key: bytes | None = None) -> None:
        self._clock, self._seconds, self._key = clock, seconds, key or secrets.token_bytes(32)

    def new(self) -> str:
        made = int(self._clock()).to_bytes(8, "big")
        return base64url(made + self._mark(made))

    def good(self, nonce: object) -> bool:
        try:
            raw = unbase64url(nonce) if isinstance(nonce, str) and len(nonce) < 100 else b""
        except ValueError:
            return False
        if not hmac.compare_digest(self._mark(raw[:8]), raw[8:]):
            return False
        return 0 <= int(self._clock()) - int.from_bytes(raw[:8], "big") <= self._seconds

    def _mark(self, made: bytes) -> bytes:
        return hmac.digest(self._key, b"dpop nonce" + made, "sha256")[:16]


def check_proof(
    text: str, verb: str, url: str, now: float, *, access: str | None = None, nonces: Nonces | None = None
) -> Proof:
    """For this request and, where there is one, this token; or `BadProof`. That it came before is for others to see."""
    try:
        written = read_written(text)
        jwk = written.header.get("jwk")
        found = public_jwk_of(cast("dict[str, Any]", jwk)) if isinstance(jwk, dict) else None
        if found is None or "kid" in written.header:
            raise BadProof("the proof brings no public key, or names another one")
        written.check(keys_in([found], PROOF_ALGORITHMS), PROOF_ALGORITHMS, ("dpop+jwt",))
    except BadProof:
        raise
    except BadToken as bad:
        raise BadProof(f"the proof: {bad}") from None
    claims = written.claims
    id, made = text_of(claims, "jti"), time_of(claims.get("iat"))
    if id is None or len(id) > _LONGEST_ID or claims.get("htm") != verb or not _same(claims.get("htu"), url):
        raise BadProof("the proof is for another request")
    if made is None or abs(now - made) > PROOF_SECONDS:
        raise BadProof("the proof is too old, or of the future")
    if access is not None and claims.get("ath") != base64url(hashlib.sha256(access.encode()).digest()):
        raise BadProof("the proof is for another token")
    if nonces is not None and not nonces.good(claims.get("nonce")):
        raise BadProof("the proof needs a nonce of this server", nonce=True)
    key = thumbprint(found)
    return Proof(key, hashlib.sha256(f"{key} {id}".encode()).hexdigest(), made + PROOF_SECONDS)


def _same(said: object, url: str) -> bool:
    """The URL without its query, as such URLs are compared (§4.3, 9)."""
    return isinstance(said, str) and (mine := _plain(url)) is not None and _plain(said) == mine


def _plain(url: str) -> str | None:
    try:
        parts = checked_url(url, "the proof")
    except AuthorizationFailed:
        return None
    return origin_in(parts) + (parts.path or "/")
