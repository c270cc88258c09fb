"""Which era is behind a URL? The client's way to an HTTP server of unknown age (modern.md §11, the table for HTTP).

A sibling of `probing.py`. Unlike there, silence and breakage are no evidence: a gateway, a restart or a missing
credential look the same in front of every era, so they are raised as what they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..wire.display import display
from ..wire.errors import (
    BadResult,
    CannotAsk,
    HeaderMismatch,
    HttpStatus,
    InternalError,
    NoCommonRevision,
    Refused,
    UnsupportedVersion,
)
from ..wire.link import Patience
from .asking import result_of
from .client_edge import ClientEdge
from .identity import Identity
from .probing import Line, Verdicts, supported_in
from .revision import Era, Revision
from .stateless_client import envelope
from .stateless_http_client import StatelessHttpClient
from .table import newest_of

__all__ = ["HttpProber"]

_SAYS_HANDSHAKE = frozenset({400, 404, 405})  # without a message of the stateless era in the body


class _Legacy(Exception):
    """The verdict: not stateless."""


class HttpProber:
    """Opens one endpoint: asks, corrects itself once, decides."""

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
        # `probe_seconds` bounds the wait for silence to mean something; here it never does (the table: timeout).
        self._patience = patience
        self._verdicts = verdicts
        self._target = target
        self._stateless = newest_of(rows, Era.STATELESS)

    async def open(self) -> ClientEdge:
        line = await self._dial()
        try:
            edge = await self._settle_era(line)
        except BaseException:
            await line.close()
            raise
        self._verdicts.put(self._target, edge.revision.era)
        return edge

    async def _settle_era(self, line: Line) -> ClientEdge:
        if self._stateless is None:
            return await self._fall_back(line, _Legacy("this client was told to speak revisions with a handshake only"))
        try:
            return await self._discover(line, self._stateless, retry=True)
        except _Legacy as verdict:
            if self._verdicts.get(self._target) is Era.STATELESS and verdict.__cause__ is not None:
                raise verdict.__cause__ from None  # confirmed once, it never falls back (modern.md §11)
            return await self._fall_back(line, verdict)

    async def _discover(self, line: Line, revision: Revision, *, retry: bool) -> ClientEdge:
        try:
            frame = await line.call(
                "server/discover", {}, envelope(revision, self._me), patience=self._patience, cancellable=False
            )
            found = result_of(frame, "server/discover", revision)
        except UnsupportedVersion as refused:
            return await self._discover(line, self._retry_with(refused, revision, retry), retry=False)
        except (HeaderMismatch, CannotAsk, InternalError):
            # The first two prove the stateless era: our request is wrong, not our era. A failure inside the server
            # (its status is 5xx, if it is careful) says nothing about its era.
            raise
        except HttpStatus as status:
            if status.status not in _SAYS_HANDSHAKE:
                raise
            raise _Legacy(str(status)) from status
        except (Refused, BadResult) as error:
            # -32601 too: server/discover is what every stateless server has.
            raise _Legacy(f"{type(error).__name__}: {error}") from error
        return self._adopted(line, found)

    def _adopted(self, line: Line, found: dict[str, Any]) -> ClientEdge:
        """A DiscoverResult: use a version both sides have, never one that is not listed (COMPAT-024)."""
        listed = found.get("supportedVersions")
        if found.get("resultType", "complete") != "complete" or not isinstance(listed, list):
            raise _Legacy("an answer that is no DiscoverResult")
        common = self._common(cast("list[Any]", listed), Era.STATELESS)
        if common is None:
            raise self._no_stateless(cast("list[Any]", listed))
        edge = StatelessHttpClient(line, common, self._me, found)
        line.adopt(edge)
        return edge

    def _retry_with(self, refused: UnsupportedVersion, tried: Revision, retry: bool) -> Revision:
        """Once, also with the version that was refused when the server lists it: it stands corrected, or it refuses
        again and that is the end. A gateway that was just updated says such a thing; on HTTP it costs one request."""
        listed = supported_in(refused)
        common = self._common(listed, Era.STATELESS)
        if common is None:
            raise self._no_stateless(listed)
        if not retry:
            names = _shown(listed)
            raise NoCommonRevision(f"the server refuses {tried.name} and lists it as supported", names)
        return common

    def _common(self, listed: list[Any], era: Era) -> Revision | None:
        return newest_of({name: row for name, row in self._rows.items() if name in listed}, era)

    def _no_stateless(self, listed: list[Any]) -> Exception:
        if self._common(listed, Era.HANDSHAKE) is not None:
            return _Legacy("the server lists only revisions with a handshake")
        names = _shown(listed)
        ours = ", ".join(self._rows)
        return NoCommonRevision(f"the server speaks {', '.join(names) or 'nothing'}, this client {ours}", names)

    async def _fall_back(self, line: Line, why: _Legacy) -> ClientEdge:
        """Where the handshake over HTTP begins. There is none yet, and nothing is sent in its place."""
        told = "over HTTP this client speaks only the revisions without a handshake, and the server none of them"
        raise NoCommonRevision(f"{told}: {why}") from why.__cause__


def _shown(listed: list[Any]) -> tuple[str, ...]:
    return tuple(display(str(name), 40) for name in listed[:20])
