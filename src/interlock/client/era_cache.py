"""Which servers want a handshake, kept in a file from one run to the next.

Only a finding that was costly is kept: a server that stayed silent, or that had to be started a second time. Others
are asked again within milliseconds, so that an upgraded server is noticed at once; for a kept one that takes at most
`ttl` seconds, and no time at all where it refuses the handshake. A command line may hold secrets, so the file holds
keyed digests of targets and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Callable
from os import PathLike
from time import time
from typing import Any

import msgspec

from ..auth.client.token_storage import FileRecords
from ..protocol.client.probe import Verdicts
from ..revisions.revision import Era
from ..wire.errors import StoreError

__all__ = ["EraCache"]

log = logging.getLogger("interlock.client")
_RECORD = "eras"
MAX_TARGETS = 256  # kept at once; beyond it the one that expires first is dropped
_MAX_BYTES = 64 * 1024


class _Eras(msgspec.Struct):
    """What the file holds: until when (seconds since 1970) each target is known to want a handshake."""

    salt: str
    until: dict[str, float] = {}


class EraCache(Verdicts):
    """For `Client(verdicts=)`. The folder (0700) is made when there is something to keep; a folder that cannot be
    used costs the time that was to be saved, and nothing else."""

    def __init__(
        self, folder: str | PathLike[str], *, ttl: float = 24 * 3600.0, now: Callable[[], float] = time
    ) -> None:
        super().__init__()
        self._records = FileRecords(str(folder), what="the record of server eras", most_bytes=_MAX_BYTES)
        self._ttl, self._now = ttl, now

    def get(self, target: Any) -> Era | None:
        found = super().get(target)
        if found is not None or target is None:
            return found
        eras = self._load()
        return Era.HANDSHAKE if eras.until.get(_digest(eras, target), 0.0) > self._now() else None

    def put(self, target: Any, era: Era, *, costly: bool = False) -> None:
        super().put(target, era, costly=costly)
        if target is None:
            return
        if era is Era.HANDSHAKE and costly:
            eras = self._load()
            eras.until[_digest(eras, target)] = self._now() + self._ttl
            self._save(eras)
        elif era is not Era.HANDSHAKE:
            self._drop(target)

    def forget(self, target: Any) -> None:
        super().forget(target)
        self._drop(target)

    def _drop(self, target: Any) -> None:
        eras = self._load()
        if eras.until.pop(_digest(eras, target), None) is not None:
            self._save(eras)

    def _load(self) -> _Eras:
        try:
            return msgspec.json.decode(self._records.load(_RECORD) or b"", type=_Eras)
        except (StoreError, msgspec.DecodeError, UnicodeDecodeError):
            return _Eras(secrets.token_hex(16))  # nothing is kept, or nothing that could be read

    def _save(self, eras: _Eras) -> None:
        now = self._now()
        valid = sorted((until, digest) for digest, until in eras.until.items() if now < until <= now + self._ttl)
        eras.until = {digest: until for until, digest in valid[-MAX_TARGETS:]}
        try:
            self._records.save(_RECORD, msgspec.json.encode(eras))
        except StoreError as error:
            log.info("= the era of a server is not remembered: %s", error)


def _digest(eras: _Eras, target: Any) -> str:
    text = json.dumps(target, default=str).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=eras.salt.encode()[:64], digest_size=16).hexdigest()
