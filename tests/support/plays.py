"""Plays: transcripts that are said line by line to a real server, whatever carries the lines.

    # revision: 2025-06-18
    # requirements: PING-01 PING-02        the rows it shows (optional)
    # server: basic                        a file of support/servers (optional)
    # order: free                          what stands together, also in one array, may come in any order (optional)
    > what we send          < what the server must answer          >! wrong on purpose, not judged by the schema

``"*"`` in a ``<`` line stands for any value. In a ``>`` line it stands for what the server said last under that
name: the ``id`` of its last question, or, as ``cursor``, the last ``nextCursor``. A line ``>`` that gets no answer is
followed by the next ``>``: anything the server says beyond the ``<`` lines is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.transcripts import WILDCARD, Entry, Transcript, differences, load_transcript
from support.wire_peer import MODERN, WirePeer

__all__ = ["PLAYS", "Play", "Player"]

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"


# --- reading the files ---


@dataclass(frozen=True)
class Play:
    """One transcript and what its header says."""

    name: str
    transcript: Transcript
    requirements: tuple[str, ...]
    server: str
    free_order: bool

    @property
    def revision(self) -> str:
        return self.transcript.revision


def read_play(path: Path) -> Play:
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line[1:].partition(":") for line in lines if line.startswith("#"))
    header = {name.strip(): value.strip() for name, _, value in reversed([*pairs])}  # the first of a name counts
    return Play(
        name=f"{path.parent.name}/{path.stem}",
        transcript=load_transcript(path),
        requirements=tuple(header.get("requirements", "").split()),
        server=header.get("server", "basic"),
        free_order=header.get("order") == "free",
    )


PLAYS = [read_play(path) for path in sorted(FOLDER.glob("*/*.txt"))]


# --- playing them ---


class Player:
    """Says the lines of one transcript and compares what comes back."""

    def __init__(self, peer: WirePeer, *, free_order: bool) -> None:
        self.peer = peer
        self.free_order = free_order
        self.expected: list[Any] = []
        self.last: dict[str, Any] = {}

    async def play(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.sender == "server":
                self.expected.append(entry.frame)
            else:
                await self.hear_expected()
                self.say(entry)
        await self.hear_expected()
        await self.expect_silence()

    def say(self, entry: Entry) -> None:
        self.peer.send(self.filled(entry.frame), judged=entry.judged)

    def filled(self, frame: Any) -> Any:
        """The frame with its wildcards replaced by what the server said last under these names."""
        if not isinstance(frame, dict):
            return frame
        return {name: self.last[name] if value == WILDCARD else self.filled(value) for name, value in frame.items()}

    async def hear_expected(self) -> None:
        while self.expected:
            frame = await self.peer.receive()
            self.remember(frame)
            at = self.position_of(frame)
            told = self.compare(self.expected.pop(at), frame)
            assert not told, f"{frame}\n" + "\n".join(told)

    def position_of(self, frame: Any) -> int:
        """Which of the expected frames this one is: the next, or where order is free, the first that fits."""
        if not self.free_order:
            return 0
        fits = [at for at, wanted in enumerate(self.expected) if not self.compare(wanted, frame)]
        assert fits, f"{frame} is none of {self.expected}"
        return fits[0]

    def compare(self, wanted: Any, frame: Any) -> list[str]:
        """What differs. The answers in one array are put into the wanted order first, where order is free."""
        if self.free_order and isinstance(wanted, list) and isinstance(frame, list):
            places = {str(answer.get("id")): place for place, answer in enumerate(wanted)}
            frame = sorted(frame, key=lambda answer: places.get(str(answer.get("id")), len(wanted)))
        return list(differences(wanted, frame))

    def remember(self, frame: Any) -> None:
        if isinstance(frame, dict) and "method" in frame and "id" in frame:
            self.last["id"] = frame["id"]
        elif isinstance(frame, dict) and "nextCursor" in frame.get("result", {}):
            self.last["cursor"] = frame["result"]["nextCursor"]

    async def expect_silence(self) -> None:
        """A last question as a barrier: nothing may come before its answer."""
        method = "server/discover" if self.peer.revision in MODERN else "ping"
        await self.peer.request(method, id="barrier")
        assert self.peer.heard == []
