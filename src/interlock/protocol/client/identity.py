"""Who we are as a client: what is told to every server, in either era."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...revisions.revision import Revision
from ...revisions.shaping import plain, shape_noun
from ...wire.exchange import Exchange
from ...wire.types.common import Implementation

__all__ = ["Identity"]


class Identity(msgspec.Struct, frozen=True):
    """Name, capabilities, and the exchange that stands for us when a server asks outside of any call."""

    info: Implementation
    capabilities: Mapping[str, Any]
    standing: Exchange

    def info_for(self, revision: Revision) -> dict[str, Any]:
        return shape_noun(revision, "Implementation", plain(self.info))

    def capabilities_for(self, revision: Revision) -> dict[str, Any]:
        """Only the keys this revision has (CAP-10); roots that change are announced where there is a notice for it."""
        known = {key: value for key, value in self.capabilities.items() if key in revision.client_capabilities}
        if "roots" in known and "notifications/roots/list_changed" in revision.client_notices:
            known["roots"] = {"listChanged": True}
        if "elicitation" in known and "elicitation.url" in revision.no_such_needs:
            declared = known.pop("elicitation")
            known |= {"elicitation": {}} if not declared or "form" in declared else {}  # there are only forms
        if "sampling" in known and "sampling.tools" in revision.no_such_needs:
            known["sampling"] = {}  # what is in it came together with tools
        return known
