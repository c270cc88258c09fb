"""Changes as they happen: one async iterator in every revision, whatever the server needs to be told for it.

    async with client.listen(tools=True, uris=["note://1"]) as changes:
        async for change in changes: ...

In the stateless era this is one `subscriptions/listen` per iterator, in the handshake era notices that come by
themselves and `resources/subscribe`. A connection that is lost is opened again and everything is asked for anew; what
may have been missed meanwhile is told as a change. Changes that nobody took yet are kept once each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import random
from types import TracebackType
from typing import Any, Literal, cast

import msgspec

from ..protocol.client.base import ClientEdge, NotOffered
from ..wire.channel import Patience
from ..wire.errors import CallTimeout, ConnectionClosed, ConnectionEnded, InterlockError, LocalError, MethodNotFound
from ..wire.escaping import display
from ..wire.exchange import Params, Result
from ..wire.json.lenient import items_of, members_of
from ..wire.limits import LONGEST_URI, MOST_SUBSCRIPTIONS
from ..wire.types.notifications import CHANGING_LISTS
from .list_cache import CHANGE_OF

__all__ = ["Change", "Hub", "Listening", "Wanted", "told_by"]

log = logging.getLogger("interlock.client")
MOST_WAITING = 10_000  # changes nobody took; beyond it one that names no resource stands for all updates
MOST_TRIES = 8  # in a row to listen again; then the error that began it is raised
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds before the next try: doubled each time, and shortened by chance
_AT_ONCE = 32  # subscriptions on their way
_FOREVER = Patience(idle=None, total=None)
_GOODBYE = Patience(idle=None, total=5.0)  # for what is taken back: nobody waits longer for it

Kind = Literal["tools", "prompts", "resources", "resource"]


class Change(msgspec.Struct, frozen=True):
    """A list that is another one now, or a resource that was updated."""

    kind: Kind
    uri: str | None = None
    """Of the resource; None with `resource` means: any of those that are watched."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to hear of."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: frozenset[str] = frozenset()

    def lists(self) -> list[Kind]:
        return [kind for kind in CHANGING_LISTS if getattr(self, kind)]

    def check(self) -> None:
        if not self.lists() and not self.uris:
            raise LocalError("listen: say what to listen for, as in tools=True or uris=['note://1']")
        if len(self.uris) > MOST_SUBSCRIPTIONS or any(len(uri) > LONGEST_URI for uri in self.uris):
            raise LocalError(f"listen: at most {MOST_SUBSCRIPTIONS} uris of {LONGEST_URI} characters each")

    def as_filter(self) -> dict[str, Any]:
        """In the words of `subscriptions/listen`."""
        found: dict[str, Any] = {f"{kind}ListChanged": True for kind in self.lists()}
        return found | ({"resourceSubscriptions": sorted(self.uris)} if self.uris else {})

    def both(self, other: Wanted) -> Wanted:
        """What is wanted here and there."""
        lists = {kind: getattr(self, kind) and getattr(other, kind) for kind in CHANGING_LISTS}
        return Wanted(**lists, uris=self.uris & other.uris)

    def without(self, other: Wanted) -> Wanted:
        """What is wanted here and not there."""
        lists = {kind: getattr(self, kind) and not getattr(other, kind) for kind in CHANGING_LISTS}
        return Wanted(**lists, uris=self.uris - other.uris)

    def __bool__(self) -> bool:
        return bool(self.lists() or self.uris)


def told_by(edge: ClientEdge) -> Wanted:
    """All lists of whose changes this server tells."""
    lists: dict[str, Any] = {kind: edge.offers(f"{kind}.listChanged") for kind in CHANGING_LISTS}
    return Wanted(**lists)


def _read_filter(found: Any) -> Wanted:
    """What a server acknowledged; whatever is malformed in it is not honoured."""
    members = members_of(found)
    lists: dict[str, Any] = {kind: members.get(f"{kind}ListChanged") is True for kind in CHANGING_LISTS}
    uris = (uri for uri in items_of(members.get("resourceSubscriptions")) if isinstance(uri, str))
    return Wanted(**lists, uris=frozenset(uris))


