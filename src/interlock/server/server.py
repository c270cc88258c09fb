"""What a server author sees. No revision and no transport: a `Server` is a Handler.

The definition is shared and immutable in use: it never writes to a peer. Only a connection can.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from msgspec import UNSET

from ..revisions.asker import Asker
from ..revisions.param_headers import ParamHeader
from ..revisions.revision import Revision
from ..revisions.rounds import AskingRules
from ..revisions.table import pick
from ..state.sealing import Seal
from ..transport.keepalive import Keepalive
from ..transport.stdio_server import run_stdio
from ..wire.errors import LocalError, MethodNotFound
from ..wire.exchange import Exchange, Filter, Handler, Result
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.meta import SERVER_INFO, check_author_keys
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Icon, Implementation
from ..wire.types.tools import ToolAnnotations
from .about import About
from .answers import Answers
from .icons import checked_icons
from .offers import Offers
from .outputs import OutputSchema
from .own_methods import OwnMethod, check_method, check_notification
from .prompts import RegisteredPrompt
from .resources import ResourceFacts
from .threads import Threads
from .tools import Asks, RegisteredTool

__all__ = ["Server"]

if TYPE_CHECKING:
    from ..transport.http_server import HttpApp, HttpOptions

F = TypeVar("F", bound=Callable[..., Any])


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
    ) -> None:
        self.info = Implementation(
            name=name,
            version=version,
            title=title or UNSET,
            description=description or UNSET,
            icons=checked_icons(icons, name),
            website_url=website_url or UNSET,
        )
        self.rows: dict[str, Revision] = pick(revisions)
        self.strict = strict
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
        self._identity = self._about.identity
        self.asker = self._asker(Seal(state_keys), state_seconds)
        self._threads = Threads(threads)
        self._offers = Offers(self._threads, page_size)
        self._answers = Answers(self._about, self._offers)
        self._handlers = self._answers.table()
        self._handler: Handler = self._dispatch

    @property
    def instructions(self) -> str | None:
        """What clients may tell their model about this server."""
        return self._about.instructions

    def _asker(self, seal: Seal, seconds: float) -> Asker:
        rules = AskingRules(
            sealer=seal,
            clock=time.time,
            seconds=seconds,
            audience=self.info.name,
            result_meta=self._identity,
            parks=lambda method, params: getattr(self._tool_of(method, params), "park", False),
            single_use=lambda method, params: getattr(self._tool_of(method, params), "single_use", False),
        )
        return Asker(rules)

    def _tool_of(self, method: str, params: Any) -> RegisteredTool | None:
        return self._offers.tools.get(params.name) if method == "tools/call" else None

    # --- the join ---------------------------------------------------------------------------------

    def __call__(self, exchange: Exchange) -> Awaitable[Result]:
        return self._handler(exchange)

    def use(self, filter: Filter) -> None:
        """Put a filter around everything this server answers; the last one added is the outermost."""
        self._handler = filter(self._handler)
        self._answers.lends_pages = False  # a filter may change results

    async def _dispatch(self, exchange: Exchange) -> Result:
        handler = self._handlers.get(exchange.method)
        if handler is None:
            raise MethodNotFound(f"Unknown method: {exchange.method[:200]!r}")
        result = await handler(exchange)
        if self._identity:
            meta = result.get("_meta")
            if not meta:
                result["_meta"] = self._identity.copy()
            elif SERVER_INFO not in meta:
                result["_meta"] = {**meta, **self._identity}
        return result

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
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, **facts: Any) -> Any:
        """Offer a function as a tool: bare, or with facts about it.

        The schema of its arguments comes from its type hints. With `input_schema` that JSON Schema is listed as it is,
        and the function takes the arguments in one `dict` (or as `**arguments`), unchecked but for being an object.

        What it returns is declared by its annotation, or by `output_schema` (a JSON Schema, a type, or False for none).

        A tool that asks runs again with the answers; with `asks="park"` it waits in memory instead, for work too costly
        to repeat. With `single_use` every state that travels between its rounds counts once.
        """

        def register(function: F) -> F:
            check_author_keys(facts.get("meta"))
            tool = RegisteredTool(function, threads=self._threads, **facts)
            self._offers.add("tools", tool.name, tool)
            if tool.embeds:
                self._offers.resources.fixed.offered = True  # who embeds resources declares them (TOOLS-18)
            return function

        return register if function is None else register(function)

    def resource(self, uri: str, **facts: Unpack[ResourceFacts]) -> Callable[[F], F]:
        """Offer what a function returns as the resource at `uri`.

        With variables (`notes://{id}`, see uri_templates.py) the function takes them as parameters, and answers for
        every URI of that shape that is no resource of its own; of several templates the first one registered.
        """
        check_author_keys(facts.get("meta"))

        def register(function: F) -> F:
            resource = self._offers.resources.make(uri, function, **facts)
            self._offers.add("resources", uri, resource)
            self._offers.completions.take(resource.complete, template=uri)
            return function

        return register

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
        complete: Mapping[str, Any] = facts.pop("complete", None) or {}

        def register(function: F) -> F:
            check_author_keys(facts.get("meta"))
            prompt = RegisteredPrompt(function, threads=self._threads, **facts)
            self._offers.add("prompts", prompt.noun.name, prompt)
            self._offers.completions.take(complete, prompt=prompt.noun.name)
            return function

        return register if function is None else register(function)

    def completion(self, *, argument: str, prompt: str | None = None, template: str | None = None) -> Callable[[F], F]:
        """Suggest values for an argument of a prompt, or for a variable of a resource template.

        The function takes what was typed so far and, if it likes, a mapping of the arguments that are known already;
        it returns a list of strings, the best first. The first hundred go out.
        """
        return self._offers.completions.register(prompt, template, argument)

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a method of your own, for clients that know it; the function returns a mapping."""
        check_method(name)
        return self._own(name)

    def notification(self, name: str) -> Callable[[F], F]:
        """Hear a notification of your own, or `notifications/roots/list_changed`."""
        check_notification(name)
        return self._own(name)

    def _own(self, name: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            handler = OwnMethod(function, self._threads)
            self._offers.speaks = self._offers.speaks or handler.takes_context
            self._handlers[name] = handler
            return function

        return register

    def remove_tool(self, name: str) -> None:
        self._offers.remove("tools", name)

    def remove_resource(self, uri: str) -> None:
        """Take back a resource, or a template by its text."""
        self._offers.remove("resources", uri)

    def remove_prompt(self, name: str) -> None:
        self._offers.remove("prompts", name)

    def resource_changed(self, uri: str) -> None:
        """Tell everybody who subscribed to `uri` that reading it again is worth while. From any thread."""
        self._offers.changes.resource_updated(uri)

    def capabilities(self) -> ServerCapabilities:
        """What this server can do, derived from what is registered."""
        return self._answers.capabilities()

    # --- running ----------------------------------------------------------------------------------

    def stop_listening(self) -> None:
        """End all streams of change notices, and the runs that wait for answers: the process is about to go."""
        self._offers.changes.close()
        self.asker.parking.close()

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...]:
        """The parameters of a tool that callers over HTTP say in `Mcp-Param-*` headers too (x-mcp-header)."""
        found = self._offers.tools.get(tool)
        return found.param_headers if found is not None else ()

    def asgi(self, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[HttpOptions]) -> HttpApp:
        """An ASGI application that serves this server over HTTP, alone or mounted in another one."""
        from ..transport.http_server import HttpApp  # a server over stdio starts without it

        return HttpApp(self, limits=limits, **options)

    def run(
        self,
        carrier: Literal["stdio", "http"] = "stdio",
        *,
        limits: Limits = DEFAULT_LIMITS,
        keepalive: Keepalive | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serve over stdio until the client goes, or over HTTP, until the process is told to stop."""
        if carrier == "http":
            from ..transport.runner import run_http

            run_http(self.asgi(limits=limits, **options), host=host, port=port)
        elif carrier == "stdio" and not options:
            run_stdio(self, limits=limits, keepalive=keepalive, on_stop=self.stop_listening)
        else:
            what = ", ".join(options) or repr(carrier)
            raise LocalError(f"{what}: serve over 'stdio', which has no options of HTTP, or over 'http'")
