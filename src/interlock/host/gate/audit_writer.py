"""What is written into the audit, and how: numbered, timed, cut, and without what looks like a secret.

Secrets are found in three ways: by the patterns of wire/redaction.py, as the values that a configuration holds for its
servers (`hide`), and not at all in arguments too long to be searched: of these only the digest is written down.

A decision is written at once. How it ended waits for a moment, where the audit can take several lines at once
(`write_many`): whoever waits for the result need not wait for its line, and many lines cost little more than one. Of
those who call one thing after the other, several outcomes are written while the server works on the next.

Most of a line is the same with every call of a tool: it is made once (`_Frame`), and what differs is put in.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count

import msgspec

from ...client.request import running_loop
from ...wire.errors import StoreError
from ...wire.escaping import display
from ...wire.exchange import LOCAL
from ...wire.redaction import REDACTED, may_hold_secrets, redact_secrets
from .action import Decision, Deed, Matter, keep
from .audit import Audit, Entry, FileAudit, Outcome, as_line
from .policy import principal_text

__all__ = ["Ledger"]

_SEARCHED_BYTES = 64 * 1024  # of arguments; of longer ones no text is written
_SHOWN = 2000  # characters of arguments in a line
_SHORTEST = 6  # characters of a hidden value; shorter ones are found everywhere
_MOST_HIDDEN = 10_000
_MOST_KNOWN = 1024  # texts that are remembered as they are written; with more, all are made anew
_PAUSE = 0.02  # seconds that an outcome waits for others
_LONGEST_PAUSE = 0.5  # where the loop does not come to it, because calls follow each other without leaving it time
_MOST_WAITING = 64  # outcomes; then they are written at once
_ENOUGH = 16  # outcomes; with so many they are written behind the next decision, when its call has been sent
_GAP = "\ue000"  # where something is put into a frame; of all else that is in a line, `display` leaves none
_encode = msgspec.json.Encoder().encode
_MILLISECONDS = tuple(f".{number:03}+00:00" for number in range(1000))
log = logging.getLogger("interlock.host")

Lost = Callable[[Deed, StoreError], None]
"""Is told when it could not be written down how a deed ended."""


class _Ended(msgspec.Struct):
    """An outcome as it is known when it comes; its line is made when it is written."""

    deed: Deed
    call: str
    at: float
    seconds: float
    outcome: Outcome
    error: str
    size: int
    cut: bool


class _Frame(msgspec.Struct, frozen=True):
    """A decision without what differs from call to call, and its line as the encoder writes it, cut there."""

    entry: Entry
    pieces: list[str]
    """Up to the arguments."""
    last: bytes


class Ledger:
    """Writes into one audit, for one run of a host. It is used on one event loop at a time."""

    def __init__(self, audit: Audit, hide: Iterable[str] = (), lost: Lost | None = None) -> None:
        self._audit, self._lost = audit, lost if lost is not None else _log_lost
        self._write_many: Callable[[Sequence[Entry]], None] | None = getattr(audit, "write_many", None)
        self._file = audit if type(audit) is FileAudit else None  # not of one that may do something else with an entry
        self._waiting: list[_Ended] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        self._run = secrets.token_hex(4)
        self._keyed = blake2b(secrets.token_bytes(32), digest_size=16)  # a secret first is a key, as BLAKE2 is made
        self._numbers = count(1)
        self._hidden: set[str] = set()
        self._parties: dict[Matter, tuple[str, str, str]] = {}
        self._frames: dict[tuple[Matter, Decision, str, str, str], _Frame] = {}
        self._second, self._date = 0, ""
        self.hide(hide)

    def hide(self, values: Iterable[str]) -> None:
        """Texts that must never be written."""
        self._parties.clear()
        self._frames.clear()
        for value in values:
            if len(value) >= _SHORTEST and len(self._hidden) < _MOST_HIDDEN:
                self._hidden.add(value)
                self._hidden.add(_encode(value)[1:-1].decode())  # as it stands inside of JSON

    def decided(self, deed: Deed, decision: Decision, rule: str, because: str = "", scope: str = "") -> str:
        """Write a decision down, and return the number that its outcome will have."""
        now = time.time()
        if len(waiting := self._waiting) >= _ENOUGH or (waiting and now - waiting[0].at >= _LONGEST_PAUSE):
            self._hurry(now)
        key = (deed.matter, decision, rule, because, scope)
        frame = self._frames.get(key) or self._framed(*key)
        at, call, digest = self._spelled(now), f"{self._run}-{next(self._numbers)}", self._keyed.copy()
        digest.update(deed.sorted_payload)
        if self._file is not None:
            first, second, third, fourth = frame.pieces
            line = f"{first}{at}{second}{call}{third}{digest.hexdigest()}{fourth}".encode()
            self._file.write_line(line + _encode(self._arguments(deed)) + frame.last)
        else:
            told = {"at": at, "call": call, "digest": digest.hexdigest(), "arguments": self._arguments(deed)}
            self._audit.write(msgspec.structs.replace(frame.entry, **told))
        return call

    def _framed(self, matter: Matter, decision: Decision, rule: str, because: str, scope: str) -> _Frame:
        principal, server, name = self._party(matter)
        entry = Entry(
            at=_GAP,
            call=_GAP,
            step="decision",
            principal=principal,
            kind=matter.kind,
            server=server,
            name=name,
            decision=decision,
            rule=display(rule, 100),
            because=self.clean(because, 500),
            scope=scope,
            digest=_GAP,
            arguments=_GAP,
            sources=tuple(display(each, 200) for each in sorted(matter.sources)[:100]),
        )
        *pieces, last = as_line(entry).decode().split(_GAP)
        pieces[-1], last = pieces[-1].removesuffix('"'), last.removeprefix('"')  # arguments come with their quotes
        frame = _Frame(entry, pieces, last.encode())
        keep(self._frames, matter, (matter, decision, rule, because, scope), frame, _MOST_KNOWN)
        return frame

    def _hurry(self, now: float) -> None:
        """Outcomes wait: for too long, or so many that they are written as soon as what is decided now was sent."""
        if now - self._waiting[0].at >= _LONGEST_PAUSE:
            self.flush()
        elif len(self._waiting) >= _ENOUGH and not self._is_due and (loop := running_loop()) is not None:
            self._is_due = True
            loop.call_later(0, self._write)  # behind all that is to be done at once, and so behind the sending

    def ended(
        self, deed: Deed, call: str, began: float, outcome: Outcome, error: str = "", size: int = 0, cut: bool = False
    ) -> None:
        """Write down how it ended, now or in a moment; `began` is of `time.perf_counter`. It is done already: what
        cannot be written is told (`lost`) and not raised."""
        ended = _Ended(deed, call, time.time(), time.perf_counter() - began, outcome, error, size, cut)
        self._waiting.append(ended)
        loop = running_loop() if self._write_many is not None else None
        if loop is None or len(self._waiting) >= _MOST_WAITING:
            self.flush()
        elif self._timer is None or loop is not self._loop:  # one timer for all that wait
            self._loop, self._timer = loop, loop.call_later(_PAUSE, self.flush)

    def flush(self) -> None:
        """Write down all that waits; to be called before the audit is closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write()

    def _write(self) -> None:
        """A timer may be left, which finds what has come meanwhile: to set another costs more than to look early."""
        self._is_due = False
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            if self._write_many is not None:
                self._write_many([self._outcome(each) for each in waiting])
            else:
                for each in waiting:
                    self._audit.write(self._outcome(each))
        except StoreError as error:
            for each in waiting:
                self._lost(each.deed, error)

    def _outcome(self, ended: _Ended) -> Entry:
        deed = ended.deed
        principal, server, name = self._party(deed.matter)
        return Entry(
            at=self._spelled(ended.at),
            call=ended.call,
            step="outcome",
            principal=principal,
            kind=deed.kind,
            server=server,
            name=name,
            outcome=ended.outcome,
            error=self.clean(ended.error, 500) if ended.error else "",
            ms=int(ended.seconds * 1e6) / 1000,
            bytes=ended.size,
            cut=ended.cut,
        )

    def _party(self, matter: Matter) -> tuple[str, str, str]:
        """Who, where and what, as it is written; the same few in most lines."""
        found = self._parties.get(matter)
        if found is None:
            principal = display(principal_text(matter.principal or LOCAL), 200)
            found = principal, display(matter.server, 200), self.clean(matter.name, 500)
            keep(self._parties, matter, matter, found, _MOST_KNOWN)
        return found

    def _spelled(self, now: float) -> str:
        """UTC, to the millisecond; the date is spelled once a second."""
        second = int(now)
        if second != self._second:
            self._second, self._date = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        return self._date + _MILLISECONDS[int((now - second) * 1000)]

    def clean(self, text: str, limit: int) -> str:
        """Redacted first and cut then: half a secret is one still, and no pattern knows it."""
        if len(text) > _SEARCHED_BYTES:
            return f"({len(text)} characters)"
        return display(self._without_hidden(redact_secrets(text)), limit)

    def _arguments(self, deed: Deed) -> str:
        if len(deed.payload) > _SEARCHED_BYTES:
            return f"({len(deed.payload)} bytes)"
        data = deed.payload
        if may_hold_secrets(data):
            data = _encode(redact_secrets(deed.arguments))
        text = data.decode()
        if len(text) <= _SHOWN and not self._hidden and text.isprintable():
            return text
        return display(self._without_hidden(text) if self._hidden else text, _SHOWN)

    def _without_hidden(self, text: str) -> str:
        for value in self._hidden:
            if value in text:
                text = text.replace(value, REDACTED)
        return text


def _log_lost(deed: Deed, error: StoreError) -> None:
    log.warning("! how %s ended was not written down: %s", deed, display(str(error), 300))
