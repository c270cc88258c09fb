"""The resources of one server, with fixed URIs and with variables: listed apart, read by one rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from ...wire.errors import InternalError, MethodNotFound, ResourceNotFound
from ...wire.escaping import display
from ...wire.exchange import Exchange, Result
from ..execution.thread_pool import Threads
from ..failures import failure_text
from .paging import Catalogue

if TYPE_CHECKING:
    from ...wire.types.content import ResourceContents
    from ..resources.resource import RegisteredResource, ResourceFacts
    from ..resources.template import RegisteredTemplate

__all__ = ["ResourceSet"]


class ResourceSet:
    """What has a brace in its URI is a template; no fixed URI can have one."""

    def __init__(self, threads: Threads, page_size: int | None) -> None:
        self._threads = threads
        self.fixed: Catalogue[RegisteredResource] = Catalogue("resources", page_size)
        self.templates: Catalogue[RegisteredTemplate] = Catalogue("resourceTemplates", page_size)
        self.hides: Callable[[Any, Exchange], bool] = _hides_nothing
        """Is this one not there for whoever asks?"""

    @property
    def offered(self) -> bool:
        return self.fixed.offered or self.templates.offered

    def make(
        self, uri: str, function: Callable[..., Any], **facts: Unpack[ResourceFacts]
    ) -> RegisteredResource | RegisteredTemplate:
        if "{" not in uri:
            from ..resources.resource import RegisteredResource  # a server without resources starts without them

            return RegisteredResource(uri, function, threads=self._threads, **facts)
        from ..resources.template import RegisteredTemplate  # a server without variables in its URIs starts without it

        return RegisteredTemplate(uri, function, threads=self._threads, **facts)

    def catalogue_of(self, uri: str) -> Catalogue[Any]:
        return self.templates if "{" in uri else self.fixed

    async def read(self, exchange: Exchange) -> Result:
        """The answer to `resources/read`."""
        if not self.offered:
            raise MethodNotFound("This server does not offer resources")
        uri: str = exchange.params.uri
        try:
            contents = await self._contents(uri, exchange)
        except BaseException as error:  # SystemExit and KeyboardInterrupt too: one call fails, the server lives
            raise InternalError(failure_text(error, "resource", display(uri[:200])), {"uri": uri}) from None
        return {"contents": contents, "ttlMs": 0, "cacheScope": "private"}

    async def _contents(self, uri: str, exchange: Exchange) -> list[ResourceContents]:
        """A resource of exactly this URI wins over every template; of these, the first that fits."""
        if (resource := self.fixed.get(uri)) is not None and not self.hides(resource, exchange):
            return await resource.read(exchange)
        for template in self.templates.items():
            if (arguments := template.arguments(uri)) is not None and not self.hides(template, exchange):
                return await template.read(uri, arguments, exchange)
        raise ResourceNotFound("Resource not found", {"uri": uri})


def _hides_nothing(item: Any, exchange: Exchange) -> bool:
    return False
