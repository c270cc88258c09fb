"""What must not stand in an array of messages; only one revision has arrays (2025-03-26 basic/index#batching)."""

from __future__ import annotations

from typing import Any

from ...wire.errors import InvalidRequest
from ...wire.messages import Frame

__all__ = ["refused_in_batch"]


def refused_in_batch(frame: Frame, ids: set[Any]) -> InvalidRequest | None:
    """Why this request is refused, beside those whose ids came before it in the same array; or None."""
    if frame.method == "initialize":  # 2025-03-26 basic/lifecycle#initialization
        return InvalidRequest("initialize must not stand in a batch")
    if frame.id in ids:
        return InvalidRequest("Another request of this batch has this id")
    return None
