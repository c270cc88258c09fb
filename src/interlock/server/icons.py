"""Icons of servers, tools, prompts and resources, checked where an author gives them.

A client shows only what comes over https or lies in the URI itself, and only pictures (basic/index#icons);
another icon would be dropped there in silence, so it is refused here in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ..wire.errors import LocalError
from ..wire.lazy_regex import pattern
from ..wire.types.common import Icon

__all__ = ["checked_icons"]

_SIZE = pattern(r"any|[1-9][0-9]{0,4}x[1-9][0-9]{0,4}")
_HTTPS = pattern(r"https://[^\s/?#\"<>\\^`{|}]+[^\s\"<>\\^`{|}]*", re.I)
_DATA = pattern(r"data:image/[A-Za-z0-9.+-]+(?:;[A-Za-z0-9=.+-]+)*,[A-Za-z0-9+/=%._~!$&'()*,;:@?-]+", re.I)
_PICTURE = pattern(r"image/[A-Za-z0-9.+-]+")


def checked_icons(icons: Sequence[Icon] | None, whose: str) -> list[Icon] | UnsetType:
    """The icons as they are listed; a mistake is told to the author, at registration."""
    if not icons:
        return UNSET
    try:
        found = msgspec.convert([msgspec.to_builtins(icon) for icon in icons], list[Icon])
    except (TypeError, msgspec.ValidationError) as error:
        raise LocalError(f"{whose}: icons are a list of Icon ({error})") from None
    for icon in found:
        for wrong in _objections(icon):
            raise LocalError(f"{whose}: {wrong}")
    return found


def _objections(icon: Icon) -> list[str]:
    found: list[str] = []
    if not _HTTPS.fullmatch(icon.src) and not _DATA.fullmatch(icon.src):
        found.append(f"the icon {icon.src!r:.80} is neither an https: URI nor a data: URI of a picture")
    if icon.mime_type is not UNSET and not _PICTURE.fullmatch(icon.mime_type):
        found.append(f"the icon's type {icon.mime_type!r:.40} is no picture's, like image/png")
    found += [f"{size!r:.40} is no size of an icon: write 48x48 or any" for size in _each(icon.sizes) if _odd(size)]
    if icon.theme not in (UNSET, "light", "dark"):
        found.append(f"an icon is for the theme light or dark, not {icon.theme!r:.40}")
    return found


def _each(sizes: list[str] | UnsetType) -> list[str]:
    return [] if sizes is UNSET else sizes


def _odd(size: Any) -> bool:
    return _SIZE.fullmatch(size) is None
