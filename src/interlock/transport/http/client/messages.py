"""One JSON-RPC message as one HTTP POST: its headers, and what the response to it means (2026-07-28 transports/http).

Pure: nothing here opens a socket. A carrier sends what `headers_for` says and hands over what it got.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET

from ....web.outbound.reply import EVENTS, JSON, Reply, plain_headers, status_error
from ....wire.errors import BadFrame, BadResult, RemoteError
from ....wire.escaping import display
from ....wire.limits import DEFAULT_LIMITS, Limits
from ....wire.messages import Frame, Id, error_of, read_frame
from ....wire.methods import METHODS
from ..header_codec import encode_value

__all__ = ["headers_for", "form_of", "answer_in", "message_in"]

# --- the request ----------------------------------------------------------------------------------


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
