"""What each side declares it can do. Unknown members are legal everywhere and kept out of decisions."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET, UnsetType

from .common import Noun

__all__ = ["ClientCapabilities", "ServerCapabilities", "ListChanges", "ResourceCapability"]

Flags = dict[str, Any]  # presence is the signal; `true` or null in the place of an object is refused


class ClientCapabilities(Noun):
    roots: Flags | UnsetType = UNSET
    sampling: Flags | UnsetType = UNSET
    elicitation: Flags | UnsetType = UNSET
    experimental: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Flags] | UnsetType = UNSET

    def can(self, path: str) -> bool:
        """Is `elicitation`, `elicitation.url`, `sampling.tools`, `extensions.<id>` … declared?"""
        if path == "elicitation.form":  # an empty object means form only (client/elicitation)
            forms = self.elicitation
            return forms is not UNSET and (isinstance(forms.get("form"), dict) or "url" not in forms)
        head, _, rest = path.partition(".")
        found: Any = getattr(self, head) if head in _CLIENT else UNSET
        if found is UNSET or not rest:
            return found is not UNSET
        value = cast(Flags, found).get(rest)
        return value is True if rest == "listChanged" else isinstance(value, dict)


_CLIENT = frozenset(ClientCapabilities.__struct_fields__)


class ListChanges(Noun):
    list_changed: bool | UnsetType = UNSET


class ResourceCapability(ListChanges):
    subscribe: bool | UnsetType = UNSET


class ServerCapabilities(Noun):
    tools: ListChanges | UnsetType = UNSET
    resources: ResourceCapability | UnsetType = UNSET
    prompts: ListChanges | UnsetType = UNSET
    completions: Flags | UnsetType = UNSET
    logging: Flags | UnsetType = UNSET
    experimental: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Flags] | UnsetType = UNSET

    def can(self, path: str) -> bool:
        """Is `tools`, `resources.subscribe`, `tools.listChanged` … declared?"""
        head, _, rest = path.partition(".")
        found: Any = getattr(self, head) if head in self.__struct_fields__ else UNSET
        if found is UNSET or not rest:
            return found is not UNSET
        return getattr(found, {"listChanged": "list_changed"}.get(rest, rest), False) is True
