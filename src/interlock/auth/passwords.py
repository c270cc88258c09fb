"""Passwords of the few people an embedded authorization server knows: kept as scrypt, compared in equal time."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from ..wire.errors import LocalError

__all__ = ["hash_password", "check_hash", "fits"]

_N, _R, _P, _SIZE = 1 << 14, 8, 1, 32
_MEMORY = 64 * 1024 * 1024
_LONGEST = 1024  # characters; a longer one fits nobody


def hash_password(password: str) -> str:
    """What to write into a configuration in the place of the password."""
    if not 8 <= len(password) <= _LONGEST:
        raise LocalError(f"a password has at least 8 characters and at most {_LONGEST}")
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_derived(password, salt).hex()}"


_NOBODY = f"scrypt${'00' * 16}${'00' * _SIZE}"


def check_hash(hashed: str) -> None:
    """Was this made by `hash_password`?"""
    kind, _, rest = hashed.partition("$")
    salt, _, digest = rest.partition("$")
    try:
        good = kind == "scrypt" and len(bytes.fromhex(salt)) == 16 and len(bytes.fromhex(digest)) == _SIZE
    except ValueError:
        good = False
    if not good:
        raise LocalError("a password is given as hash_password(...) makes it, never as it is")


def fits(password: str, hashed: str | None) -> bool:
    """Takes as long for somebody who does not exist (None)."""
    _, salt, digest = (hashed or _NOBODY).split("$")
    same = hmac.compare_digest(_derived(password[:_LONGEST], bytes.fromhex(salt)), bytes.fromhex(digest))
    return same and hashed is not None and len(password) <= _LONGEST


def _derived(password: str, salt: bytes) -> bytes:
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=_SIZE)
