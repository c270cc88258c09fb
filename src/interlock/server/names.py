"""What a tool may be called (server/tools#tool-names): 1 to 128 of letters, digits, `_`, `-`, `.`."""

from __future__ import annotations

from ..wire.errors import LocalError

__all__ = ["LONGEST_TOOL_NAME", "check_tool_name"]

LONGEST_TOOL_NAME = 128


def check_tool_name(name: str) -> None:
    plain = name.replace("_", "a").replace("-", "a").replace(".", "a")
    if not 1 <= len(name) <= LONGEST_TOOL_NAME or not name.isascii() or not plain.isalnum():
        told = f"use 1 to {LONGEST_TOOL_NAME} letters, digits, '_', '-' or '.'"
        raise LocalError(f"{name!r} is no tool name: " + (f"say name=, and {told}" if name == "<lambda>" else told))
