"""Who wants to hear of which change. `subscriptions/listen` is an exchange that lasts."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import Any

from ...protocol.server.subscription_quota import watched_bytes
from ...wire.aio import Flag
from ...wire.errors import InternalError, InvalidParams
from ...wire.exchange import LOCAL, Exchange, Principal, Result
from ...wire.limits import ALL_WATCHED_BYTES, LONGEST_URI, MOST_SUBSCRIPTIONS, WATCHED_BYTES
from ...wire.quota import Shares
from ...wire.types.capabilities import ServerCapabilities
from ...wire.types.notifications import ListenFilter
from ...wire.uri import has_uri_characters
from ..execution.rate_limits import caller_key

__all__ = ["Admits", "Changes", "Relay", "check_watched"]

Admits = Callable[[Principal], bool] | None
"""Who may hear of a change: None for everybody."""
Relay = Callable[[str, str, Admits], bool]
"""Takes the kind of a list that has changed, or `resource` and its URI, and who may hear of it here. True: it tells all
processes, this one included."""

_LIST_NOTICES = {
    "tools": ("tools_list_changed", "toolsListChanged", "notifications/tools/list_changed"),
    "prompts": ("prompts_list_changed", "promptsListChanged", "notifications/prompts/list_changed"),
    "resources": ("resources_list_changed", "resourcesListChanged", "notifications/resources/list_changed"),
}


class _Listener:
    """One open listen exchange. Changes that nobody took yet are kept once each, so it cannot grow."""

    def __init__(self, wanted: ListenFilter, principal: Principal, caller: Hashable) -> None:
        self.wanted, self.principal, self.caller = wanted, principal, caller
        self.watches = self.bytes = 0
        self.stirred = Flag()
        self.ended = False
        self._waiting: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """From any thread: handlers in the pool change things too. A burst wakes the loop once and is told once."""
        with self._lock:
            asleep = not self._waiting
            self._waiting[method, params.get("uri", "")] = params
        if asleep:
            self.soon(self.stirred.set)

    def take(self) -> list[tuple[str, dict[str, Any]]]:
        """What happened since the last time, each thing once, in the order it began."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return [(method, params) for (method, _), params in waiting.items()]

    def soon(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # its loop is closed, so nobody listens any more


class Changes:
    """The change notices of one server and everybody who listens."""

    def __init__(self) -> None:
        self._watched: Counter[Hashable] = Counter()  # resources that each client watches, over all of its streams
        self._bytes = Shares(ALL_WATCHED_BYTES)
        self._listeners: set[_Listener] = set()
        self.relay: Relay | None = None
        """Who tells other processes that serve the same server."""

    def list_changed(self, kind: str, admits: Admits = None) -> None:
        """The list of `tools`, `prompts` or `resources` is another one now."""
        if self.relay is None or not self.relay(kind, "", admits):
            self.tell_list(kind, admits)

    def tell_list(self, kind: str, admits: Admits = None) -> None:
        """The same for those who listen in this process."""
        attribute, _, method = _LIST_NOTICES[kind]
        for listener in list(self._listeners):
            if getattr(listener.wanted, attribute) and (admits is None or admits(listener.principal)):
                listener.tell(method, {})

    def resource_updated(self, uri: str, admits: Admits = None) -> None:
        if self.relay is None or not self.relay("resource", uri, admits):
            self.tell_resource(uri, admits)

    def tell_resource(self, uri: str, admits: Admits = None) -> None:
        for listener in list(self._listeners):
            if uri in listener.wanted.resource_subscriptions and (admits is None or admits(listener.principal)):
                listener.tell("notifications/resources/updated", {"uri": uri})

    async def listen(self, exchange: Exchange, offered: ServerCapabilities) -> Result:
        """Acknowledge what is honoured, then tell of changes until the client or the server goes."""
        wanted: ListenFilter = exchange.params.notifications
        check_watched(wanted.resource_subscriptions)
        listener = _Listener(wanted, exchange.peer.principal, _caller(exchange))
        if not _is_of_session(exchange):
            listener.watches = len(wanted.resource_subscriptions)
            listener.bytes = watched_bytes(wanted.resource_subscriptions)
        self._count(listener)
        self._listeners.add(listener)  # before the acknowledgement: nothing that happens after it is missed
        try:
            honoured = _honoured(wanted, offered)
            await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": honoured})
            while not listener.ended:
                await listener.stirred.wait()
                listener.stirred.clear()
                for method, params in listener.take():
                    await exchange.notify(method, params)
        finally:
            self._listeners.discard(listener)
            self._count(listener, -1)
        return {}

    def _count(self, listener: _Listener, sign: int = 1) -> None:
        """The bound is of a client, who may have many streams open. Counted, because there may be thousands of them."""
        sum = self._watched[listener.caller] + sign * listener.watches
        if sign > 0 and listener.watches and sum > MOST_SUBSCRIPTIONS:
            raise InvalidParams(f"At most {MOST_SUBSCRIPTIONS} resources can be watched: end other streams first")
        if sign > 0 and not self._bytes.has_room(listener.caller, listener.bytes):
            raise InternalError("Too much is watched at this server: end other streams first, or try again later")
        self._bytes.add(listener.caller, sign * listener.bytes)
        self._watched[listener.caller] = sum
        if not sum:
            del self._watched[listener.caller]

    def close(self) -> None:
        """End every listen exchange with its result: the server is going."""
        for listener in list(self._listeners):
            listener.ended = True
            listener.soon(listener.stirred.set)


def _caller(exchange: Exchange) -> Hashable:
    """Who watches: as for rate limits, and of those who own the process each connection for itself."""
    return id(exchange.outlet) if exchange.peer.principal is LOCAL else caller_key(exchange)


def _is_of_session(exchange: Exchange) -> bool:
    """A handshake session listens for as long as it lasts, and counts itself what it watches meanwhile."""
    return getattr(exchange, "subscription", "") is None


def check_watched(watched: Collection[str]) -> None:
    """What a client may watch: so many, so long, and URIs. They need not exist: what comes later can be awaited."""
    if len(watched) > MOST_SUBSCRIPTIONS or any(len(uri) > LONGEST_URI for uri in watched):
        told = f"At most {MOST_SUBSCRIPTIONS} resources can be watched, each URI of {LONGEST_URI} characters"
        raise InvalidParams(told)
    if watched_bytes(watched) > WATCHED_BYTES:
        raise InvalidParams(f"What is watched may take {WATCHED_BYTES} bytes: ask for less")
    for uri in watched:
        if not has_uri_characters(uri):
            raise InvalidParams(f"{uri[:200]!r} is no URI, so nothing can be watched there")


def _honoured(wanted: ListenFilter, offered: ServerCapabilities) -> dict[str, Any]:
    """The part of the filter this server can keep its word on; the rest is switched off."""
    kept: dict[str, Any] = {}
    for kind, (attribute, name, _) in _LIST_NOTICES.items():
        if getattr(wanted, attribute) and offered.can(f"{kind}.listChanged"):
            kept[name] = True
        else:
            setattr(wanted, attribute, False)
    if wanted.resource_subscriptions and offered.can("resources.subscribe"):
        kept["resourceSubscriptions"] = sorted(wanted.resource_subscriptions)
    elif not offered.can("resources.subscribe"):
        wanted.resource_subscriptions.clear()
    return kept
