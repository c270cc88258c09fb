"""Which era is behind a URL? The client's way to an HTTP server of unknown age (modern.md §11, the table for HTTP).

A sibling of `probing.py`. Unlike there, silence and breakage are no evidence: a gateway, a restart or a missing
credential look the same in front of every era, so they are raised as what they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..wire.errors import BadResult, HttpStatus, InterlockError, InternalError, NoCommonRevision, Refused
from ..wire.link import Patience
from .client_edge import ClientEdge
from .discovery import Discovery, Legacy, Line
from .identity import Identity
from .probing import Verdicts
from .revision import Era, Revision
from .stateless_http_client import StatelessHttpClient
from .table import newest_of

__all__ = ["HttpProber"]

_SAYS_HANDSHAKE = frozenset({400, 404, 405})  # without a message of the stateless era in the body


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
        # `probe_seconds` bounds the wait for silence to mean something; here it never does (the table: timeout). A
        # gateway that was just updated may refuse a version and list it: on HTTP, to ask again costs one request.
        self._discovery = Discovery(rows, me, patience, StatelessHttpClient, is_legacy=_is_legacy, insists=True)
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
            return await self._fall_back(line, Legacy("this client was told to speak revisions with a handshake only"))
        try:
            return await self._discovery.on(line, self._stateless)
        except Legacy as verdict:
            if self._verdicts.get(self._target) is Era.STATELESS and verdict.__cause__ is not None:
                raise verdict.__cause__ from None  # confirmed once, it never falls back (modern.md §11)
            return await self._fall_back(line, verdict)

    async def _fall_back(self, line: Line, why: Legacy) -> ClientEdge:
        """Where the handshake over HTTP begins. There is none yet, and nothing is sent in its place."""
        told = "over HTTP this client speaks only the revisions without a handshake, and the server none of them"
        raise NoCommonRevision(f"{told}: {why}") from why.__cause__


def _is_legacy(error: InterlockError) -> bool:
    """-32601 too: server/discover is what every stateless server has. A failure inside of the server (its status is
    5xx, if it is careful) says nothing about its era."""
    if isinstance(error, HttpStatus):
        return error.status in _SAYS_HANDSHAKE
    return isinstance(error, Refused | BadResult) and not isinstance(error, InternalError)
