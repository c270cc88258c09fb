"""Which era is behind a URL? The client's way to an HTTP server of unknown age (modern.md §11, the table for HTTP).

A sibling of `protocol/client/probe.py`. Unlike there, silence, a broken connection and a missing credential are not
evidence: they look the same in front of every era and are raised as they are. A refusal by a bare HTTP status is weak
evidence: older servers, and guards before them, refuse `server/discover` with 403, 422 or 500. `initialize` is tried
then; where it works it is used and not remembered, and where it fails the first refusal is raised."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeGuard, cast

from ....protocol.client.base import ClientEdge
from ....protocol.client.handshake import initialize
from ....protocol.client.identity import Identity
from ....protocol.client.probe import Discovery, Legacy, Line, Verdicts
from ....revisions.revision import Era, Revision
from ....revisions.table import newest_of
from ....wire.channel import Patience
from ....wire.errors import (
    AuthorizationFailed,
    AuthRequired,
    BadResult,
    CallTimeout,
    HttpStatus,
    InterlockError,
    InternalError,
    NoCommonRevision,
    Refused,
    RemoteError,
)
from ....wire.escaping import display
from .session_headers import SAYS_OLDER, says_older
from .stateless import StatelessHttpClient

__all__ = ["HttpProber"]

log = logging.getLogger("interlock.client")


class OldLine(Line, Protocol):
    """A line of the handshake era, not open yet."""

    async def open(self) -> None: ...


class HttpLine(Line, Protocol):
    """A link to one endpoint that can also be spoken to in the older ways."""

    def session(self) -> OldLine:
        """Over Streamable HTTP with a handshake."""
        ...

    def stream(self) -> OldLine:
        """Over HTTP+SSE."""
        ...


class HttpProber:
    """Opens one endpoint: asks, corrects itself once, decides, and falls back step by step."""

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
        self._dial: Callable[[], Awaitable[HttpLine]] = dial
        self._rows, self._me, self._patience = rows, me, patience
        # `probe_seconds` bounds the wait for silence to mean something; here it never does (the table: timeout). A
        # gateway that was just updated may refuse a version and list it: on HTTP, to ask again costs one request.
        self._discovery = Discovery(rows, me, patience, StatelessHttpClient, is_legacy=_is_legacy, insists=True)
        self._verdicts = verdicts
        self._target = target
        self._stateless = newest_of(rows, Era.STATELESS)
        self._handshake = newest_of(rows, Era.HANDSHAKE)

    async def open(self) -> ClientEdge:
        line = await self._dial()
        try:
            edge = await self._settle_era(line)
        except BaseException:
            await line.close()
            raise
        if edge.link is not line:
            try:
                await line.close()  # it was only there to ask
            except BaseException:
                await edge.close()  # given up at the last moment: nobody gets it
                raise
        return edge

    async def _settle_era(self, line: HttpLine) -> ClientEdge:
        if self._stateless is None:
            return await self._shake_hands(line)
        known = self._verdicts.get(self._target)
        if known is Era.HANDSHAKE and self._handshake is not None:
            try:
                return await self._shake_hands(line)
            except InterlockError as error:
                if not says_older(error):
                    raise
                log.debug("= no handshake any more (%.200r): asking for the era again", str(error))
        return await self._asked(line, self._stateless, known)

    async def _asked(self, line: HttpLine, newest: Revision, known: Era | None) -> ClientEdge:
        try:
            edge = await self._discovery.on(line, newest)
        except Legacy as verdict:
            if known is Era.STATELESS and verdict.__cause__ is not None:
                raise verdict.__cause__ from None  # confirmed once, it never falls back (modern.md §11)
            edge = await self._fall_back(line, verdict)
            if _is_weak(verdict.__cause__):
                return edge
        self._verdicts.put(self._target, edge.revision.era)  # only who has looked knows
        return edge

    async def _fall_back(self, line: HttpLine, why: Legacy) -> ClientEdge:
        cause = why.__cause__
        if self._handshake is None:
            if _is_weak(cause):
                raise cause from None
            told = f"the server does not speak {', '.join(self._rows)}: server/discover gave {why}"
            raise NoCommonRevision(told) from cause
        log.debug("= server/discover gave %.200r: falling back to initialize", str(why))
        try:
            return await self._shake_hands(line)
        except (Refused, RemoteError, CallTimeout) as error:
            if isinstance(error, AuthRequired | AuthorizationFailed | NoCommonRevision):
                raise
            if _is_weak(cause):
                raise _with_attempts(cause, "initialize", error) from error
            _with_attempts(error, "server/discover", cause or why)
            raise

    async def _shake_hands(self, line: HttpLine) -> ClientEdge:
        """`initialize` by POST; where the server knows no such thing, the transport before that."""
        try:
            return await self._introduced(line.session())
        except InterlockError as error:
            self._verdicts.forget(self._target)  # it may be of the other era by now: look again next time
            if not says_older(error):
                raise
            refused = error
        older = line.stream()
        try:
            await older.open()
        except BaseException as error:
            await older.close()
            if isinstance(error, BadResult):
                raise error from refused  # there is such a stream: what is wrong with it is what matters
            if isinstance(error, InterlockError):
                raise refused from error  # no such stream either: what it said first is what it meant
            raise
        return await self._introduced(older, opened=True)

    async def _introduced(self, line: OldLine, *, opened: bool = False) -> ClientEdge:
        wanted = cast(Revision, self._handshake)
        try:
            if not opened:
                await line.open()
            return await initialize(line, wanted, self._rows, self._me, self._patience, line.adopt)
        except BaseException:
            await line.close()
            raise


def _with_attempts(error: InterlockError, other: str, gave: BaseException) -> InterlockError:
    """The same error; it names what else was tried, and how to try less."""
    answer = _answer_of(gave)
    same = answer == _answer_of(error)
    tried = f"{other} was tried too{', with the same answer' if same else f' and gave: {display(answer, 300)}'}"
    error.hint = f"{tried}; pass revision= to try one revision alone"
    error.add_note(error.hint)  # which a traceback shows
    return error


def _answer_of(error: BaseException) -> str:
    """The first line of an error, without the method that it begins with."""
    line = str(error).partition("\n")[0]
    return line.removeprefix("server/discover: ").removeprefix("initialize: ")


def _is_weak(error: BaseException | None) -> TypeGuard[HttpStatus]:
    """Is it a status that anything before the server may give, too?"""
    return isinstance(error, HttpStatus) and error.status not in SAYS_OLDER


def _is_legacy(error: InterlockError) -> bool:
    """-32601 too: server/discover is what every stateless server has. A failure inside of the server that it reports
    itself (-32603) does not tell its era."""
    if isinstance(error, HttpStatus):
        return says_older(error) or error.status >= 500
    return isinstance(error, Refused | BadResult) and not isinstance(error, InternalError)
