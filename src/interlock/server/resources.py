"""Resources with a fixed URI, and what a value becomes when a resource is read."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import UNSET, UnsetType

from ..wire.errors import LocalError
from ..wire.exchange import Exchange
from ..wire.frames import encode
from ..wire.types.content import ResourceContents
from ..wire.types.resources import Resource
from .calling import caller_of
from .context import Context
from .schema import read_signature
from .threads import Threads
from .uri_templates import is_uri

__all__ = ["RegisteredResource", "contents_of"]


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
        if not is_uri(uri):
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
        return contents_of(await self._call({}, exchange), self.noun.uri, self.noun.mime_type)


def contents_of(value: Any, uri: str, mime_type: str | UnsetType) -> list[ResourceContents]:
    """What a resource function returned: text, bytes (a blob), any value (JSON), or contents made by the author."""
    if isinstance(value, ResourceContents):
        return [value]
    if isinstance(value, list) and value and all(isinstance(part, ResourceContents) for part in cast(Any, value)):
        return cast("list[ResourceContents]", value)
    if isinstance(value, bytes | bytearray):
        blob = base64.b64encode(value).decode()
        return [ResourceContents(uri=uri, blob=blob, mime_type=mime_type or "application/octet-stream")]
    if isinstance(value, str):
        return [ResourceContents(uri=uri, text=value, mime_type=mime_type or "text/plain")]
    return [ResourceContents(uri=uri, text=encode(value).decode(), mime_type=mime_type or "application/json")]
