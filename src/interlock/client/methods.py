"""What can be asked of a server: every verb a caller has, on top of one `request`.

A verb knows what its method is called, what it may be given, and what its answer is read as; how that travels is none
of its business (client.py). What is listed is kept (list_cache.py), what a tool gives is compared with its schema
(output_validation.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import Any, TypeVar, cast

from ..protocol.client.base import ClientEdge
from ..protocol.client.stateless import rest_of
from ..wire.channel import Channel, Patience
from ..wire.errors import InterlockError, LocalError
from ..wire.exchange import Exchange, Peer, Result
from ..wire.meta import LOG_LEVEL, check_author_keys
from ..wire.types.common import LOG_LEVELS, LogLevel
from ..wire.types.content import ResourceContents
from ..wire.types.prompts import Prompt
from ..wire.types.resources import Resource, ResourceTemplate
from ..wire.types.tools import Tool
from . import lazy_types
from .callbacks import Answers
from .completion_cache import Completion, Completions, params_of_completion
from .failures import explained
from .list_cache import CHANGE_OF, PROMPTS, RESOURCES, TEMPLATES, TOLD_KEPT, TOOLS, Listing, Lists
from .output_validation import Outputs
from .request import Calling, OnNotification, OnProgress, patience_of
from .results import CallResult, PromptResult, read_call, read_contents, read_prompt
from .subscriptions import Change, Hub, Listening, Wanted

__all__ = ["Verbs", "Timeout", "check_level"]

T = TypeVar("T")
Timeout = float | Patience | None
"""Seconds of silence, or a `Patience` with both the idle and the total deadline; None: as the client says."""


class Verbs:
    """The calls of a client. Every verb takes `timeout=`; those that run something take `on_progress=`, `meta=` and,
    over HTTP, `headers=` of their own."""

    _me: Peer
    _answers: Answers
    _patience: Patience
    _log_level: LogLevel | None
    _http: lazy_types.HttpTarget | None
    _channel: Channel | None = None  # the last that was dialled
    _said: dict[str, Any] | None = None  # in the `_meta` of every request

    def __init__(self) -> None:
        self._lists = Lists()
        self._outputs = Outputs()
        self._completions = Completions()
        self._hub = Hub(self._here, self._ready, self.request, self._listened)

    # --- what a client offers its verbs -----------------------------------------------------------

    def _here(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Run it on the loop the client lives on."""
        raise NotImplementedError

    async def _ready(self, patience: Patience | None = None) -> ClientEdge:
        """The open connection; `patience` is for one that somebody else brings back."""
        raise NotImplementedError

    def _open_edge(self) -> ClientEdge:
        """The same where it was opened once, without waiting for anything."""
        raise NotImplementedError

    async def _call(self, exchange: Exchange) -> Result:
        raise NotImplementedError

    async def _call_with(self, exchange: Exchange, headers: Mapping[str, str] | None) -> Result:
        """The same with headers of its own, and without those of any other call."""
        raise NotImplementedError

    async def _tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        raise NotImplementedError

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        """What the server says and no caller listens for."""

    def _changed(self, change: Change) -> None:
        """Somebody may want to hear of it."""

    def _say_level(self, edge: ClientEdge) -> None:
        """Where every request says everything, it says the level as well."""
        raise NotImplementedError

    # --- anything, by name ------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
        on_notification: OnNotification | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Result:
        """Any request, by name; the members of its result as they came."""
        check_author_keys(meta, trace=True)
        sent = _members(params)
        if "_meta" in sent:  # raw params may ask for log messages of their own level, nothing else that is reserved
            check_author_keys({key: None for key in sent["_meta"] if key != LOG_LEVEL}, trace=True)
        if meta:
            sent["_meta"] = {**sent.get("_meta", {}), **meta}
        if self._said is not None:
            sent["_meta"] = {**self._said, **sent.get("_meta", {})}
        patience = self._patience if timeout is None else patience_of(timeout)
        listeners = (on_progress, on_notification, self._heard)
        exchange = Calling(method, sent, self._me, patience, self._answers, *listeners)
        try:
            if self._http is None and headers is None:
                return await self._here(self._call(exchange))
            return await self._here(self._call_with(exchange, headers))
        except InterlockError as error:
            explained(error, self._channel)
            raise

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Any notification, by name."""
        await self._here(self._tell(method, params))

    async def roots_changed(self) -> None:
        """Tell the server that the roots are others now, where the revision has a word for it."""
        edge = await self._here(self._ready())
        if self._answers.roots is not None and "notifications/roots/list_changed" in edge.revision.client_notices:
            await self.notify("notifications/roots/list_changed")

    # --- tools ------------------------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> CallResult:
        """Run a tool. A failure of the tool itself is a result with `is_error`, not an exception.

        `timeout` is how long the server may be silent (progress that increases is a sign of life); a `Patience`
        says both the idle and the total deadline. Structured content that does not fit the schema the tool was listed
        with is reported as `mismatch` beside it.
        """
        params = {"name": name, "arguments": arguments or {}}
        result = await self.request(
            "tools/call", params, timeout=timeout, on_progress=on_progress, meta=meta, headers=headers
        )
        found = read_call(result)
        if self._outputs.known and not found.is_error:
            found.mismatch = self._outputs.mismatch(name, "structuredContent" in result, found.structured)
        return found

    # --- lists ------------------------------------------------------------------------------------

    async def list_tools(
        self, *, refresh: bool = False, timeout: Timeout = None, headers: Mapping[str, str] | None = None
    ) -> list[Tool]:
        """All of them, from all pages. What is still true by the server's own word is not asked for again, unless
        with `refresh`. The items are shared by all who ask: change copies."""
        return await self._list(TOOLS, refresh, timeout, headers)

    async def list_resources(
        self, *, refresh: bool = False, timeout: Timeout = None, headers: Mapping[str, str] | None = None
    ) -> list[Resource]:
        return await self._list(RESOURCES, refresh, timeout, headers)

    async def list_resource_templates(
        self, *, refresh: bool = False, timeout: Timeout = None, headers: Mapping[str, str] | None = None
    ) -> list[ResourceTemplate]:
        return await self._list(TEMPLATES, refresh, timeout, headers)

    async def list_prompts(
        self, *, refresh: bool = False, timeout: Timeout = None, headers: Mapping[str, str] | None = None
    ) -> list[Prompt]:
        return await self._list(PROMPTS, refresh, timeout, headers)

    async def _list(
        self, listing: Listing, refresh: bool, timeout: Timeout, headers: Mapping[str, str] | None
    ) -> list[Any]:
        return await self._here(self._listed(listing, refresh, timeout, headers))

    async def _listed(
        self, listing: Listing, refresh: bool, timeout: Timeout, headers: Mapping[str, str] | None
    ) -> list[Any]:
        edge = await self._ready()
        patience, began = self._patience if timeout is None else patience_of(timeout), monotonic()
        principal = None if headers is None else frozenset((name.lower(), value) for name, value in headers.items())

        async def ask(params: dict[str, Any]) -> Result:
            # The total deadline is that of the whole walk: a server must not stretch it page by page.
            rest = rest_of(patience, began, listing.method)
            return await self.request(listing.method, params, timeout=rest, headers=headers)

        def took(items: Iterable[Any]) -> None:
            if listing is TOOLS and "Tool.outputSchema" not in edge.revision.unknown:
                self._outputs.learn(items)

        return await self._lists.all(
            listing,
            ask,
            took=took,
            unsaid=_unsaid(edge, listing),
            principal=principal,
            alone=refresh or timeout is not None,
        )

    # --- resources, prompts and what completes them -----------------------------------------------

    async def read_resource(
        self,
        uri: str | ResourceTemplate,
        values: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[ResourceContents]:
        """What is there. With `values`, `uri` is a template (RFC 6570), which they are put into first."""
        text = uri.uri_template if isinstance(uri, ResourceTemplate) else uri
        if values is not None or isinstance(uri, ResourceTemplate):
            from ..wire.uri_expansion import expand  # few clients write URIs: the others start without it

            text = expand(text, values or {})
        ask = partial(self.request, timeout=timeout, on_progress=on_progress, meta=meta, headers=headers)
        return read_contents(await ask("resources/read", {"uri": text}))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> PromptResult:
        params = {"name": name} | ({"arguments": dict(arguments)} if arguments else {})
        ask = partial(self.request, timeout=timeout, on_progress=on_progress, meta=meta, headers=headers)
        return read_prompt(await ask("prompts/get", params))

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        template: str | None = None,
        known: Mapping[str, str] | None = None,
        timeout: Timeout = None,
    ) -> Completion:
        """What `argument` of that prompt or template may be, when `value` was typed and the others are `known`.

        For whoever types: answers are kept for a minute, and of requests that follow each other faster than anybody
        reads only the newest is sent; the others end at once, marked as `superseded`.
        """
        params = params_of_completion(argument, value, prompt, template, known)
        return await self._here(self._completed(params, timeout))

    async def _completed(self, params: dict[str, Any], timeout: Timeout) -> Completion:
        edge = await self._ready()
        if "CompleteParams.context" in edge.revision.unknown:
            params.pop("context", None)
        edge.check_offered("completion/complete")
        return await self._completions.get(params, partial(self.request, "completion/complete", timeout=timeout))

    # --- changes ----------------------------------------------------------------------------------

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
    ) -> Listening:
        """Changes of these lists, and of the resources at these URIs, as an async iterator:
        `async with client.listen(tools=True) as changes: async for change in changes: ...`"""
        return Listening(self._hub, Wanted(tools=tools, prompts=prompts, resources=resources, uris=frozenset(uris)))

    def subscribe(self, uri: str, *more: str) -> Listening:
        """Updates of these resources, as `listen(uris=...)`."""
        return self.listen(uris=(uri, *more))

    def _listened(self, change: Change, listening: Listening) -> None:
        """Somebody's own stream told of a change. Of lists the client hears on a stream of its own."""
        self._stale(change)
        if listening.standing or change.kind == "resource":
            self._changed(change)

    def _noticed(self, method: str, params: Mapping[str, Any]) -> None:
        """A notice outside of any call, as the handshake era has them."""
        kind: Any = CHANGE_OF.get(method)
        uri = params.get("uri") if method == "notifications/resources/updated" else None
        if kind is None and not isinstance(uri, str):
            return
        change = Change(kind or "resource", uri)
        self._stale(change)
        self._hub.heard(method, params)
        self._changed(change)

    def _stale(self, change: Change) -> None:
        if change.kind == "resource":
            return
        self._lists.changed(change.kind)
        if change.kind == "tools":
            self._outputs.forget()
        else:
            self._completions.forget()

    def _forget(self) -> None:
        """Another connection: nothing that was learned on the last one holds."""
        self._lists.forget()
        self._outputs.forget()
        self._completions.forget()

    # --- the rest ---------------------------------------------------------------------------------

    async def set_log_level(self, level: LogLevel, *, timeout: Timeout = None) -> None:
        """From which level on the server's log messages are wanted (`on_log=`). It holds for the client: a new
        connection is told it, too."""
        check_level(level)
        await self._here(self._leveled(level, timeout))

    async def _leveled(self, level: LogLevel, timeout: Timeout) -> None:
        edge = await self._ready()
        if "logging/setLevel" in edge.revision.requests:
            await self.request("logging/setLevel", {"level": level}, timeout=timeout)
        self._log_level = level
        self._say_level(edge)

    async def ping(self, *, timeout: float = 20.0) -> None:
        """Is the server alive? Where the revision has no ping, `server/discover` is asked instead."""
        await self.request(self._open_edge().ping_method, {}, timeout=Patience(idle=None, total=timeout))


def _members(params: Any) -> dict[str, Any]:
    """A copy, whose `_meta` is an object."""
    if params is not None and not isinstance(params, Mapping):
        raise LocalError(f"params={params!r:.60}: give a mapping, or nothing")
    sent: dict[str, Any] = dict(cast("Mapping[str, Any]", params or {}))
    if not isinstance(sent.get("_meta", sent), Mapping):
        raise LocalError(f"_meta={sent['_meta']!r:.60}: give a mapping")
    return sent


def check_level(level: Any) -> None:
    if level not in LOG_LEVELS:
        raise LocalError(f"{level!r:.60} is no log level: use one of {', '.join(LOG_LEVELS)}")


def _unsaid(edge: ClientEdge, listing: Listing) -> float:
    """How long a list is good whose server does not say: not at all, but for revisions that have no word for it, and
    then only if the server tells of changes."""
    silent = "Result.ttlMs" in edge.revision.unknown
    return TOLD_KEPT if silent and edge.capabilities.can(f"{listing.change}.listChanged") else 0.0
