"""The numbers behind every bound of a connection, in one place."""

from __future__ import annotations

import msgspec

__all__ = ["Limits", "ALL_WATCHED_BYTES", "DEFAULT_LIMITS", "LONGEST_URI", "MIB", "MOST_SUBSCRIPTIONS", "WATCHED_BYTES"]

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection accepts and holds. What happens at each bound is said beside it."""

    message_bytes: int = 64 * MIB
    """A longer message in: skipped up to its end and reported. A longer one out: `MessageTooLarge`."""
    event_bytes: int = 8 * MIB
    """Of one server-sent event that a client reads: it must be held until its end comes, on each stream that a server
    opens. A longer one is refused as soon as it is longer; an answer in one piece may have `message_bytes`."""
    depth: int = 128
    """Nesting of JSON; deeper is refused with -32700."""
    id_bytes: int = 512
    """Text length of an id; longer is refused with -32600."""
    batch: int = 100
    """Messages in one array (where arrays exist at all); more is refused with -32600."""
    strict_json: bool = False
    """Refuse objects with two members of one name with -32600; without it the last of them counts. Over HTTP a server
    does so unasked where headers or tokens decide on what a message says."""
    in_flight: int = 1024
    """Requests of the peer running at once; a further one is refused with -32603, responses still pass."""
    waiting: int = 65_536
    """Calls of ours waiting at once; a further one raises `LocalError` at the caller, nothing is sent."""
    outbound_bytes: int = 128 * MIB
    """Bytes written that the peer has not taken; beyond this the connection is ended as lost."""
    pressure_bytes: int = 1 * MIB
    """Bytes waiting from which notifications wait for the peer to read."""
    stderr_bytes: int = 8 * 1024
    """How much of a child's stderr is kept for error messages."""

    @property
    def max_event_bytes(self) -> int:
        """An event holds one message, and no more than that may be."""
        return min(self.event_bytes, self.message_bytes)

    def with_strict_json(self, wanted: bool | None, default: bool) -> Limits:
        """With what was asked for; where nothing was, also what is the default here."""
        return msgspec.structs.replace(self, strict_json=(self.strict_json or default) if wanted is None else wanted)


DEFAULT_LIMITS = Limits()

MOST_SUBSCRIPTIONS = 10_000  # resources one client may watch at once; more is refused with -32602
LONGEST_URI = 8 * 1024  # characters of a URI to watch; a longer one is refused with -32602
WATCHED_BYTES = 4 * MIB  # that what one client watches takes here; more is refused with -32602
ALL_WATCHED_BYTES = 64 * MIB  # the same for all clients of a server, a quarter for each; more is refused with -32603
