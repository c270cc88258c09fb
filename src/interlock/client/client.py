"""What a caller sees: one server, whatever its age and wherever it runs.

`open`, every call and `close` are legal from any task, in any order, and from other threads: the client lives on the
loop that opened it, and what is called elsewhere is handed over to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import UNSET

from ..protocol.client.base import ClientEdge
from ..protocol.client.identity import Identity
from ..protocol.client.inbound import ClientSide
from ..protocol.client.probe import Line, Verdicts
from ..revisions.revision import Era
from ..revisions.table import pick
from ..transport.jsonrpc.keepalive import Keepalive, Pinger
from ..version import __version__
from ..web.outbound.deadlines import movable_timeout
from ..wire.channel import Patience
from ..wire.errors import (
    CallTimeout,
    ConnectionEnded,
    ConnectionLost,
    InterlockError,
    LocalError,
    NotOpen,
    Refused,
    SessionGone,
)
from ..wire.exchange import Exchange, Peer, Result
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.meta import LOG_LEVEL
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Implementation, LogLevel
from . import lazy_types
from .callbacks import Answers, Callback, Roots
from .connect_once import Attempts
from .event_callbacks import Telling
from .failures import explained, name_withheld, opening_error
from .methods import Verbs, check_level
from .request import Calling, OnProgress, patience_of, running_loop, seconds_of
from .subscriptions import Change, Listening, told_by
from .targets import ClientLine, Target, target_of

if TYPE_CHECKING:
    from ..transport.http.client.link import HttpLink
    from ..transport.http.client.session_connection import HttpLine
    from .supervisor import Supervisor

__all__ = ["Client", "OnProgress"]

log = logging.getLogger("interlock.client")
T = TypeVar("T")
_SHARED_VERDICTS = Verdicts()
_NOT_OPEN = "this client is not open: use `async with` or await open()"


class Client(Verbs):
    """A connection to one server.

    `target` is the URL of an HTTP endpoint, a `Server` (in memory), a command as a list of strings, a `Command`, an
    entry of `read_config` (or a path of one), or a `Channel` of your own. `headers` go with every request to a URL;
    `auth` gets it tokens (docs/authorization.md).
    """

    # how things stand, as long as nothing happened
    _loop: asyncio.AbstractEventLoop | None = None
    _edge: ClientEdge | None = None
    _lost: ConnectionEnded | None = None
    _closing: asyncio.Task[None] | None = None
    _closed = False
    _pinger: Pinger | None = None
    _standing: Listening | None = None
    _deadline: asyncio.Timeout | None = None

    def __init__(
        self,
        target: Any,
        *,
        headers: Mapping[str, str] | None = None,
        auth: lazy_types.Plan | None = None,
        allowed_hosts: Iterable[str] = (),  # that may be spoken to without TLS, and inside (docs/http_client.md)
        revision: str | tuple[str, ...] | None = None,
        name: str = "interlock",
        version: str = __version__,
        title: str | None = None,
        elicit: Callback | None = None,
        elicit_url: Callback | None = None,
        sample: Callback | None = None,
        roots: Roots | None = None,
        experimental: Mapping[str, Mapping[str, Any]] | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        on_notification: Callable[[str, dict[str, Any]], Any] | None = None,
        on_log: Callable[[str, Any, str | None], Any] | None = None,
        on_change: Callable[[Change], Any] | None = None,
        log_level: LogLevel | None = None,
        timeout: float | Patience = Patience(),  # noqa: B008 - immutable
        connect_timeout: float = 60.0,
        probe_timeout: float = 3.0,  # from when a process has read the probe to when it gets `initialize`, too
        keepalive: Keepalive | None = Keepalive(),  # noqa: B008 - immutable
        supervise: lazy_types.Supervision | bool = False,
        on_state: lazy_types.OnState | None = None,
        limits: Limits = DEFAULT_LIMITS,
        verdicts: Verdicts = _SHARED_VERDICTS,
    ) -> None:
        super().__init__()
        self._target = target_of(target, limits, headers, allowed_hosts, auth)
        self._rows = pick((revision,) if isinstance(revision, str) else revision)
        self._answers = Answers(
            elicit=elicit,
            elicit_url=elicit_url,
            sample=sample,
            roots=roots,
            experimental=experimental,
            extensions={**(auth.declares if auth is not None else {}), **(extensions or {})},
        )
        self._http = None if isinstance(self._target, Target) else self._target
        info = Implementation(name=name, version=version, title=title or UNSET)
        self._me = Peer(info)
        standing = Calling("", {}, self._me, None, self._answers)
        self._identity = Identity(info, self._answers.capabilities(), standing)
        if log_level is not None:
            check_level(log_level)
        self._log_level = log_level
        self._telling = Telling(on_notification, on_log, on_change)
        self._patience = patience_of(timeout)
        self._connect_seconds = seconds_of("connect_timeout", connect_timeout)
        self._probe_timeout = seconds_of("probe_timeout", probe_timeout)
        self._supervisor = self._supervised(supervise, on_state) if supervise else None
        self._keepalive = keepalive if self._target.pings and not supervise else None
        self._limits = limits
        self._verdicts = verdicts
        self._attempts = Attempts(self._connect, self._opened)

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect and agree on a revision. Concurrent calls share one attempt; an open client is left as it is."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        await self._here(self._open())

    async def _open(self) -> ClientEdge:
        if self._closed:
            raise NotOpen("this client was closed")
        if self._edge is not None and self._lost is None:
            return self._edge
        return await self._attempts.join()

    async def _connect(self) -> ClientEdge:
        if self._edge is not None:
            await self._edge.close()  # what is left of a lost connection
        prober = self._target.prober(
            self._dial,
            self._rows,
            self._identity,
            patience=Patience(idle=None, total=self._connect_seconds),
            probe_seconds=self._probe_timeout,
            verdicts=self._verdicts,
            target=self._target.key,
        )
        try:
            # a user who logs in is not the server's time, and a second start of a process has its own
            async with movable_timeout(self._connect_seconds) as self._deadline:
                return await self._as_before(await prober.open())
        except InterlockError as error:
            told = name_withheld(explained(opening_error(error), self._channel), self._channel)
            raise told from told.__cause__
        except TimeoutError:
            late = CallTimeout("open", self._connect_seconds, "connect")
            raise name_withheld(explained(late, self._channel), self._channel) from None

    async def _as_before(self, edge: ClientEdge) -> ClientEdge:
        """What holds for the client is told to every connection."""
        if self._log_level is None or "logging/setLevel" not in edge.revision.requests or not edge.offers("logging"):
            return edge
        try:
            level = {"level": self._log_level}
            await edge(Calling("logging/setLevel", level, self._me, self._patience, self._answers))
        except Refused as refused:
            log.warning("! the server does not take the log level %s: %s", self._log_level, refused)
        except BaseException:
            await edge.close()
            raise
        return edge

    async def _dial(self) -> Line:
        if not isinstance(self._target, Target):
            return self._target.link(self._heard, self._ended)
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._connect_seconds)
        side = ClientSide(self._heard, self._ended)
        self._channel = self._target.make()
        duplex = ClientLine(self._channel, side, self._limits)
        side.attach(duplex.hear)
        try:
            await duplex.open()
        except BaseException as error:
            await duplex.close()
            if isinstance(error, InterlockError) or not isinstance(error, OSError):
                raise
            raise ConnectionLost(f"could not connect to {self._target.name}: {error.strerror or error}") from error
        return duplex

    def _opened(self, edge: ClientEdge) -> None:
        self._edge = edge
        line = cast("ClientLine | HttpLink | HttpLine", edge.link)
        self._lost = line.end
        self._renew(edge)
        if self._keepalive is not None and isinstance(line, ClientLine) and edge.revision.era is Era.HANDSHAKE:
            self._pinger = Pinger(line, self._keepalive)
        if self._supervisor is not None:
            self._supervisor.opened(edge)

    def _renew(self, edge: ClientEdge) -> None:
        """A connection: nothing that was learned on the last one holds, and changes are to be heard on it."""
        self._forget()
        self._say_level(edge)
        if self._telling.on_change is None or "subscriptions/listen" not in edge.revision.requests:
            return
        wanted = told_by(edge)
        if wanted and (self._standing is None or self._standing.over):
            self._standing = Listening(self._hub, wanted, standing=True)
            self._standing.begin()

    def _say_level(self, edge: ClientEdge) -> None:
        by_request = self._log_level is not None and "logging/setLevel" not in edge.revision.requests
        self._said = {LOG_LEVEL: self._log_level} if by_request else None

    def _ended(self, error: ConnectionEnded) -> None:
        self._lost = error
        self._hub.ended(error)
        if self._pinger is not None:
            self._pinger.close()
        if self._supervisor is not None:
            self._supervisor.lost(error)

    async def close(self) -> None:
        """End the connection and everything it started. Idempotent; who gives up waiting does not stop it."""
        if self._loop is None or not self._loop.is_running():
            self._closed = True
            if self._edge is not None:
                cast("ClientLine | HttpLink | HttpLine", self._edge.link).abandon()
            return
        await self._here(self._close())

    async def _close(self) -> None:
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        if self._supervisor is not None:
            await self._supervisor.close()
        await self._attempts.close()
        await self._hub.close()
        await self._telling.close()
        if self._pinger is not None:
            self._pinger.close()
        if self._edge is not None:
            await self._edge.close()

    # --- what is known about the server -----------------------------------------------------------

    @property
    def state(self) -> lazy_types.State | None:
        """Where a supervised connection stands; None for one that is not supervised."""
        return self._supervisor.state if self._supervisor is not None else None

    @property
    def revision(self) -> str:
        """The revision both sides speak."""
        return self._open_edge().revision.name

    @property
    def server_info(self) -> Implementation:
        """Who the server says it is: display data."""
        return self._open_edge().server_info

    @property
    def capabilities(self) -> ServerCapabilities:
        return self._open_edge().capabilities

    @property
    def instructions(self) -> str | None:
        """The server's words to the model: data, not orders."""
        found = self._open_edge().discovered.get("instructions")
        return found if isinstance(found, str) else None

    def _open_edge(self) -> ClientEdge:
        if self._edge is None:
            raise NotOpen(_NOT_OPEN)
        return self._edge

    # --- how calls travel -------------------------------------------------------------------------

    async def _call(self, exchange: Exchange) -> Result:
        if self._supervisor is not None:
            return await self._supervisor.call(exchange)
        try:
            return await (await self._ready())(exchange)
        except SessionGone as gone:
            if gone.sent is not False:
                raise
        # turned away unread, because the session was forgotten: said once more, in a new one (#session-management)
        return await (await self._ready())(exchange)

    async def _call_with(self, exchange: Exchange, headers: Mapping[str, str] | None) -> Result:
        if self._http is None:
            raise LocalError("headers= belongs to a target that is an http:// or https:// URL")
        if headers:
            await self._ready()  # a connection that is opened for this call may be to another endpoint by now
        before = self._http.say(headers)
        try:
            return await self._call(exchange)
        finally:
            self._http.unsay(before)

    async def _tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        await (await self._ready()).link.tell(method, params)

    async def _ready(self, patience: Patience | None = None) -> ClientEdge:
        """The open connection. One that was lost is opened anew: its server is started again (STDIO-016)."""
        if self._edge is not None and self._lost is None and not self._closed:
            return self._edge
        if self._supervisor is not None and self._supervisor.state != "connecting":
            return await self._supervisor.edge("the client", patience or self._patience)
        if self._edge is None and not self._attempts.under_way and not self._closed:
            raise NotOpen(_NOT_OPEN)
        return await self._open()

    # --- inside -----------------------------------------------------------------------------------

    def _supervised(self, rules: lazy_types.Supervision | bool, on_state: lazy_types.OnState | None) -> Supervisor:
        from .supervisor import Supervisor  # who does not ask for it starts without it

        hooks = self._ready, self._open, self._ended, self._heard
        return Supervisor(rules, on_state, *hooks, me=self._me, answers=self._answers)

    def _here(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Run `work` on the loop this client lives on."""
        loop = self._loop
        if loop is None or loop is running_loop():
            return work
        if not loop.is_running():
            work.close()
            raise LocalError("the event loop that this client was opened on is closed or not running")
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        self._noticed(method, params)
        self._telling.heard(method, params)

    def _changed(self, change: Change) -> None:
        self._telling.changed(change)
