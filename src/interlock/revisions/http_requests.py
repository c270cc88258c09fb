"""One JSON-RPC message as one HTTP POST: its headers, and what the response to it means (2026-07-28 transports/http).

Pure: nothing here opens a socket. A carrier sends what `headers_for` says and hands over what it got.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from ..version import __version__
from ..wire.display import display
from ..wire.errors import AuthRequired, BadFrame, BadResult, HttpStatus, RemoteError
from ..wire.frames import Frame, Id, error_of, read_frame
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.methods import METHODS
from .header_values import encode_value

__all__ = ["Reply", "plain_headers", "headers_for", "form_of", "answer_in", "message_in", "status_error", "is_redirect"]

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


# --- the request ----------------------------------------------------------------------------------


def plain_headers(more: Mapping[str, str], accept: str) -> dict[str, str]:
    """What every request of ours says, of MCP or not."""
    headers = dict(more)
    if not any(name.lower() == "user-agent" for name in more):
        headers["User-Agent"] = f"interlock/{__version__}"
    headers["Accept"] = accept
    headers["Accept-Encoding"] = "identity"  # what is not packed cannot unpack into more than we are ready to hold
    return headers


def headers_for(method: str, params: Mapping[str, Any], version: str | None, more: Mapping[str, str]) -> dict[str, str]:
    """Every header of the POST but those of HTTP itself; `more` adds, and never replaces one of the protocol's."""
    headers = plain_headers(more, f"{JSON}, {EVENTS}")
    headers["Content-Type"] = JSON
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    headers["Mcp-Method"] = encode_value(method)
    row = METHODS.get(method)
    name = params.get(row.named_by) if row is not None and row.named_by is not None else None
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    return headers


# --- the response ---------------------------------------------------------------------------------


def form_of(reply: Reply, method: str) -> Literal["json", "events"]:
    """How the body of a response to a request is to be read; raises what the response means when it is neither.

    With any status a JSON body may hold the answer (modern.md §4), but 401, or a challenge to authorise, speaks of
    credentials: its header says what to do, and the body is at most a copy.
    """
    if reply.packed is not None:
        raise BadResult(f"{method}: the server packed its answer ({reply.packed}), unasked")
    if reply.status == 401 or (reply.status == 403 and reply.challenge is not None):
        raise status_error(reply, method)
    if reply.status == 200 and reply.media in (JSON, EVENTS):
        return "json" if reply.media == JSON else "events"
    if reply.status >= 400 and reply.media in (JSON, ""):
        return "json"
    if 200 <= reply.status < 300:
        given = display(reply.media, 60) or "no content type"
        raise BadResult(f"{method}: the server gave status {reply.status} and {given}, which is no answer to a request")
    raise status_error(reply, method)


def answer_in(body: bytes, reply: Reply, id: Id, method: str, limits: Limits = DEFAULT_LIMITS) -> Frame:
    """The answer in a JSON body. What is none: `HttpStatus` where the status says no, else a broken rule."""
    if reply.status == 200:
        frame = message_in(body, method, limits)
        if frame.method is not UNSET:
            raise RemoteError(f"{method}: the server answered with a message that is no response")
        return _checked(frame, id, method)
    try:
        frame = read_frame(body, limits)
    except BadFrame:
        raise status_error(reply, method, body) from None
    refused = error_of(frame, {}) if frame.method is UNSET and frame.result is UNSET else None
    if refused is None:
        raise status_error(reply, method, body)
    if frame.id != id and (reply.status in (403, 429) or reply.status >= 500):
        # Nobody who read our request wrote this: a gateway, or a guard before the server (basic/index#responses).
        raise status_error(reply, method, str(refused).encode())
    return frame  # an error about this POST, whatever id a server gives that could not read ours


def message_in(data: bytes, method: str, limits: Limits = DEFAULT_LIMITS, id: Id | None = None) -> Frame:
    """One message of a response. The stream belongs to one request: what is broken there may have been its answer."""
    try:
        frame = read_frame(data, limits)
    except BadFrame as bad:
        raise BadResult(f"{method}: the server sent a broken message: {bad}") from None
    if frame.method is not UNSET and frame.id is not UNSET:
        told = display(frame.method, 100)
        raise RemoteError(f"{method}: the server sent a request ({told}), which it must not do in this revision")
    if frame.method is UNSET and id is not None:
        return _checked(frame, id, method)
    return frame


def _checked(frame: Frame, id: Id, method: str) -> Frame:
    """Our answer: of our id, or an error of a server that could not read the id."""
    if frame.id == id or (frame.error is not UNSET and (frame.id is UNSET or frame.id is None)):
        return frame
    raise BadResult(f"{method}: the server answered another request ({frame.id!r:.100}) than this one ({id})")


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
