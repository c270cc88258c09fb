"""URLs of authorization, by their text alone: which may be used, and how one is made of another.

Who may be *reached* by a URL is judged where sockets are opened; here are the rules that need no network. A URL that a
server names and that a browser is sent to is never fetched by us, so its rule stands here alone.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ..wire.errors import AuthorizationFailed
from ..wire.escaping import display

__all__ = [
    "checked_url",
    "browser_url",
    "origin_in",
    "canonical",
    "is_loopback",
    "is_resource_of",
    "well_known",
]

_LONGEST = 8 * 1024
_PORTS = {"http": 80, "https": 443}
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def checked_url(url: str, what: str) -> SplitResult:
    """Strictly parsed: http or https, a host, no credentials, no fragment; or `AuthorizationFailed`."""
    shown = display(url.partition("?")[0].rpartition("@")[2], 100)
    if len(url) > _LONGEST or not all("!" <= char <= "~" for char in url) or any(char in url for char in '\\"<>`'):
        raise AuthorizationFailed(f"{what}: {shown!r} is no URL")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise AuthorizationFailed(f"{what}: {shown!r} is no URL") from None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc or "#" in url:
        raise AuthorizationFailed(f"{what}: {shown!r} is no URL of http or https without credentials and fragment")
    return parts


def browser_url(url: str) -> str:
    """May a browser be sent there? https, or http on this machine; never another scheme (SEC-014)."""
    parts = checked_url(url, "the authorization endpoint")
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        told = display(parts.netloc, 100)
        raise AuthorizationFailed(f"the authorization endpoint: {told} is not reached by https: no password goes there")
    return url


def is_loopback(host: str) -> bool:
    return host.lower() in _HERE


def origin_in(parts: SplitResult) -> str:
    """Scheme, host and port as they are compared; the default port is left out."""
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def canonical(url: str) -> str:
    """The resource identifier of a server: small letters in scheme and host, no fragment, no empty path (RFC 8707)."""
    parts = checked_url(url, "the server")
    path = "" if parts.path == "/" else parts.path
    return origin_in(parts) + path + (f"?{parts.query}" if parts.query else "")


def is_resource_of(resource: str, url: str, *, whole_origin: bool) -> bool:
    """Is this resource the server at `url`, or, with `whole_origin`, all that its origin has? Another origin never is.

    A slash at the end, and a query that only the URL has, make no difference.
    """
    try:
        mine, theirs = checked_url(url, "the server"), checked_url(resource, "the resource")
    except AuthorizationFailed:
        return False
    if origin_in(mine) != origin_in(theirs) or theirs.query not in ("", mine.query):
        return False
    path = theirs.path.rstrip("/")
    return path == mine.path.rstrip("/") or (whole_origin and not path and not theirs.query)


def well_known(url: str, name: str, *, path: bool) -> str:
    """`/.well-known/<name>` at the root of the URL's host, with its path behind or without it (RFC 8414 §3)."""
    parts = checked_url(url, f"the {name} metadata")
    query = f"?{parts.query}" if path and parts.query else ""
    return f"{origin_in(parts)}/.well-known/{name}{parts.path.rstrip('/') if path else ''}{query}"
