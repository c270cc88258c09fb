"""Password hashes of an embedded authorization server: scrypt with its parameters in the hash.

A hash reads `scrypt$ln=14,r=8,p=5$<salt>$<digest>` (hex), where `ln` is the base-2 logarithm of N. The parameters are
those OWASP's Password Storage Cheat Sheet gives for 16 MiB; one hash costs about 0.2 s of CPU time. Hashes of earlier
versions, `scrypt$<salt>$<digest>`, were made with p=1: they still verify, and `is_outdated` tells them.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec

from ...wire.errors import LocalError
from ...wire.lazy_regex import pattern

__all__ = ["check_hash", "fits", "hash_password", "is_outdated"]

MAX_PASSWORD_CHARS = 1024  # a longer one never fits
_MAX_MEMORY = 32 << 20  # bytes of one hash, whatever its parameters say
_MAX_WORK = 1 << 23  # N * r * p of one hash: some 2 s of CPU time
_HASH = pattern(r"scrypt\$(?:ln=([0-9]{1,2}),r=([0-9]{1,2}),p=([0-9]{1,2})\$)?([0-9a-f]{32})\$([0-9a-f]{64})")


class _Scrypt(msgspec.Struct, frozen=True):
    """The parameters of RFC 7914 §2."""

    n: int
    r: int
    p: int

    @property
    def work(self) -> int:
        return self.n * self.r * self.p

    @property
    def memory(self) -> int:
        return 128 * self.r * (self.n + self.p + 2)

    def derive(self, password: str, salt: bytes) -> bytes:
        raw = password.encode("utf-8", "surrogatepass")
        return hashlib.scrypt(raw, salt=salt, n=self.n, r=self.r, p=self.p, maxmem=_MAX_MEMORY, dklen=32)


_NOW, _BEFORE = _Scrypt(1 << 14, 8, 5), _Scrypt(1 << 14, 8, 1)
_NO_USER = _NOW, bytes(16), bytes(32)


def hash_password(password: str) -> str:
    """The hash to configure in place of the password."""
    if not 8 <= len(password) <= MAX_PASSWORD_CHARS:
        raise LocalError(f"a password has at least 8 characters and at most {MAX_PASSWORD_CHARS}")
    salt = secrets.token_bytes(16)
    written = f"ln={_NOW.n.bit_length() - 1},r={_NOW.r},p={_NOW.p}"
    return f"scrypt${written}${salt.hex()}${_NOW.derive(password, salt).hex()}"


def check_hash(hashed: str) -> None:
    """Raise `LocalError` unless `hashed` was made by `hash_password`."""
    _read_hash(hashed)


def is_outdated(hashed: str) -> bool:
    """Was this hash made with less work than `hash_password` uses now?"""
    return _read_hash(hashed)[0].work < _NOW.work


def fits(password: str, hashed: str | None) -> bool:
    """Is this the password? Takes as long for a user who does not exist (None) and for an outdated hash."""
    used, salt, digest = _NO_USER if hashed is None else _read_hash(hashed)
    given = password[:MAX_PASSWORD_CHARS]
    same = hmac.compare_digest(used.derive(given, salt), digest)
    if missing := max(0, _NOW.work - used.work) // (_NOW.n * _NOW.r):
        _Scrypt(_NOW.n, _NOW.r, missing).derive(given, salt)  # else the time would tell which users exist
    return same and hashed is not None and len(password) <= MAX_PASSWORD_CHARS


def _read_hash(hashed: str) -> tuple[_Scrypt, bytes, bytes]:
    """Parameters, salt and digest."""
    found = _HASH.fullmatch(hashed)
    if found is None:
        raise LocalError("a password is given as hash_password(...) makes it, never as it is")
    ln, r, p, salt, digest = found.groups()
    used = _BEFORE if ln is None else _Scrypt(1 << int(ln), int(r), int(p))
    if not (used.n > 1 and used.r and used.p) or used.memory > _MAX_MEMORY or used.work > _MAX_WORK:
        raise LocalError(
            f"scrypt parameters ln={ln},r={r},p={p} of a password hash are out of range: use hash_password"
        )
    return used, bytes.fromhex(salt), bytes.fromhex(digest)
