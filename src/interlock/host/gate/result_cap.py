"""Results that are too long for a model: their beginning and end are handed on, the whole stays here to be read.

What is left out is kept as a local resource (`interlock-result://…`) for as long as there is room. Texts are cut at
their middle, binary blocks are replaced by a link as a whole, and so are structured contents: half a picture and half
an object are of no use.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from ...client.results import CallResult, PromptResult
from ...wire.errors import ResourceNotFound
from ...wire.types.content import AudioContent, EmbeddedResource, ImageContent, ResourceContents, TextContent
from ...wire.types.prompts import PromptMessage

__all__ = ["SCHEME", "Cap", "Capped"]

SCHEME = "interlock-result"
_LONGEST_NAME = 1024  # characters of an address and a type; longer ones count as a text
_encode = msgspec.json.Encoder().encode


class Capped(msgspec.Struct, frozen=True):
    """A result, how large it was as far as it was looked at, and whether anything is left out of it."""

    result: Any
    size: int
    cut: bool


class _Kept(NamedTuple):
    server: str
    mime: str
    text: str | None
    blob: str | None
    cost: int


class Cap:
    """What one result may hold, and how much of the rest is kept. The numbers are characters, of base64 for binaries.

    `text`: of all its texts together, of its structured content, and of all other blocks. `binary`: of all its binary
    blocks together. `blocks`: their number. `kept`, `kept_bytes`: how many wholes are kept, and how large they may be
    together; the oldest is forgotten first, and one that is larger is not kept at all, which is said in its place.
    """

    def __init__(
        self,
        *,
        text: int = 64 * 1024,
        binary: int = 4 * 1024 * 1024,
        blocks: int = 256,
        kept: int = 256,
        kept_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self.text, self.binary, self.blocks = text, binary, max(blocks, 3)
        self._most, self._most_bytes = kept, kept_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def __repr__(self) -> str:
        return f"Cap({len(self._kept)} results of {self._bytes} bytes are kept)"

    # --- cutting ----------------------------------------------------------------------------------

    def apply(self, server: str, result: Any) -> Capped:
        """Of a tool, a resource or a prompt; what is none of these is handed on as it is."""
        if isinstance(result, CallResult):
            content = result.content
            if len(content) == 1 and isinstance(content[0], TextContent) and result.structured is None:
                size = len(content[0].text)
                if size <= self.text:  # what most results are
                    return Capped(result, size, False)
            return self._call(server, result)
        if isinstance(result, PromptResult):
            return self._prompt(server, result)
        if isinstance(result, list) and all(isinstance(each, ResourceContents) for each in result):  # pyright: ignore
            return self._contents(server, result)  # pyright: ignore
        return Capped(result, 0, False)

    def _call(self, server: str, result: CallResult) -> Capped:
        content, structured = result.content, result.structured
        work = _Work(self, server)
        content = work.cut(content)
        if structured is not None:
            data = _encode(structured)
            work.size += len(data)
            if len(data) > self.text:
                structured = None
                note = work.instead("the structured content", data.decode(), "application/json")
                content = [*content, TextContent(text=note)]
        if not work.is_cut:
            return Capped(result, work.size, False)
        return Capped(msgspec.structs.replace(result, content=content, structured=structured), work.size, True)

    def _prompt(self, server: str, result: PromptResult) -> Capped:
        work = _Work(self, server)
        given = work.fewer(result.messages, _as_message)
        blocks = work.replaced([message.content for message in given])
        if not work.is_cut:
            return Capped(result, work.size, False)
        messages = [
            msgspec.structs.replace(message, content=block)
            for message, block in zip(given, blocks, strict=True)
            if block is not None
        ]
        return Capped(msgspec.structs.replace(result, messages=messages), work.size, True)

    def _contents(self, server: str, contents: list[ResourceContents]) -> Capped:
        work = _Work(self, server)
        blocks = work.cut([EmbeddedResource(resource=each) for each in contents])
        if not work.is_cut:
            return Capped(contents, work.size, False)
        uri = contents[0].uri[:_LONGEST_NAME]
        return Capped([_as_contents(block, uri) for block in blocks], work.size, True)

    # --- keeping ----------------------------------------------------------------------------------

    def keep(self, server: str, mime: str, *, text: str | None = None, blob: str | None = None) -> str | None:
        """Where the whole can be read from now on; None when it is too large to be kept."""
        whole = text if text is not None else blob or ""
        cost = len(whole) if whole.isascii() else 4 * len(whole)  # as much as the memory it may take
        if cost > self._most_bytes or self._most < 1:
            return None
        uri = f"{SCHEME}://{secrets.token_hex(8)}"
        self._kept[uri] = _Kept(server, mime, text, blob, cost)
        self._bytes += cost
        while self._bytes > self._most_bytes or len(self._kept) > self._most:
            self._bytes -= self._kept.popitem(last=False)[1].cost
        return uri

    def read(self, uri: str, start: int | None = None, length: int | None = None) -> ResourceContents:
        """A part of what was kept, by default as long as a result may be. A text can be read on with `?start=` and the
        number of the character in its address; what is binary comes whole."""
        place, _, query = uri.partition("?")
        kept = self._kept.get(place)
        if kept is None:
            raise ResourceNotFound("no such result is kept, or not any more", {"uri": uri})
        self._kept.move_to_end(place)
        if kept.text is None:
            return ResourceContents(uri=uri, mime_type=kept.mime, blob=kept.blob or "")
        begin = max(start if start is not None else _start_in(query), 0)
        end = begin + max(length if length is not None else self.text, 1)
        text = kept.text[begin:end]
        if end < len(kept.text):
            text += f"\n[… {len(kept.text) - end} more characters: {place}?start={end}]"
        return ResourceContents(uri=uri, mime_type=kept.mime, text=text)

    @property
    def count(self) -> int:
        """How many wholes are kept now."""
        return len(self._kept)

    def server_of(self, uri: str) -> str | None:
        """Whose data it is: reading it here makes it nobody else's."""
        kept = self._kept.get(uri.partition("?")[0])
        return kept.server if kept is not None else None

    def forget(self, server: str) -> None:
        """Everything that came from a server."""
        for uri in [uri for uri, kept in self._kept.items() if kept.server == server]:
            self._bytes -= self._kept.pop(uri).cost