class Listening:
    """An async iterator of changes, and an async context manager that ends it."""

    def __init__(self, hub: Hub, wanted: Wanted, *, standing: bool = False) -> None:
        wanted.check()
        self.wanted = wanted
        self.standing = standing
        """Is it the client's own, which nobody iterates over?"""
        self.honoured = Wanted()
        """The part of it that the server acknowledged."""
        self._hub = hub
        self._lengths: set[int] = set()
        self._waiting: dict[Change, None] = {}
        self._stirred = asyncio.Event()
        self._began: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._refusal: NotOffered | None = None
        self.leaving = self.over = False

    @property
    def missing(self) -> Wanted:
        """What was asked for and not acknowledged: of this no change will be heard."""
        return self.wanted.without(self.honoured)

    @property
    def has_begun(self) -> bool:
        """Was anything acknowledged, on this connection or one before?"""
        return self._began is not None and self._began.done()

    # --- for the caller ---------------------------------------------------------------------------

    async def __aenter__(self) -> Listening:
        await self._hub.here(self._start())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Change:
        change: Change | None = await self._hub.here(self._next())
        if change is None:
            raise StopAsyncIteration
        return change

    async def close(self) -> None:
        """Stop listening, and tell the server so. Whoever waits for the next change is at the end."""
        await self._hub.here(self._close())

    # --- on the client's loop ---------------------------------------------------------------------

    def begin(self) -> None:
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._began = loop.create_future()
            self._hub.listenings.add(self)
            self._task = loop.create_task(self._run())

    async def _start(self) -> None:
        self.begin()
        try:
            await asyncio.shield(cast("asyncio.Future[None]", self._began))
        except BaseException:
            await self._close()
            raise

    async def _next(self) -> Change | None:
        """None at the end."""
        await self._start()
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self.over:
                return None
            self._stirred.clear()
            await self._stirred.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change

    async def _close(self) -> None:
        task = self._task
        if task is not None and task is not asyncio.current_task():
            self.leaving = True
            task.cancel()
            await asyncio.wait([task])
        self._end(None)

    async def _run(self) -> None:
        try:
            await self._listen_on()
        except InterlockError as error:
            self._end(None if isinstance(error, ConnectionClosed) else error)
        except asyncio.CancelledError:
            self._end(self._refusal)
            raise
        else:
            self._end(None)

    async def _listen_on(self) -> None:
        tries, lost = 0, None
        while True:
            self.honoured = Wanted()
            try:
                return await self._hub.listen(self)
            except (ConnectionEnded, CallTimeout) as error:
                if isinstance(error, ConnectionClosed):
                    raise
                lost = error if lost is None or self.honoured else lost
                tries = 1 if self.honoured else tries + 1
                if tries > MOST_TRIES or not self.has_begun:
                    raise lost from None
            except LocalError as error:
                raise lost or error from None  # what cannot be dialled again is lost as it was
            await asyncio.sleep(min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE) * (0.5 + random() / 2))

    def acknowledged(self, honoured: Wanted) -> None:
        """From now on changes are heard. Where this is not the first time, some may have been missed."""
        honoured = self.wanted.both(honoured)  # what nobody asked for is not honoured by being named
        began, task = cast("asyncio.Future[None]", self._began), cast("asyncio.Task[None]", self._task)
        if not honoured:
            told = ", ".join(self._words())
            self._refusal = NotOffered(f"the server tells of no change of what was asked for ({told})")
            self.leaving = True
            task.cancel()
            return
        self.honoured = honoured
        self._lengths = {len(uri) for uri in honoured.uris}
        if not began.done():
            began.set_result(None)
            return
        missed = [*(Change(kind) for kind in honoured.lists()), *(Change("resource", uri) for uri in honoured.uris)]
        for change in missed:
            self.put(change)
            self._hub.told(change, self)

    def _words(self) -> list[str]:
        return [*self.wanted.lists(), *(["resource updates"] if self.wanted.uris else [])]

    def hear(self, method: str, params: Params) -> Change | None:
        """A notice of the server's: the change it tells of, if that is one we listen for."""
        kind = CHANGE_OF.get(method)
        if kind is not None:
            change = Change(cast(Kind, kind)) if getattr(self.honoured, kind) else None
        else:
            uri = params.get("uri") if method == "notifications/resources/updated" else None
            change = Change("resource", uri) if isinstance(uri, str) and self._watches(uri) else None
        if change is not None:
            self.put(change)
        return change

    def _watches(self, uri: str) -> bool:
        """It, or what it is a part of (server/resources#subscriptions)."""
        watched = self.honoured.uris
        return uri in watched or any(
            uri[:length] in watched and "/" in (uri[length - 1 : length], uri[length : length + 1])
            for length in self._lengths
        )

    def put(self, change: Change) -> None:
        if len(self._waiting) >= MOST_WAITING:
            for each in [each for each in self._waiting if each.kind == "resource"]:
                del self._waiting[each]
            change = Change("resource") if change.kind == "resource" else change
        self._waiting[change] = None
        self._stirred.set()

    def _end(self, error: BaseException | None) -> None:
        if self.over:
            return
        self.over = True
        self._error = error
        if self.standing and error is not None:
            log.warning("! changes of the server's lists are not heard any more: %s", display(str(error), 300))
        self._hub.listenings.discard(self)
        self._stirred.set()
        began = self._began
        if began is not None and not began.done():
            began.set_exception(error or ConnectionClosed("the client was closed while it began to listen"))
            began.exception()  # seen: perhaps nobody waits for it any more


