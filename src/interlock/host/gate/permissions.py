"""What a person allowed or refused for longer than once, and what exactly that covers.

A leave is bound to the person, the server, the item, the rule that asked, and the pin of what was approved: the digest
of a tool's definition, or of a launch. A tool that changes, a command that changes or a rule that says something else
finds no leave and is asked about. Leave for data of some servers does not cover data of others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ...auth.client.token_storage import MemoryRecords, Records
from ...wire.errors import StoreError
from ...wire.exchange import LOCAL, Principal
from ..user import Leave
from .action import Deed, Kind
from .policy import principal_text
from .record_lock import change

__all__ = ["Kept", "Leaves"]

_MOST_IN_SESSION = 10_000  # the oldest is forgotten: it is asked about again
_MOST_ALWAYS = 1000  # for one person and server, likewise
_FRESH_SECONDS = 5.0  # how long what another process has changed may go unnoticed


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind
    name: str
    rule: str
    pin: str
    granted: bool
    sources: tuple[str, ...] = ()
    """The other servers whose data it covers."""
    at: float
    shown: str = ""
    """What was approved, for the difference to what is asked for next."""

    @property
    def question(self) -> tuple[Kind, str, str, str]:
        return self.kind, self.name, self.rule, self.pin

    def answers(self, deed: Deed, rule: str, pin: str) -> bool:
        """Is this the answer to that question? A refusal is, whatever data are in it."""
        same = self.question == (deed.kind, deed.name, rule, pin)
        return same and (not self.granted or deed.foreign <= set(self.sources))


_decode = msgspec.json.Decoder(list[Kept]).decode
_Place = tuple[str, str]


class Leaves:
    """Of the session in memory, for always in `records` (`files_in(...)` for files, memory by default)."""

    def __init__(self, records: Records | None = None, clock: Callable[[], float] = time.time) -> None:
        self._records: Records = records if records is not None else MemoryRecords()
        self._clock = clock
        self._session: dict[tuple[_Place, Kind, str, str, str], Kept] = {}
        self._always: dict[_Place, tuple[float, list[Kept]]] = {}

    def find(self, deed: Deed, rule: str, pin: str) -> Kept | None:
        """What was answered to this question before. A refusal counts before a leave, the session before always."""
        place = _place(deed.principal, deed.server)
        kept = self._session.get((place, deed.kind, deed.name, rule, pin))
        if kept is not None and kept.answers(deed, rule, pin):
            return kept
        found = [each for each in self._of(place) if each.answers(deed, rule, pin)]
        return min(found, key=lambda each: each.granted, default=None)

    def last_shown(self, deed: Deed) -> str:
        """What was approved of the same name before, whatever its pin."""
        place = _place(deed.principal, deed.server)
        return next((each.shown for each in reversed(self._of(place)) if _same(each, deed) and each.shown), "")

    async def remember(self, deed: Deed, rule: str, pin: str, leave: Leave, shown: str = "") -> None:
        """For as long as the leave says; of one for once nothing is kept."""
        if leave.scope == "once":
            return
        kept = Kept(
            kind=deed.kind,
            name=deed.name,
            rule=rule,
            pin=pin,
            granted=leave.granted,
            sources=tuple(sorted(deed.foreign | self._covered(deed, rule, pin))),
            at=self._clock(),
            shown=shown,
        )
        place = _place(deed.principal, deed.server)
        if leave.scope == "session":
            self._hold(place, kept)
            return
        self._session.pop((place, *kept.question), None)
        try:  # in one place only: taken back by another process, it must not go on counting here
            await self._edit(place, lambda before: [*(each for each in before if not _replaces(kept, each)), kept])
        except StoreError:
            self._hold(place, kept)  # as long as can be
            raise

    def _hold(self, place: _Place, kept: Kept) -> None:
        self._session[(place, *kept.question)] = kept
        if len(self._session) > _MOST_IN_SESSION:
            del self._session[next(iter(self._session))]

    def _covered(self, deed: Deed, rule: str, pin: str) -> set[str]:
        """Whose data was allowed to go there before: leave for more does not take it back."""
        question = (deed.kind, deed.name, rule, pin)
        kept = [each for each in self.all(deed.server, deed.principal) if each.granted and each.question == question]
        return {source for each in kept for source in each.sources}

    async def forget(
        self,
        server: str,
        *,
        kind: Kind | None = None,
        but: Kind | None = None,
        name: str | None = None,
        principal: Principal | None = None,
    ) -> None:
        """Take back every leave and refusal at a server, or those for one kind or item of it, or all `but` one kind."""

        def meant(each: Kept) -> bool:
            return each.kind != but and (kind is None or each.kind == kind) and (name is None or each.name == name)

        place = _place(principal, server)
        self._session = {key: kept for key, kept in self._session.items() if key[0] != place or not meant(kept)}
        await self._edit(place, lambda before: [each for each in before if not meant(each)])

    def all(self, server: str, principal: Principal | None = None) -> list[Kept]:
        """What counts now at a server, for a person to look through."""
        place = _place(principal, server)
        return [*self._of(place), *(kept for key, kept in self._session.items() if key[0] == place)]

    def _of(self, place: _Place) -> list[Kept]:
        read, kept = self._always.get(place, (float("-inf"), []))
        now = time.monotonic()
        if now - read > _FRESH_SECONDS:
            kept = _decoded(self._records.load(_key(place)))
            self._always[place] = now, kept
        return kept

    async def _edit(self, place: _Place, edit: Callable[[list[Kept]], list[Kept]]) -> None:
        def edited(data: bytes | None) -> bytes | None:
            after = edit(_decoded(data))[-_MOST_ALWAYS:]
            return msgspec.json.encode(after) if after else None

        self._always.pop(place, None)
        await change(self._records, _key(place), edited)
        self._always.pop(place, None)


def _decoded(data: bytes | None) -> list[Kept]:
    """What cannot be read allows nothing: it is asked about again."""
    try:
        return _decode(data) if data else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _same(kept: Kept, deed: Deed) -> bool:
    return (kept.kind, kept.name) == (deed.kind, deed.name)


def _replaces(kept: Kept, before: Kept) -> bool:
    """The newest answer to a question; of another pin it is of no use any more, except to show what changed."""
    return (kept.kind, kept.name, kept.rule) == (before.kind, before.name, before.rule)


def _place(principal: Principal | None, server: str) -> _Place:
    return principal_text(principal or LOCAL), server


def _key(place: _Place) -> str:
    return f"leaves of {place[0]} at {place[1]}"
