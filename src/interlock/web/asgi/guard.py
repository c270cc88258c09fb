"""Who may speak to the endpoint at all: judged by the headers alone, before a byte of the body is read.

Host and Origin are guarded because a server on localhost can be reached by every page a browser shows: a name that the
page's owner points to 127.0.0.1 makes the browser believe they belong together (#security--endpoint).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from ...wire.errors import LocalError
from .cors import Origins
from .message import Headers, HttpRefusal

__all__ = ["Guard", "Accepts", "accepts_of", "rather_events", "too_large", "LOOPBACK"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_LONGEST_NAME = 512  # bytes of a Host or Origin; no real one is longer
_SITE = b"sec-fetch-site"
_SAID = (b"host", b"origin", _SITE, b"content-type", b"accept", b"content-encoding", b"transfer-encoding")
_FAMILIAR = 256  # combinations of their values that are known as good; others are judged each time
_ONCE = (b"host", b"origin", _SITE, b"content-type", b"content-length", b"authorization")


class Accepts(msgspec.Struct, frozen=True):
    """The forms of an answer that a client reads."""

    json: bool
    events: bool


class Guard:
    """The rules of one endpoint. `hosts` come beside the loopback names; "*" stands for all of them.

    `origins` are pages that may call beside those of the hosts. They may read what they get, too (cors.py).
    """

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = (), *, body_bytes: int) -> None:
        if isinstance(hosts, str) or isinstance(origins, str):
            raise LocalError("allowed_hosts and allowed_origins are lists of names, not one name")
        self.named = tuple(map(_without_scheme, hosts))
        self._hosts = frozenset(name.lower().encode() for name in (*LOOPBACK, *self.named))
        self.origins = Origins(origins)
        self._body_bytes = body_bytes
        self._familiar: set[tuple[bytes | None, ...]] = set()

    def allow(self, host: str) -> None:
        self._hosts |= {host.lower().encode()}
        self._familiar.clear()  # with every host ours, pages of our hosts are not ours any more

    def lets_through(self, headers: Headers) -> bool:
        """Was a POST with these very values let through before? Most clients say the same with every one."""
        values = headers.values
        length = values.get(b"content-length", b"")
        if headers.repeated or not length.isdigit() or len(length) > 15 or int(length) > self._body_bytes:
            return False
        said = (*map(values.get, _SAID),)
        if said in self._familiar:
            return True
        if self.foreign(headers) is not None or self.unreadable(headers) is not None:
            return False
        if len(self._familiar) < _FAMILIAR and sum(len(value or b"") for value in said) < _LONGEST_NAME:
            self._familiar.add(said)
        return True

    def foreign(self, headers: Headers, *, reads: bool = False) -> HttpRefusal | None:
        """Why a request with these headers is refused, whatever it asks for; or None.

        `reads`: it changes nothing and opens no stream, so that a link on a page of another site may lead to it.
        """
        if headers.repeated and (twice := [name for name in _ONCE if name in headers.repeated]):
            return HttpRefusal.saying(400, f"{twice[0].decode()} came more than once")
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if host is None or not self.knows_host(host):
            return HttpRefusal.saying(403, "This server does not go by the name in Host: see allowed_hosts")
        if origin is not None and not self.knows_origin(origin):
            return HttpRefusal.saying(403, "Pages of this Origin may not call this server: see allowed_origins")
        if origin is None and not reads and headers.get(_SITE) == b"cross-site":
            # images, forms and links of other sites send no Origin with a GET (Fetch Metadata §2.3)
            return HttpRefusal.saying(403, "Pages of other sites may not call this server without an Origin")
        return None

    def knows_host(self, host: bytes) -> bool:
        """By its name with or without a port."""
        if b"*" in self._hosts:
            return True
        if len(host) > _LONGEST_NAME:
            return False
        host = host.lower()
        if host in self._hosts:
            return True
        name, colon, port = host.rpartition(b":")
        return bool(colon) and port.isdigit() and name in self._hosts

    def knows_origin(self, origin: bytes) -> bool:
        """One that was allowed, or a page of a host that this server goes by itself."""
        if origin in self.origins:
            return True
        scheme, _, authority = origin.lower().partition(b"://")
        return scheme in (b"http", b"https") and b"*" not in self._hosts and self.knows_host(authority)

    def unreadable(self, headers: Headers) -> HttpRefusal | None:
        """Why the body of this POST is not even read, or its answer could not be; or None."""
        kind = headers.get(b"content-type") or b""
        if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
            return HttpRefusal.saying(415, "Content-Type must be application/json")
        if headers.get(b"content-encoding") not in (None, b"", b"identity"):
            return HttpRefusal.saying(
                415, "The body must come without Content-Encoding", ("accept-encoding", "identity")
            )
        accepts = accepts_of(headers.values.get(b"accept"))
        if not accepts.json and not accepts.events:
            return HttpRefusal.saying(406, "Accept must allow application/json and text/event-stream")
        length = headers.get(b"content-length")
        return self._too_long(length) if length is not None else _coded(headers.get(b"transfer-encoding"))

    def _too_long(self, length: bytes) -> HttpRefusal | None:
        if length.isdigit() and len(length) < 16 and int(length) <= self._body_bytes:
            return None
        if not length.isdigit():
            return HttpRefusal.saying(400, "Content-Length is no number")
        return too_large(self._body_bytes)


def _coded(coding: bytes | None) -> HttpRefusal | None:
    """HTTP parsers take "gzip, chunked" for chunked: what is inside would then not be what the sender means."""
    if coding is None or coding.lower() == b"chunked":
        return None
    return HttpRefusal.saying(501, "Transfer-Encoding must be chunked, or not there", ("connection", "close"))


def too_large(limit: int) -> HttpRefusal:
    """The connection stays: closed while the client still writes, it would be reset, and this answer lost."""
    return HttpRefusal.saying(413, f"The body is over the limit of {limit} bytes")


def _without_scheme(host: str) -> str:
    if "/" in host or not host:
        raise LocalError(f"allowed_hosts: {host!r} is no host name: write it as it stands in Host, without http://")
    return host


@lru_cache(maxsize=256)
def accepts_of(accept: bytes | None) -> Accepts:
    """What `Accept` allows; all, when it is not there (RFC 9110 §12.5.1)."""
    if accept is None:
        return Accepts(True, True)
    weights: dict[bytes, bool] = {}
    for part in accept[:4096].lower().split(b","):
        kind, *parameters = (word.strip() for word in part.split(b";"))
        weights[kind] = not any(_is_zero(word) for word in parameters)
    return Accepts(_allows(weights, b"application/json"), _allows(weights, b"text/event-stream"))


@lru_cache(maxsize=256)
def rather_events(accept: bytes | None) -> Accepts:
    """The same, where nobody who reads events gets anything else."""
    accepts = accepts_of(accept)
    return Accepts(not accepts.events and accepts.json, accepts.events)


def _allows(weights: dict[bytes, bool], kind: bytes) -> bool:
    """The most exact range counts."""
    for candidate in (kind, kind.partition(b"/")[0] + b"/*", b"*/*"):
        if candidate in weights:
            return weights[candidate]
    return False


def _is_zero(parameter: bytes) -> bool:
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and bool(value) and not value.strip().strip(b"0.")
