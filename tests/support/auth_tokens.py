"""Tokens of an issuer whose keys the tests hold: good ones, and every way to forge one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from interlock.auth.jose.signer import Signer, base64url, new_key, thumbprint
from interlock.auth.resource_server.protection import Protection

__all__ = [
    "ISSUER",
    "NOW",
    "RESOURCE",
    "FORGERIES",
    "bound",
    "claims_of",
    "jwk_of",
    "proof_of",
    "prover",
    "protection",
    "signer",
    "stranger",
    "token",
]

RESOURCE, ISSUER, NOW = "https://mcp.example.com/mcp", "https://as.example.com", 1_000_000.0
signer, stranger, prover = Signer(new_key()), Signer(new_key()), Signer(new_key())


def jwk_of(key: Signer, id: str | None = "k1") -> dict[str, str]:
    return key.public_jwk() | ({} if id is None else {"kid": id})


def protection(**more: Any) -> Protection:
    return Protection(**{"resource": RESOURCE, "issuer": ISSUER, "keys": (jwk_of(signer),), **more})


def claims_of(**more: Any) -> dict[str, Any]:
    """Good ones, changed; what is None is left out."""
    base = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "c", "scope": "read", "exp": NOW + 60}
    return {name: value for name, value in {**base, **more}.items() if value is not None}


def token(header: dict[str, Any] | None = None, key: Signer = signer, **claims: Any) -> str:
    return key.signed({"typ": "at+jwt", "kid": "k1", **(header or {})}, claims_of(**claims))


def _by_hand(header: dict[str, Any], signature: bytes | None = None, secret: bytes | None = None) -> str:
    data = f"{base64url(json.dumps(header).encode())}.{base64url(json.dumps(claims_of()).encode())}"
    if secret is not None:
        signature = hmac.digest(secret, data.encode(), "sha256")
    return f"{data}.{base64url(signature or b'')}"


def _changed_after() -> str:
    head, _, signature = token().split(".")
    return f"{head}.{base64url(json.dumps(claims_of(sub='bob')).encode())}.{signature}"


def _public_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    jwk = signer.public_jwk()
    x, y = (int.from_bytes(base64.urlsafe_b64decode(jwk[name] + "="), "big") for name in ("x", "y"))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _der() -> str:
    """The right signature in the form that other protocols use."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    head, body, signature = token().split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    halves = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    return f"{head}.{body}.{base64url(encode_dss_signature(*halves))}"


_HEAD = {"typ": "at+jwt", "kid": "k1"}
_BAD_JWK = jwk_of(stranger)


def _without(body: str, name: str) -> str:
    """The members of an object but for this one, up to its end; it may be one that is not there."""
    members = json.loads(body)
    members.pop(name, None)
    return json.dumps(members)[1:]


def _written(header: str, claims: str) -> str:
    """Rightly signed, whatever stands in it: what a careless issuer would sign."""
    text = f"{base64url(header.encode())}.{base64url(claims.encode())}"
    return f"{text}.{base64url(signer._signature(text.encode()))}"  # pyright: ignore[reportPrivateUsage]


