"""Pages of other origins: whose may call this server, and what their browser must be told for that (Fetch §3.2, CORS).

One list says both. A page that may call and not read could do harm and no work, one that may read and not call does not
exist. An origin is compared with what the browser says byte for byte: nothing stands for many of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...wire.errors import LocalError
from ...wire.escaping import display
from ...wire.http_headers import METHOD, NAME, PREFIX, SESSION, VERSION
from ...wire.lazy_regex import pattern
from .message import TOKEN, Headers, HttpRefusal, Message, Send

__all__ = [
    "VARY",
    "Line",
    "Origins",
    "telling",
]


Line = tuple[bytes, bytes]
VARY: tuple[Line, ...] = ((b"vary", b"origin"),)
"""For answers to whoever is not on a list: a cache may not hand them to those who are."""
_MAX_AGE = "600"  # seconds for which a browser need not ask again; every request is judged all the same
_ASKED_BYTES = 4096  # of Access-Control-Request-Headers; of a longer list nothing is taken
_ASKED_FOR, _ASKED_HEADERS = b"access-control-request-method", b"access-control-request-headers"
_PRIVATE = b"access-control-request-private-network"
_STANDARD = ("accept", "authorization", "content-type", "dpop", "last-event-id")
_SENT = (*_STANDARD, *(name.decode() for name in (VERSION, METHOD, NAME, SESSION)))
_SEEN = b", ".join((SESSION, b"www-authenticate", b"dpop-nonce", b"retry-after"))
_PARAM = PREFIX.lower()
_ORIGIN = pattern(r"([a-z][a-z0-9+.-]*)://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9][0-9]{0,4}))?")
_USUAL = {"http": "80", "https": "443"}


class Origins:
    """The list. Without one, nothing here says a word."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self.named = tuple(map(_checked, given))
        self._lines = {origin.encode(): _told(origin.encode()) for origin in self.named}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __contains__(self, origin: bytes) -> bool:
        return origin in self._lines

    def lines(self, headers: Headers) -> tuple[Line, ...] | None:
        """What every answer tells a browser whose page is of the list; None for everybody else."""
        return self._lines.get(headers.get(b"origin") or b"")

    def preflight(self, verb: str, headers: Headers, allowed: str) -> HttpRefusal | None:
        """The answer to a browser that asks before it calls; None for what is no such question, or not from here.

        Never with Access-Control-Allow-Credentials: who calls says so in Authorization, which a page must have.
        """
        if verb != "OPTIONS" or _ASKED_FOR not in headers.values or self.lines(headers) is None:
            return None
        lines = [
            ("access-control-allow-methods", allowed),
            ("access-control-allow-headers", ", ".join(_allowed(headers.get(_ASKED_HEADERS) or b""))),
            ("access-control-max-age", _MAX_AGE),
        ]
        if headers.get(_PRIVATE) == b"true":  # whoever named the origin wants its pages to reach this machine
            lines.append(("access-control-allow-private-network", "true"))
        return HttpRefusal(200, tuple(lines))


def _told(origin: bytes) -> tuple[Line, ...]:
    return ((b"access-control-allow-origin", origin), (b"access-control-expose-headers", _SEEN), *VARY)


def _allowed(asked: bytes) -> tuple[str, ...]:
    """All that MCP sends, and the parameters that were asked for: only a tool knows what those are called.

    A list with anything else on it gets nothing but ours: its browser then says which header was too much.
    """
    names = asked.decode("latin-1").lower().split(",") if len(asked) <= _ASKED_BYTES else []
    others = sorted({name.strip(" \t") for name in names} - {"", *_SENT})
    return (*_SENT, *others) if all(map(_is_param, others)) else _SENT


def _is_param(name: str) -> bool:
    return name.startswith(_PARAM) and TOKEN.fullmatch(name) is not None


def _checked(origin: str) -> str:
    """As browsers write it. What they never say would never be found, and nobody would know why."""
    if origin == "*":
        raise LocalError(
            "allowed_origins: '*' would let every page that a browser shows call this server: name the origins, as "
            "'https://app.example.com'"
        )
    if origin == "null":
        raise LocalError("allowed_origins: 'null' is what files and sandboxed frames of everybody say: name an origin")
    written = origin.lower().removesuffix("/")
    found = _ORIGIN.fullmatch(written)
    if found is None or int(found[2] or 0) > 65_535:
        told = "write scheme://host or scheme://host:port, as 'https://app.example.com', other letters as xn--"
        raise LocalError(f"allowed_origins: {display(origin, 100)!r} is no origin: {told}")
    if found[2] is not None and found[2] == _USUAL.get(found[1]):
        bare = written.removesuffix(f":{found[2]}")
        raise LocalError(f"allowed_origins: browsers leave the usual port out: write {bare!r} for {written!r}")
    return written


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
