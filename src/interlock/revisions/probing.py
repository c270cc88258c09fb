"""Which era is there? The client's way to a server of unknown age (modern.md §11).

The first message is `server/discover`. Proof of the stateless era is a proper answer or one of its own errors;
everything else (another error, nonsense, silence, a process that exits) means handshake, and no single code decides.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, cast

from ..wire.errors import (
    BadResult,
    CallTimeout,
    ConnectionEnded,
    InterlockError,
    NoCommonRevision,
    Refused,
    UnsupportedVersion,
)
from ..wire.link import Patience
from .client_edge import ClientEdge
from .discovery import Discovery, Legacy, Line, supported_in
from .handshake_client import initialize
from .identity import Identity
from .revision import Era, Revision
from .stateless_client import StatelessClient
from .table import newest_of

__all__ = ["Prober", "Verdicts", "Line"]

log = logging.getLogger("interlock.client")


class Verdicts:
    """What was found out about servers, by target. "Handshake" expires: such a server may be upgraded unnoticed."""

    def __init__(self, handshake_seconds: float = 300.0, *, most: int = 1024) -> None:
        self._seconds = handshake_seconds
        self._most = most
        self._found: dict[Any, tuple[Era, float]] = {}

    def get(self, target: Any) -> Era | None:
        era, until = self._found.get(target, (None, 0.0))
        if era is Era.HANDSHAKE and monotonic() >= until:
            self._found.pop(target, None)
            return None
        return era

    def put(self, target: Any, era: Era) -> None:
        if target is None:
            return
        if target not in self._found and len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[target] = (era, monotonic() + self._seconds)

    def forget(self, target: Any) -> None:
        self._found.pop(target, None)


class Prober:
    """Opens one connection: asks, decides, and falls back where the rules say so."""

    def __init__(
        self,
        dial: Callable[[], Awaitable[Line]],
        rows: dict[str, Revision],
        me: Identity,
        *,
        patience: Patience,
        probe_seconds: float,
        verdicts: Verdicts,
        target: Any = None,
    ) -> None:
        self._dial = dial
        self._rows = rows
        self._me = me
        self._patience = patience
        self._verdicts = verdicts
        self._target = target
        self._stateless = newest_of(rows, Era.STATELESS)
        self._handshake = newest_of(rows, Era.HANDSHAKE)
        # with nothing to fall back to there is no hurry
        probe = patience if self._handshake is None else Patience(idle=None, total=probe_seconds)
        self._discovery = Discovery(rows, me, probe, StatelessClient, is_legacy=_is_legacy, insists=False)

    async def open(self) -> ClientEdge:
        known = self._verdicts.get(self._target)
        line = await self._dial()
        try:
            if self._stateless is None:
                return await self._shake_hands(line)
            if known is Era.HANDSHAKE and self._handshake is not None:
                try:
                    return await self._shake_hands(line)
                except Refused as refused:
                    if line.end is not None:
                        raise
                    log.debug("= initialize gave %.200r: probing the era again", str(refused))
            try:
                edge = await self._discovery.on(line, self._stateless)
            except Legacy as verdict:
                if known is Era.STATELESS and line.end is not None:
                    self._verdicts.forget(self._target)  # a crash at the start is no change of era: once more
                    await line.close()
                    return await self.open()
                return await self._fall_back(line, verdict)
        except BaseException:
            await line.close()
            raise
        self._verdicts.put(self._target, Era.STATELESS)
        return edge

    async def _fall_back(self, line: Line, why: Legacy) -> ClientEdge:
        if self._handshake is None:
            await line.close()
            if isinstance(why.__cause__, CallTimeout | ConnectionEnded):
                raise why.__cause__  # says nothing about its era
            told = f"the server does not speak {', '.join(self._rows)}: server/discover gave {why}"
            raise NoCommonRevision(told)
        log.debug("= server/discover gave %.200r: falling back to initialize", str(why))
        shake_hands = self._shake_hands_again
        if line.end is not None:  # some servers exit on a first message that they do not know
            await line.close()
            line = await self._dial()
            shake_hands = self._shake_hands
        try:
            edge = await shake_hands(line)
        except Refused as refused:
            revision = self._proves_stateless(refused)
            if revision is None or line.end is not None:
                await line.close()
                raise
            # It was only slow to start: an answer of its own era is proof (COMPAT-006).
            return await self._discover_again(line, revision)
        except BaseException:
            await line.close()
            raise
        self._verdicts.put(self._target, Era.HANDSHAKE)  # only who has looked knows, and for a limited time
        return edge

    async def _shake_hands_again(self, line: Line) -> ClientEdge:
        """On the line that was probed; a server that goes at its second message gets a fresh start (COMPAT-011)."""
        try:
            return await self._shake_hands(line)
        except ConnectionEnded:
            await line.close()
            fresh = await self._dial()
        try:
            return await self._shake_hands(fresh)
        except BaseException:
            await fresh.close()
            raise

    async def _discover_again(self, line: Line, revision: Revision) -> ClientEdge:
        try:
            edge = await self._discovery.on(line, revision)
        except BaseException as error:
            await line.close()
            if isinstance(error, Legacy):
                told = f"the server refuses both server/discover ({error}) and initialize"
                raise NoCommonRevision(told) from error
            raise
        self._verdicts.put(self._target, Era.STATELESS)
        return edge

    def _proves_stateless(self, refused: Refused) -> Revision | None:
        if refused.code != UnsupportedVersion.code:
            return None
        return self._discovery.common(supported_in(refused), Era.STATELESS)

    async def _shake_hands(self, line: Line) -> ClientEdge:
        wanted = cast(Revision, self._handshake)
        try:
            return await initialize(line, wanted, self._rows, self._me, self._patience, line.adopt)
        except InterlockError:
            self._verdicts.forget(self._target)  # it may be of the other era by now: look again next time
            raise


def _is_legacy(error: InterlockError) -> bool:
    """Another error, nonsense, silence, a process that exits: no single code decides."""
    return isinstance(error, Refused | BadResult | CallTimeout | ConnectionEnded)
