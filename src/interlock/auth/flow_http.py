"""A request that a flow of authorization wants made, made: by who named its URL, through the guarded HTTP object."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from ..web.outbound.endpoint import Endpoint, endpoint_of
from ..web.outbound.fetch import fetch
from ..wire.errors import RemoteError
from .flow import Ask, Said

__all__ = ["asked"]


async def asked(step: Ask, base: Endpoint, *, redirects: bool = True, version: str | None = None) -> Said:
    """`base` is what the owner wrote; what it names is judged from there. Its own headers never go along.

    Redirects within the origin are followed unless that is not wanted; others never are. `version` is the revision that
    is spoken, for who wants to know it with a GET.
    """
    if step.policy == "typed":
        endpoint = endpoint_of(step.url, step.headers, allowed_hosts=base.allowed, references=base.references)
    else:
        endpoint = base.named(step.url, step.headers)
    if step.form is not None:
        body, media = urlencode(step.form).encode(), "application/x-www-form-urlencoded"
    else:
        body = msgspec.json.encode(step.json) if step.json is not None else None
        media = "application/json"
    spoken = version if step.method == "GET" else None
    got = await fetch(endpoint, step.method, body, media=media, accept=step.accept, version=spoken)
    if not redirects and got.url != endpoint.url:
        raise RemoteError(f"{endpoint.label} answers from another place than was asked")
    return Said(status=got.status, headers=got.headers, body=got.body)
