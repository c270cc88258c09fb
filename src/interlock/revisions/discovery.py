"""`server/discover` as the first message to a server of unknown age: what every carrier's opening has in common.

A proper answer, or one of the stateless era's own errors, is proof of it. Which of all other outcomes mean a handshake,
and which mean nothing, depends on the carrier: `probing.py` and `http_probing.py` say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from ..wire.errors import (
    CannotAsk,
    ConnectionEnded,
    HeaderMismatch,
    InterlockError,
    NoCommonRevision,
    UnsupportedVersion,
)
from ..wire.link import Link, Patience
from .asking import result_of
from .client_edge import ClientEdge
from .identity import Identity
from .revision import Era, Revision
from .stateless_client import StatelessClient, envelope
from .table import newest_of
from .version_lists import no_common, supported_in, versions_shown

__all__ = ["Discovery", "Legacy", "Line"]


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
