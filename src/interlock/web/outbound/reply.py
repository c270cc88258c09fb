"""A response to a request of ours before its body is read: its head, its redirect, and its status as an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ...version import __version__
from ...wire.errors import AuthRequired, HttpStatus
from ...wire.escaping import display

__all__ = ["JSON", "EVENTS", "Reply", "plain_headers", "is_redirect", "status_error"]

JSON, EVENTS = "application/json", "text/event-stream"
_REDIRECTS = frozenset({307, 308})  # the others turn a POST into a GET
_REDIRECTS_OF_GET = _REDIRECTS | {301, 302, 303}
_MAX_QUOTED_BYTES = 4096  # of the body of a refusal that are looked at
_MAX_QUOTED = 300  # characters of it in an error
_TAGS = re.compile(r"<(script|style)\b.*?(</\1>|$)|<[^>]*(>|$)", re.DOTALL | re.IGNORECASE)

_ADVICE = {
    401: "the server wants credentials, or refuses those it got: see auth=OAuth() and headers={'Authorization': ...}",
    403: "the server refuses these credentials or this origin: check what they are allowed to do",
    404: "there is no MCP endpoint at this URL: check its path",
    405: "this URL takes no POST: check that it is the MCP endpoint",
    406: "the server gives neither JSON nor an event stream: check that it is the MCP endpoint",
    408: "the server waited too long for the request: try again",
    413: "the request is too large for the server: send less at once",
    415: "the server takes no JSON here: check that it is the MCP endpoint",
    429: "too many requests: wait before the next one",
    431: "the headers are too large for the server: shorten the arguments it wants as headers, or its own headers",
    502: "the gateway got no proper answer from the server: try again later",
    503: "the server is not available now: try again later",
    504: "the gateway got no answer from the server in time: try again later",
}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a response before its body is read."""

    status: int
    content_type: str = ""
    content_encoding: str = ""
    location: str | None = None
    challenge: str | None = None
    retry_after: str | None = None
    session: str | None = None
    nonce: str | None = None

    @property
    def media(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def packed(self) -> str | None:
        """How the body is packed, to be shown; None when it is as it is."""
        return None if self.content_encoding.strip().lower() in ("", "identity") else display(self.content_encoding, 40)


def plain_headers(more: Mapping[str, str], accept: str) -> dict[str, str]:
    """What every request of ours says, of MCP or not."""
    headers = dict(more)
    if not any(name.lower() == "user-agent" for name in more):
        headers["User-Agent"] = f"interlock/{__version__}"
    headers["Accept"] = accept
    headers["Accept-Encoding"] = "identity"  # what is not packed cannot unpack into more than we are ready to hold
    return headers


def is_redirect(reply: Reply, verb: str = "POST") -> bool:
    """Does it ask for the same request somewhere else?"""
    return reply.location is not None and reply.status in (_REDIRECTS_OF_GET if verb == "GET" else _REDIRECTS)


def _quoted(body: bytes) -> str:
    """The first lines of the body of a refusal, on one line; of a page, the words."""
    text = body[:_MAX_QUOTED_BYTES].decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        text = _TAGS.sub(" ", text)
    return display(" ".join(text.split()), _MAX_QUOTED)


def status_error(reply: Reply, method: str, body: bytes = b"") -> HttpStatus:
    """The status as an error that says what to do, and quotes how the body of the refusal begins."""
    advice = _ADVICE.get(reply.status, "")
    if 300 <= reply.status < 400:
        where = display(reply.location or "nowhere", 200)
        advice = f"the server points to {where}, which is not followed: give the client the URL that answers itself"
    elif not advice:
        advice = "the server failed: look at its log" if reply.status >= 500 else "the server refused the request"
    if reply.retry_after is not None and reply.retry_after.isascii() and reply.retry_after.isdigit():
        advice += f" (it says: after {display(reply.retry_after, 20)} s)"
    said = _quoted(body)
    if said:
        advice += f"; it said: {said}"
    asks = reply.status == 401 or (reply.status == 403 and reply.challenge is not None)
    return (AuthRequired if asks else HttpStatus)(
        f"{method}: HTTP status {reply.status}: {advice}",
        reply.status,
        challenge=reply.challenge,
        retry_after=reply.retry_after,
        body=said,
    )
