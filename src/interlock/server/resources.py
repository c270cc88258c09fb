"""Resources with a fixed URI."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import UNSET

from ..wire.errors import LocalError
from ..wire.exchange import Exchange
from ..wire.frames import encode
from ..wire.types.content import ResourceContents
from ..wire.types.resources import Resource
from .calling import caller_of
from .context import Context
from .schema import read_signature
from .threads import Threads

__all__ = ["RegisteredResource"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~%]*")  # RFC 3986: a scheme, then URI characters only


class RegisteredResource:
    """One resource of a server: where it is, and how it is read."""

    def __init__(
        self,
        uri: str,
        function: Callable[..., Any],
        *,
        threads: Threads,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if not _URI.fullmatch(uri):
            raise LocalError(f"{uri!r} is no URI: write scheme:rest with reserved characters percent-encoded")
        signature = read_signature(function, Context)
        if signature.names:
            raise LocalError(f"{uri}: a resource with a fixed URI takes no arguments but the context")
        self.takes_context = signature.context is not None
        self.noun = Resource(
            uri=uri,
            name=name or cast(str, getattr(function, "__name__", uri)),
            title=title or UNSET,
            description=description or (function.__doc__ or "").strip() or UNSET,
            mime_type=mime_type or UNSET,
            meta=dict(meta) if meta else UNSET,
        )
        self._call = caller_of(function, signature, threads)

    async def read(self, exchange: Exchange) -> list[ResourceContents]:
        value = await self._call({}, exchange)
        return [self._contents(value)]

    def _contents(self, value: Any) -> ResourceContents:
        uri, mime_type = self.noun.uri, self.noun.mime_type
        if isinstance(value, bytes | bytearray):
            blob = base64.b64encode(value).decode()
            return ResourceContents(uri=uri, blob=blob, mime_type=mime_type or "application/octet-stream")
        if isinstance(value, str):
            return ResourceContents(uri=uri, text=value, mime_type=mime_type or "text/plain")
        return ResourceContents(uri=uri, text=encode(value).decode(), mime_type=mime_type or "application/json")
