"""Which era is there? The client's way to a server of unknown age (modern.md §11).

The first message is `server/discover`. Proof of the stateless era is a proper answer or one of its own errors;
everything else (another error, nonsense, silence, a process that exits) means handshake, and no single code decides.

A server that stays silent is sent `initialize` on the same pipe, `probe_seconds` after it has read the probe; both
requests stay open and the first usable answer decides. A process that ends is started a second time, with
`initialize` alone, unless it ended before it read anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Protocol, cast

from ...revisions.revision import Era, Revision
from ...revisions.table import newest_of
from ...wire.channel import Link, Patience
from ...wire.errors import (
    BadResult,
    CallTimeout,
    CannotAsk,
    ConnectionEnded,
    HeaderMismatch,
    InterlockError,
    NoCommonRevision,
    Refused,
    UnsupportedVersion,
)
from ..input.callback import result_of
from .base import ClientEdge
from .handshake import initialize
from .identity import Identity
from .stateless import StatelessClient, envelope
from .version_errors import no_common, supported_in, versions_shown

__all__ = [
    "PipeLine",
    "Prober",
    "Verdicts",
    "Line",
    "Discovery",
    "Legacy",
]


class Line(Link, Protocol):
    """A link that knows whether it still stands."""

    @property
    def end(self) -> ConnectionEnded | None: ...

    def adopt(self, edge: ClientEdge) -> None:
        """From now on this edge answers what the server asks."""
        ...


class Legacy(Exception):
    """The verdict: not stateless. Its cause is the error that said so, if there was one."""


class Discovery:
    """Asks, corrects itself once, and settles on a version that both sides have."""

    def __init__(
        self,
        rows: dict[str, Revision],
        me: Identity,
        patience: Patience,
        edge: type[StatelessClient],
        *,
        is_legacy: Callable[[InterlockError], bool],
        insists: bool,
    ) -> None:
        self._rows = rows
        self._me = me
        self._patience = patience
        self._edge = edge
        self._is_legacy = is_legacy
        self._insists = insists  # is a version that was refused, and listed beside that, tried once more?

    async def on(self, line: Line, revision: Revision, *, retry: bool = True) -> ClientEdge:
        """The edge of the stateless era. Raises `Legacy` for the other one, and what is no evidence as it is."""
        meta = envelope(revision, self._me)
        try:
            frame = await line.call("server/discover", {}, meta, patience=self._patience, cancellable=False)
            found = result_of(frame, "server/discover", revision)
        except UnsupportedVersion as refused:
            return await self.on(line, self._corrected(refused, revision, retry), retry=False)
        except (HeaderMismatch, CannotAsk):
            raise  # proof of the stateless era: our request is wrong, not our era
        except InterlockError as error:
            if not self._is_legacy(error):
                raise
            raise Legacy(f"{type(error).__name__}: {error}") from error
        return self._adopted(line, found)

    def _adopted(self, line: Line, found: dict[str, Any]) -> ClientEdge:
        """A DiscoverResult: use a version both sides have, never one that is not listed (COMPAT-024)."""
        listed = found.get("supportedVersions")
        if found.get("resultType", "complete") != "complete" or not isinstance(listed, list):
            raise Legacy("an answer that is no DiscoverResult")
        edge = self._edge(line, self._chosen(cast("list[Any]", listed)), self._me, found)
        line.adopt(edge)
        return edge

    def _corrected(self, refused: UnsupportedVersion, tried: Revision, retry: bool) -> Revision:
        listed = supported_in(refused)
        chosen = self._chosen(listed)
        if not retry or (chosen is tried and not self._insists):
            raise NoCommonRevision(f"the server refuses {tried.name} and lists it as supported", versions_shown(listed))
        return chosen

    def _chosen(self, listed: list[Any]) -> Revision:
        chosen = self.common(listed, Era.STATELESS)
        if chosen is not None:
            return chosen
        if self.common(listed, Era.HANDSHAKE) is not None:
            raise Legacy("the server lists only revisions with a handshake")
        raise no_common(listed, self._rows)

    def common(self, listed: list[Any], era: Era) -> Revision | None:
        """The newest revision of that era among those listed and ours."""
        return newest_of({name: row for name, row in self._rows.items() if name in listed}, era)


log = logging.getLogger("interlock.client")
_READ_INTERVAL = 0.05  # seconds between two looks whether the server has read the probe


class PipeLine(Line, Protocol):
    """A line to a server that may have to start first."""

    @property
    def is_unread(self) -> bool:
        """True where it is known that the server has not read anything of what was sent yet."""
        ...


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

    def put(self, target: Any, era: Era, *, costly: bool = False) -> None:
        """`costly`: finding it out took a timeout or a second start. A memory that lasts keeps only that."""
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
        dial: Callable[[], Awaitable[Any]],
        rows: dict[str, Revision],
        me: Identity,
        *,
        patience: Patience,
        probe_seconds: float,
        verdicts: Verdicts,
        target: Any = None,
    ) -> None:
        self._dial: Callable[[], Awaitable[PipeLine]] = dial
        self._rows = rows
        self._me = me
        self._patience = patience
        self._probe_seconds = probe_seconds
        self._verdicts = verdicts
        self._target = target
        self._stateless = newest_of(rows, Era.STATELESS)
        self._handshake = newest_of(rows, Era.HANDSHAKE)
        self._discovery = Discovery(rows, me, patience, StatelessClient, is_legacy=_is_legacy, insists=False)

    async def open(self) -> ClientEdge:
        """Two starts at most: the second one only where the probe may have ended the first."""
        known = self._verdicts.get(self._target)
        line = await self._dial()
        try:
            if self._stateless is None:
                return await self._shake_hands(line)
            if known is Era.HANDSHAKE and self._handshake is not None:
                edge = await self._greet_known(line)
                if edge is not None:
                    return edge
            return await self._probe(line, self._stateless)
        except _ProbeEnded as ended:
            await line.close()
            if line.is_unread or (self._handshake is None and known is not Era.STATELESS):
                raise ended.error from None  # not because of the probe, or there is nothing else to try
            first = ended.error
        except BaseException:
            await line.close()
            raise
        return await self._start_again(first, self._stateless if known is Era.STATELESS else None)

    async def _greet_known(self, line: PipeLine) -> ClientEdge | None:
        """`initialize` to a server that is known to want it. None: it refused, and has to be probed after all."""
        try:
            return await self._shake_hands(line)
        except Refused as refused:
            if line.end is not None:
                raise
            log.debug("= initialize gave %.200r: probing the era again", str(refused))
            return None

    # --- asking -----------------------------------------------------------------------------------

    async def _probe(self, line: PipeLine, newest: Revision) -> ClientEdge:
        """The edge of the era that the server turns out to have. Raises `_ProbeEnded` where it ended instead."""
        asked = asyncio.get_running_loop().create_task(self._discovery.on(line, newest))
        silent = False
        try:
            if self._handshake is not None:
                silent = await self._stays_silent(line, asked)
            edge = await (self._await_first(line, asked) if silent else self._await_probe(line, asked))
        except ConnectionEnded as ended:
            raise _ProbeEnded(ended) from ended
        finally:
            await _end(asked)
        self._verdicts.put(self._target, edge.revision.era, costly=silent)
        return edge

    async def _stays_silent(self, line: PipeLine, asked: asyncio.Task[ClientEdge]) -> bool:
        """Is there no answer `probe_seconds` after the probe was read? A program that has not started to read yet, as
        one that is being downloaded, would not read `initialize` either: that time does not count."""
        while True:
            await asyncio.wait([asked], timeout=_READ_INTERVAL)
            if asked.done() or not line.is_unread:
                break
        if not asked.done():
            await asyncio.wait([asked], timeout=self._probe_seconds)
        return not asked.done()

    async def _await_probe(self, line: PipeLine, asked: asyncio.Task[ClientEdge]) -> ClientEdge:
        try:
            return await asked
        except Legacy as why:
            if self._handshake is None:
                raise self._no_handshake(why) from why.__cause__
            log.debug("= server/discover gave %.200r: falling back to initialize", str(why))
            return await self._shake_hands_or_discover(line)

    async def _await_first(self, line: PipeLine, asked: asyncio.Task[ClientEdge]) -> ClientEdge:
        """Both requests are under way on the same line; a DiscoverResult that comes late counts (COMPAT-006)."""
        log.debug("= no answer to server/discover within %g s: sending initialize, too", self._probe_seconds)
        greeted = asyncio.get_running_loop().create_task(self._shake_hands_or_discover(line))
        try:
            await asyncio.wait([asked, greeted], return_when=asyncio.FIRST_COMPLETED)
            if not asked.done() and isinstance(greeted.exception(), Refused):
                await asyncio.wait([asked], timeout=self._probe_seconds)  # a refusal is not of use: the other may be
            if not asked.done():
                return greeted.result()
            try:
                edge = asked.result()
            except Legacy as why:
                log.debug("= server/discover gave %.200r at last", str(why))
                return await greeted
            line.adopt(edge)  # the handshake may have been faster by a moment
            return edge
        finally:
            await _end(greeted)

    async def _shake_hands_or_discover(self, line: PipeLine) -> ClientEdge:
        """An `initialize` that is refused as only the stateless era does is proof of that era (COMPAT-006)."""
        try:
            return await self._shake_hands(line)
        except Refused as refused:
            revision = self._proves_stateless(refused)
            if revision is None or line.end is not None:
                raise
        try:
            return await self._discovery.on(line, revision)
        except Legacy as why:
            told = f"the server refuses both server/discover ({why}) and initialize"
            raise NoCommonRevision(told) from why

    def _no_handshake(self, why: Legacy) -> InterlockError:
        if isinstance(why.__cause__, CallTimeout):
            return why.__cause__  # says nothing about its era
        return NoCommonRevision(f"the server does not speak {', '.join(self._rows)}: server/discover gave {why}")

    def _proves_stateless(self, refused: Refused) -> Revision | None:
        if refused.code != UnsupportedVersion.code:
            return None
        return self._discovery.common(supported_in(refused), Era.STATELESS)

    async def _shake_hands(self, line: PipeLine) -> ClientEdge:
        wanted = cast(Revision, self._handshake)
        try:
            return await initialize(line, wanted, self._rows, self._me, self._patience, line.adopt)
        except InterlockError:
            self._verdicts.forget(self._target)  # it may be of the other era by now: look again next time
            raise

    # --- the second start -------------------------------------------------------------------------

    async def _start_again(self, first: ConnectionEnded, newest: Revision | None) -> ClientEdge:
        """Some servers exit on a first message that they do not know (COMPAT-011). `newest` is there for a server that
        has answered a probe before: its end was a crash, so it is probed again."""
        log.debug("= the server ended at its start (%.200r): starting it again", str(first))
        self._verdicts.forget(self._target)
        line = await self._dial()
        try:
            if newest is not None:
                return await self._probe(line, newest)
            edge = await self._shake_hands_or_discover(line)
        except (_ProbeEnded, ConnectionEnded) as second:
            await line.close()
            raise first from (second.error if isinstance(second, _ProbeEnded) else second)
        except BaseException:
            await line.close()
            raise
        self._verdicts.put(self._target, edge.revision.era, costly=True)
        return edge


class _ProbeEnded(Exception):
    """The connection ended while the server was being probed."""

    def __init__(self, error: ConnectionEnded) -> None:
        super().__init__(str(error))
        self.error = error


async def _end(task: asyncio.Task[ClientEdge]) -> None:
    """A request that has lost its race is given up; what it ended with does not matter any more."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


def _is_legacy(error: InterlockError) -> bool:
    """Another error, nonsense, silence: no single code decides."""
    return isinstance(error, Refused | BadResult | CallTimeout)
