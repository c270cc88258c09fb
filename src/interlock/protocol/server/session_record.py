"""What a handshake session is, as far as it can be written down: enough for another process to go on with it.

Two processes may change it at once. Whoever finds that the record was written meanwhile puts its own changes on top of
the other's: each change (a level set, a resource watched or not any more) is small and stands for itself.
"""

from __future__ import annotations

import msgspec

from ...wire.json.decoder import decoder
from ...wire.types.capabilities import ClientCapabilities, ServerCapabilities
from ...wire.types.common import Implementation

__all__ = ["SessionRecord", "decode_record", "encode_record", "merged"]


class SessionRecord(msgspec.Struct, kw_only=True, frozen=True):
    """One session, at one moment."""

    revision: str
    client: Implementation | None
    capabilities: ClientCapabilities
    offered: ServerCapabilities
    log_level: str | None = None
    watched: frozenset[str] = frozenset()
    ready: bool = False
    speaker: int = 0
    """The worker that says what belongs to no request; 0 while there is none."""


encode_record = msgspec.json.Encoder().encode
_records = decoder(SessionRecord)


def decode_record(written: bytes) -> SessionRecord:
    return _records.decode(written)


def merged(base: SessionRecord, mine: SessionRecord, theirs: SessionRecord) -> SessionRecord:
    """What `mine` changed since `base`, done to `theirs`. What was negotiated changes with nobody."""
    return msgspec.structs.replace(
        theirs,
        log_level=theirs.log_level if mine.log_level == base.log_level else mine.log_level,
        watched=(theirs.watched | (mine.watched - base.watched)) - (base.watched - mine.watched),
        ready=theirs.ready or mine.ready,
        speaker=theirs.speaker if mine.speaker == base.speaker else mine.speaker,
    )
