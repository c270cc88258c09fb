"""Notifications, and the request that keeps a stream of them open."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import LogLevel, Noun

__all__ = ["Cancelled", "Progress", "LogMessage", "ResourceUpdated", "ListenFilter", "ListenParams"]


class Cancelled(Noun):
    request_id: int | str
    reason: str | UnsetType = UNSET


class Progress(Noun):
    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class LogMessage(Noun):
    level: LogLevel
    data: Any
    logger: str | UnsetType = UNSET


class ResourceUpdated(Noun):
    uri: str


class ListenFilter(Noun):
    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: set[str] = field(default_factory=set[str])


class ListenParams(Noun):
    notifications: ListenFilter
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
