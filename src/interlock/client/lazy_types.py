"""What signatures of clients name, and many clients never load: see wire/lazy_types.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.lazy_types import finder

if TYPE_CHECKING:
    from ..auth.client.providers import Plan
    from .http_target import HttpTarget
    from .supervisor import OnState, State, Supervision
else:
    __getattr__ = finder(
        __name__,
        {
            "HttpTarget": ".http_target",
            "OnState": ".supervisor",
            "Plan": "..auth.client.providers",
            "State": ".supervisor",
            "Supervision": ".supervisor",
        },
    )

__all__ = ["HttpTarget", "OnState", "Plan", "State", "Supervision"]
