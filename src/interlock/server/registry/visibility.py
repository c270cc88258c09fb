"""Who sees what: one question, asked wherever something is listed, called, read, completed or told of."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from ...wire.errors import LocalError
from ...wire.exchange import Principal
from ...wire.signatures import signature_of
from ...wire.types.prompts import Prompt
from ...wire.types.resources import Resource, ResourceTemplate
from ...wire.types.tools import Tool
from ..schema.signature import name_of

__all__ = ["Item", "Visible", "check_visible", "is_visible"]

log = logging.getLogger("interlock.server")
_KINDS: dict[type, tuple[Any, str]] = {
    Tool: ("tool", "name"),
    Prompt: ("prompt", "name"),
    Resource: ("resource", "uri"),
    ResourceTemplate: ("template", "uri_template"),
}


class Item(msgspec.Struct, frozen=True):
    """Something a server offers, as the one who decides about it sees it."""

    kind: Literal["tool", "prompt", "resource", "template"]
    name: str
    """Of a tool or a prompt; the URI of a resource; the text of a template."""
    noun: Any
    """All that is listed about it: title, description, annotations, …"""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the author said with `meta=`, a good place for roles."""
        return self.noun.meta if self.noun.meta is not UNSET else {}


Visible = Callable[[Principal, Item], bool]
"""Is this there for them? Answers at once, from any thread, and the same until `visibility_changed` says otherwise."""


def check_visible(visible: Visible) -> None:
    try:
        fits = not inspect.iscoroutinefunction(visible) and signature_of(visible).bind(None, None)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise LocalError(
            f"{name_of(visible):.100} must be a plain function of a principal and an item: it answers at once"
        )


def is_visible(visible: Visible, principal: Principal, noun: Any) -> bool:
    """What cannot be decided is hidden: the log has the reason, the client sees nothing that is not for them."""
    kind, key = _KINDS[type(noun)]
    item = Item(kind, getattr(noun, key), noun)
    try:
        found: Any = visible(principal, item)
        if isinstance(found, bool):
            return found
        raise TypeError(f"visible returned {type(found).__name__}, not True or False")
    except Exception:
        log.exception("! whether %s %r may be seen could not be decided: it is hidden", kind, item.name)
        return False
