"""What a request brings along when it is made once more with the answers to what it asked."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from .common import Noun

__all__ = ["MayAskParams"]


class MayAskParams(Noun):
    """Params of a method whose handler may ask the client (basic/patterns/mrtr)."""

    input_responses: dict[str, Raw] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
