"""The client for people who do not await: the same verbs with the same arguments, each of which blocks.

    with SyncClient(["python", "server.py"]) as client:
        client.call_tool("add", {"a": 1, "b": 2})

It works where a loop is running already (a notebook) and from any number of threads: all clients of a process share
one loop in a thread of its own. The verbs are made of those of `Client`, so that they cannot drift apart.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from ...wire.errors import LocalError, NotOpen
from ...wire.types.capabilities import ServerCapabilities
from ...wire.types.common import Implementation
from ..client import Client
from .callbacks import Callbacks
from .loop_thread import LoopThread, shared_loop

__all__ = ["SyncClient", "SyncStream"]

P = ParamSpec("P")
R = TypeVar("R")
_WAITED_FOR = ("elicit", "elicit_url", "sample", "roots")  # what a server asks; whatever begins with on_ is told


def _like(
    init: Callable[Concatenate[Client, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """The arguments of the other one."""

    def same(mine: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        return cast("Callable[Concatenate[Any, P], None]", functools.wraps(init)(mine))

    return same


def _blocking(
    verb: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncClient, P], R]:
    """The verb, waited for."""

    @functools.wraps(verb)
    def blocking(self: SyncClient, *arguments: P.args, **options: P.kwargs) -> R:
        return self._do(verb, arguments, options)  # pyright: ignore[reportPrivateUsage]

    return blocking


def _streaming(
    verb: Callable[Concatenate[Client, P], AsyncIterator[R]],
) -> Callable[Concatenate[SyncClient, P], SyncStream[R]]:
    """The verb that gives something bit by bit, each of which is waited for."""
    return cast("Callable[Concatenate[SyncClient, P], SyncStream[R]]", _blocking(cast(Any, verb)))


class SyncClient:
    """`Client`, blocking. Callbacks may be plain functions: they run in threads of their own and may block, too.

    A callback that somebody waits for (a question of the server, progress) must not call the client it belongs to:
    that is a `LocalError` at once, never a deadlock. What is only told (`on_notification` of the client) may.
    """

    @_like(Client.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._callbacks = Callbacks()
        waited = {name: self._callbacks.awaited(options[name]) for name in _WAITED_FOR if name in options}
        told = {name: self._callbacks.told(each) for name, each in options.items() if name.startswith("on_")}
        self._client = Client(*arguments, **{**options, **waited, **told})
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._forgotten: weakref.finalize[..., SyncClient] | None = None
        self._closed = False

    # --- opening and closing ----------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect and agree on a revision. An open client is left as it is; what failed may be tried again."""
        with self._lock:
            if self._closed:
                raise NotOpen("this client was closed")
            if self._thread is None:
                thread = self._thread = shared_loop()
                thread.join(id(self), self._client.close)
                self._forgotten = weakref.finalize(self, _forget, thread, id(self), self._client, self._callbacks)
                self._forgotten.atexit = False  # the thread sees to that
        self._do(Client.open, (), {})

    def close(self) -> None:
        """End the connection and everything it started. Idempotent."""
        with self._lock:
            if self._thread is not None:
                self._check_place(self._thread)
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None or self._forgotten is None:
            return
        self._forgotten.detach()
        try:
            thread.run(self._client.close())
        finally:
            self._callbacks.close()
            thread.leave(id(self))

    # --- what is known about the server -----------------------------------------------------------

    @property
    def revision(self) -> str:
        return self._client.revision

    @property
    def server_info(self) -> Implementation:
        return self._client.server_info

    @property
    def capabilities(self) -> ServerCapabilities:
        return self._client.capabilities

    @property
    def instructions(self) -> str | None:
        return self._client.instructions

    # --- verbs: one line each, for type checkers; what is missing here is added below ------------------

    call_tool = _blocking(Client.call_tool)
    list_tools = _blocking(Client.list_tools)
    list_resources = _blocking(Client.list_resources)
    list_resource_templates = _blocking(Client.list_resource_templates)
    list_prompts = _blocking(Client.list_prompts)
    read_resource = _blocking(Client.read_resource)
    get_prompt = _blocking(Client.get_prompt)
    complete = _blocking(Client.complete)
    listen = _streaming(Client.listen)
    subscribe = _streaming(Client.subscribe)
    set_log_level = _blocking(Client.set_log_level)
    ping = _blocking(Client.ping)
    request = _blocking(Client.request)
    notify = _blocking(Client.notify)
    roots_changed = _blocking(Client.roots_changed)

    # --- inside -----------------------------------------------------------------------------------

    def _do(self, verb: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        thread = self._thread
        if thread is None:
            raise NotOpen("this client was closed" if self._closed else "this client is not open: use `with` or open()")
        self._check_place(thread)
        heard = {name: self._callbacks.awaited(each) for name, each in options.items() if name.startswith("on_")}
        found = thread.run(_outcome(verb, self._client, arguments, {**options, **heard}))
        return SyncStream(thread, found) if hasattr(found, "__aiter__") else found

    def _check_place(self, thread: LoopThread) -> None:
        if thread.is_here:
            raise LocalError("a blocking client cannot be called from an async callback: it would wait for itself")
        if self._callbacks.is_waited_for:
            raise LocalError("this callback is waited for: return first, then call the client")


class SyncStream(Generic[R]):
    """What an async verb gives bit by bit, for a plain `for`. Close it, or leave its `with`, to stop early."""

    def __init__(self, thread: LoopThread, stream: AsyncIterator[R]) -> None:
        self._thread, self._stream = thread, stream

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        if self._thread.is_here:
            raise LocalError("a blocking stream cannot be read from an async callback: it would wait for itself")
        found, value = self._thread.run(_next(self._stream))
        if not found:
            raise StopIteration
        return cast(R, value)

    def __getattr__(self, name: str) -> Any:
        """What else the stream tells about itself."""
        return getattr(self._stream, name)

    def __enter__(self) -> Self:
        enter = getattr(self._stream, "__aenter__", None)
        if enter is not None:
            self._thread.run(_awaited(enter()))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop. What it waits for in another thread ends."""
        close = getattr(self._stream, "aclose", None) or getattr(self._stream, "close", None)
        if close is not None:
            self._thread.run(_awaited(close()))


async def _outcome(verb: Callable[..., Any], client: Client, arguments: Any, options: Any) -> Any:
    """Called on the loop, so that also a verb that only returns a stream begins there."""
    return await _awaited(verb(client, *arguments, **options))


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _next(stream: AsyncIterator[R]) -> tuple[bool, R | None]:
    """An end that is no exception: StopAsyncIteration does not pass through a future."""
    try:
        return True, await anext(stream)
    except StopAsyncIteration:
        return False, None


def _forget(thread: LoopThread, user: int, client: Client, callbacks: Callbacks) -> None:
    """Nobody holds it any more and nobody closed it: it is closed now, without waiting."""
    warnings.warn("a SyncClient was not closed: use `with`, or close()", ResourceWarning, stacklevel=2)

    async def end() -> None:
        try:
            await client.close()
        finally:
            callbacks.close(wait=False)
            asyncio.get_running_loop().call_soon(thread.leave, user)

    try:
        thread.start(end())
    except (LocalError, ConnectionError):
        pass  # its loop has ended before


def _add_what_is_missing() -> None:
    """Verbs and facts that `Client` has and no line above names."""
    for name in dir(Client):
        member = inspect.getattr_static(Client, name)
        if name.startswith("_") or hasattr(SyncClient, name):
            continue
        if isinstance(member, property):
            setattr(SyncClient, name, _fact(name, member.__doc__))
        elif inspect.isfunction(member):
            setattr(SyncClient, name, _blocking(cast(Any, member)))


def _fact(name: str, doc: str | None) -> property:
    return property(lambda self: getattr(self._client, name), doc=doc)


_add_what_is_missing()
