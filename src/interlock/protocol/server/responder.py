"""From an exchange to the bytes of its answer: shared by both eras and every carrier."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from os import urandom
from types import FunctionType, MethodType
from typing import Any, cast

from msgspec import Raw

from ...revisions.revision import Era, Revision
from ...revisions.shaping import shape_result
from ...wire.errors import InternalError, Refused, UrlElicitationRequired
from ...wire.exchange import Handler, Lasting, Result
from ...wire.json.lenient import members_of
from ...wire.messages import Id, encode, encode_error, encode_result
from ..request import Served

__all__ = [
    "answer",
    "direct",
    "refuse",
    "NO_STAMP",
    "Stamp",
]


class Stamp:
    """Set on results by the edge, so that revisions without it never make it. A handler brings its own as `.stamp`."""

    __slots__ = ("_alone", "_meta")

    def __init__(self, meta: Mapping[str, Any] | None = None) -> None:
        self._meta = dict(meta or {})
        self._alone = Raw(encode(self._meta)) if self._meta else None

    def on(self, result: Result) -> Result:
        """A result with its type (2026-07-28 basic/index#result-type) and its maker; what it says itself stays."""
        said: Result = {"resultType": "complete", **result}
        if self._alone is not None:
            meta: dict[str, Any] | None = said.get("_meta")
            said["_meta"] = {**self._meta, **meta} if meta else self._alone
        return said


NO_STAMP = Stamp()


log = logging.getLogger("interlock.server")
_HANDSHAKE = Era.HANDSHAKE


async def answer(handler: Handler, exchange: Served, id: Id, stamp: Stamp = NO_STAMP) -> bytes:
    """Run the handler and encode what it gave or raised. Only cancellation by the edge escapes."""
    revision = exchange.revision
    try:
        result = await handler(exchange)
        if exchange.meter is not None:
            await exchange.finish()
        if type(result) is Lasting:
            return encode_result(id, _form(revision, exchange.method, result, stamp))
        if revision.era is _HANDSHAKE:
            return encode_result(id, shape_result(revision, exchange.method, result))
        return encode_result(id, stamp.on(result))
    except UrlElicitationRequired as required:
        return _require_url(exchange, id, required, stamp)
    except Refused as refused:
        return refuse(revision, id, refused)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return refuse(revision, id, _internal(exchange.method))  # the author's own, nobody cancelled this run
    except GeneratorExit:
        raise  # thrown away with its loop: nobody is left to be answered
    except BaseException:
        # SystemExit and KeyboardInterrupt too: one call fails, the server lives.
        return refuse(revision, id, _internal(exchange.method))
    finally:
        exchange.live = False


def direct(handler: Handler) -> Handler:
    """The function behind it: calling an object that can be called takes a way round, with every request."""
    return handler if isinstance(handler, FunctionType | MethodType) else handler.__call__


def refuse(revision: Revision, id: Id | None, refused: Refused) -> bytes:
    """An error answer under the code that this revision has for it."""
    code = revision.code_of(refused)
    if code != refused.code:
        refused = Refused(refused.message, refused.data, code=code)
    try:
        return encode_error(id, refused)
    except (TypeError, ValueError, OverflowError):
        return encode_error(id, Refused(refused.message, code=code))  # data that is no JSON helps nobody


def _require_url(exchange: Served, id: Id, required: UrlElicitationRequired, stamp: Stamp) -> bytes:
    """-32042 only to a client that can follow it; others read the reason (handshake.md §14, §15.4)."""
    if _lists_pages(required.data) and exchange.peer.can("elicitation.url"):
        return refuse(exchange.revision, id, required)
    if exchange.method == "tools/call":
        result = {"content": [{"type": "text", "text": required.message}], "isError": True}
        return encode_result(id, _in_words_of(exchange.revision, exchange.method, result, stamp))
    return refuse(exchange.revision, id, InternalError(required.message))


def _lists_pages(data: Any) -> bool:
    """Each with its address and its id, so that a client can open it (2025-11-25 client/elicitation#error-handling)."""
    pages: Any = members_of(data).get("elicitations")
    return isinstance(pages, list) and all(_is_page(page) for page in cast("list[Any]", pages))


def _is_page(page: Any) -> bool:
    members = members_of(page)
    texts = all(isinstance(members.get(name), str) for name in ("message", "url", "elicitationId"))
    return texts and members.get("mode") == "url"


def _form(revision: Revision, method: str, result: Lasting, stamp: Stamp) -> Raw:
    key = (revision.name, stamp)
    form = result.forms.get(key)
    if form is None:
        form = result.forms[key] = Raw(encode(_in_words_of(revision, method, result, stamp)))
    return form


def _in_words_of(revision: Revision, method: str, result: Result, stamp: Stamp) -> Result:
    return shape_result(revision, method, result) if revision.era is _HANDSHAKE else stamp.on(result)


def _internal(method: str) -> InternalError:
    """The peer gets a reference, the log gets the traceback under it: no inside is ever told."""
    reference = urandom(4).hex()
    log.exception("! %r failed (reference %s)", method[:200], reference)
    return InternalError(f"Internal error (reference {reference})")
