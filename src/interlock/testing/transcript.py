"""Every frame of a conversation in the order it crossed the wire, and a form of it that people can read."""

from __future__ import annotations

import json
from typing import Any, Literal, cast

import msgspec

from ..wire.escaping import display
from ..wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO

__all__ = ["Line", "Sender", "Transcript"]

Sender = Literal["client", "server"]
_ARROWS = {"client": ">", "server": "<"}
_ENVELOPE = frozenset({CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO})
WIDTH = 400  # characters of one line of the readable form


class Line(msgspec.Struct, frozen=True):
    """One message, as the bytes it was."""

    sender: Sender
    data: bytes

    @property
    def frame(self) -> Any:
        """The message as plain data; the text itself where it is no JSON."""
        try:
            return json.loads(self.data)
        except ValueError:
            return self.data.decode("utf-8", "backslashreplace")

    def text(self, width: int = WIDTH) -> str:
        """`> tools/call #1 {…}`, `< #1 result {…}`, `< #1 error -32602: …`, `< notifications/progress {…}`."""
        return display(f"{_ARROWS[self.sender]} {_told(self.frame)}", width)


class Transcript:
    """What both sides said. `print(transcript)` shows it; `lines` and `frames` are for programs."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, sender: Sender, data: bytes) -> None:
        self.lines.append(Line(sender, bytes(data)))

    def frames(self, sender: Sender | None = None, method: str | None = None) -> list[Any]:
        """The frames of one side, or of a method, or all, as plain data."""
        frames = [line.frame for line in self.lines if sender in (None, line.sender)]
        return frames if method is None else [frame for frame in frames if _method(frame) == method]

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """One line for each frame, cut at `width`. What every modern request says about its client is left out."""
        return "\n".join(line.text(width) for line in self.lines)


def _method(frame: Any) -> Any:
    return cast("dict[str, Any]", frame).get("method") if isinstance(frame, dict) else None


def _told(frame: Any) -> str:
    if not isinstance(frame, dict):
        return frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
    members = cast("dict[str, Any]", frame)
    id = f"#{members['id']}" if "id" in members else ""
    if "method" in members:
        parts = [str(members["method"]), id, _json(members.get("params"))]
    elif "error" in members:
        error = members["error"]
        parts = [id, f"error {error.get('code')}: {error.get('message')}", _json(error.get("data"))]
    else:
        parts = [id, "result", _json(members.get("result"))]
    return " ".join(part for part in parts if part)


def _json(value: Any) -> str:
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("_meta"), dict):
        members = cast("dict[str, Any]", value)
        meta = {key: each for key, each in members["_meta"].items() if key not in _ENVELOPE}
        value = {key: each for key, each in members.items() if key != "_meta"} | ({"_meta": meta} if meta else {})
    return json.dumps(value, ensure_ascii=False) if value not in (None, {}) else ""
