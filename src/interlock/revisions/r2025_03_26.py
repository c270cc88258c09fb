"""2025-03-26: batches, tool annotations, audio, completions capability, progress messages."""

from __future__ import annotations

from .r2024_11_05 import R2024_11_05

__all__ = ["R2025_03_26"]

R2025_03_26 = R2024_11_05.evolve(
    "2025-03-26",
    batches=True,
    own_issuer=True,
    blocks=["audio"],
    server_can=["completions"],
    reveal=["Tool.annotations", "Progress.message"],
)
