"""Everything one server offers. List, call, completion and change notices all look here, and nowhere else."""

from __future__ import annotations

from typing import Any

from ..wire.errors import LocalError
from .changes import Changes
from .completions import Completions
from .pages import Catalogue
from .prompts import RegisteredPrompt
from .resource_set import ResourceSet
from .threads import Threads
from .tools import RegisteredTool

__all__ = ["Offers"]


class Offers:
    """What is there by kind and name; whoever adds or removes something has everybody told who listens."""

    def __init__(self, threads: Threads, page_size: int | None) -> None:
        self.changes = Changes()
        self.tools: Catalogue[RegisteredTool] = Catalogue("tools", page_size)
        self.resources = ResourceSet(threads, page_size)
        self.prompts: Catalogue[RegisteredPrompt] = Catalogue("prompts", page_size)
        self.completions = Completions(threads, self._names_of)
        self.speaks = False
        """Does any handler take a Context, and so may log?"""

    def add(self, kind: str, name: str, item: Any) -> None:
        """One more of `tools`, `prompts` or `resources`; a name is taken once."""
        catalogue = self._catalogue(kind, name)
        if name in catalogue:
            raise LocalError(f"there is a {kind[:-1]} {name!r} already")
        self.speaks = self.speaks or item.takes_context
        catalogue.add(name, item, item.noun)
        self.changes.list_changed(kind)

    def remove(self, kind: str, name: str) -> None:
        if not self._catalogue(kind, name).remove(name):
            raise LocalError(f"there is no {kind[:-1]} {name!r}")
        if kind != "tools":
            self.completions.forget(**{"prompt" if kind == "prompts" else "template": name})
        self.changes.list_changed(kind)

    def _catalogue(self, kind: str, name: str) -> Catalogue[Any]:
        if kind == "resources":
            return self.resources.catalogue_of(name)
        return self.tools if kind == "tools" else self.prompts

    def _names_of(self, prompt: str | None, template: str | None) -> tuple[str, ...] | None:
        """What can be completed: the arguments of a prompt, or the variables of a template."""
        found = self.prompts.get(prompt) if prompt is not None else self.resources.templates.get(template or "")
        return found.names if found is not None else None

    def kinds(self) -> dict[str, bool]:
        """What of it there is: the capabilities that are derived (declared.py)."""
        return {
            "tools": self.tools.offered,
            "resources": self.resources.offered,
            "prompts": self.prompts.offered,
            "completions": self.completions.offered,
            "logging": self.speaks or self.completions.speaks,
        }
