"""Where a browser may be sent back to: which URIs a client may name, and which of them a request means.

A URI is compared as the text it was registered as (AUTH-SEC-012). Only the port of one on the user's own machine may
differ: a native program takes whatever port is free (RFC 8252 §7.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import SplitResult, urlsplit

from ...wire.lazy_regex import pattern
from ..urls import is_loopback, origin_in

__all__ = ["check_redirect", "form_target", "is_local", "meant"]

_LONGEST = 2048
_SCHEME = pattern(r"[a-z][a-z0-9+.-]{0,99}")
_NEVER = frozenset({"about", "blob", "data", "file", "filesystem", "ftp", "intent", "javascript", "mailto", "tel"}) | {
    "vbscript",
    "view-source",
    "ws",
    "wss",
}
_AUTHORITY = pattern(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")  # it goes into headers and pages
_NO = '\\"<>`{}|^*'


def check_redirect(uri: object, schemes: Collection[str] = ()) -> str:
    """A URI that may be registered, or ValueError with the reason.

    https anywhere, http on the user's own machine, a scheme that is named like a domain (`com.example.app:/done`,
    RFC 8252 §7.1), or one of `schemes`, which the owner allows by name.
    """
    if not isinstance(uri, str) or len(uri) > _LONGEST:
        raise ValueError("a redirect URI is a text of at most 2048 characters")
    if not all("!" <= char <= "~" for char in uri) or any(char in uri for char in _NO) or "#" in uri:
        raise ValueError("a redirect URI is a URI without fragment")
    scheme, colon, _ = uri.partition(":")
    if not colon or not _SCHEME.fullmatch(scheme) or scheme in _NEVER:
        raise ValueError("a redirect URI has a scheme in small letters that browsers may be sent to")
    parts = _split(uri)
    if scheme not in ("http", "https"):
        if "." not in scheme.strip(".") and scheme not in schemes:
            raise ValueError("a scheme of its own is named like a domain, or allowed by the server's owner")
        return uri
    if not _AUTHORITY.fullmatch(parts.netloc) or _climbs(parts.path):
        raise ValueError("a redirect URI names a host, without credentials, and a path without dots")
    if scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("a redirect URI with http is one on the user's own machine")
    return uri


def _split(uri: str) -> SplitResult:
    parts = urlsplit(uri)
    _ = parts.port  # ValueError for one that does not exist
    return parts


def _climbs(path: str) -> bool:
    plain = path.lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/")
    return any(part in (".", "..") for part in plain.split("/"))


def meant(asked: str, registered: Iterable[str]) -> bool:
    """Is this one of the client's?"""
    for known in registered:
        if asked == known:
            return True
        if is_local(known) and _without_port(asked) == _without_port(known) is not None:
            return True
    return False


def is_local(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme == "http" and is_loopback(parts.hostname or "")


def _without_port(uri: str) -> str | None:
    """What may not differ of a URI on the user's machine; None for one that is none."""
    try:
        check_redirect(uri)
        parts = _split(uri)
    except ValueError:
        return None
    if not is_local(uri):
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if parts.netloc not in (host, f"{host}:{parts.port}"):
        return None  # another spelling of the same
    return f"http://{host}{uri.partition(parts.netloc)[2]}"


def form_target(uri: str) -> str:
    """What a page must allow so that its form may lead there (CSP form-action)."""
    parts = urlsplit(uri)
    return origin_in(parts) if parts.scheme in ("http", "https") else f"{parts.scheme}:"
