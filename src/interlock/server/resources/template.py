"""Resources whose URI has variables: one function for many of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, get_args

import msgspec

from ...wire.errors import LocalError
from ...wire.exchange import Exchange
from ...wire.types.content import ResourceContents
from ...wire.types.resources import ResourceTemplate
from ..execution.thread_pool import Threads
from ..schema.models import decode_custom, is_path
from ..schema.signature import hints_of
from .resource import Readable, ResourceFacts
from .uri_template import UriTemplate, Values
from .uri_values import is_relative_path

__all__ = ["RegisteredTemplate"]

_SAMPLES: tuple[Any, ...] = ([], ["1"], ["1"] * 8)


class RegisteredTemplate(Readable):
    """One template of a server. The function takes the variables by name, in the types it declares."""

    def __init__(
        self, uri: str, function: Callable[..., Any], *, threads: Threads, **facts: Unpack[ResourceFacts]
    ) -> None:
        unchecked = frozenset(facts.get("unchecked", ()))
        self.template = UriTemplate(uri, unchecked)
        super().__init__(uri, function, threads, facts)
        if facts.get("size") is not None:
            raise LocalError(f"{uri}: a template has no size, each of its resources has")
        _check_names(self.template, self.signature.names, self.signature.schema.get("required", []))
        if odd := self.complete.keys() - set(self.names):
            raise LocalError(f"{uri} has no variable {', '.join(sorted(odd))} to complete")
        self.noun = ResourceTemplate(uri_template=uri, **self._described)
        hints = {name: hint for name, hint in hints_of(function).items() if name in self.names}
        self._joined = _joined(self.template, hints)
        self._paths = [name for name, hint in hints.items() if _is_path(hint) and name not in unchecked]

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, for completion."""
        return self.template.names

    def arguments(self, uri: str) -> dict[str, Any] | None:
        """What the function takes to read `uri`; None if it is no URI of this template: in shape or in types."""
        values = self.template.match(uri)
        if values is None or not self._stays_below(values):
            return None
        for name in self._joined:
            if name in values:
                values[name] = "/".join(values[name])
        try:
            return self.signature.from_text(values)
        except msgspec.ValidationError:
            return None

    def _stays_below(self, values: Values) -> bool:
        """What the function takes as a `Path` is relative and does not climb, wherever in the URI it stood."""
        for name in self._paths:
            value = values.get(name, [])
            if not all(is_relative_path(part) for part in ([value] if isinstance(value, str) else value)):
                return False
        return True

    async def read(self, uri: str, arguments: dict[str, Any], exchange: Exchange) -> list[ResourceContents]:
        return await self.contents(uri, arguments, exchange)


def _check_names(template: UriTemplate, taken: tuple[str, ...], required: list[str]) -> None:
    """The function and the template speak of the same things; what may be absent has a default."""
    if odd := set(taken) ^ set(template.names):
        told = ", ".join(sorted(odd))
        raise LocalError(f"{template.text}: the variables and the function's parameters differ ({told})")
    if missing := [name for name in template.named if name in required]:
        raise LocalError(f"{template.text}: {', '.join(missing)} may be absent from a URI and needs a default")


def _joined(template: UriTemplate, hints: dict[str, Any]) -> list[str]:
    """The variables with several values that the function takes as one text: `{/path*}` is a path then."""
    found: list[str] = []
    for name in template.many:
        hint = hints.get(name, Any)
        if any(_takes(hint, sample) for sample in _SAMPLES):
            continue
        if name not in template.wide or not _takes(hint, "a/b"):
            raise LocalError(f"{template.text}: {name}* takes several values, so make the parameter a list")
        found.append(name)
    return found


def _takes(hint: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, hint, strict=False, dec_hook=decode_custom)
    except (TypeError, msgspec.ValidationError):
        return False
    return True


def _is_path(hint: Any) -> bool:
    """`Path`, and what may hold one: `Path | None`, `Annotated[Path, …]`, `list[Path]`."""
    return is_path(hint) or any(_is_path(part) for part in get_args(hint))
