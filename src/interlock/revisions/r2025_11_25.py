"""2025-11-25: icons, fuller identities, url elicitation and its error code, extensions by capability, streams that
can be left and found again, and arguments that do not fit a tool are for the model to mend.

The experimental tasks of this revision are not declared, so their methods answer -32601.
"""

from __future__ import annotations

from ..wire.errors import UrlElicitationRequired
from .r2025_06_18 import R2025_06_18

__all__ = ["R2025_11_25"]

R2025_11_25 = R2025_06_18.evolve(
    "2025-11-25",
    server_can=["extensions"],
    client_can=["extensions"],
    server_tells=["notifications/elicitation/complete"],
    retired={},
    no_such_needs=frozenset(),
    tells_arguments=True,
    rich_questions=True,
    polling=True,
    means={-32042: UrlElicitationRequired},
    reveal=[
        "ElicitParams.mode",
        "Tool.icons",
        "Resource.icons",
        "ResourceTemplate.icons",
        "Prompt.icons",
        "Content.icons",
        "Implementation.description",
        "Implementation.icons",
        "Implementation.websiteUrl",
    ],
)
