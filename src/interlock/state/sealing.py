"""Sealing: what a client carries for us can be neither read nor changed by it (AES-256-GCM).

Keys come from configuration and rotate: the first one seals, all of them open. Without configuration a key is made
for this process alone, which is right for one process and wrong for several: those must share keys. What counts once
is remembered in a store; several processes must share that too.
"""

from __future__ import annotations

import math
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from os import urandom
from typing import TYPE_CHECKING, Any

from ..wire.errors import LocalError, StoreError, StoreFull

if TYPE_CHECKING:
    from .store import Store

__all__ = ["Seal", "agreed_key", "new_key"]

_VERSION = "s1"
_PREFIX = len(_VERSION) + 10  # characters: the version, the id of the key, two dots
_NONCE = 12
_MARGIN = 60.0  # seconds a use is remembered beyond the end of its state: clocks differ, and are set back


def new_key() -> bytes:
    """A key to put into the configuration of all replicas."""
    return urandom(32)


async def agreed_key(store: Store, name: str) -> bytes:
    """The one key of all who share this store: whoever comes first makes it, and it stays."""
    key = new_key()
    if await store.put(name, key, until=math.inf, expect=0):
        return key
    entry = await store.get(name)
    if entry is None or len(entry.value) != 32:
        raise StoreError("the sealing key of the store cannot be read: give keys (state_keys=[...])")
    return entry.value


class _Key:
    """One key. The library behind it is loaded at its first use, not before."""

    __slots__ = ("_cipher", "_head", "_secret", "_wrong", "prefix")

    def __init__(self, secret: bytes) -> None:
        from hashlib import sha256  # a server that never asks starts without it

        id = sha256(b"interlock key id" + secret).hexdigest()[:8]  # tells keys apart, and nothing about them
        self.prefix = f"{_VERSION}.{id}."
        self._head = f"interlock {_VERSION} {id}".encode()
        self._secret = secret
        self._cipher: Any = None
        self._wrong: type[Exception] = Exception

    def encrypt(self, nonce: bytes, payload: bytes) -> bytes:
        return (self._cipher or self._load()).encrypt(nonce, payload, self._head)

    def decrypt(self, raw: bytes) -> bytes | None:
        cipher = self._cipher or self._load()
        try:
            return cipher.decrypt(raw[:_NONCE], raw[_NONCE:], self._head)
        except self._wrong:
            return None

    def _load(self) -> Any:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher, self._wrong = AESGCM(self._secret), InvalidTag
        return self._cipher


class Seal:
    """Seals with the first key and opens with any."""

    def __init__(self, keys: Sequence[bytes] = (), *, store: Store | None = None) -> None:
        for key in keys:
            if len(key) != 32:
                raise LocalError(f"a sealing key has 32 bytes, this one {len(key)}: make one with new_key()")
        self._own = not keys
        self._secrets = [*keys] or [new_key()]
        self._known: dict[str, _Key] = {}
        self._store = store

    def _make(self) -> dict[str, _Key]:
        """By their prefixes, the first one first; when something is sealed or opened, which few servers do."""
        self._known = {key.prefix: key for key in map(_Key, self._secrets)}
        return self._known

    async def share(self, store: Store, place: str) -> None:
        """Remember uses in this store, and seal with its key where none was configured: whoever comes first makes it,
        and it stays. What was sealed before can still be opened here."""
        self._store = store
        if self._own:
            self._secrets.insert(0, await agreed_key(store, f"{place}/seal"))
            self._known = {}

    def seal(self, payload: bytes) -> str:
        key, nonce = next(iter((self._known or self._make()).values())), urandom(_NONCE)
        return key.prefix + b2a_base64(nonce + key.encrypt(nonce, payload), newline=False).decode()

    def open(self, sealed: str) -> bytes | None:
        key = (self._known or self._make()).get(sealed[:_PREFIX])
        if key is None:
            return None
        raw = _unbase64(sealed[_PREFIX:])
        return None if raw is None or len(raw) <= _NONCE else key.decrypt(raw)

    async def consume(self, nonce: str, until: float) -> bool:
        """Is this the first use, of all who share the store? Where it has no room, nothing counts as new."""
        store = self._store if self._store is not None else self._remember()  # also one that is empty
        try:
            return await store.put(f"used/{nonce}", b"", until=until + _MARGIN, expect=0) > 0
        except StoreFull:
            return False

    def _remember(self) -> Store:
        """In this process alone."""
        from .memory import MemoryStore  # few servers have states that count once

        self._store = MemoryStore()
        return self._store


def _unbase64(text: str) -> bytes | None:
    """Only the one spelling that `seal` writes: no white space, no other padding, no loose bits."""
    try:
        raw = a2b_base64(text)
    except ValueError:
        return None
    return raw if b2a_base64(raw, newline=False) == text.encode() else None
