"""Who wants to hear of which change. `subscriptions/listen` is an exchange that lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..wire.exchange import Exchange, Principal, Result
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.notices import ListenFilter

__all__ = ["Admits", "Changes"]

Admits = Callable[[Principal], bool] | None
"""Who may hear of a change: None for everybody."""

_LIST_NOTICES = {
    "tools": ("tools_list_changed", "toolsListChanged", "notifications/tools/list_changed"),
    "prompts": ("prompts_list_changed", "promptsListChanged", "notifications/prompts/list_changed"),
    "resources": ("resources_list_changed", "resourcesListChanged", "notifications/resources/list_changed"),
}


class _Listener:
    """One open listen exchange. Changes that nobody took yet are kept once each, so it cannot grow."""

    def __init__(self, wanted: ListenFilter, principal: Principal) -> None:
        self.wanted, self.principal = wanted, principal
        self.waiting: dict[tuple[str, str], dict[str, Any]] = {}
        self.stirred = asyncio.Event()
        self.ended = False
        self._loop = asyncio.get_running_loop()

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """From any thread: handlers in the pool change things too."""
        self.soon(self._tell, method, params)

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            pass  # its loop is closed, so nobody listens any more

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self.waiting[method, params.get("uri", "")] = params
        self.stirred.set()


class Changes:
    """The change notices of one server and everybody who listens."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()

    def list_changed(self, kind: str, admits: Admits = None) -> None:
        """The list of `tools`, `prompts` or `resources` is another one now."""
        attribute, _, method = _LIST_NOTICES[kind]
        for listener in list(self._listeners):
            if getattr(listener.wanted, attribute) and (admits is None or admits(listener.principal)):
                listener.tell(method, {})

    def resource_updated(self, uri: str, admits: Admits = None) -> None:
        for listener in list(self._listeners):
            if uri in listener.wanted.resource_subscriptions and (admits is None or admits(listener.principal)):
                listener.tell("notifications/resources/updated", {"uri": uri})

    async def listen(self, exchange: Exchange, offered: ServerCapabilities) -> Result:
        """Acknowledge what is honoured, then tell of changes until the client or the server goes."""
        wanted: ListenFilter = exchange.params.notifications
        listener = _Listener(wanted, exchange.peer.principal)
        self._listeners.add(listener)  # before the acknowledgement: nothing that happens after it is missed
        try:
            honoured = _honoured(wanted, offered)
            await exchange.notify("notifications/subscriptions/acknowledged", {"notifications": honoured})
            while not listener.ended:
                await listener.stirred.wait()
                listener.stirred.clear()
                notices, listener.waiting = listener.waiting, {}
                for (method, _), params in notices.items():
                    await exchange.notify(method, params)
        finally:
            self._listeners.discard(listener)
        return {}

    def close(self) -> None:
        """End every listen exchange with its result: the server is going."""
        for listener in list(self._listeners):
            listener.ended = True
            listener.soon(listener.stirred.set)


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
