"""What signatures of servers name, and most servers never load: see wire/lazy_types.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.lazy_types import finder

if TYPE_CHECKING:
    from ..auth.resource_server.protection import Protection
    from ..state.store import State
    from ..transport.http.server.app import HttpApp
    from ..transport.http.server.options import HttpOptions
    from ..wire.types.content import ResourceContents
    from .execution.guard_options import GuardOptions
    from .input import Root, Sampled
    from .registry.visibility import Visible
    from .resources.resource import ResourceFacts
else:
    __getattr__ = finder(
        __name__,
        {
            "GuardOptions": ".execution.guard_options",
            "HttpApp": "..transport.http.server.app",
            "HttpOptions": "..transport.http.server.options",
            "Protection": "..auth.resource_server.protection",
            "ResourceContents": "..wire.types.content",
            "ResourceFacts": ".resources.resource",
            "Root": ".input",
            "Sampled": ".input",
            "State": "..state.store",
            "Visible": ".registry.visibility",
        },
    )

__all__ = [
    "GuardOptions",
    "HttpApp",
    "HttpOptions",
    "Protection",
    "ResourceContents",
    "ResourceFacts",
    "Root",
    "Sampled",
    "State",
    "Visible",
]
