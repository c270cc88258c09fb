"""What is written into the audit, and how: numbered, timed, cut, and without what looks like a secret.

Secrets are found in three ways: by the patterns of wire/redaction.py, as the values that a configuration holds for its
servers (`hide`), and not at all in arguments too long to be searched: of these only the digest is written down.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from typing import Any

import msgspec

from ..wire.display import display
from ..wire.exchange import LOCAL
from ..wire.redaction import REDACTED, redact_secrets
from .audit import Audit, Entry, Outcome
from .deeds import Decision, Deed
from .policy import principal_text

__all__ = ["Ledger"]

_SEARCHED_BYTES = 64 * 1024  # of arguments; of longer ones no text is written
_SHOWN = 2000  # characters of arguments in a line
_SHORTEST = 6  # characters of a hidden value; shorter ones are found everywhere
_MOST_HIDDEN = 10_000
_encode = msgspec.json.Encoder(order="sorted").encode


class Ledger:
    """Writes into one audit, for one run of a host."""

    def __init__(self, audit: Audit, hide: Iterable[str] = ()) -> None:
        self._audit = audit
        self._run = secrets.token_hex(4)
        self._key = secrets.token_bytes(32)
        self._numbers = count(1)
        self._hidden: set[str] = set()
        self.hide(hide)

    def hide(self, values: Iterable[str]) -> None:
        """Texts that must never be written."""
        for value in values:
            if len(value) >= _SHORTEST and len(self._hidden) < _MOST_HIDDEN:
                self._hidden.add(value)
                self._hidden.add(_encode(value)[1:-1].decode())  # as it stands inside of JSON

    def decided(self, deed: Deed, decision: Decision, rule: str, because: str = "", scope: str = "") -> str:
        """Write a decision down, and return the number that its outcome will have."""
        call = f"{self._run}-{next(self._numbers)}"
        entry = Entry(
            at=_now(),
            call=call,
            step="decision",
            principal=display(principal_text(deed.principal or LOCAL), 200),
            kind=deed.kind,
            server=display(deed.server, 200),
            name=self.clean(deed.name, 500),
            decision=decision,
            rule=display(rule, 100),
            because=self.clean(because, 500),
            scope=scope,
            digest=blake2b(deed.payload, key=self._key, digest_size=16).hexdigest(),
            arguments=self._arguments(deed),
            sources=tuple(display(name, 200) for name in sorted(deed.sources)[:100]),
        )
        self._audit.write(entry)
        return call

    def ended(
        self, deed: Deed, call: str, began: float, outcome: Outcome, error: str = "", size: int = 0, cut: bool = False
    ) -> None:
        """Write down how it ended; `began` is of `time.perf_counter`."""
        entry = Entry(
            at=_now(),
            call=call,
            step="outcome",
            principal=display(principal_text(deed.principal or LOCAL), 200),
            kind=deed.kind,
            server=display(deed.server, 200),
            name=self.clean(deed.name, 500),
            outcome=outcome,
            error=self.clean(error, 500),
            ms=round((time.perf_counter() - began) * 1000, 3),
            bytes=size,
            cut=cut,
        )
        self._audit.write(entry)

    def clean(self, text: str, limit: int) -> str:
        """Redacted first and cut then: half a secret is one still, and no pattern knows it."""
        if len(text) > _SEARCHED_BYTES:
            return f"({len(text)} characters)"
        return display(self._without_hidden(redact_secrets(text)), limit)

    def _arguments(self, deed: Deed) -> str:
        if len(deed.payload) > _SEARCHED_BYTES:
            return f"({len(deed.payload)} bytes)"
        if len(deed.payload) <= 4:  # null or {}
            return deed.payload.decode()
        shown: Any = redact_secrets(deed.arguments)
        return display(self._without_hidden(_encode(shown).decode()), _SHOWN)

    def _without_hidden(self, text: str) -> str:
        for value in self._hidden:
            if value in text:
                text = text.replace(value, REDACTED)
        return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
