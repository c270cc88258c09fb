"""A session of the handshake era over HTTP, client side: the headers of its requests, and what a response says of it.

Pure, like `messages.py`, its sibling for the stateless era. The rules are those of 2025-03-26 to 2025-11-25
basic/transports; 2024-11-05 has no session header, its requests are the same ones without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET

from ....web.outbound.reply import EVENTS, JSON, Reply, plain_headers
from ....wire.errors import (
    AuthRequired,
    BadFrame,
    BadResult,
    HttpStatus,
    InterlockError,
    InternalError,
    Refused,
    RemoteError,
)
from ....wire.escaping import display
from ....wire.limits import Limits
from ....wire.messages import Id, error_of, read_frame

__all__ = ["session_headers", "session_in", "is_gone", "no_stream_because", "can_be_sent", "says_older", "SAYS_OLDER"]

SAYS_OLDER = frozenset({400, 404, 405})
"""Statuses that a server of another era gives (2025-11-25 basic/transports#backwards-compatibility)."""
_CREDENTIALS = frozenset({401, 407})  # statuses that ask for them, whatever is there
_TURNED_AWAY = -32000  # of an SDK's own: the request was not even looked at
_LONGEST_SESSION = 4096  # characters of a session id; a longer one is refused
_LONGEST_EVENT_ID = 4096  # characters of an event id that is sent back; a stream with a longer one is not resumed


def session_headers(
    verb: Literal["POST", "GET", "DELETE"],
    more: Mapping[str, str],
    *,
    session: str | None = None,
    version: str | None = None,
    after: str | None = None,
) -> dict[str, str]:
    """Every header but those of HTTP itself; `after` is the id of the event behind which a stream goes on."""
    headers = plain_headers(more, EVENTS if verb == "GET" else f"{JSON}, {EVENTS}")
    if verb == "POST":
        headers["Content-Type"] = JSON
    if session is not None:
        headers["Mcp-Session-Id"] = session
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    if after is not None:
        headers["Last-Event-ID"] = after
    return headers


def session_in(reply: Reply) -> str | None:
    """The session the server gave in its answer to `initialize`; visible ASCII only (#session-management)."""
    given = reply.session
    if given is None:
        return None
    if not 0 < len(given) <= _LONGEST_SESSION or not all("!" <= char <= "~" for char in given):
        raise BadResult("initialize: the server gave a session id that is no visible ASCII, or too long a one")
    return given


def is_gone(reply: Reply, body: bytes, id: Id, limits: Limits, *, proven: bool = False) -> bool:
    """Does the refusal of a request of a session mean the session, and not the request itself?

    A session that is not known is 404 (#session-management). Servers made after the examples of the TypeScript SDK say
    400 with -32000 instead, and never take the session back: read so only where it is `proven`, by having answered
    before. Elsewhere the same words are a complaint about us, which a new session would not change.
    """
    if reply.status not in (400, 404):
        return False
    try:
        frame = read_frame(body, limits)
    except BadFrame:
        return reply.status == 404
    if reply.status == 404:
        return frame.id != id
    refused = error_of(frame, {}) if frame.error is not UNSET else None
    return proven and refused is not None and refused.code == _TURNED_AWAY


def no_stream_because(reply: Reply, what: str) -> InterlockError | None:
    """Why the response to a GET is no stream of events; None when it is one."""
    if reply.status != 200:
        return HttpStatus(f"{what}: HTTP status {reply.status}", reply.status, challenge=reply.challenge)
    if reply.media != EVENTS:
        return RemoteError(f"{what}: the server gave {display(reply.media, 60) or 'no content type'}, no events")
    if reply.packed is not None:
        return RemoteError(f"{what}: the server packed its events ({reply.packed}), unasked")
    return None


def can_be_sent(event_id: str) -> bool:
    """May this event id stand in a header? What the server gave is sent back as it came, or not at all."""
    return (
        0 < len(event_id) <= _LONGEST_EVENT_ID
        and all(" " <= char <= "~" for char in event_id)
        and event_id == event_id.strip(" ")
    )


def says_older(error: InterlockError) -> bool:
    """Is it worth looking whether the server speaks the older transport? Any 4xx may mean so (2025-06-18 and before
    basic/transports#backwards-compatibility); missing credentials and an error inside of the server do not."""
    if isinstance(error, HttpStatus):
        asks = isinstance(error, AuthRequired) or error.status in _CREDENTIALS
        return 400 <= error.status < 500 and not asks
    return isinstance(error, Refused) and not isinstance(error, InternalError)
