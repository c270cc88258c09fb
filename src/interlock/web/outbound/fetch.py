"""One plain request and its whole answer, for what is no MCP message: metadata, keys, tokens, registrations.

It goes out through the same guarded object as everything else, so what holds for calls holds here: the origin of the
URL and no other, addresses that its policy allows, nothing packed, bounded in size and time. Credentials are given
with the endpoint and go nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ...wire.errors import BadResult
from ...wire.limits import Limits
from .client import Outbound
from .endpoint import Endpoint
from .reply import plain_headers

if TYPE_CHECKING:
    from .client import Response

__all__ = ["Fetched", "fetch"]

_MOST_BYTES = 256 * 1024  # of an answer, unless the caller says more; a larger one raises `BadResult`
_SECONDS = 10.0  # for all of it, redirects included, unless the caller says more; then `CallTimeout`


class Fetched(msgspec.Struct, frozen=True):
    """An answer, whatever its status: what it means is the caller's to say. `url` is where it came from."""

    status: int
    url: str
    headers: dict[str, str]
    """By their names in small letters; those that came more than once are joined with commas."""
    body: bytes

    @property
    def media(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def __repr__(self) -> str:
        """Bodies and headers of these answers hold tokens."""
        return f"Fetched({self.status}, {len(self.body)} bytes)"


async def fetch(
    endpoint: Endpoint,
    verb: Literal["GET", "POST"] = "GET",
    body: bytes | None = None,
    *,
    media: str = "application/x-www-form-urlencoded",
    accept: str = "application/json",
    most_bytes: int = _MOST_BYTES,
    seconds: float = _SECONDS,
    version: str | None = None,
) -> Fetched:
    """Ask `endpoint` with its own headers; `media` says what `body` is, `version` which revision we speak.

    A redirect out of the origin is the answer.
    """
    out = Outbound(endpoint, Limits(message_bytes=most_bytes))
    what = f"{verb} {endpoint.label}"
    headers = plain_headers(endpoint.headers, accept)
    if body is not None:
        headers["Content-Type"] = media
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    try:
        async with out.within(what, seconds, verb, body, headers) as (reply, response):
            if reply.packed is not None:
                raise BadResult(f"{what}: the answer is packed ({reply.packed}), unasked")
            whole = await out.whole(response, what)
            return Fetched(reply.status, str(response.url), _headers_of(response), whole)
    finally:
        await out.close()


def _headers_of(response: Response) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
