"""How a client stands with a server: which issuer, as which client, with which token. This is what is kept.

A record belongs to one server, one principal and one issuer: what one authorization server gave is never shown to
another (basic/authorization#authorization-server-binding). Times are absolute, so that a record means the same later.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..secrets import Secret

__all__ = ["Token", "Registered", "Standing", "kept", "read_standing", "read_registered"]

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]


class Token(msgspec.Struct, frozen=True, kw_only=True):
    access: Secret
    dpop: bool = False
    expires: float | None = None
    """From when on it is not used any more, in seconds since 1970; None: nobody said."""
    refresh: Secret | None = None
    asked: tuple[str, ...] = ()
    """The scopes that were asked for, to which a step-up adds."""
    granted: tuple[str, ...] | None = None
    """What the server says it granted, if it says it."""

    def fresh(self, now: float) -> bool:
        return self.expires is None or now < self.expires


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to one authorization server."""

    id: str
    how: Literal["given", "document", "registered"] = "registered"
    method: Method = "none"
    secret: Secret | None = None
    key: Secret | None = None
    algorithm: str = "ES256"
    redirect_uri: str | None = None
    expires: float | None = None

    @property
    def able(self) -> bool:
        """Is there what its way to authenticate needs?"""
        needed = {"private_key_jwt": self.key, "client_secret_basic": self.secret, "client_secret_post": self.secret}
        return self.method == "none" or needed[self.method] is not None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    resource: str
    token_endpoint: str
    client: Registered | None
    token: Token
    dpop_key: Secret | None = None


def kept(record: Standing | Registered) -> bytes:
    """As it is written down. Credentials that the owner gives with every start are not: they are his to keep."""
    if isinstance(record, Standing) and record.client is not None and record.client.how == "given":
        bare = msgspec.structs.replace(record.client, secret=None, key=None)
        record = msgspec.structs.replace(record, client=bare)
    return msgspec.json.encode(record, enc_hook=_revealed)


def read_standing(data: bytes | None) -> Standing | None:
    return _read(data, Standing)


def read_registered(data: bytes | None) -> Registered | None:
    return _read(data, Registered)


def _read(data: bytes | None, kind: Any) -> Any:
    """A record of another version, or a damaged one, is none: what it held can be had again."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=lambda _, text: Secret(text))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _revealed(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise NotImplementedError
