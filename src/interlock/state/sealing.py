"""Sealing: what a client carries for us can be neither read nor changed by it (AES-256-GCM).

Keys come from configuration and rotate: the first one seals, all of them open. Without configuration a key is made
for this process alone, which is right for one process and wrong for several: those must share keys. What counts once
is remembered in a store; several processes must share that too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import secrets
from collections.abc import Sequence
from typing import Any

from ..wire.errors import LocalError, StoreError, StoreFull
from .memory_store import MemoryStore
from .store import Store

__all__ = ["Seal", "new_key"]

_VERSION = "s1"
_NONCE = 12
_MARGIN = 60.0  # seconds a use is remembered beyond the end of its state: clocks differ, and are set back


def new_key() -> bytes:
    """A key to put into the configuration of all replicas."""
    return secrets.token_bytes(32)


class Seal:
    """Seals with the first key and opens with any."""

    def __init__(self, keys: Sequence[bytes] = (), *, store: Store | None = None) -> None:
        for key in keys:
            if len(key) != 32:
                raise LocalError(f"a sealing key has 32 bytes, this one {len(key)}: make one with new_key()")
        self._own = not keys
        self._keys = {_id_of(key): key for key in keys or [new_key()]}
        self._ciphers: dict[str, Any] = {}
        self._store = store or MemoryStore()

    async def share(self, store: Store, place: str) -> None:
        """Remember uses in this store, and seal with its key where none was configured: whoever comes first makes it,
        and it stays. What was sealed before can still be opened here."""
        self._store = store
        if not self._own:
            return
        key = new_key()
        if not await store.put(f"{place}/seal", key, until=math.inf, expect=0):
            entry = await store.get(f"{place}/seal")
            if entry is None or len(entry.value) != 32:
                raise StoreError("the sealing key of the store cannot be read: give keys (state_keys=[...])")
            key = entry.value
        self._keys = {_id_of(key): key, **self._keys}

    def seal(self, payload: bytes) -> str:
        id = next(iter(self._keys))
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._cipher(id).encrypt(nonce, payload, _head(id))
        return f"{_VERSION}.{id}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"

    def open(self, sealed: str) -> bytes | None:
        version, _, rest = sealed.partition(".")
        id, _, body = rest.partition(".")
        if version != _VERSION or id not in self._keys:
            return None
        raw = _unbase64(body)
        if raw is None or len(raw) <= _NONCE:
            return None
        return self._decrypt(id, raw)

    def _decrypt(self, id: str, raw: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher(id).decrypt(raw[:_NONCE], raw[_NONCE:], _head(id))
        except InvalidTag:
            return None

    def _cipher(self, id: str) -> Any:
        """Made at the first use: the library behind it is not loaded before."""
        if id not in self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._ciphers[id] = AESGCM(self._keys[id])
        return self._ciphers[id]

    async def consume(self, nonce: str, until: float) -> bool:
        """Is this the first use, of all who share the store? Where it has no room, nothing counts as new."""
        try:
            return await self._store.put(f"used/{nonce}", b"", until=until + _MARGIN, expect=0) > 0
        except StoreFull:
            return False


def _id_of(key: bytes) -> str:
    """Tells keys apart without telling anything about them."""
    return hashlib.sha256(b"interlock key id" + key).hexdigest()[:8]


def _head(id: str) -> bytes:
    return f"interlock {_VERSION} {id}".encode()


def _unbase64(text: str) -> bytes | None:
    """Only the one spelling that `seal` writes: no white space, no padding, no loose bits."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).decode().rstrip("=") == text else None
