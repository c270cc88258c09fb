"""What a server offered when it was approved, so that it cannot become something else unnoticed.

Every tool, prompt and resource template, and the server's instructions, is pinned by the digest of its canonical JSON
(sorted names; texts as they are, in no normal form of Unicode: two spellings are two texts, to a model as well). What
has no pin of the same digest is in quarantine: new, changed, or known by another name. Everything of a definition that
this library reads counts, descriptions and schemas as much as hints and icons; what it does not read reaches no model.

The first time, all that a server offers is approved as one. Resources are data and come and go: they are not pinned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple, cast

import msgspec

from ...auth.client.token_storage import MemoryRecords, Records
from ...wire.json.reader import read_own_json
from ...wire.types.prompts import Prompt
from ...wire.types.resources import ResourceTemplate
from ...wire.types.tools import Tool
from .action import canonical
from .diffs import difference
from .record_lock import change

__all__ = ["Comparison", "Definition", "Definitions", "Item", "ItemKind", "Pins", "Quarantined"]

ItemKind = Literal["tool", "prompt", "template", "instructions"]
Change = Literal["unapproved", "new", "changed", "renamed", "doubled", "vanished"]
_KEPT_BYTES = 16 * 1024  # of one definition, to show what changed; of a longer one only the digest is kept
_KEPT_IN_ALL = 8 * 1024 * 1024  # of all definitions of a server
_MOST_PINS = 20_000  # of a server; the oldest is forgotten: what it pinned is new again
_MOST_WAYS = 64  # to start a server of one name, that pins are kept for; those of the oldest are forgotten


class Item(NamedTuple):
    """One thing a server offers. The instructions have no name."""

    kind: ItemKind
    name: str


class Definition(msgspec.Struct, frozen=True):
    """An item as the server describes it now."""

    item: Item
    text: bytes
    """Canonical JSON."""

    @property
    def digest(self) -> str:
        return sha256(self.text).hexdigest()

    @property
    def nature(self) -> str:
        """The digest of all but the name, by which a renamed one is known."""
        told = read_own_json(self.text)
        members = cast("dict[str, Any]", told) if isinstance(told, dict) else {"": told}
        rest = {name: value for name, value in members.items() if name not in ("name", "uriTemplate")}
        return sha256(canonical([self.item.kind, rest])).hexdigest()


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server offers now and that is pinned."""

    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    templates: Sequence[ResourceTemplate] = ()
    instructions: str | None = None

    def __iter__(self) -> Iterator[Definition]:
        if self.instructions:
            yield Definition(Item("instructions", ""), canonical(self.instructions))
        for tool in self.tools:
            yield Definition(Item("tool", tool.name), canonical(tool))
        for prompt in self.prompts:
            yield Definition(Item("prompt", prompt.name), canonical(prompt))
        for template in self.templates:
            yield Definition(Item("template", template.uri_template), canonical(template))


class Quarantined(msgspec.Struct, frozen=True):
    """Something that may not be used, or is gone."""

    item: Item
    change: Change
    was: str = ""
    """As it was approved, in canonical JSON; empty where that was not kept."""
    now: str = ""
    before: str = ""
    """The name it had."""

    @property
    def diff(self) -> str:
        """What it was and what it is, for a person; made when somebody wants to see it."""
        return difference(self.was, self.now) if self.now else ""


class Comparison(msgspec.Struct, frozen=True):
    """`admitted` are the digests of all that may be used now."""

    server: str
    first: bool
    """Nothing of this server was ever approved."""
    admitted: dict[Item, str]
    quarantined: tuple[Quarantined, ...]


class _Pin(msgspec.Struct, frozen=True):
    digest: str
    nature: str
    at: float
    text: str = ""


_Table = dict[str, dict[str, _Pin]]  # by kind and name
_decode = msgspec.json.Decoder(_Table).decode
_decode_ways = msgspec.json.Decoder(list[str]).decode