class Hub:
    """All that listens on one client, and what its servers must be told for it."""

    def __init__(
        self,
        here: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]],
        ready: Callable[[Patience | None], Awaitable[ClientEdge]],
        request: Callable[..., Awaitable[Result]],
        told: Callable[[Change, Listening], None],
    ) -> None:
        self.here, self._ready, self._request, self.told = here, ready, request, told
        self.listenings: set[Listening] = set()
        self._watched: dict[str, int] = {}  # handshake: who watches it is counted, the server is told once
        self._ends: set[asyncio.Future[ConnectionEnded]] = set()

    # --- what happens on the connection -----------------------------------------------------------

    def heard(self, method: str, params: Params) -> None:
        """A notice outside of any call: in the handshake era it is for all who listen."""
        for listening in [*self.listenings]:
            listening.hear(method, params)

    def ended(self, error: ConnectionEnded) -> None:
        self._watched.clear()
        for end in self._ends:
            if not end.done():
                end.set_result(error)

    async def close(self) -> None:
        """The client goes, and sends nothing any more: nothing is taken back, as the whole connection is."""
        for listening in [*self.listenings]:
            await listening._close()  # pyright: ignore[reportPrivateUsage] - this is its other half

    # --- listening in either era ------------------------------------------------------------------

    async def listen(self, listening: Listening) -> None:
        """Until the server ends it (then it returns) or the connection is gone (then it raises)."""
        # Who brings a connection back decides when it is given up: what lasts waits as long as that.
        edge = await self._ready(_FOREVER if listening.has_begun else None)
        if "subscriptions/listen" in edge.revision.requests:
            await self._listen_by_request(listening)
        else:
            await self._listen_by_notices(listening, edge)

    async def _listen_by_request(self, listening: Listening) -> None:
        def told(method: str, params: Params) -> None:
            if method == "notifications/subscriptions/acknowledged":
                listening.acknowledged(_read_filter(params.get("notifications")))
            elif (change := listening.hear(method, params)) is not None:
                self.told(change, listening)

        params = {"notifications": listening.wanted.as_filter()}
        try:
            await self._request("subscriptions/listen", params, on_notification=told, timeout=_FOREVER)
        except MethodNotFound as refused:
            raise NotOffered("the server has no subscriptions/listen: it tells of no changes") from refused

    async def _listen_by_notices(self, listening: Listening, edge: ClientEdge) -> None:
        end = asyncio.get_running_loop().create_future()
        self._ends.add(end)
        wanted, can = listening.wanted, edge.capabilities.can
        uris = wanted.uris if can("resources.subscribe") else frozenset[str]()
        try:
            await self._each("resources/subscribe", [uri for uri in uris if self._count(uri, 1) == 1])
            lists: dict[str, Any] = {kind: can(f"{kind}.listChanged") for kind in wanted.lists()}
            listening.acknowledged(Wanted(**lists, uris=uris))
            # shielded: who stops listening must not be taken for the end of the connection
            raise cast(ConnectionEnded, await asyncio.shield(end)).for_call("listen", None)
        except BaseException as error:
            self._ends.discard(end)
            loop_ends = isinstance(error, asyncio.CancelledError) and not listening.leaving  # nobody would answer
            if not end.done() and not loop_ends:
                await self._take_back(uris)
            raise

    def _count(self, uri: str, change: int) -> int:
        count = self._watched[uri] = self._watched.get(uri, 0) + change
        if count <= 0:
            del self._watched[uri]
        return count

    async def _take_back(self, uris: Iterable[str]) -> None:
        """The server may forget them; that it did not hear of it harms nobody."""
        unwatched = [uri for uri in uris if self._count(uri, -1) <= 0]
        try:
            await self._each("resources/unsubscribe", unwatched, _GOODBYE)
        except InterlockError as error:
            log.debug("= unsubscribing failed: %.200r", str(error))

    async def _each(self, method: str, uris: list[str], patience: Patience | None = None) -> None:
        for at in range(0, len(uris), _AT_ONCE):
            asked = (self._request(method, {"uri": uri}, timeout=patience) for uri in uris[at : at + _AT_ONCE])
            for outcome in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
