"""Where a request knocks: at the endpoint, at the pair of addresses of the oldest transport, at the sign of life.

A framework may mount the application below any prefix, and people write addresses with and without a slash at the end:
both are the same place. The sign of life is for whoever watches over processes; it says nothing but that requests are
taken, so it asks nobody who he is, nor by which name he calls: a probe knows an address and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ....web.asgi.message import HttpRefusal
from ....wire.errors import LocalError
from .legacy_sse import MESSAGES, SSE

__all__ = ["NO_STORE", "Place", "Places", "below", "messages_reference", "nowhere", "sign_of_life"]


class Place(Enum):
    ENDPOINT = "POST, GET, DELETE"
    SSE = "GET"
    MESSAGES = "POST"
    HEALTH = "GET, HEAD"


class Places:
    """All of one application. `health` is None where it is not served; `old`: is the oldest transport served, beside
    the endpoint?"""

    def __init__(self, path: str, *, health: str | None, old: bool) -> None:
        for given in (path, health or "/"):
            if not given.startswith("/"):
                raise LocalError(f"the path {given!r} must begin with a slash")
        beside = _trimmed(path).rpartition("/")[0]
        self._all: dict[str, Place] = {beside + SSE: Place.SSE, beside + MESSAGES: Place.MESSAGES} if old else {}
        if health is not None:
            self._all[_trimmed(health)] = Place.HEALTH
        if self._all.get(_trimmed(path)) is Place.HEALTH:
            raise LocalError(f"{path!r} cannot be the endpoint and the sign of life: say health='/another' or None")
        self._all[_trimmed(path)] = Place.ENDPOINT

    def find(self, scope: Mapping[str, Any]) -> Place | None:
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        return (self._all.get(path) if not root else None) or self._all.get(_trimmed(below(path, root.rstrip("/"))))


def below(path: str, root: str) -> str:
    """The path below the point where a framework mounted us; some servers leave that point out of it."""
    return path[len(root) :] if root and (path == root or path.startswith(root + "/")) else path


def _trimmed(path: str) -> str:
    return path.removesuffix("/") or "/"


def messages_reference(scope: Mapping[str, Any]) -> str:
    """Where clients of the oldest transport post, relative to where they have sent this GET.

    A relative path (RFC 3986 §4.2) also holds where a proxy or a framework has removed a prefix from what we see.
    """
    return f"..{MESSAGES}" if scope["path"].endswith("/") else MESSAGES.removeprefix("/")


def nowhere(path: str, scope: Mapping[str, Any]) -> HttpRefusal:
    """404, and where the endpoint is: below the point where it is mounted, if it is."""
    body = f"Not found: the MCP endpoint is {scope.get('root_path', '').rstrip('/')}{path}\n".encode()
    return HttpRefusal(404, (("content-type", "text/plain; charset=utf-8"),), body)


_PLAIN = (("content-type", "application/json"), ("cache-control", "no-store"))
_SERVING = HttpRefusal(200, _PLAIN, b'{"status":"serving"}')
_STOPPING = HttpRefusal(503, (*_PLAIN, ("retry-after", "1")), b'{"status":"stopping"}')
NO_STORE = HttpRefusal(503, (*_PLAIN, ("retry-after", "5")), b'{"status":"no store"}')
_NOT_SO = HttpRefusal(405, (*_PLAIN, ("allow", Place.HEALTH.value)), b'{"status":"ask with GET"}')


def sign_of_life(method: str, stopping: bool) -> HttpRefusal:
    """Whether new requests are taken here: what a load balancer asks before it sends any."""
    if method not in ("GET", "HEAD"):
        return _NOT_SO
    return _STOPPING if stopping else _SERVING
