"""Records of a host that last: changed by one at a time, whichever process it is in.

They are the same small tables that hold tokens (auth/client/token_storage.py): files of their owner only, replaced
whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ...auth.client.token_storage import FileRecords, Records, Release
from ...wire.errors import StoreError

__all__ = ["change", "files_in"]

_SECONDS = 5.0  # for another process to end its change; then `StoreError`
_PAUSE = 0.01
_MOST_BYTES = 16 * 1024 * 1024  # of one record; a larger one is refused


def files_in(folder: str | Path, what: str) -> FileRecords:
    """Records in a folder; `what` names one of them in messages."""
    return FileRecords(folder, what=what, most_bytes=_MOST_BYTES)


async def change(records: Records, key: str, edit: Callable[[bytes | None], bytes | None]) -> None:
    """Replace a record by what `edit` makes of it, while nobody else can."""
    release = await _held(records, key)
    try:
        records.save(key, edit(records.load(key)))
    finally:
        release()


async def _held(records: Records, key: str) -> Release:
    try:
        async with asyncio.timeout(_SECONDS):
            while True:
                release = records.try_hold(key)
                if release is not None:
                    return release
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise StoreError(f"another process holds the record for more than {_SECONDS:g} s") from None
