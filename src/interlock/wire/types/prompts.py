"""Prompts."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import Icon, MayAskParams, Meta, Noun, Role

__all__ = ["Prompt", "PromptArgument", "PromptMessage", "GetPromptParams"]


class PromptArgument(Noun):
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Noun):
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class PromptMessage(Noun):
    """One message: `content` is a single block in every revision."""

    role: Role
    content: Any

    def __post_init__(self) -> None:
        if self.role not in ("user", "assistant"):
            raise ValueError(f"a message is of the user or the assistant, not of {self.role!r:.40}")
        if isinstance(self.content, list | tuple):
            raise ValueError("the content of a prompt's message is one block, not a list")


class GetPromptParams(MayAskParams, kw_only=True):
    name: str
    arguments: dict[str, str] | UnsetType = UNSET
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
