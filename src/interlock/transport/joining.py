"""How an application becomes one of several that share a store; one that shares nothing loads nothing of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..revisions.asker import Asker
from ..state.sealing import Seal
from ..state.store import State
from ..wire.exchange import Handler
from .http_old_sse import OldConnections
from .http_sessions import Sessions

if TYPE_CHECKING:
    from .sharing import Sharing
else:
    Sharing = Any  # named in annotations only

__all__ = ["Shared", "Sharing", "old_of", "sessions_of", "share"]

Shared = State | str | os.PathLike[str]
"""A store that other processes see too, or the path of one in a file."""


def share(state: Shared | None, handler: Handler, path: str, asker: Asker, *, lease: float) -> Sharing | None:
    """The part of `handler` at `path` in what all who serve it share: sealing keys, used states, changes, sessions."""
    if state is None:
        return None
    from .change_relay import ChangeRelay
    from .sharing import Sharing

    name = getattr(getattr(handler, "info", None), "name", "")
    sharing = Sharing(state, f"{name}\n{path}", lease=lease)
    sealer = asker.rules.sealer
    if isinstance(sealer, Seal):
        sharing.on_ready.append(lambda: sealer.share(sharing.state, sharing.space))
    ChangeRelay.between(handler, sharing)
    return sharing


def sessions_of(sharing: Sharing | None, *arguments: Any, **facts: Any) -> Sessions:
    if sharing is None:
        return Sessions(*arguments, **facts)
    from .shared_sessions import SharedSessions

    return SharedSessions(sharing, *arguments, **facts)


def old_of(sharing: Sharing | None, *arguments: Any, **facts: Any) -> OldConnections:
    if sharing is None:
        return OldConnections(*arguments, **facts)
    from .shared_old_sse import SharedOldConnections

    return SharedOldConnections(sharing, *arguments, **facts)
