"""Resources with a fixed URI, what all resources say of themselves, and what a value becomes when one is read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack, cast

import msgspec
from msgspec import UNSET, UnsetType

from ...wire.errors import LocalError
from ...wire.exchange import Exchange
from ...wire.limits import LONGEST_URI
from ...wire.types.common import Annotations, Icon
from ...wire.types.content import EmbeddedResource, ResourceContents
from ...wire.types.resources import Resource
from ...wire.uri import has_uri_characters, is_uri
from ..content import Media
from ..context import Context
from ..execution.invoke import caller_of
from ..execution.thread_pool import Threads
from ..icons import checked_icons
from ..mime import is_mime_type
from ..schema.signature import Signature, docs_of, name_of, read_signature
from ..tools.encoding import encode_data
from ..tools.generators import is_stream

__all__ = ["Readable", "RegisteredResource", "ResourceFacts", "contents_of"]


class ResourceFacts(TypedDict, total=False):
    """What an author may say about a resource beside its URI."""

    name: str | None
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    """Bytes, of a resource with a fixed URI."""
    icons: Sequence[Icon] | None
    annotations: Annotations | None
    meta: Mapping[str, Any] | None
    complete: Mapping[str, Callable[..., Any] | Collection[str]] | None
    """Who suggests values for a variable of a template: a function, or all values there are."""
    unchecked: Collection[str]
    """Variables of a template whose values the function judges itself: they may climb, be absolute, hold anything."""


class Readable:
    """What a resource and a template share: a function, and what is said about it."""

    def __init__(self, uri: str, function: Callable[..., Any], threads: Threads, facts: ResourceFacts) -> None:
        self.signature: Signature = read_signature(function, Context)
        if is_stream(function):
            raise LocalError(f"{name_of(function)}: a resource is given as a whole: it cannot be a generator")
        self.takes_context = self.signature.context is not None
        self.complete: Mapping[str, Any] = facts.get("complete") or {}
        self._mime_type = _mime_type(uri, facts.get("mime_type"))
        self._call = caller_of(function, self.signature, threads)
        self._described: dict[str, Any] = {
            "name": facts.get("name") or cast(str, getattr(function, "__name__", uri)),
            "title": facts.get("title") or UNSET,
            "description": facts.get("description") or docs_of(function).text or UNSET,
            "mime_type": self._mime_type,
            "icons": checked_icons(facts.get("icons"), uri),
            "annotations": _annotations(uri, facts.get("annotations")),
            "meta": dict(meta) if (meta := facts.get("meta")) else UNSET,
        }

    async def contents(self, uri: str, arguments: dict[str, Any], exchange: Exchange) -> list[ResourceContents]:
        return contents_of(await self._call(arguments, exchange), uri, self._mime_type)


class RegisteredResource(Readable):
    """One resource of a server: where it is, and how it is read."""

    def __init__(
        self, uri: str, function: Callable[..., Any], *, threads: Threads, **facts: Unpack[ResourceFacts]
    ) -> None:
        if not is_uri(uri) or len(uri) > LONGEST_URI:
            raise LocalError(f"{uri!r:.200} is no URI: write scheme:rest with reserved characters %-encoded (RFC 3986)")
        super().__init__(uri, function, threads, facts)
        if self.signature.names:
            raise LocalError(f"{uri}: a resource with a fixed URI takes no arguments but the context")
        if facts.get("unchecked") or self.complete:
            raise LocalError(f"{uri}: a resource with a fixed URI has no variables to complete or to leave unchecked")
        self.noun = Resource(uri=uri, size=_size(uri, facts.get("size")), **self._described)

    async def read(self, exchange: Exchange) -> list[ResourceContents]:
        return await self.contents(self.noun.uri, {}, exchange)


# --- what was said about it -----------------------------------------------------------------------


def _mime_type(uri: str, mime_type: str | None) -> str | UnsetType:
    if mime_type is not None and not is_mime_type(mime_type):
        raise LocalError(f"{uri}: {mime_type!r:.100} is no MIME type, like text/plain")
    return mime_type if mime_type is not None else UNSET


def _size(uri: str, size: int | None) -> int | UnsetType:
    if size is not None and (not isinstance(cast(Any, size), int) or size < 0):
        raise LocalError(f"{uri}: the size is a number of bytes, not {size!r:.40}")
    return size if size is not None else UNSET


def _annotations(uri: str, given: Annotations | None) -> Annotations | UnsetType:
    """As server/resources#annotations wants them: for whom, how important from 0 to 1, and an ISO 8601 time."""
    if given is None:
        return UNSET
    try:
        found = msgspec.convert(msgspec.to_builtins(given), Annotations)
        if found.last_modified is not UNSET:
            datetime.fromisoformat(found.last_modified)
        if found.priority is not UNSET and not 0 <= found.priority <= 1:
            raise ValueError("the priority is a number from 0 to 1")
    except (TypeError, ValueError) as error:
        raise LocalError(f"{uri}: these annotations cannot be told ({error})") from None
    return found


# --- what was read --------------------------------------------------------------------------------


def contents_of(value: Any, uri: str, mime_type: str | UnsetType) -> list[ResourceContents]:
    """What a resource function returned: text, bytes (a blob), any value (JSON), a helper, or contents by hand."""
    if isinstance(value, str):
        return [ResourceContents(uri=uri, text=value, mime_type=mime_type or "text/plain")]
    if isinstance(value, bytes | bytearray):
        blob = base64.b64encode(value).decode()
        return [ResourceContents(uri=uri, blob=blob, mime_type=mime_type or "application/octet-stream")]
    if isinstance(value, Media):
        return [_held(value, uri, mime_type)]
    if isinstance(value, ResourceContents):
        return [_checked(value)]
    if isinstance(value, list) and value and all(isinstance(part, ResourceContents) for part in cast(Any, value)):
        return [_checked(part) for part in cast("list[ResourceContents]", value)]
    return [ResourceContents(uri=uri, text=encode_data(value).decode(), mime_type=mime_type or "application/json")]


def _held(value: Media, uri: str, mime_type: str | UnsetType) -> ResourceContents:
    """What a picture, a sound or a file holds; here it is the resource itself, under its own URI."""
    block: Any = value.block
    if isinstance(block, EmbeddedResource):
        held = block.resource
        return ResourceContents(uri=uri, text=held.text, blob=held.blob, mime_type=mime_type or held.mime_type)
    return ResourceContents(uri=uri, blob=block.data, mime_type=mime_type or block.mime_type)


def _checked(contents: ResourceContents) -> ResourceContents:
    """Contents of the author's own making: a URI, and a blob that is base64, or every client stumbles over them."""
    if not has_uri_characters(contents.uri):
        raise ValueError(f"{contents.uri!r:.200} is no URI")
    if contents.blob is not UNSET:
        try:
            binascii.a2b_base64(contents.blob, strict_mode=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"the blob of {contents.uri} is not in base64 ({error})") from None
    return contents
