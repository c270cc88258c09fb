"""Resources whose URI has variables: one function for many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ..wire.errors import LocalError
from ..wire.exchange import Exchange
from ..wire.types.content import ResourceContents
from ..wire.types.resources import ResourceTemplate
from .calling import caller_of
from .context import Context
from .resources import contents_of
from .schema import read_signature
from .threads import Threads
from .uri_templates import UriTemplate

__all__ = ["RegisteredTemplate"]


class RegisteredTemplate:
    """One template of a server. The function takes the variables by name, in the types it declares."""

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
        self.template = UriTemplate(uri)
        signature = read_signature(function, Context)
        _check_names(self.template, signature.names, signature.schema.get("required", []))
        self.takes_context = signature.context is not None
        self.noun = ResourceTemplate(
            uri_template=uri,
            name=name or cast(str, getattr(function, "__name__", uri)),
            title=title or UNSET,
            description=description or (function.__doc__ or "").strip() or UNSET,
            mime_type=mime_type or UNSET,
            meta=dict(meta) if meta else UNSET,
        )
        self._arguments: type[Any] = signature.decoder.type
        self._call = caller_of(function, signature, threads)

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, for completion."""
        return (*self.template.names, *self.template.query)

    def arguments(self, uri: str) -> dict[str, Any] | None:
        """What the function takes to read `uri`; None if it is no URI of this template: in shape or in types."""
        values = self.template.match(uri)
        if values is None:
            return None
        try:  # not strict: all values of a URI are text, `int` means a text of digits
            return msgspec.structs.asdict(msgspec.convert(values, self._arguments, strict=False))
        except msgspec.ValidationError:
            return None

    async def read(self, uri: str, arguments: dict[str, Any], exchange: Exchange) -> list[ResourceContents]:
        return contents_of(await self._call(arguments, exchange), uri, self.noun.mime_type)


def _check_names(template: UriTemplate, taken: tuple[str, ...], required: list[str]) -> None:
    """The function and the template speak of the same things; what may be absent has a default."""
    variables = {*template.names, *template.query}
    if set(taken) != variables:
        odd = ", ".join(sorted(set(taken) ^ variables))
        raise LocalError(f"{template.text}: the variables and the function's parameters differ ({odd})")
    if missing := [name for name in template.query if name in required]:
        raise LocalError(f"{template.text}: a query may be absent, so give {', '.join(missing)} a default")
