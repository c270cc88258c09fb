"""What a server author sees. No revision and no transport: a `Server` is a Handler.

The definition is shared and immutable in use: it never writes to a peer. Only a connection can.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET, Raw

from ..revisions.asker import Asker
from ..revisions.param_headers import ParamHeader
from ..revisions.revision import Revision
from ..revisions.rounds import AskingRules
from ..revisions.table import OFFICIAL_METHODS, names_of, pick
from ..state.sealing import Seal
from ..transport.keepalive import Keepalive
from ..transport.stdio_server import run_stdio
from ..wire.errors import InvalidParams, LocalError, MethodNotFound
from ..wire.exchange import Exchange, Filter, Handler, Result
from ..wire.frames import encode
from ..wire.limits import DEFAULT_LIMITS, LONGEST_URI, MOST_SUBSCRIPTIONS, Limits
from ..wire.meta import SERVER_INFO, check_author_keys, check_extension_ids
from ..wire.types.capabilities import ServerCapabilities
from ..wire.types.common import Icon, Implementation
from ..wire.types.tools import ToolAnnotations
from .bounds import Concurrency
from .calling import ThreadPolicy, caller_of
from .changes import Changes
from .completions import Completions
from .context import Context
from .declared import declared
from .guards import GuardOptions, Guards
from .icons import checked_icons
from .outputs import OutputSchema
from .pages import Catalogue, cache_hints
from .prompts import RegisteredPrompt
from .resource_set import ResourceSet
from .schema import read_signature
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
        **guards: Unpack[GuardOptions],
    ) -> None:
        self.info = Implementation(
            name=name,
            version=version,
            title=title or UNSET,
            description=description or UNSET,
            icons=checked_icons(icons, name),
            website_url=website_url or UNSET,
        )
        self.instructions = instructions
        self.rows: dict[str, Revision] = pick(revisions)
        self.strict = strict
        check_extension_ids(extensions or ())
        self._experimental = {key: dict(value) for key, value in (experimental or {}).items()}
        self._extensions = {key: dict(value) for key, value in (extensions or {}).items()}
        self._hints = cache_hints(cache_seconds, cache_scope)
        self._identity = {SERVER_INFO: Raw(encode(self.info))} if identify else {}
        self.asker = self._asker(Seal(state_keys), state_seconds)
        self._threads = Threads(threads)
        self._guards = Guards(**guards)
        self.http_filter, self.stalls = self._guards.http_filter(), self._guards.stalls
        self._changes = Changes()
        self._tools: Catalogue[RegisteredTool] = Catalogue("tools", page_size)
        self._resources = ResourceSet(self._threads, page_size)
        self._prompts: Catalogue[RegisteredPrompt] = Catalogue("prompts", page_size)
        self._completions = Completions(self._threads, self._names_of)
        self._speaks = False  # does any handler take a Context, and so may log?
        self._handlers = self._answers()
        self._handler: Handler = self._guards.around(self._dispatch)
        self._filtered = False

    def _answers(self) -> dict[str, Handler]:
        return {
            "tools/call": self._call_tool,
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._resources.read,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._completions.complete,
            "subscriptions/listen": self._listen,
        }

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
        return self._tools.get(params.name) if method == "tools/call" else None

    # --- the join ---------------------------------------------------------------------------------

    def __call__(self, exchange: Exchange) -> Awaitable[Result]:
        return self._handler(exchange)

    def use(self, filter: Filter) -> None:
        """Put a filter around everything this server answers; the last one added is the outermost."""
        self._handler = filter(self._handler)
        self._filtered = True  # a filter may change results, so it gets its own of what is kept for all

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
        timeout: float | None = None,
        concurrency: Concurrency | int | None = None,
        thread: ThreadPolicy | None = None,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, **facts: Any) -> Any:
        """Offer a function as a tool: bare, or with facts about it.

        The schema of its arguments comes from its type hints. With `input_schema` that JSON Schema is listed as it is,
        and the function takes the arguments in one `dict` (or as `**arguments`), unchecked but for being an object.

        What it returns is declared by its annotation, or by `output_schema` (a JSON Schema, a type, or False for none).

        A tool that asks runs again with the answers; with `asks="park"` it waits in memory instead, for work too costly
        to repeat. With `single_use` every state that travels between its rounds counts once.

        After `timeout` seconds of work the call is cancelled and answered with an error; `concurrency` bounds how many
        run at once. `thread` says where a plain function runs: "pool", "own" (a new thread each time) or "loop".
        """

        def register(function: F) -> F:
            check_author_keys(facts.get("meta"))
            tool = RegisteredTool(function, threads=self._threads, guards=self._guards, **facts)
            self._add(self._tools, "tools", tool.name, tool)
            if tool.embeds:
                self._resources.fixed.offered = True  # who embeds resources declares them (TOOLS-18)
            return function

        return register if function is None else register(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Offer what a function returns as the resource at `uri`.

        With variables (`notes://{id}`, see uri_templates.py) the function takes them as parameters, and answers for
        every URI of that shape that is no resource of its own; of several templates the first one registered.
        """
        check_author_keys(meta)
        facts = {"name": name, "title": title, "description": description, "mime_type": mime_type, "meta": meta}

        def register(function: F) -> F:
            resource = self._resources.make(uri, function, **facts)
            self._add(self._resources.catalogue_of(uri), "resources", uri, resource)
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
    ) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, **facts: Any) -> Any:
        """Offer a function of strings as a prompt."""

        def register(function: F) -> F:
            check_author_keys(facts.get("meta"))
            prompt = RegisteredPrompt(function, threads=self._threads, **facts)
            self._add(self._prompts, "prompts", prompt.noun.name, prompt)
            return function

        return register if function is None else register(function)

    def completion(self, *, argument: str, prompt: str | None = None, template: str | None = None) -> Callable[[F], F]:
        """Suggest values for an argument of a prompt, or for a variable of a resource template.

        The function takes what was typed so far and, if it likes, a mapping of the arguments that are known already;
        it returns a list of strings, the best first. The first hundred go out.
        """
        return self._completions.register(prompt, template, argument)

    def _names_of(self, prompt: str | None, template: str | None) -> tuple[str, ...] | None:
        found = self._prompts.get(prompt) if prompt is not None else self._resources.templates.get(template or "")
        return found.names if found is not None else None

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a method of your own, for clients that know it; the function returns a mapping."""
        if name in OFFICIAL_METHODS or name.startswith("notifications/"):
            raise LocalError(f"{name!r} belongs to MCP: choose a name of your own, like 'example/report'")
        return self._own(name)

    def notification(self, name: str) -> Callable[[F], F]:
        """Hear a notification of your own, or `notifications/roots/list_changed`."""
        if not name.startswith("notifications/"):
            raise LocalError(f"{name!r}: names of notifications start with 'notifications/'")
        return self._own(name)

    def _own(self, name: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            signature = read_signature(function, Context)
            self._speaks = self._speaks or signature.context is not None
            call = caller_of(function, signature, self._threads)

            async def handle(exchange: Exchange) -> Result:
                try:
                    arguments = msgspec.structs.asdict(signature.decoder.decode(exchange.raw or Raw(b"{}")))
                except msgspec.ValidationError as error:
                    raise InvalidParams(f"Invalid params: {str(error).replace('`', chr(39))}") from None
                return dict(await call(arguments, exchange) or {})

            self._handlers[name] = handle
            return function

        return register

    def _add(self, catalogue: Catalogue[Any], kind: str, name: str, item: Any) -> None:
        if name in catalogue:
            raise LocalError(f"there is a {kind[:-1]} {name!r} already")
        self._speaks = self._speaks or item.takes_context
        catalogue.add(name, item, item.noun)
        self._changes.list_changed(kind)

    def remove_tool(self, name: str) -> None:
        self._remove(self._tools, "tools", name)

    def remove_resource(self, uri: str) -> None:
        """Take back a resource, or a template by its text."""
        self._remove(self._resources.catalogue_of(uri), "resources", uri)

    def remove_prompt(self, name: str) -> None:
        self._remove(self._prompts, "prompts", name)

    def _remove(self, catalogue: Catalogue[Any], kind: str, name: str) -> None:
        if not catalogue.remove(name):
            raise LocalError(f"there is no {kind[:-1]} {name!r}")
        self._changes.list_changed(kind)

    def resource_changed(self, uri: str) -> None:
        """Tell everybody who subscribed to `uri` that reading it again is worth while. From any thread."""
        self._changes.resource_updated(uri)

    # --- the answers ------------------------------------------------------------------------------

    def capabilities(self) -> ServerCapabilities:
        """What this server can do, derived from what is registered."""
        return declared(
            {"experimental": self._experimental, "extensions": self._extensions},
            tools=self._tools.offered,
            resources=self._resources.offered,
            prompts=self._prompts.offered,
            completions=self._completions.offered,
            logging=self._speaks or self._completions.takes_context,
        )

    async def _discover(self, exchange: Exchange) -> Result:
        found: Result = {
            "supportedVersions": names_of(self.rows),
            "capabilities": self.capabilities(),
            **self._hints,
        }
        return found | ({"instructions": self.instructions} if self.instructions else {})

    def _list(self, catalogue: Catalogue[Any], offered: bool, exchange: Exchange) -> Result:
        if not offered:
            raise MethodNotFound(f"This server does not offer {exchange.method.partition('/')[0]}")
        hints = {**self._hints, "_meta": dict(self._identity)} if self._identity else self._hints
        page = catalogue.page(exchange.params.cursor, hints)
        return page if not self._filtered else {**page, "_meta": dict(self._identity)}

    async def _list_tools(self, exchange: Exchange) -> Result:
        return self._list(self._tools, self._tools.offered, exchange)

    async def _list_resources(self, exchange: Exchange) -> Result:
        return self._list(self._resources.fixed, self._resources.offered, exchange)

    async def _list_templates(self, exchange: Exchange) -> Result:
        return self._list(self._resources.templates, self._resources.offered, exchange)

    async def _list_prompts(self, exchange: Exchange) -> Result:
        return self._list(self._prompts, self._prompts.offered, exchange)

    def _call_tool(self, exchange: Exchange) -> Awaitable[Result]:
        tool = self._tools.get(exchange.params.name)
        if tool is None:
            if not self._tools.offered:
                raise MethodNotFound("This server does not offer tools")
            raise InvalidParams(f"Unknown tool: {exchange.params.name[:200]!r}")
        return tool.call(exchange)

    async def _get_prompt(self, exchange: Exchange) -> Result:
        prompt = self._prompts.get(exchange.params.name)
        if prompt is None:
            if not self._prompts.offered:
                raise MethodNotFound("This server does not offer prompts")
            raise InvalidParams(f"Unknown prompt: {exchange.params.name[:200]!r}")
        return await prompt.get(exchange)

    async def _listen(self, exchange: Exchange) -> Result:
        watched: set[str] = exchange.params.notifications.resource_subscriptions
        if len(watched) > MOST_SUBSCRIPTIONS or any(len(uri) > LONGEST_URI for uri in watched):
            told = f"At most {MOST_SUBSCRIPTIONS} resources can be watched, each URI of {LONGEST_URI} characters"
            raise InvalidParams(told)
        return await self._changes.listen(exchange, self.capabilities())

    # --- running ----------------------------------------------------------------------------------

    def stop_listening(self) -> None:
        """End all streams of change notices, and the runs that wait for answers: the process is about to go."""
        self._changes.close()
        self.asker.parking.close()

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...]:
        """The parameters of a tool that callers over HTTP say in `Mcp-Param-*` headers too (x-mcp-header)."""
        found = self._tools.get(tool)
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
