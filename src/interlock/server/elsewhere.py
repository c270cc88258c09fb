"""What signatures of servers name, and most servers never load: see wire/elsewhere.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.elsewhere import finder

if TYPE_CHECKING:
    from ..auth.protection import Protection
    from ..state.store import State
    from ..transport.http_options import HttpOptions
    from ..transport.http_server import HttpApp
    from ..wire.types.content import ResourceContents
    from .guard_options import GuardOptions
    from .questions import Root, Sampled
    from .resources import ResourceFacts
    from .visibility import Visible
else:
    __getattr__ = finder(
        __name__,
        {
            "GuardOptions": ".guard_options",
            "HttpApp": "..transport.http_server",
            "HttpOptions": "..transport.http_options",
            "Protection": "..auth.protection",
            "ResourceContents": "..wire.types.content",
            "ResourceFacts": ".resources",
            "Root": ".questions",
            "Sampled": ".questions",
            "State": "..state.store",
            "Visible": ".visibility",
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
