"""Errors of the HTTP library without the request they are about.

It keeps the whole request in them, headers and all, and shows it in their repr; as causes of our own errors they reach
whoever reports those, and tokens and client secrets with them. What it says of certificates is said again in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...wire.escaping import display

if TYPE_CHECKING:
    import aiohttp

__all__ = ["bare", "complaint", "distrust"]

_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})  # of OpenSSL's verdicts: nobody whom we know has signed it
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})


def bare(error: aiohttp.ClientResponseError) -> aiohttp.ClientResponseError:
    """The same error, which says of its request only where it went: no query, no header."""
    import aiohttp
    from multidict import CIMultiDict, CIMultiDictProxy

    asked = error.request_info
    place = asked.real_url.origin()
    error.request_info = aiohttp.RequestInfo(place, asked.method, CIMultiDictProxy(CIMultiDict[str]()), place)
    error.history, error.headers = (), None
    error.args = (error.request_info, error.history)
    return error


def complaint(error: aiohttp.ClientResponseError) -> str:
    """What its parser says in one line, without the picture of the bytes in question."""
    said = bare(error).message.partition("\n\n")[0]
    return display(" ".join(said.split()).rstrip(":"), 200)


def distrust(error: aiohttp.ClientSSLError) -> str:
    """Why there is no TLS that can be trusted, and what to do about it."""
    inner: Any = getattr(error, "certificate_error", None) or error.os_error
    said = getattr(inner, "verify_message", None)
    if said is not None and inner.verify_code in _UNKNOWN_ISSUER:
        return f"{display(said, 200)}; if you trust it, name a file with its issuer's certificate in SSL_CERT_FILE"
    if getattr(inner, "reason", None) in _NO_TLS:
        return "what answers there does not speak TLS; is it http://?"
    return display(said or str(inner), 200)
