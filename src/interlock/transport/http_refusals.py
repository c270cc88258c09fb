"""The body of a response that is not an answer: its beginning says why a request was refused, so errors quote it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from ..revisions.http_requests import Reply, form_of, status_error
from ..wire.errors import HttpStatus

if TYPE_CHECKING:
    from .outbound import Response

__all__ = ["read_form"]

_MAX_BYTES = 4096  # of a body that are read to be quoted
_BODY_TIMEOUT = 1.0  # seconds for them


async def read_form(reply: Reply, response: Response, what: str) -> Literal["json", "events"]:
    """How the body is to be read (`form_of`). Where it is not an answer, the error quotes how it begins."""
    try:
        return form_of(reply, what)
    except HttpStatus:
        body = await _read_beginning(response)
    raise status_error(reply, what, body)


async def _read_beginning(response: Response) -> bytes:
    found = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT):
            while len(found) < _MAX_BYTES and (part := await response.content.readany()):
                found += part
    except Exception:
        pass  # the status is what matters, whatever became of the body
    return bytes(found[:_MAX_BYTES])
