"""What a server author sees. No revision and no transport: a `Server` is a Handler.

The definition is shared and immutable in use: it never writes to a peer. Only a connection can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, cast, overload

from msgspec import UNSET

from ..protocol.server.responder import Stamp
from ..revisions.revision import Revision
from ..revisions.table import pick
from ..state.sealing import Seal
from ..transport.http.param_headers import ParamHeader
from ..transport.jsonrpc.keepalive import Keepalive
from ..transport.stdio.server import run_stdio
from ..wire.errors import LocalError
from ..wire.exchange import Exchange, Filter, Principal, Result
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Icon, Implementation
from ..wire.types.tools import ToolAnnotations
from . import lazy_types
from .dispatch import Dispatch
from .execution.concurrency import Concurrency
from .execution.guards import Guards
from .execution.invoke import ThreadPolicy
from .execution.thread_pool import Threads
from .handlers import About, Answers
from .icons import checked_icons
from .input_strategy import asker_of
from .lifespans import Lifespans
from .options import (
    adding,
    bare_or_not,
    check_facts,
    check_options,
    check_texts,
    check_uri_given,
    named_by,
    prompt_options,
    resource_options,
)
from .registry.registry import Offers
from .registry.subscriptions import Admits, Relay
from .tools.output_schema import OutputSchema
from .tools.tool import Asks, RegisteredTool

__all__ = ["Server"]

_TOOL_OPTIONS = named_by(RegisteredTool.__init__) - {"threads", "guards"}  # which are the server's own
F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V", bound="lazy_types.Visible")


class Server:
    """A set of tools, resources and prompts, and the answers to every method of MCP."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        icons: list[Icon] | None = None,
        website_url: str | None = None,
        instructions: str | None = None,
        revisions: tuple[str, ...] | None = None,
        experimental: Mapping[str, Mapping[str, Any]] | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        page_size: int | None = None,
        cache_seconds: float = 60.0,
        cache_scope: str = "private",
        identify: bool = True,
        strict: bool = False,
        threads: int = 32,
        state_keys: Sequence[bytes] = (),
        state_seconds: float = 600.0,
        store: lazy_types.State | None = None,
        visible: lazy_types.Visible | None = None,
        auth: lazy_types.Protection | None = None,
        **guards: Unpack[lazy_types.GuardOptions],
    ) -> None:
        check_options("Server", guards, _SERVER_OPTIONS)
        texts = {"name": name, "version": version, "title": title, "description": description}
        check_texts("Server", {**texts, "website_url": website_url, "instructions": instructions})
        self.info = Implementation(
            name=name,
            version=version,
            title=title or UNSET,
            description=description or UNSET,
            icons=checked_icons(icons, name),
            website_url=website_url or UNSET,
        )
        self.rows: dict[str, Revision] = pick(revisions)
        self.strict, self.store, self.auth = strict, store, auth
        self._about = About(
            self.info,
            self.rows,
            instructions=instructions,
            experimental=experimental,
            extensions=extensions,
            cache_seconds=cache_seconds,
            cache_scope=cache_scope,
            identify=identify,
        )
        self.stamp = Stamp(self._about.identity)
        """What the edge of the stateless era puts on each result."""
        self._threads = Threads(threads)
        self._offers = Offers(self._threads, page_size)
        seal = Seal(state_keys, store=store)
        self.asker = asker_of(self._offers.tools.get, seal, seconds=state_seconds, audience=name)
        self._answers = Answers(self._about, self._offers)
        self.lives = Lifespans()
        self._dispatch = Dispatch(self, self._answers.table(), self._offers.methods, self.lives)
        self._guard(Guards(**guards), visible)

    def _guard(self, guards: Guards, visible: lazy_types.Visible | None) -> None:
        self._guards = guards
        self.http_filter, self.stalls = guards.http_filter(), guards.stalls
        self.spread, self.share_rates = guards.spread, guards.share_rates
        if (filter := guards.filter()) is not None:
            self.use(filter)
        if visible is not None:
            self.visible(visible)

    @property
    def instructions(self) -> str | None:
        """What clients may tell their model about this server."""
        return self._about.instructions

    # --- the join ---------------------------------------------------------------------------------

    def __call__(self, exchange: Exchange) -> Awaitable[Result]:
        return self._dispatch.handler(exchange)

    # --- what stands around and beside it ---------------------------------------------------------

    def use(self, filter: Filter) -> None:
        """Put a filter around everything this server answers or hears; the last one added is the outermost."""
        self._dispatch.use(filter)
        self._answers.lends_pages = False  # a filter may change results

    def mount(self, prefix: str, other: Server) -> None:
        """Offer all that another server offers, now and later: its tools and prompts as `prefix_name`.

        Resources, templates and methods keep their names. What is taken already is refused, here and whenever
        something is added to either. Requests go through the whole of the other server: its filters, its lifespans.
        """
        if not (isinstance(cast(Any, prefix), str) and isinstance(cast(Any, other), Server)):
            raise LocalError("mount(prefix, other) takes a text and a Server")
        from .registry.mounting import Mount  # few servers hold others

        self._offers.mount(Mount(prefix, other, other._offers, self._offers))
        self.lives.mount(other.lives)

    def visible(self, function: V) -> V:
        """Decide who sees what: `function(principal, item)` is True where the item is there for the principal.

        What is hidden is answered like what is absent: it is not listed, called, read, completed or told of.
        """
        self._offers.show_by(function)
        return function

    def visibility_changed(self) -> None:
        """Tell everybody who listens that `visible` would answer differently now. From any thread."""
        self._offers.visibility_changed()

    def app_lifespan(self, function: F) -> F:
        """What lives as long as this server is served: an `async def` that yields once, what `ctx.app` gives."""
        return self._lives("app", function)

    def connection_lifespan(self, function: F) -> F:
        """What lives as long as one connection over stdio or in memory; over HTTP, as one request: `ctx.connection`."""
        return self._lives("connection", function)

    def request_lifespan(self, function: F) -> F:
        """What lives around one handler: `ctx.request`. It sees what the handler raised, and a tool's failure."""
        return self._lives("request", function)

    def _lives(self, name: str, function: F) -> F:
        self.lives.declare(name, function)
        self._dispatch.live()
        return function

    # --- what authors register --------------------------------------------------------------------

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: OutputSchema | None = None,
        meta: Mapping[str, Any] | None = None,
        asks: Asks = "replay",
        single_use: bool = False,
        timeout: float | None = None,
        concurrency: Concurrency | int | None = None,
        thread: ThreadPolicy | None = None,
        scopes: Sequence[str] = (),
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, **facts: Any) -> Any:
        """Offer a function as a tool: bare, or with facts about it.

        The schema of its arguments comes from its type hints. With `input_schema` that JSON Schema is listed as it is,
        arguments are checked against it, and the function takes them in one `dict` (or as `**arguments`).

        What it returns is declared by its annotation, or by `output_schema` (a JSON Schema, a type, or False for none).

        A tool that asks runs again with the answers; with `asks="park"` it waits in memory instead, for work too costly
        to repeat. With `single_use` every state that travels between its rounds counts once.

        After `timeout` seconds of work the call is cancelled and answered with an error; `concurrency` bounds how many
        run at once. `thread` says where a plain function runs: "pool", "own" (a new thread each time) or "loop".
        Over HTTP with `auth`, callers whose token lacks one of `scopes` are told which they need.
        """
        check_facts("tool", facts, _TOOL_OPTIONS)
        return bare_or_not("tool", function, lambda function: self.add_tool(function, **facts))

    def add_tool(self, function: Callable[..., Any], **facts: Any) -> None:
        """The same as a plain call, with the facts that `tool` takes. From any thread, also while calls run."""
        check_facts("tool", facts, _TOOL_OPTIONS)
        tool = RegisteredTool(function, threads=self._threads, guards=self._guards, **facts)
        self._offers.add("tools", tool.name, tool)

    def resource(self, uri: str, **facts: Unpack[lazy_types.ResourceFacts]) -> Callable[[F], F]:
        """Offer what a function returns as the resource at `uri`.

        With variables (`notes://{id}`, see server/resources/uri_template.py) the function takes them as parameters, and
        answers for every URI of that shape that is no resource of its own; of several templates the first one
        registered."""
        check_uri_given(uri)
        check_facts("resource", facts, resource_options())
        return adding(lambda function: self.add_resource(uri, function, **facts))

    def add_resource(self, uri: str, function: Callable[..., Any], **facts: Unpack[lazy_types.ResourceFacts]) -> None:
        """The same as a plain call, with the facts that `resource` takes. From any thread, also while reads run."""
        check_uri_given(uri)
        check_facts("resource", facts, resource_options())
        resource = self._offers.resources.make(uri, function, **facts)
        self._offers.add("resources", uri, resource, resource.complete)

    @overload
    def prompt(self, function: F) -> F: ...
    @overload
    def prompt(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, Any] | None = None,
        complete: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, **facts: Any) -> Any:
        """Offer a function of strings as a prompt. `complete` says who suggests values for which argument."""
        check_facts("prompt", facts, prompt_options())
        return bare_or_not("prompt", function, lambda function: self.add_prompt(function, **facts))

    def add_prompt(
        self, function: Callable[..., Any], *, complete: Mapping[str, Any] | None = None, **facts: Any
    ) -> None:
        """The same as a plain call, with the facts that `prompt` takes. From any thread."""
        check_facts("prompt", facts, prompt_options())
        from .prompts import RegisteredPrompt  # a server without prompts starts without them

        prompt = RegisteredPrompt(function, threads=self._threads, **facts)
        self._offers.add("prompts", prompt.noun.name, prompt, complete or {})

    def completion(self, *, argument: str, prompt: str | None = None, template: str | None = None) -> Callable[[F], F]:
        """Suggest values for an argument of a prompt, or for a variable of a resource template.

        The function takes what was typed so far and, if it likes, a mapping of the arguments that are known already;
        it returns a list of strings, the best first. The first hundred go out.
        """
        return self._offers.completions.register(prompt, template, argument)

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a method of your own, for clients that know it; the function returns a mapping."""
        return self._own("methods", name)

    def notification(self, name: str) -> Callable[[F], F]:
        """Hear a notification of your own, or `notifications/roots/list_changed`."""
        return self._own("notifications", name)

    def _own(self, kind: str, name: str) -> Callable[[F], F]:
        from .custom_methods import OwnMethod, check_method, check_notification  # few servers have any

        (check_method if kind == "methods" else check_notification)(name)
        return adding(lambda function: self._offers.add(kind, name, OwnMethod(function, self._threads)))

    def remove_tool(self, name: str) -> None:
        """Take back a tool; calls that run already end as they would. From any thread, as the others."""
        self._offers.remove("tools", name)

    def remove_resource(self, uri: str) -> None:
        """Take back a resource, or a template by its text."""
        self._offers.remove("resources", uri)

    def remove_prompt(self, name: str) -> None:
        self._offers.remove("prompts", name)

    def resource_changed(self, uri: str) -> None:
        """Tell everybody who subscribed to `uri` that reading it again is worth while. From any thread."""
        self._offers.resource_changed(uri)

    def capabilities(self) -> ServerCapabilities:
        """What this server can do, derived from what is registered."""
        return self._answers.capabilities()

    # --- running ----------------------------------------------------------------------------------

    def stop_listening(self) -> None:
        """End all streams of change notices, and the runs that wait for answers: the process is about to go."""
        self._offers.changes.close()
        self.asker.parking.close()

    def relay_changes(self, relay: Relay) -> Callable[[str, str, Admits], None]:
        """Tell `relay` of every change from now on; returns who is to be told of those of all processes."""
        self._offers.changes.relay = relay
        return self._offers.changed_somewhere

    def param_headers(self, tool: str, principal: Principal | None = None) -> tuple[ParamHeader, ...]:
        """The parameters of a tool that callers over HTTP say in `Mcp-Param-*` headers too (x-mcp-header)."""
        found = self._offers.shown_tool(tool, principal)
        return () if found is None else found.param_headers

    def scopes_of(self, tool: str, principal: Principal | None = None) -> tuple[str, ...]:
        """What a token must allow before this tool is called over HTTP; nothing, for who does not see the tool."""
        found = self._offers.shown_tool(tool, principal)
        return () if found is None else found.scopes

    def asgi(
        self, *, limits: Limits = DEFAULT_LIMITS, drain: float = 5.0, **options: Unpack[lazy_types.HttpOptions]
    ) -> lazy_types.HttpApp:
        """An ASGI application that serves this server over HTTP, alone or mounted in another one (which then takes
        its `lifespan`). With `state` it is one of several that serve the same sessions. Calls in flight have `drain`
        seconds to end when the ASGI server stops.
        """
        from ..transport.http.server.app import HttpApp  # a server over stdio starts without it

        return HttpApp(self, limits=limits, drain=drain, **options)

    def run(
        self,
        carrier: Literal["stdio", "http"] = "stdio",
        *,
        limits: Limits = DEFAULT_LIMITS,
        keepalive: Keepalive | None = None,
        host: str | None = None,
        port: int | None = None,
        drain: float | None = None,
        connections: int | None = None,
        connections_per_address: int | None = None,
        workers: int | None = None,
        heartbeat_timeout: float | None = None,
        **options: Unpack[lazy_types.HttpOptions],
    ) -> None:
        """Serve over stdio until the client goes, or over HTTP (at 127.0.0.1, port 8000, unless `host` and `port` say
        otherwise), until the process is told to stop. Calls in flight then get `drain` seconds (5); at most
        `connections` (4096) are open at once, a quarter of them from one address unless `connections_per_address` says
        otherwise. `workers` are processes that share `state` or `store`; one whose event loop stands still for
        `heartbeat_timeout` seconds (60) is killed and replaced, 0 keeps it."""
        given = {"host": host, "port": port, "drain": drain, "connections": connections, "workers": workers}
        given |= {"connections_per_address": connections_per_address, "heartbeat_timeout": heartbeat_timeout}
        where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if carrier == "http":
            from ..transport.http.runner.serve import run_http

            if keepalive is not None:
                told = "over HTTP no connection is pinged, leave it out; timing=Timing(quiet=...) says how often"
                raise LocalError(f"keepalive: {told} a quiet stream gives a sign of life")
            if workers is not None and workers > 1 and self.store is not None:
                options.setdefault("state", self.store)
            run_http(self.asgi(limits=limits, **options), **where)
        elif carrier == "stdio" and not where and not options:
            run_stdio(self, limits=limits, keepalive=keepalive, on_stop=self.stop_listening)
        else:
            what = ", ".join((*where, *options)) or repr(carrier)
            told = (
                "run() serves stdio and has no options of HTTP; run('http', ...) serves every HTTP transport there is"
            )
            raise LocalError(f"{what}: {told}")


_SERVER_OPTIONS = named_by(Server.__init__) | named_by(Guards.__init__)