class _Work:
    """On one result."""

    def __init__(self, cap: Cap, server: str) -> None:
        self._cap, self._server = cap, server
        self.size = 0
        self.is_cut = False

    def cut(self, blocks: list[Any]) -> list[Any]:
        """What is handed on, in the same order, and not too many of them."""
        return [block for block in self.replaced(self.fewer(blocks, _as_text)) if block is not None]

    def fewer(self, items: list[Any], noted: Callable[[str], Any]) -> list[Any]:
        """Not too many of them, and this first: a million blocks are not looked at one by one."""
        most = self._cap.blocks
        if len(items) <= most:
            return items
        head, tail = most * 3 // 4, most - most * 3 // 4 - 1
        middle = _encode(items[head : len(items) - tail]).decode()
        self.size += len(middle)
        note = self.instead(f"a part of {len(items) - head - tail} blocks", middle, "application/json")
        return [*items[:head], noted(note), *items[len(items) - tail :]]

    def replaced(self, blocks: list[Any]) -> list[Any]:
        """Block by block what stands in its place; None where nothing does."""
        return self._texts(self._others(self._binaries(blocks)))

    def instead(self, what: str, whole: str, mime: str, *, binary: bool = False) -> str:
        """Keep the whole, and say so in a line."""
        self.is_cut = True
        kept = {"blob": whole} if binary else {"text": whole}
        uri = self._cap.keep(self._server, mime, **kept)
        where = f"it can be read at {uri}" if uri is not None else "it was too large to be kept"
        return f"[{what} of {len(whole)} characters is left out: {where}]"

    def _binaries(self, blocks: list[Any]) -> list[Any]:
        room, after = self._cap.binary, list(blocks)
        for number, block in enumerate(blocks):
            data, mime = _binary_of(block)
            if data is None:
                continue
            self.size += len(data)
            room -= len(data)
            if room < 0:
                room += len(data)
                after[number] = _noted(block, self.instead(f"binary data ({mime})", data, mime, binary=True))
        return after

    def _others(self, blocks: list[Any]) -> list[Any]:
        """Links, blocks of a type that is not known here, and what has an address longer than any: one by one, as long
        as there is room for them."""
        room, after = self._cap.text, list(blocks)
        for number, block in enumerate(blocks):
            if not _is_long_named(block) and (_text_of(block) is not None or _binary_of(block)[0] is not None):
                continue
            data = _encode(block)
            self.size += len(data)
            room -= len(data)
            if room < 0:
                room += len(data)
                after[number] = TextContent(text=self.instead("a block", data.decode(), "application/json"))
        return after

    def _texts(self, blocks: list[Any]) -> list[Any]:
        """The beginning and the end of all texts as if they were one; the notes of others count as well."""
        texts = [_text_of(block) for block in blocks]
        total, limit = sum(len(text) for text in texts if text is not None), self._cap.text
        self.size += total
        if total <= limit:
            return blocks
        return self._halves(blocks, texts, total, limit * 2 // 3, limit // 3)

    def _halves(self, blocks: list[Any], texts: list[str | None], total: int, head: int, tail: int) -> list[Any]:
        note = self.instead("the middle of a text", "".join(text for text in texts if text), "text/plain")
        after, begin = list(blocks), 0
        for number, text in enumerate(texts):
            if text is None:
                continue
            end = begin + len(text)
            first, last = text[: max(head - begin, 0)], text[max(total - tail - begin, 0) :]
            if end > head and begin < total - tail:  # a part of the middle is in it
                here = f"\n{note}\n" if begin <= head < end else ""
                after[number] = _with_text(blocks[number], first + here + last) if first or here or last else None
            begin = end
        return after


def _binary_of(block: Any) -> tuple[str | None, str]:
    if isinstance(block, ImageContent | AudioContent):
        return block.data, block.mime_type
    if isinstance(block, EmbeddedResource) and block.resource.blob is not UNSET:
        mime = block.resource.mime_type
        return block.resource.blob, mime if mime is not UNSET else "application/octet-stream"
    return None, ""


def _is_long_named(block: Any) -> bool:
    """A model is told addresses and types as well."""
    place = block.resource if isinstance(block, EmbeddedResource) else block
    names = (getattr(place, "uri", UNSET), getattr(place, "mime_type", UNSET))
    return sum(len(name) for name in names if isinstance(name, str)) > _LONGEST_NAME


def _as_text(note: str) -> TextContent:
    return TextContent(text=note)


def _as_message(note: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(text=note))


def _text_of(block: Any) -> str | None:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and block.resource.text is not UNSET:
        return block.resource.text
    return None


def _with_text(block: Any, text: str) -> Any:
    if isinstance(block, EmbeddedResource):
        return msgspec.structs.replace(block, resource=msgspec.structs.replace(block.resource, text=text))
    return msgspec.structs.replace(block, text=text)


def _noted(block: Any, note: str) -> Any:
    """A note in the place of a block; what a resource holds is still told by its address."""
    if not isinstance(block, EmbeddedResource):
        return TextContent(text=note)
    resource = ResourceContents(uri=block.resource.uri, mime_type="text/plain", text=note)
    return msgspec.structs.replace(block, resource=resource)


def _as_contents(block: Any, uri: str) -> ResourceContents:
    """A note in the place of many contents is contents of its own."""
    if isinstance(block, EmbeddedResource):
        return block.resource
    return ResourceContents(uri=uri, mime_type="text/plain", text=block.text)


def _start_in(query: str) -> int:
    name, _, number = query.partition("=")
    return int(number) if name == "start" and number.isascii() and number.isdigit() and len(number) < 12 else 0
