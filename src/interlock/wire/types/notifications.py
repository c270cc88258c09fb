"""Notifications, and the request that keeps a stream of them open."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import Noun

__all__ = ["CHANGING_LISTS", "Cancelled", "Progress", "ListenFilter", "ListenParams"]

CHANGING_LISTS: tuple[Literal["tools", "prompts", "resources"], ...] = ("tools", "prompts", "resources")
"""The lists of whose changes a server tells."""


class Cancelled(Noun):
    request_id: int | str
    reason: str | UnsetType | None = UNSET
    """Some clients write null for none."""


class Progress(Noun):
    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class ListenFilter(Noun):
    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: set[str] = field(default_factory=set[str])


class ListenParams(Noun):
    notifications: ListenFilter
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
