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

from ..revisions.client_edge import ClientEdge
from ..revisions.client_side import ClientSide
from ..revisions.identity import Identity
from ..revisions.probing import Line, Verdicts
from ..revisions.revision import Era
from ..revisions.table import pick
from ..transport.duplex import Duplex
from ..transport.keepalive import Keepalive, Pinger
from ..transport.pausing import movable_timeout
from ..version import __version__
from ..wire.errors import (
    CallTimeout,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InterlockError,
    LocalError,
    NotOpen,
    RemoteError,
    SessionGone,
)
from ..wire.exchange import Exchange, Peer, Result
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.link import Patience
from ..wire.meta import LOG_LEVEL, check_author_keys
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Implementation
from ..wire.types.content import ResourceContents
from ..wire.types.prompts import Prompt
from ..wire.types.resources import Resource, ResourceTemplate
from ..wire.types.tools import Tool
from .answers import Answers, Callback, Roots
from .calling import Calling, OnNotification, OnProgress
from .results import CallResult, PromptResult, read_call, read_contents, read_items, read_prompt
from .targets import Target, target_of

if TYPE_CHECKING:
    from ..auth.plans import Plan
    from ..transport.http_client import HttpLink
    from ..transport.http_line import HttpLine

__all__ = ["Client", "OnProgress"]

log = logging.getLogger("interlock.client")
T = TypeVar("T")
_PAGES = 1000  # pages of one list; a server that has more is taken for an endless one
_ITEMS = 100_000  # and so many items
_SHARED_VERDICTS = Verdicts()


