"""JSON web tokens that others give us: taken apart strictly, their signature checked, then what they claim.

The order matters: nothing of a token is believed before its signature, and its header chooses nothing but the name of
the key. Keys that a header brings or points to (`jwk`, `jku`, `x5c`, `x5u`) are not looked at (RFC 8725 §3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

import msgspec

from ...wire.json.duplicate_names import check_unique_names
from ...wire.json.reader import read_members
from .jwk import PublicKey, unbase64url

__all__ = [
    "BadToken",
    "Times",
    "Written",
    "audiences_of",
    "check_times",
    "is_token",
    "read_written",
    "text_of",
    "time_of",
]

_LONGEST = 16 * 1024  # characters of a token
_MAX_HEADER = 4 * 1024  # characters of its first part, which names a key and an algorithm
_LATEST = 1e12  # seconds: the year 33658
_LONGEST_TEXT = 1024  # of a claim that names somebody


class BadToken(Exception):
    """Why a token is not accepted, in words that may be told: they repeat nothing of it."""


class Written(msgspec.Struct, frozen=True):
    """A token taken apart; `claims` must not be used before `check` has passed."""

    header: dict[str, Any]
    claims: dict[str, Any]
    data: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Written(…)"

    @property
    def algorithm(self) -> str:
        return text_of(self.header, "alg") or ""

    @property
    def type(self) -> str:
        """In small letters, without the prefix that may be left out (RFC 7515 §4.1.9)."""
        return (text_of(self.header, "typ") or "").lower().removeprefix("application/")

    @property
    def key_id(self) -> str | None:
        return text_of(self.header, "kid")

    def check(self, keys: Iterable[PublicKey], algorithms: Collection[str], types: Collection[str]) -> None:
        """The signature, with the one key that the token names and with an algorithm that was configured."""
        if self.algorithm not in algorithms:
            raise BadToken("it is signed with an algorithm that is not accepted here")
        if "crit" in self.header:
            raise BadToken("its header demands what is not known here")
        if self.type not in types:
            raise BadToken("it is a token of another kind")
        key = self._key_of([key for key in keys if self.algorithm in key.algorithms])
        if not key.signed(self.algorithm, self.data, self.signature):
            raise BadToken("its signature is wrong")

    def _key_of(self, fitting: list[PublicKey]) -> PublicKey:
        """By its name; a token without one is checked only where there is no choice."""
        named = fitting if "kid" not in self.header else [key for key in fitting if key.id == self.key_id]
        if len(named) != 1 or ("kid" in self.header and self.key_id is None):
            raise BadToken("its key is not known")
        return named[0]


def is_token(text: str) -> bool:
    """Has it the shape of one? Opaque tokens have not."""
    return text.count(".") == 2


def read_written(text: str) -> Written:
    """Take a token apart, or raise `BadToken`."""
    if len(text) > _LONGEST or not is_token(text):
        raise BadToken("it is no signed token")
    head, body, signature = text.split(".")
    if len(head) > _MAX_HEADER:
        raise BadToken(f"its header is longer than {_MAX_HEADER} characters")
    try:
        header, claims = _members(unbase64url(head)), _members(unbase64url(body))
        return Written(header, claims, f"{head}.{body}".encode("ascii"), unbase64url(signature))
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise BadToken("it is no signed token") from None


def _members(raw: bytes) -> dict[str, Any]:
    """An object of JSON in which every name stands once: of two its writer may have meant the other (RFC 7519 §4)."""
    found = read_members(raw)
    check_unique_names(raw)
    return found


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the times in a token, in seconds."""

    leeway: float
    """How far the clocks of others may go wrong."""
    longest: float = math.inf
    """From its beginning to its end; only where it is asked, a beginning must be said."""


def check_times(claims: Mapping[str, Any], now: float, times: Times) -> float:
    """When it ends: `exp` must be there and ahead, `nbf` and `iat` must not be ahead, and all of them be numbers."""
    end, begin, made = (_number(claims, name) for name in ("exp", "nbf", "iat"))
    if end is None or end <= now - times.leeway:
        raise BadToken("it has expired")
    if (begin is not None and begin > now + times.leeway) or (made is not None and made > now + times.leeway):
        raise BadToken("it is not valid yet")
    if times.longest < math.inf and (made is None or end - made > times.longest + times.leeway):
        raise BadToken("it is valid for longer than is accepted here")
    return end


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    if name not in claims:
        return None
    found = time_of(claims[name])
    if found is None:
        raise BadToken(f"its {name} is no time")
    return found


def time_of(value: object) -> float | None:
    """A time of this age of the world; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LATEST < value < _LATEST:
        return None
    return float(value)


def audiences_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Whom it is for: a text or a list of texts (RFC 7519 §4.1.3); nobody, where it is anything else."""
    found = claims.get("aud")
    if isinstance(found, str):
        return (found,)
    values = cast("list[Any]", found) if isinstance(found, list) else []
    return tuple(values) if all(isinstance(value, str) for value in values) else ()


def text_of(claims: Mapping[str, Any], name: str) -> str | None:
    """A claim that is a text of some length, or None."""
    value = claims.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT else None
