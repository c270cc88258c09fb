"""Headers of one call, beside those that every request to an endpoint has: another user's token, say.

They travel in a context variable, from the call to the request that it becomes, so that nothing between has to carry
them. They are bound to the endpoint they are meant for: what a callback calls meanwhile at another server has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from ....web.outbound.endpoint import Endpoint, endpoint_of

__all__ = ["call_headers", "headers_now", "with_headers"]

call_headers: ContextVar[tuple[Endpoint | None, dict[str, str]]] = ContextVar("call_headers", default=(None, {}))


def headers_now(endpoint: Endpoint) -> dict[str, str]:
    """What goes with a request to this endpoint that is sent from here."""
    whose, headers = call_headers.get()
    return headers if whose is endpoint else endpoint.headers


def with_headers(endpoint: Endpoint, headers: Mapping[str, str]) -> dict[str, str]:
    """Those of the endpoint and these, checked; of two with one name the latter holds."""
    own = endpoint_of(endpoint.url, headers, allowed_hosts=endpoint.allowed).headers
    names = {name.lower() for name in own}
    return {name: value for name, value in endpoint.headers.items() if name.lower() not in names} | own