class Client:
    """A connection to one server.

    `target` is the URL of an HTTP endpoint, a `Server` (in memory), a command as a list of strings, a `Command`, or a
    `Channel` of your own. `headers` go with every request to a URL.
    """

    def __init__(
        self,
        target: Any,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Plan | None = None,
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
        on_notification: Callable[[str, dict[str, Any]], None] | None = None,
        timeout: float | Patience = Patience(),  # noqa: B008 - immutable
        connect_timeout: float = 60.0,
        probe_timeout: float = 10.0,
        keepalive: Keepalive | None = Keepalive(),  # noqa: B008 - immutable
        limits: Limits = DEFAULT_LIMITS,
        verdicts: Verdicts = _SHARED_VERDICTS,
    ) -> None:
        self._target = target_of(target, limits, headers, allowed_hosts, auth)
        self._rows = pick((revision,) if isinstance(revision, str) else revision)
        self._answers = Answers(
            elicit=elicit,
            elicit_url=elicit_url,
            sample=sample,
            roots=roots,
            experimental=experimental,
            extensions=extensions,
        )
        info = Implementation(name=name, version=version, title=title or UNSET)
        self._me = Peer(info)
        standing = Calling("", {}, self._me, None, self._answers)
        self._identity = Identity(info, self._answers.capabilities(), standing)
        self._on_notification = on_notification
        self._patience = _patience(timeout)
        self._connect_seconds = connect_timeout
        self._probe_timeout = probe_timeout
        self._keepalive = keepalive if self._target.pings else None
        self._limits = limits
        self._verdicts = verdicts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._edge: ClientEdge | None = None
        self._lost: ConnectionEnded | None = None
        self._opening: asyncio.Task[ClientEdge] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._failures = self._waiting = 0
        self._abandoned: set[asyncio.Task[ClientEdge]] = set()
        self._closing_strays: set[asyncio.Task[None]] = set()
        self._closed = False
        self._pinger: Pinger | None = None

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
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add_done_callback(self._opened)
        opening = self._opening
        self._waiting += 1
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if self._closed and opening.cancelled():
                raise ConnectionClosed("the client was closed while it was opening") from None
            raise
        finally:
            self._waiting -= 1
            if self._waiting == 0 and not opening.done():
                self._abandon(opening)  # everybody who wanted it gave up

    def _abandon(self, opening: asyncio.Task[ClientEdge]) -> None:
        """Stop an attempt nobody waits for; a new one may begin while it cleans up."""
        if self._opening is opening:
            self._opening = None
        self._abandoned.add(opening)
        opening.cancel()

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
            async with movable_timeout(self._connect_seconds):  # a user who logs in is not the server's time
                return await prober.open()
        except TimeoutError as error:
            if isinstance(error, CallTimeout):
                raise
            raise CallTimeout("open", self._connect_seconds, "connect") from None

    async def _dial(self) -> Line:
        if not isinstance(self._target, Target):
            return self._target.link(self._heard, self._ended)
        side = ClientSide(self._heard, self._ended)
        duplex = _Line(self._target.make(), side, self._limits)
        duplex.side = side
        side.attach(duplex.hear)
        try:
            await duplex.open()
        except BaseException as error:
            await duplex.close()
            if isinstance(error, InterlockError) or not isinstance(error, OSError):
                raise
            raise ConnectionLost(f"could not connect to {self._target.name}: {error.strerror or error}") from error
        return duplex

    def _opened(self, opening: asyncio.Task[ClientEdge]) -> None:
        unwanted = opening in self._abandoned
        self._abandoned.discard(opening)
        if self._opening is opening:
            self._opening = None
        if opening.cancelled() or opening.exception() is not None:
            return
        if unwanted:
            self._closing_strays.add(task := asyncio.get_running_loop().create_task(opening.result().close()))
            task.add_done_callback(self._closing_strays.discard)
            return
        edge = self._edge = opening.result()
        line = cast("_Line | HttpLink | HttpLine", edge.link)
        self._lost = line.end
        if self._keepalive is not None and isinstance(line, _Line) and edge.revision.era is Era.HANDSHAKE:
            self._pinger = Pinger(line, self._keepalive)

    def _ended(self, error: ConnectionEnded) -> None:
        self._lost = error
        if self._pinger is not None:
            self._pinger.close()

    async def close(self) -> None:
        """End the connection and everything it started. Idempotent; who gives up waiting does not stop it."""
        if self._loop is None or not self._loop.is_running():
            self._closed = True
            if self._edge is not None:
                cast("_Line | HttpLink | HttpLine", self._edge.link).abandon()
            return
        await self._here(self._close())

    async def _close(self) -> None:
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        if self._opening is not None:
            self._abandon(self._opening)
        while self._abandoned or self._closing_strays:
            await asyncio.wait([*self._abandoned, *self._closing_strays])
        if self._pinger is not None:
            self._pinger.close()
        if self._edge is not None:
            await self._edge.close()

    # --- what is known about the server -----------------------------------------------------------

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
            raise NotOpen("this client is not open: use `async with` or await open()")
        return self._edge

    # --- verbs ------------------------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | Patience | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallResult:
        """Run a tool. A failure of the tool itself is a result with `is_error`, not an exception.

        `timeout` is how long the server may be silent (progress that increases is a sign of life); a `Patience`
        says both the idle and the total deadline.
        """
        params = {"name": name, "arguments": arguments or {}}
        return read_call(await self.request("tools/call", params, timeout=timeout, on_progress=on_progress, meta=meta))

    async def list_tools(self) -> list[Tool]:
        return await self._list("tools/list", "tools", Tool)

    async def list_resources(self) -> list[Resource]:
        return await self._list("resources/list", "resources", Resource)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        return await self._list("resources/templates/list", "resourceTemplates", ResourceTemplate)

    async def list_prompts(self) -> list[Prompt]:
        return await self._list("prompts/list", "prompts", Prompt)

    async def read_resource(self, uri: str, *, timeout: float | Patience | None = None) -> list[ResourceContents]:
        return read_contents(await self.request("resources/read", {"uri": uri}, timeout=timeout))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | Patience | None = None
    ) -> PromptResult:
        params = {"name": name} | ({"arguments": dict(arguments)} if arguments else {})
        return read_prompt(await self.request("prompts/get", params, timeout=timeout))

    async def ping(self, *, timeout: float = 20.0) -> None:
        """Is the server alive? Where the revision has no ping, `server/discover` is asked instead."""
        edge = self._open_edge()
        method = "ping" if "ping" in edge.revision.requests else "server/discover"
        await self.request(method, {}, timeout=Patience(idle=None, total=timeout))

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | Patience | None = None,
        on_progress: OnProgress | None = None,
        on_notification: OnNotification | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Result:
        """Any request, by name; the members of its result as they came."""
        check_author_keys(meta, trace=True)
        sent = dict(params or {})
        if "_meta" in sent:  # raw params may ask for log messages of their own level, nothing else that is reserved
            check_author_keys({key: None for key in sent["_meta"] if key != LOG_LEVEL}, trace=True)
        if meta:
            sent["_meta"] = {**sent.get("_meta", {}), **meta}
        patience = self._patience if timeout is None else _patience(timeout)
        listeners = (on_progress, on_notification, self._heard)
        exchange = Calling(method, sent, self._me, patience, self._answers, *listeners)
        return await self._here(self._call(exchange))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Any notification, by name."""
        await self._here(self._tell(method, params))

    async def roots_changed(self) -> None:
        """Tell the server that the roots are others now, where the revision has a word for it."""
        edge = await self._here(self._ready())
        if self._answers.roots is not None and "notifications/roots/list_changed" in edge.revision.client_notices:
            await self.notify("notifications/roots/list_changed")

    async def _call(self, exchange: Exchange) -> Result:
        try:
            return await (await self._ready())(exchange)
        except SessionGone as gone:
            if gone.sent is not False:
                raise
        # turned away unread, because the session was forgotten: said once more, in a new one (#session-management)
        return await (await self._ready())(exchange)

    async def _tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        await (await self._ready()).link.tell(method, params)

    async def _ready(self) -> ClientEdge:
        """The open connection. One that was lost is opened anew: its server is started again (STDIO-016)."""
        if self._edge is not None and self._lost is None and not self._closed:
            return self._edge
        if self._edge is None and self._opening is None and not self._closed:
            raise NotOpen("this client is not open: use `async with` or await open()")
        return await self._open()

    async def _list(self, method: str, member: str, kind: type[T]) -> list[T]:
        """All pages. A cursor that comes back, or pages without end, are an error of the server."""
        found: list[T] = []
        seen: set[str] = set()
        params: dict[str, Any] = {}
        for _ in range(_PAGES):
            result = await self.request(method, params)
            found += read_items(result, member, kind, method)
            if len(found) > _ITEMS:
                found.clear()
                raise RemoteError(f"{method}: more than {_ITEMS} items")
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return found
            if cursor in seen:
                raise RemoteError(f"{method}: the server repeats the cursor {cursor[:40]!r}")
            seen.add(cursor)
            params = {"cursor": cursor}
        raise RemoteError(f"{method}: more than {_PAGES} pages")

    # --- inside -----------------------------------------------------------------------------------

    def _here(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Run `work` on the loop this client lives on."""
        loop = self._loop
        if loop is None or loop is _running_loop():
            return work
        if not loop.is_running():
            work.close()
            raise LocalError("the event loop that this client was opened on is closed or not running")
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        if self._on_notification is None:
            return
        try:
            self._on_notification(method, params)
        except Exception:
            self._failures += 1
            if self._failures <= 10:  # a peer decides how often: the log must not
                log.exception("! on_notification failed on %r", method[:200])


class _Line(Duplex):
    """A connection that tells its side which edge answers for us, once there is one."""

    side: ClientSide

    def adopt(self, edge: ClientEdge) -> None:
        self.side.edge = edge


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _patience(timeout: float | Patience) -> Patience:
    """A number is the idle deadline: seconds without a sign of life. The total one stays as it is by default."""
    if isinstance(timeout, Patience):
        return timeout
    if timeout <= 0:
        raise LocalError(f"timeout={timeout!r}: give a positive number of seconds, or a Patience")
    return Patience(idle=timeout)
