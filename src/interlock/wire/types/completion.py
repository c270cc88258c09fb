"""Argument completion."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ..meta import RequestMeta
from .common import Noun

__all__ = ["PromptRef", "ResourceRef", "CompletionArgument", "CompletionContext", "CompleteParams"]


class PromptRef(Noun, tag="ref/prompt"):
    name: str
    title: str | UnsetType = UNSET


class ResourceRef(Noun, tag="ref/resource"):
    uri: str


class CompletionArgument(Noun):
    name: str
    value: str


class CompletionContext(Noun):
    arguments: dict[str, str] | UnsetType = UNSET


class CompleteParams(Noun):
    ref: PromptRef | ResourceRef
    argument: CompletionArgument
    context: CompletionContext | UnsetType = UNSET
    meta: RequestMeta | UnsetType = field(default=UNSET, name="_meta")