_GOOD_HEAD, _GOOD_BODY = json.dumps({**_HEAD, "alg": "ES256"}), json.dumps(claims_of())
_TWICE = {
    "aud": f'"https://other.example.com","aud":"{RESOURCE}"',
    "sub": '"bob","sub":"ada"',
    "exp": f'1,"exp":{NOW + 60}',
    "scope": '"read","scope":"admin"',
    "iss": f'"https://evil.example","iss":"{ISSUER}"',
    "x": '{"a":1,"a":2}',
    "s\\u0075b": '"bob"',
}
FORGERIES: dict[str, str] = {
    **{
        f"{name} twice": _written(_GOOD_HEAD, f'{{"{name}":{value},{_without(_GOOD_BODY, name)}')
        for name, value in _TWICE.items()
    },
    "alg twice": _written(f'{{"alg":"none",{_GOOD_HEAD[1:]}', _GOOD_BODY),
    "kid twice": _written(f'{{"kid":"x",{_GOOD_HEAD[1:]}', _GOOD_BODY),
    **{
        f"claims {number}": _written(_GOOD_HEAD, claims)
        for number, claims in enumerate(
            (
                "null",
                "[]",
                '""',
                "1",
                _GOOD_BODY + "x",
                _GOOD_BODY + "{}",
                "\ufeff" + _GOOD_BODY,
                _GOOD_BODY.replace('"exp": 1000060.0', '"exp": NaN'),
                _GOOD_BODY.replace('"exp": 1000060.0', '"exp": Infinity'),
                _GOOD_BODY.replace('"exp": 1000060.0', '"exp": 1e400'),
                _GOOD_BODY.replace('"exp": 1000060.0', '"exp": 1e13'),
                _GOOD_BODY.replace('"exp": 1000060.0', '"exp": ' + "9" * 30),
                _GOOD_BODY.replace('"ada"', '"\\ud800"'),
                "{" + '"x":{' * 2000 + "}" * 2001,
            )
        )
    },
    **{f"kid {key!a:.20}": token({"kid": key}) for key in ("k1\0", "k1\n", "k1%00", "\u212a1", "k1,k1", "x" * 1025)},
    **{f"alg {alg!r}": _by_hand({**_HEAD, "alg": alg}) for alg in ("none", "None", "NONE", "", None, 1, ["ES256"], {})},
    "no alg": _by_hand(_HEAD),
    "HS256 with the public key as PEM": _by_hand({**_HEAD, "alg": "HS256"}, secret=_public_pem()),
    "HS256 with the public key as JWK": _by_hand({**_HEAD, "alg": "HS256"}, secret=json.dumps(jwk_of(signer)).encode()),
    "HS256 with nothing": _by_hand({**_HEAD, "alg": "HS256"}, secret=b""),
    "another algorithm's name": _by_hand({**_HEAD, "alg": "RS256"}, b"\0" * 256),
    "no signature": _by_hand({**_HEAD, "alg": "ES256"}),
    "zeros": _by_hand({**_HEAD, "alg": "ES256"}, b"\0" * 64),
    "a DER signature": _der(),
    "a stranger's key": token(key=stranger),
    "a stranger's key in jwk": token({"jwk": _BAD_JWK}, stranger),
    "a stranger's key in jwk alone": token({"jwk": _BAD_JWK, "kid": "x"}, stranger),
    "jku": token({"jku": "https://evil.example/keys"}, stranger),
    "x5u": token({"x5u": "https://evil.example/cert"}, stranger),
    "x5c": token({"x5c": ["MIIB"]}, stranger),
    **{
        f"kid {kid!r:.20}": token({"kid": kid})
        for kid in ("x", "", "../../k1", "k1'; --", "K1", "k1 ", 1, None, ["k1"], "x" * 5000)
    },
    "crit": token({"crit": ["b64"], "b64": False}),
    "an empty crit": token({"crit": []}),
    **{f"typ {typ!r}": token({"typ": typ}) for typ in ("dpop+jwt", "oauth-id-jag+jwt", "logout+jwt", "id_token")},
    "changed claims": _changed_after(),
    **{f"iss {iss!r}": token(iss=iss) for iss in ("https://evil.example", ISSUER + "/", "", None, [ISSUER], 1)},
    **{
        f"aud {aud!r}": token(aud=aud)
        for aud in (
            None,
            "",
            [],
            {},
            1,
            "https://other.example.com/mcp",
            RESOURCE + "/",
            RESOURCE + "/more",
            "https://mcp.example.com",
            "https://mcp.example.com/MCP",
            "http://mcp.example.com/mcp",
            "https://mcp.example.com:8443/mcp",
            [RESOURCE, "https://other.example.com"],
            [RESOURCE, 1],
            [[RESOURCE]],
            "*",
            RESOURCE + "#x",
            RESOURCE + "?x",
            "https://mcp.example.com@evil.example/mcp",
        )
    },
    **{f"exp {exp!r}": token(exp=exp) for exp in (None, NOW - 31, NOW - 1e6, 0, -1, str(NOW + 60), True, [], {}, "x")},
    **{f"nbf {nbf!r}": token(nbf=nbf) for nbf in (NOW + 31, NOW + 1e6, str(NOW), True, [], "x")},
    **{f"iat {iat!r}": token(iat=iat) for iat in (NOW + 31, "x", False)},
    **{f"sub {sub!r:.20}": token(sub=sub) for sub in (None, "", 1, [], "x" * 2000)},
    **{
        f"text {text!r:.20}": text
        for text in (
            "a",
            "a.b",
            "a.b.c",
            "..",
            "...",
            "a.b.c.d.e",
            token() + ".x",
            token() + "=",
            token()[:-3],
            token().replace(".", ".."),
            base64.b64encode(token().encode()).decode().rstrip("="),
            f"{base64url(b'[]')}.{base64url(b'[]')}.{base64url(b'x')}",
            f"{base64url(b'{' * 50)}.{base64url(b'{}')}.{base64url(b'x')}",
            f"{base64url(b'[' * 9000)}.{base64url(b'{}')}.{base64url(b'x')}",
            "x" * 15000 + "." + "y" * 900 + ".z",
        )
    },
}
"""Each is refused, whoever asks with it."""


def proof_of(access: str | None, key: Signer = prover, header: dict[str, Any] | None = None, **claims: Any) -> str:
    """A proof for a POST to the resource, changed."""
    base: dict[str, Any] = {"jti": "j1", "htm": "POST", "htu": RESOURCE, "iat": NOW}
    if access is not None:
        base["ath"] = base64url(hashlib.sha256(access.encode()).digest())
    told = {name: value for name, value in {**base, **claims}.items() if value is not None}
    return key.signed({"typ": "dpop+jwt", "jwk": key.public_jwk(), **(header or {})}, told)


def bound(key: Signer = prover, **claims: Any) -> str:
    """A token that is bound to a key."""
    return token(cnf={"jkt": thumbprint(key.public_jwk())}, **claims)
