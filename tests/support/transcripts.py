"""Transcripts: frames in the order they crossed the wire, as text a person can read and a test can replay.

    # revision: 2025-06-18
    # a comment
    > {"jsonrpc": "2.0", "id": 1, "method": "ping"}      client to server
    < {"jsonrpc": "2.0", "id": 1, "result": {}}          server to client
    >! {"jsonrpc": "2.0", "id": null, "method": "ping"}  deliberately wrong: recorded, never judged

In a frame read from a file the string ``"*"`` stands for any value; such a frame is compared, never judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from support.schemas import Oracle, SchemaViolation, Sender, other_side

__all__ = ["Entry", "Transcript", "WILDCARD", "differences", "load_transcript", "match_frame"]

WILDCARD = "*"
ARROWS: dict[Sender, str] = {"client": ">", "server": "<"}
SENDERS: dict[str, Sender] = {arrow: sender for sender, arrow in ARROWS.items()}


@dataclass(frozen=True)
class Entry:
    """One message: ``frame`` is its JSON value, or the bytes themselves where they are no JSON.

    ``judged`` is false for what is wrong on purpose, ``pattern`` true for a frame with wildcards.
    """

    sender: Sender
    frame: Any
    judged: bool = True
    pattern: bool = False

    def text(self) -> str:
        if isinstance(self.frame, bytes):
            shown = self.frame.decode("utf-8", "backslashreplace")
        else:
            shown = json.dumps(self.frame, ensure_ascii=False)
        return f"{ARROWS[self.sender]}{'' if self.judged else '!'} {shown}"


@dataclass
class Transcript:
    """Frames of one conversation; ``check`` pairs responses with requests and judges every frame."""

    revision: str
    entries: list[Entry] = field(default_factory=list)

    def sent(self, frame: bytes | str | dict[str, Any] | list[Any], *, sender: Sender, judged: bool = True) -> Self:
        """Record a message. ``judged=False`` marks one that is wrong on purpose."""
        value: Any = frame
        if isinstance(frame, bytes | str):
            try:
                value = json.loads(frame)
            except ValueError:
                if judged:
                    raise SchemaViolation(f"{sender} sent what is not JSON: {frame[:80]!r}") from None
                value = frame if isinstance(frame, bytes) else frame.encode()
        self.entries.append(Entry(sender, value, judged))
        return self

    def frames(self, sender: Sender) -> list[Any]:
        return [entry.frame for entry in self.entries if entry.sender == sender]

    def check(self, *, allow_missing_id: bool = True) -> int:
        """Judge all frames and return how many were judged; none at all is a mistake of the test."""
        oracle = Oracle.load(self.revision)
        pairing = Pairing()
        judged = 0
        for number, entry in enumerate(self.entries, start=1):
            try:
                for frame, answers in pairing.take(entry):
                    if entry.judged and not entry.pattern:
                        oracle.check_frame(
                            frame, sender=entry.sender, answers=answers, allow_missing_id=allow_missing_id
                        )
                        judged += 1
            except SchemaViolation as violation:
                raise SchemaViolation(f"entry {number} ({entry.text()[:200]}): {violation}") from violation
        assert judged, f"no frame was judged: {len(self.entries)} recorded, each wrong on purpose or with wildcards"
        return judged

    def dump(self, path: Path | None = None) -> str:
        """The transcript as text, also written to ``path`` if one is given."""
        lines = [f"# revision: {self.revision}", *(entry.text() for entry in self.entries)]
        text = "\n".join(lines) + "\n"
        if path is not None:
            path.write_text(text, encoding="utf-8")
        return text


@dataclass
class Pairing:
    """Open requests of both sides, keyed by sender and id; ``1``, ``"1"`` and ``true`` are different ids."""

    open: dict[tuple[Sender, str, Any], str] = field(default_factory=dict)
    unreadable: bool = False

    def take(self, entry: Entry) -> Iterator[tuple[Any, str | None]]:
        """The frames of an entry (several in a batch), each with the method it answers."""
        frames = entry.frame if isinstance(entry.frame, list) and entry.frame else [entry.frame]
        if len(frames) > 1 or frames is entry.frame:
            yield entry.frame, None
        for frame in frames:
            yield frame, self._pair(entry, frame)

    def _pair(self, entry: Entry, frame: Any) -> str | None:
        if not isinstance(frame, dict):
            self.unreadable = True
            return None
        if "id" not in frame or isinstance(frame["id"], dict | list):
            return None
        kind = type(frame["id"]).__name__
        if "method" in frame or not ("result" in frame or "error" in frame):
            self._open((entry.sender, kind, frame["id"]), str(frame.get("method")), judged=entry.judged)
            return None
        method = self.open.pop((other_side(entry.sender), kind, frame["id"]), None)
        if method is None and entry.judged and not ("error" in frame and self.unreadable):
            raise SchemaViolation(f"answers id {frame['id']!r}, which nobody asked or somebody answered already")
        return method

    def _open(self, key: tuple[Sender, str, Any], method: str, *, judged: bool) -> None:
        if key in self.open and judged:
            raise SchemaViolation(f"id {key[2]!r} is still open")
        self.open.setdefault(key, method)


def load_transcript(path: Path | str, revision: str | None = None) -> Transcript:
    """Read a transcript file; ``revision`` overrides or replaces its ``# revision:`` line."""
    transcript = Transcript(revision or "")
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        line = line.strip()
        if line.startswith("#"):
            name, _, value = line[1:].partition(":")
            if name.strip() == "revision" and revision is None:
                transcript.revision = value.strip()
        elif line:
            mark, _, text = line.partition(" ")
            if mark.rstrip("!") not in SENDERS or mark.count("!") > 1:
                raise ValueError(f"{path}:{number}: expected >, <, >!, <! or #, not {line[:40]!r}")
            transcript.sent(text, sender=SENDERS[mark[0]], judged="!" not in mark)
            entry = transcript.entries[-1]
            transcript.entries[-1] = replace(entry, pattern=has_wildcard(entry.frame))
    if not transcript.revision:
        raise ValueError(f"{path}: no revision given")
    return transcript


# --- comparing ---


def has_wildcard(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_wildcard(member) for member in value.values())
    if isinstance(value, list):
        return any(has_wildcard(member) for member in value)
    return isinstance(value, str) and value == WILDCARD


def match_frame(expected: Any, actual: Any) -> bool:
    """Is ``actual`` what was expected, members in any order, ``"*"`` standing for any value?"""
    return next(differences(expected, actual), None) is None


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Each place where ``actual`` is not what was expected, as ``pointer: sentence``."""
    if isinstance(expected, str) and expected == WILDCARD:
        return
    if type(expected) is not type(actual):
        yield f"{path or '/'}: expected {expected!r}, got {actual!r}"
    elif isinstance(expected, dict):
        for name in expected.keys() | actual.keys():
            if name not in actual:
                yield f"{path}/{name}: missing"
            elif name not in expected:
                yield f"{path}/{name}: unexpected {actual[name]!r}"
            else:
                yield from differences(expected[name], actual[name], f"{path}/{name}")
    elif isinstance(expected, list):
        if len(expected) != len(actual):
            yield f"{path or '/'}: expected {len(expected)} items, got {len(actual)}"
        for index, (wanted, got) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(wanted, got, f"{path}/{index}")
    elif expected != actual:
        yield f"{path or '/'}: expected {expected!r}, got {actual!r}"
