"""Which era is there? The client's way to a server of unknown age (modern.md §11).

The first message is `server/discover`. Proof of the stateless era is a proper answer or one of its own errors;
everything else (another error, nonsense, silence, a process that exits) means handshake, and no single code decides.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Protocol, cast

import msgspec

from ..wire.errors import (
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
from ..wire.link import Link, Patience
from .asking import result_of
from .client_edge import ClientEdge
from .handshake_client import initialize
from .identity import Identity
from .revision import Era, Revision
from .stateless_client import StatelessClient, envelope
from .table import newest_of

__all__ = ["Prober", "Verdicts", "Line", "supported_in"]

log = logging.getLogger("interlock.client")


class Line(Link, Protocol):
    """A link that knows whether it still stands."""

    @property
    def end(self) -> ConnectionEnded | None: ...

    def adopt(self, edge: ClientEdge) -> None:
        """From now on this edge answers what the server asks."""
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

    def put(self, target: Any, era: Era) -> None:
        if target is None:
            return
        if target not in self._found and len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[target] = (era, monotonic() + self._seconds)

    def forget(self, target: Any) -> None:
        self._found.pop(target, None)


class _Supported(msgspec.Struct):
    """The data of -32022, as far as we need it."""

    supported: list[Any] = []


def supported_in(refused: Refused) -> list[Any]:
    """The versions a -32022 lists; nothing where it lists none in the proper place."""
    try:
        return msgspec.convert(refused.data, _Supported).supported
    except msgspec.ValidationError:
        return []


class _Legacy(Exception):
    """The verdict: not stateless."""


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
        self._probe = Patience(idle=None, total=probe_seconds)
        self._verdicts = verdicts
        self._target = target
        self._stateless = newest_of(rows, Era.STATELESS)
        self._handshake = newest_of(rows, Era.HANDSHAKE)
        if self._handshake is None:
            self._probe = patience  # nothing to fall back to: no hurry

    async def open(self) -> ClientEdge:
        known = self._verdicts.get(self._target)
        line = await self._dial()
        try:
            if self._stateless is None or (known is Era.HANDSHAKE and self._handshake is not None):
                return await self._shake_hands(line)
            try:
                edge = await self._discover(line, self._stateless, retry=True)
            except _Legacy as verdict:
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

    async def _discover(self, line: Line, revision: Revision, *, retry: bool) -> ClientEdge:
        try:
            frame = await line.call(
                "server/discover", {}, envelope(revision, self._me), patience=self._probe, cancellable=False
            )
            found = result_of(frame, "server/discover", revision)
        except UnsupportedVersion as refused:
            return await self._discover(line, self._retry_with(refused, revision, retry), retry=False)
        except (HeaderMismatch, CannotAsk):
            raise  # proof of the stateless era: our request is wrong, not our era
        except (Refused, BadResult, CallTimeout, ConnectionEnded) as error:
            raise _Legacy(f"{type(error).__name__}: {error}") from error
        return self._settle(line, found, revision)

    def _settle(self, line: Line, found: dict[str, Any], asked: Revision) -> ClientEdge:
        """A DiscoverResult: use a version both sides have, never one that is not listed (COMPAT-024)."""
        listed = found.get("supportedVersions")
        if found.get("resultType", "complete") != "complete" or not isinstance(listed, list):
            raise _Legacy("an answer that is no DiscoverResult")
        common = self._common(cast("list[Any]", listed), Era.STATELESS)
        if common is None:
            raise self._no_stateless(cast("list[Any]", listed))
        edge = StatelessClient(line, common, self._me, found)
        line.adopt(edge)
        return edge

    def _retry_with(self, refused: UnsupportedVersion, tried: Revision, retry: bool) -> Revision:
        listed = supported_in(refused)
        common = self._common(listed, Era.STATELESS)
        if common is None:
            raise self._no_stateless(listed)
        if not retry or common is tried:
            raise NoCommonRevision(f"the server refuses {tried.name} and lists it as supported", tuple(listed))
        return common

    def _common(self, listed: list[Any], era: Era) -> Revision | None:
        return newest_of({name: row for name, row in self._rows.items() if name in listed}, era)

    def _no_stateless(self, listed: list[Any]) -> Exception:
        if self._common(listed, Era.HANDSHAKE) is not None:
            return _Legacy("the server lists only revisions with a handshake")
        names = tuple(str(name)[:40] for name in listed)
        ours = ", ".join(self._rows)
        return NoCommonRevision(f"the server speaks {', '.join(names) or 'nothing'}, this client {ours}", names)

    async def _fall_back(self, line: Line, why: _Legacy) -> ClientEdge:
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
            return await shake_hands(line)
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
            edge = await self._discover(line, revision, retry=False)
        except BaseException as error:
            await line.close()
            if isinstance(error, _Legacy):
                told = f"the server refuses both server/discover ({error}) and initialize"
                raise NoCommonRevision(told) from error
            raise
        self._verdicts.put(self._target, Era.STATELESS)
        return edge

    def _proves_stateless(self, refused: Refused) -> Revision | None:
        if refused.code != UnsupportedVersion.code:
            return None
        return self._common(supported_in(refused), Era.STATELESS)

    async def _shake_hands(self, line: Line) -> ClientEdge:
        wanted = cast(Revision, self._handshake)
        try:
            edge = await initialize(line, wanted, self._rows, self._me, self._patience, line.adopt)
        except InterlockError:
            self._verdicts.forget(self._target)  # it may be of the other era by now: look again next time
            raise
        self._verdicts.put(self._target, Era.HANDSHAKE)
        return edge
