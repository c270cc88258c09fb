"""Errors of the HTTP library without the request they are about.

It keeps the whole request in them, headers and all, and shows it in their repr; as causes of our own errors they reach
whoever reports those, and tokens and client secrets with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

__all__ = ["bare"]


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
