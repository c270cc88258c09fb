"""The body of a response that is not an answer: its beginning says why a request was refused, so errors quote it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from ....web.outbound.client import Outbound, drain
from ....web.outbound.reply import Reply, status_error
from ....wire.errors import CLASS_OF, HttpStatus, InterlockError
from ....wire.messages import error_of
from .messages import answer_in, form_of

if TYPE_CHECKING:
    from ....web.outbound.client import Response

__all__ = ["read_form", "post_accepted"]

_MAX_BYTES = 4096  # of a body that are read to be quoted
_ACCEPTED_WITHIN = 30.0  # seconds the server may take to accept what has no answer
_BODY_TIMEOUT = 1.0  # seconds for them


async def read_form(reply: Reply, response: Response, what: str) -> Literal["json", "events"]:
    """How the body is to be read (`form_of`). Where it is not an answer, the error quotes how it begins."""
    try:
        return form_of(reply, what)
    except HttpStatus:
        body = await _read_beginning(response)
    raise status_error(reply, what, body)


async def post_accepted(
    outbound: Outbound,
    what: str,
    body: bytes,
    headers: dict[str, str],
    *,
    url: str | None = None,
    gone: InterlockError | None = None,
    aside: bool = False,
) -> None:
    """POST what has no answer, a notification say, and wait until it is accepted; `gone` is what a 404 means."""
    sent = outbound.within(what, _ACCEPTED_WITHIN, "POST", body, headers, url, aside=aside)
    async with sent as (reply, response):
        if reply.status == 404 and gone is not None:
            raise gone
        if not 200 <= reply.status < 300:
            await read_form(reply, response, what)
            frame = answer_in(await outbound.whole(response, what), reply, 0, what, outbound.limits)
            raise error_of(frame, CLASS_OF) or status_error(reply, what)
        await drain(response)


async def _read_beginning(response: Response) -> bytes:
    found = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT):
            while len(found) < _MAX_BYTES and (part := await response.content.readany()):
                found += part
    except Exception:
        pass  # the status is what matters, whatever became of the body
    return bytes(found[:_MAX_BYTES])
