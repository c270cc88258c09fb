"""Signing with a key of ours: what a client says of itself (RFC 7523) and what shows that it holds a key (RFC 9449).

Only asymmetric algorithms are here, and each fits one kind of key: nothing that a peer says chooses among them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ...wire.errors import LocalError
from ..secrets import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["Signer", "base64url", "new_key", "thumbprint"]

_CURVES = {"ES256": ("secp256r1", 32), "ES384": ("secp384r1", 48), "ES512": ("secp521r1", 66)}
_HASHES = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}
_LEAST_BITS = 2048  # of an RSA key; a shorter one is refused


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def new_key() -> Secret:
    """A key of P-256 as PEM, to sign with ES256."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    made = ec.generate_private_key(ec.SECP256R1())
    pem = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Secret(pem.decode())


class Signer:
    """One private key (PEM, PKCS#8 or what else the library reads) and the one algorithm it is used with."""

    def __init__(self, pem: Secret, algorithm: str = "ES256") -> None:
        self.algorithm = algorithm
        self._key = _loaded(pem)
        _check_fit(self._key, algorithm)

    def __repr__(self) -> str:
        return f"Signer({self.algorithm!r})"

    def signed(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """A JSON web token in its short form."""
        head = msgspec.json.encode({**header, "alg": self.algorithm})
        text = f"{base64url(head)}.{base64url(msgspec.json.encode(claims))}"
        return f"{text}.{base64url(self._signature(text.encode()))}"

    def public_jwk(self) -> dict[str, str]:
        """The public half of an elliptic key; never more of it."""
        curve = _CURVES.get(self.algorithm)
        if curve is None:
            raise LocalError(f"a key that is shown with every request is an elliptic one, not one for {self.algorithm}")
        numbers = cast("ec.EllipticCurvePublicKey", self._key.public_key()).public_numbers()
        x, y = (base64url(number.to_bytes(curve[1], "big")) for number in (numbers.x, numbers.y))
        return {"crv": f"P-{'521' if curve[1] == 66 else curve[1] * 8}", "kty": "EC", "x": x, "y": y}

    def _signature(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if self.algorithm == "EdDSA":
            return self._key.sign(data)
        digest = getattr(hashes, _HASHES[self.algorithm[2:]])()
        if self.algorithm in _CURVES:
            r, s = utils.decode_dss_signature(self._key.sign(data, ec.ECDSA(digest)))
            size = _CURVES[self.algorithm][1]
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if self.algorithm.startswith("PS"):
            return self._key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        return self._key.sign(data, padding.PKCS1v15(), digest)


def _loaded(pem: Secret) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem.reveal().encode(), None)
    except (ValueError, TypeError):
        pass  # its words could show a part of the key
    raise LocalError("the private key is no PEM that can be read without a password")


def _check_fit(key: Any, algorithm: str) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if algorithm in _CURVES:
        fits = isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == _CURVES[algorithm][0]
    elif algorithm == "EdDSA":
        fits = isinstance(key, ed25519.Ed25519PrivateKey)
    elif algorithm[:2] in ("RS", "PS") and algorithm[2:] in _HASHES:
        fits = isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _LEAST_BITS
    else:
        raise LocalError(f"{algorithm!r} is no algorithm to sign with: use ES256, RS256, PS256, EdDSA or a longer one")
    if not fits:
        raise LocalError(f"the private key is of another kind than {algorithm} needs, or too short")


def thumbprint(jwk: Mapping[str, str]) -> str:
    """The name of a public key (RFC 7638)."""
    return base64url(hashlib.sha256(msgspec.json.encode(dict(sorted(jwk.items())))).digest())
