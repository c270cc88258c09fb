"""Showing with every request that a token is ours: DPoP proofs and the nonces that servers want in them (RFC 9449)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from ..jose.signer import Signer, base64url
from ..secrets import Secret
from ..urls import origin_in

__all__ = ["Prover", "nonce_in"]

_MOST_NONCES = 16  # origins of which the last nonce is kept
_LONGEST_NONCE = 1024


class Prover:
    """One key, and the last nonce of everybody it was shown to."""

    def __init__(self, pem: Secret, clock: Callable[[], float]) -> None:
        self.pem = pem
        self._clock = clock
        self._signer = Signer(pem)
        self._nonces: dict[str, str] = {}

    def __repr__(self) -> str:
        return "Prover(…)"

    def proof(self, verb: str, url: str, access: Secret | None = None) -> str:
        """A fresh proof for one request; with a token it names that token, too (§4.2)."""
        parts = urlsplit(url)
        claims: dict[str, str | int] = {
            "jti": secrets.token_urlsafe(18),
            "htm": verb,
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path or '/'}",
            "iat": int(self._clock()),
        }
        if access is not None:
            claims["ath"] = base64url(hashlib.sha256(access.reveal().encode()).digest())
        nonce = self._nonces.get(origin_in(parts))
        if nonce is not None:
            claims["nonce"] = nonce
        return self._signer.signed({"typ": "dpop+jwt", "jwk": self._signer.public_jwk()}, claims)

    def heard(self, url: str, nonce: str | None) -> bool:
        """A nonce that came from there, to be used from now on. True: it is a new one, so that trying again helps."""
        nonce = nonce_in(nonce)
        if nonce is None:
            return False
        origin = origin_in(urlsplit(url))
        if self._nonces.get(origin) == nonce:
            return False
        self._nonces.pop(origin, None)
        self._nonces[origin] = nonce
        while len(self._nonces) > _MOST_NONCES:
            del self._nonces[next(iter(self._nonces))]
        return True


def nonce_in(header: str | None) -> str | None:
    """The value of a DPoP-Nonce header, when it is one (§8.1)."""
    if header is None or not 0 < len(header) <= _LONGEST_NONCE:
        return None
    return header if all(" " < char <= "~" and char not in '"\\' for char in header) else None
