"""Content blocks: what tools return and prompts say."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field

from .common import Annotations, Icon, Meta, Noun

__all__ = [
    "TextContent",
    "ImageContent",
    "AudioContent",
    "EmbeddedResource",
    "ResourceLink",
    "ResourceContents",
    "Content",
]


class TextContent(Noun, tag="text"):
    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ImageContent(Noun, tag="image"):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class AudioContent(Noun, tag="audio"):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ResourceContents(Noun):
    """What a resource holds: `text`, or `blob` in base64."""

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")

    def __post_init__(self) -> None:
        if (self.text is UNSET) == (self.blob is UNSET):
            raise ValueError("the contents of a resource are either text or blob")


class EmbeddedResource(Noun, tag="resource"):
    resource: ResourceContents
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


class ResourceLink(Noun, tag="resource_link"):
    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = field(default=UNSET, name="_meta")


Content = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink
CONTENT_TYPES: tuple[type[Struct], ...] = (
    TextContent,
    ImageContent,
    AudioContent,
    EmbeddedResource,
    ResourceLink,
)
