"""Which asker a handler brings along; one that brings none still asks, with keys of its own."""

from __future__ import annotations

import time

from ..revisions.asker import Asker
from ..revisions.asking_rules import AskingRules
from ..state.sealing import Seal
from ..wire.exchange import Handler

__all__ = ["asker_of"]


def asker_of(handler: Handler) -> Asker:
    """A `Server` has one for all its connections."""
    found: Asker | None = getattr(handler, "asker", None)
    return found or Asker(AskingRules(sealer=Seal(), clock=time.time))
