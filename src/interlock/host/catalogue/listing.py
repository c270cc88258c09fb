"""What one server offers, as a host takes it: listed within a time, cut where it is too much, and without doubles.

Nothing here fails because a server misbehaves. A list that does not come is empty, one that is too long is cut, and
each of that is a note for the user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from ...client.client import Client
from ...wire.channel import Patience
from ...wire.errors import InterlockError
from ...wire.escaping import display
from ...wire.types.prompts import Prompt
from ...wire.types.resources import Resource, ResourceTemplate
from ...wire.types.tools import Tool

__all__ = ["Bounds", "Offer", "offered", "part_of"]

T = TypeVar("T")
_LARGEST = 64 * 1024  # bytes of one definition; a larger one is not for models, and not for people either
_encode = msgspec.json.Encoder().encode


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one server is taken; what is beyond it is left out, and the user is told."""

    tools: int = 1_000
    prompts: int = 1_000
    resources: int = 10_000
    templates: int = 1_000


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Of one server. Everything stands by the name or URI that the server itself uses."""

    tools: dict[str, Tool] = {}
    prompts: dict[str, Prompt] = {}
    resources: dict[str, Resource] = {}
    templates: dict[str, ResourceTemplate] = {}
    instructions: str | None = None
    notes: tuple[str, ...] = ()
    """What the user should know about it."""


def part_of(offer: Offer, **kept: Any) -> Offer:
    """The same with other contents here and there."""
    return msgspec.structs.replace(offer, **kept)


async def offered(client: Client, patience: Patience, bounds: Bounds) -> Offer:
    """Everything that the server says it has, asked for one list after the other."""
    notes: list[str] = []
    taking = _Taking(client, patience, notes)
    return Offer(
        tools=await taking.list("tools", client.list_tools, _name, bounds.tools),
        prompts=await taking.list("prompts", client.list_prompts, _name, bounds.prompts),
        resources=await taking.list("resources", client.list_resources, _uri, bounds.resources),
        templates=await taking.list("resources", client.list_resource_templates, _template, bounds.templates),
        instructions=_instructions(client, notes),
        notes=tuple(notes),
    )


class _Taking:
    def __init__(self, client: Client, patience: Patience, notes: list[str]) -> None:
        self._client, self._patience, self._notes = client, patience, notes

    async def list(
        self, capability: str, walk: Callable[..., Awaitable[Sequence[T]]], key: Callable[[T], str], most: int
    ) -> dict[str, T]:
        if not self._client.capabilities.can(capability):
            return {}
        what = walk.__name__.removeprefix("list_").replace("_", " ")
        try:
            items = await walk(timeout=self._patience)
        except InterlockError as error:
            self._notes.append(f"its {what} could not be listed: {display(str(error), 300)}")
            return {}
        if len(items) > most:
            self._notes.append(f"it lists {len(items)} {what}: only the first {most} are taken")
        return self._without_doubles(what, items[:most], key)

    def _without_doubles(self, what: str, items: Iterable[T], key: Callable[[T], str]) -> dict[str, T]:
        """Of two with one name nobody knows which is called: neither is there, unless they are the same."""
        found: dict[str, T] = {}
        doubles: set[str] = set()
        large = 0
        for item in items:
            if len(_encode(item)) > _LARGEST:
                large += 1
                continue
            name = key(item)
            if found.setdefault(name, item) is not item and found[name] != item:
                doubles.add(name)
        if large:
            self._notes.append(f"{large} of its {what} are described in more than {_LARGEST} bytes and are left out")
        if doubles:
            some = ", ".join(display(name, 60) for name in sorted(doubles)[:10])
            self._notes.append(f"it lists {len(doubles)} of its {what} twice and differently; left out: {some}")
        return {name: item for name, item in found.items() if name not in doubles} if doubles else found


def _name(item: Tool | Prompt) -> str:
    return item.name


def _uri(item: Resource) -> str:
    return item.uri


def _template(item: ResourceTemplate) -> str:
    return item.uri_template


def _instructions(client: Client, notes: list[str]) -> str | None:
    text = client.instructions
    if text is not None and len(text) > _LARGEST:
        notes.append(f"its instructions have {len(text)} characters and are left out")
        return None
    return text
