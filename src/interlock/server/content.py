"""Content blocks: helpers that make them of bytes and files, and the check that what an author made is one.

Nouns are not checked when they are made. What an author wrote by hand is therefore read back once by its own type
before it goes out; what the helpers below made is right already.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from ..wire.errors import LocalError
from ..wire.json.decoder import decoder
from ..wire.limits import MIB
from ..wire.messages import encode
from ..wire.meta import check_author_keys
from ..wire.types.common import Annotations
from ..wire.types.content import (
    CONTENT_TYPES,
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
)
from ..wire.uri import is_uri
from .icons import checked_icons
from .mime import guess_type, is_mime_type, is_text_type

__all__ = ["Audio", "BLOCK_TYPES", "File", "Image", "Media", "MOST_BYTES", "block_of"]

MOST_BYTES = 16 * MIB  # of one file in a result; base64 makes a third more of it, and a message ends at 64 MiB
Source: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"

_blocks = decoder(Content)


class Media:
    """A block that is made of bytes or of a file, encoded once, when it is constructed."""

    __slots__ = ("block",)

    def __init__(self, block: Content) -> None:
        self.block = block

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.block).__name__})"


class _Encoded(Media):
    """Bytes of one family of types. The type is read off the data, or off the name of the file."""

    __slots__ = ()
    _family = ""
    _content: type[ImageContent] | type[AudioContent]

    def __init__(
        self,
        source: Source,
        mime_type: str | None = None,
        *,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        data, name = _read(source, most_bytes)
        kind = _kind(data, name, mime_type, self._family)
        encoded = base64.b64encode(data).decode()
        super().__init__(self._content(data=encoded, mime_type=kind, **_members(annotations, meta)))


class Image(_Encoded):
    """A picture: `Image(data)` or `Image("chart.png")`. The type is read off the data, or off the name of the file."""

    __slots__ = ()
    _family, _content = "image/", ImageContent


class Audio(_Encoded):
    """A sound: `Audio(data)` or `Audio("bell.wav")`. The type is read off the data, or off the name of the file."""

    __slots__ = ()
    _family, _content = "audio/", AudioContent


class File(Media):
    """A file inside of a result: text where its type says so and its bytes are UTF-8, a blob otherwise.

    Its URI is `uri`, or made of the name alone: where the file lies on this machine is nobody else's business.
    """

    __slots__ = ()

    def __init__(
        self,
        source: Source,
        mime_type: str | None = None,
        *,
        name: str | None = None,
        uri: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        data, found = _read(source, most_bytes)
        name = name or found
        if not name and uri is None:
            raise LocalError("File: bytes have no name: say name= or uri=")
        kind = mime_type or guess_type(data, name or (uri or "")) or _text_or_not(data)
        held = _contents(data, uri or f"file:///{_escaped(name)}", kind)
        super().__init__(check_block(EmbeddedResource(resource=held, **_members(annotations, meta))))


BLOCK_TYPES: tuple[type[Any], ...] = (*CONTENT_TYPES, Media)


def block_of(value: Any) -> Any:
    """A noun or a helper as the block that goes out; a block of the wrong shape is a bug of its author."""
    return value.block if isinstance(value, Media) else check_block(value)


# --- reading sources ---


def _read(source: Source, most: int) -> tuple[bytes, str]:
    """The bytes, never more than `most` of them, and the name of the file they came from."""
    if isinstance(source, bytes | bytearray | memoryview):
        data, name = bytes(source), ""
    else:
        path = os.fspath(source)
        with open(path, "rb") as file:
            data, name = file.read(most + 1), os.path.basename(path)
    if len(data) > most:
        raise LocalError(f"{name or 'the data'} has more than {most} bytes: offer it as a resource, or say most_bytes=")
    return data, name


def _kind(data: bytes, name: str, mime_type: str | None, beginning: str) -> str:
    kind = mime_type or guess_type(data, name)
    if kind is None or not kind.startswith(beginning) or not is_mime_type(kind):
        told = f"{kind!r:.60} is not" if kind else "nothing tells whether this is"
        raise LocalError(f"{name or 'the data'}: {told} {beginning}…: say mime_type=")
    return kind


def _text_or_not(data: bytes) -> str:
    return "text/plain" if _text(data) is not None and b"\0" not in data else "application/octet-stream"


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _contents(data: bytes, uri: str, kind: str) -> ResourceContents:
    text = _text(data) if is_text_type(kind) else None
    if text is not None:
        return ResourceContents(uri=uri, mime_type=kind, text=text)
    return ResourceContents(uri=uri, mime_type=kind, blob=base64.b64encode(data).decode())


def _escaped(name: str) -> str:
    """A file's name as one segment of a URI (RFC 3986 §2.3)."""
    kept = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in name.encode("utf-8", "surrogateescape"))


def _members(annotations: Annotations | None, meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """The members that all blocks share, checked, so that the data needs no second look."""
    check_author_keys(meta)
    found: dict[str, Any] = {}
    if annotations is not None:
        _check_annotations(msgspec.convert(msgspec.to_builtins(annotations), Annotations))
        found["annotations"] = annotations
    return found | ({"meta": dict(meta)} if meta else {})


# --- checking what authors made ---


def check_block(block: Any) -> Any:
    """The same block, if it is what its type says; raises `msgspec.ValidationError` otherwise."""
    read = _blocks.decode(encode(block))
    if isinstance(read, ImageContent | AudioContent):
        _check_base64(read.data)
        _check_mime(read.mime_type)
    elif isinstance(read, EmbeddedResource):
        _check_contents(read.resource)
    elif isinstance(read, ResourceLink):
        _check_link(read)
    if read.annotations is not UNSET:
        _check_annotations(read.annotations)
    if read.meta is not UNSET:
        check_author_keys(read.meta)
    return block


def _check_contents(held: ResourceContents) -> None:
    """A valid URI, a MIME type, and either text or base64 (server/prompts#embedded-resources)."""
    _check_uri(held.uri)
    if held.mime_type is UNSET:
        raise msgspec.ValidationError(f"the resource {held.uri!r:.80} inside of a block says no mime_type")
    _check_mime(held.mime_type)
    if held.blob is not UNSET:
        _check_base64(held.blob)


def _check_link(link: ResourceLink) -> None:
    _check_uri(link.uri)
    if link.mime_type is not UNSET:
        _check_mime(link.mime_type)
    if link.icons is not UNSET:
        checked_icons(link.icons, f"the link {link.uri!r:.80}")


def _check_base64(data: str) -> None:
    try:
        binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except ValueError as error:
        raise msgspec.ValidationError(f"the data of a block is no base64 ({error})") from None


def _check_mime(mime_type: str) -> None:
    if not is_mime_type(mime_type):
        raise msgspec.ValidationError(f"{mime_type!r:.60} is no MIME type")


def _check_uri(uri: str) -> None:
    if not is_uri(uri):
        raise msgspec.ValidationError(f"{uri!r:.80} is no URI")


def _check_annotations(annotations: Annotations) -> None:
    """`priority` goes from 0 to 1, `lastModified` is an ISO 8601 time (schema.ts#Annotations)."""
    priority, modified = annotations.priority, annotations.last_modified
    if priority is not UNSET and not 0 <= priority <= 1:
        raise msgspec.ValidationError(f"priority {priority!r} of a block: from 0 to 1")
    if modified is not UNSET:
        _check_time(modified)


def _check_time(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise msgspec.ValidationError(f"lastModified {text!r:.60} is no ISO 8601 time") from None
