"""The rules of the handshake revisions over HTTP: which session a request belongs to, which version it may name, which
event a client has seen last (2025-11-25 basic/transports). Pure: it reads headers, it neither receives nor sends.
"""

from __future__ import annotations

from msgspec import UNSET

from ....revisions.revision import Revision
from ....web.asgi.message import Headers, HttpRefusal
from ....wire.errors import BadFrame, InternalError, InvalidRequest, Refused
from ....wire.http_headers import SEEN, SESSION, VERSION
from ....wire.limits import Limits
from ....wire.messages import is_batch, read_batch, read_frame
from ....wire.meta import PROTOCOL_VERSION

__all__ = [
    "TurnedAway",
    "asked_session",
    "asks",
    "check_version",
    "event_id",
    "is_outside",
    "refusal_of",
    "seen_event",
]

_LONGEST_ID = 128  # of a session id that is looked up at all; ours have 59 characters
_LONGEST_EVENT = 32
_ENVELOPE = PROTOCOL_VERSION.encode()

UNKNOWN = HttpRefusal.saying(404, "There is no such session: it has ended, begin again with initialize")
UNRESUMABLE = HttpRefusal.saying(400, "Nothing can be resumed from this Last-Event-ID: it is not kept any more")
NO_SESSION = HttpRefusal.saying(400, "Mcp-Session-Id is missing: it came with the answer to initialize")
FULL = HttpRefusal.saying(503, InternalError("Too many sessions at once: try again"), ("retry-after", "10"))


class TurnedAway(Exception):
    """A request of which nothing more than a status is said."""

    def __init__(self, refusal: HttpRefusal) -> None:
        super().__init__(refusal.status)
        self.refusal = refusal


def is_outside(body: bytes) -> bool:
    """Is there surely no envelope in it? A key may be written with escapes: what holds any is read to be sure."""
    return _ENVELOPE not in body and 0x5C not in body


def asks(body: bytes, limits: Limits) -> bool:
    """Is a request in it, or something that nobody can read? A server that stops takes neither."""
    try:
        frames = read_batch(body, limits) if is_batch(body) else [read_frame(body, limits)]
    except BadFrame:
        return True
    return any(isinstance(each, BadFrame) or (each.method is not UNSET and each.id is not UNSET) for each in frames)


def refusal_of(bad: BadFrame, body: bytes) -> Refused:
    """The answer to a body outside of sessions that is not one message."""
    refused = bad.refusal or InvalidRequest("Not a JSON-RPC 2.0 request or notification")
    if is_batch(body) and isinstance(refused, InvalidRequest):
        return InvalidRequest("A POST holds one message, not an array: send initialize by itself")
    return refused


def asked_session(headers: Headers) -> str | None:
    """The session that a request names, None when it names none."""
    value = headers.values.get(SESSION)
    if value is None:
        return None
    if SESSION in headers.repeated:
        raise TurnedAway(HttpRefusal.saying(400, "Mcp-Session-Id came more than once"))
    value = value.strip(b" \t")
    if not value or len(value) > _LONGEST_ID:
        raise TurnedAway(UNKNOWN)
    return value.decode("latin-1")


def check_version(headers: Headers, revision: Revision | None) -> None:
    """What was negotiated holds, said again or not; something else is 400 (#protocol-version-header)."""
    value = headers.get(VERSION)
    if value is None or (revision is not None and value == revision.name.encode()):
        return
    told = f"MCP-Protocol-Version is not what this session speaks: {revision.name if revision else 'nothing yet'}"
    raise TurnedAway(HttpRefusal.saying(400, told))


def event_id(stream: int, number: int) -> str:
    """Names its stream, so that one stream is never taken for another (#resumability-and-redelivery)."""
    return f"{stream}-{number}"


def seen_event(headers: Headers) -> tuple[int, int] | None:
    """The stream and the number a client has seen last, None when it asks to resume nothing."""
    value = headers.get(SEEN)
    if value is None:
        return None
    stream, _, number = value.partition(b"-")
    if len(value) > _LONGEST_EVENT or not (stream.isdigit() and number.isdigit()):  # nor one that came twice
        raise TurnedAway(UNRESUMABLE)
    return int(stream), int(number)
