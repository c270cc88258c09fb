"""The experiments by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from ..lab import Lab
from . import (
    aborts,
    cancels,
    crowd,
    cycles,
    fuzz,
    growth,
    host,
    hostile,
    kills,
    loris,
    noise,
    pauses,
    slow,
    slow_numbers,
    soak,
    stops,
    stores,
    workers,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Callable[[Lab], None]] = {
    "soak": soak.run,
    "kills": kills.run,
    "host": host.run,
    "cancels": cancels.run,
    "noise": noise.run,
    "fuzz": fuzz.run,
    "numbers": slow_numbers.run,
    "growth": growth.run,
    "slow": slow.run,
    "aborts": aborts.run,
    "loris": loris.run,
    "crowd": crowd.run,
    "stops": stops.run,
    "stores": stores.run,
    "workers": workers.run,
    "pauses": pauses.run,
    "cycles": cycles.run,
    "hostile": hostile.run,
}