class Pins:
    """In `records` (`files_in(...)` for files, memory by default). `identity` tells servers of one name apart: where
    they are, or how they are started."""

    def __init__(self, records: Records | None = None, clock: Callable[[], float] = time.time) -> None:
        self._records: Records = records if records is not None else MemoryRecords()
        self._session: dict[tuple[str, str], _Table] = {}
        """Approved until this program ends, by server and identity."""
        self._clock = clock

    def compare(self, server: str, definitions: Iterable[Definition], *, identity: str = "") -> Comparison:
        """What of it is as it was approved, and what is not."""
        table = self._load(server, identity)
        now = list(definitions)
        by_item, doubled = _by_item(now)
        quarantined = [Quarantined(item, "doubled") for item in sorted(doubled)]
        if table is None:
            unapproved = (Quarantined(item, "unapproved") for item in by_item if item not in doubled)
            return Comparison(server, True, {}, (*quarantined, *unapproved))
        admitted: dict[Item, str] = {}
        gone = _gone(table, by_item)
        natures = {(item.kind, pin.nature): item for item, pin in gone.items()}
        for item, definition in by_item.items():
            pin = table.get(item.kind, {}).get(item.name)
            if item in doubled:
                continue
            if pin is not None and pin.digest == definition.digest:
                admitted[item] = pin.digest
            else:
                quarantined.append(_judged(definition, pin, gone, natures))
        renamed = {(each.item.kind, each.before) for each in quarantined if each.change == "renamed"}
        vanished = [Quarantined(item, "vanished") for item in gone if item not in renamed]
        return Comparison(server, False, admitted, (*quarantined, *vanished))

    async def approve(
        self, server: str, definitions: Iterable[Definition], *, identity: str = "", lasting: bool = True
    ) -> None:
        """From now on these are as they should be: for good, or until this program ends. What was approved before stays
        so."""
        fresh = list(definitions)
        if not lasting:
            self._session[server, identity] = _bounded(self._with(self._session.get((server, identity)), fresh))
            return

        def pinned(data: bytes | None) -> bytes:
            return msgspec.json.encode(_bounded(self._with(_decoded(data), fresh)))

        await self._note(server, identity)
        await change(self._records, _key(server, identity), pinned)

    async def forget(self, server: str, identity: str = "") -> None:
        """As if no server of this name had ever been seen, with any identity; also with this one, where the list of
        them was lost."""
        for key in [key for key in self._session if key[0] == server]:
            del self._session[key]
        for each in {identity, *_ways_in(self._records.load(_ways_key(server)))}:
            await change(self._records, _key(server, each), lambda data: None)
        await change(self._records, _ways_key(server), lambda data: None)

    async def _note(self, server: str, identity: str) -> None:
        """There will be pins for it: what is to be forgotten must be known first."""
        if identity in _ways_in(self._records.load(_ways_key(server))):
            return
        over: list[str] = []

        def noted(data: bytes | None) -> bytes:
            ways = [*(each for each in _ways_in(data) if each != identity), identity]
            over.extend(ways[:-_MOST_WAYS])
            return msgspec.json.encode(ways[-_MOST_WAYS:])

        await change(self._records, _ways_key(server), noted)
        for each in over:
            await change(self._records, _key(server, each), lambda data: None)

    def _pin(self, definition: Definition) -> _Pin:
        text = definition.text.decode() if len(definition.text) <= _KEPT_BYTES else ""
        return _Pin(definition.digest, definition.nature, self._clock(), text)

    def _with(self, table: _Table | None, fresh: list[Definition]) -> _Table:
        found = {kind: {**pins} for kind, pins in (table or {}).items()}
        for definition in fresh:
            kind, name = definition.item
            found.setdefault(kind, {})[name] = self._pin(definition)
        return found

    def _load(self, server: str, identity: str) -> _Table | None:
        """What was approved for good, and over it what was approved for this session."""
        stored, session = _decoded(self._records.load(_key(server, identity))), self._session.get((server, identity))
        if stored is None or session is None:
            return stored if session is None else session
        return {kind: {**stored.get(kind, {}), **session.get(kind, {})} for kind in {*stored, *session}}


def _decoded(data: bytes | None) -> _Table | None:
    """What cannot be read pins nothing: all is asked about again."""
    try:
        return _decode(data) if data is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _bounded(table: _Table) -> _Table:
    """The digests of the newest, and their texts as long as there is room for them as they are written."""
    places = [(pin.at, kind, name) for kind, pins in table.items() for name, pin in pins.items()]
    room = _KEPT_IN_ALL
    for number, (_, kind, name) in enumerate(sorted(places, reverse=True)):
        if number >= _MOST_PINS:
            del table[kind][name]
            continue
        pin = table[kind][name]
        room -= len(msgspec.json.encode(pin.text))
        if room < 0 and pin.text:
            table[kind][name] = msgspec.structs.replace(pin, text="")
    return table


def _by_item(definitions: list[Definition]) -> tuple[dict[Item, Definition], set[Item]]:
    """The definitions by name, and the names that stand for different things at once: nobody knows which is meant."""
    found: dict[Item, Definition] = {}
    doubled: set[Item] = set()
    for definition in definitions:
        before = found.setdefault(definition.item, definition)
        if before.text != definition.text:
            doubled.add(definition.item)
    return found, doubled


def _gone(table: _Table, now: dict[Item, Definition]) -> dict[Item, _Pin]:
    items = ((Item(cast(ItemKind, kind), name), pin) for kind, pins in table.items() for name, pin in pins.items())
    return {item: pin for item, pin in items if item not in now}


def _judged(
    definition: Definition, pin: _Pin | None, gone: dict[Item, _Pin], natures: dict[tuple[str, str], Item]
) -> Quarantined:
    item, text = definition.item, definition.text.decode()
    if pin is not None:
        return Quarantined(item, "changed", pin.text, text)
    before = natures.get((item.kind, definition.nature)) if gone else None
    if before is not None:
        return Quarantined(item, "renamed", gone[before].text, text, before.name)
    return Quarantined(item, "new", "", text)


def _key(server: str, identity: str) -> str:
    return f"pins of {server} at {identity}"


def _ways_key(server: str) -> str:
    return f"identities of {server}"


def _ways_in(data: bytes | None) -> list[str]:
    """The identities that a server of one name has pins for, the oldest first."""
    try:
        return _decode_ways(data) if data is not None else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
