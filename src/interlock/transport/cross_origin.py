"""Answers that a browser hands on to a page of another origin: whatever they are, they say that it may.

Done where an answer leaves, so that none is left out: a refusal, a stream, the end of a call that nobody foresaw. A
page that cannot read a 401 does not learn where to get a token.
"""

from __future__ import annotations

from ..revisions.http_message import Headers, Message, Send
from ..revisions.http_origins import VARY, Origins

__all__ = ["telling"]

_OURS = frozenset(
    (b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers")
)
"""Said twice, no browser reads them: what a hook of the author's says of them is left out."""


def telling(origins: Origins, verb: str, headers: Headers, send: Send) -> Send:
    """The way for the answer to this request. It is `send` itself where there is nothing to add."""
    lines = origins.lines(headers)
    if lines is None and (verb == "POST" or not origins):
        return send  # no cache keeps what is answered to a POST
    added = lines or VARY

    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [line for line in message["headers"] if line[0].lower() not in _OURS]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return tell
