"""An application on a port: uvicorn with our bounds and our way to stop. Nothing of it is imported before it runs.

Stopping takes three steps: new requests are refused and the streams of change notices end with their results; what is
in flight gets its time; what is left is cancelled and told so. A second signal skips the waiting.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ..wire.errors import LocalError
from .http_server import HttpApp
from .main_loop import run_main
from .workers import Lifeline, check_can_fork, supervise

__all__ = ["run_http", "run_workers", "serve_http", "bind", "check_binding"]

_DRAIN = 5.0  # seconds that requests in flight get once we were told to stop
_AFTER_DRAIN = 1  # and the connections, once no request is left
_IDLE = 60  # seconds that a connection may be kept open without a request
_CONNECTIONS = 4096  # open at once; requests on further ones are 503
_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # no name that anybody calls a server by
_BACKLOG = 1024  # connections the system holds until they are accepted


def run_http(
    app: HttpApp, *, host: str = "127.0.0.1", port: int = 8000, drain: float = _DRAIN, workers: int = 1
) -> None:
    """Serve `app` until the process is told to stop. Port 0 takes any free one; which one is said on stderr."""
    check_can_fork(workers)
    _check(app, host, workers)
    if workers > 1:
        run_workers(lambda: app, workers, host=host, port=port, path=app.path, drain=drain)
        return
    listener = bind(host, port)
    try:
        run_main(serve_http(app, listener, drain=drain), _loop_factory(), app.watcher)
    finally:
        listener.close()


def run_workers(
    make: Callable[[], HttpApp], count: int, *, host: str, port: int, path: str, drain: float = _DRAIN
) -> None:
    """Serve what `make` gives in each of `count` processes, all of them at one port, until told to stop."""
    check_can_fork(count)
    listener = bind(host, port)

    def work(line: Lifeline) -> None:
        app = make()
        _check(app, host, count)
        run_main(_serve_tied(app, listener, drain, line), _loop_factory(), app.watcher)

    try:
        supervise(work, count, patience=drain, on_started=lambda: _announce(path, listener, f" with {count} workers"))
    finally:
        listener.close()


def _check(app: HttpApp, host: str, workers: int) -> None:
    """Can it be served like this? From now on it goes by the address, too."""
    check_binding(host, app.allowed_hosts)
    if host not in _EVERY_ADDRESS:
        app.allow_host(host)
    if workers > 1 and not app.shared:
        raise LocalError(
            f"{workers} workers must share their sessions, keys and used states: say in which file of this machine "
            "(state='state.db', or --state state.db), or run one worker"
        )


def check_binding(host: str, allowed_hosts: tuple[str, ...]) -> None:
    """Whoever opens a server to others says by which names they call it: else pages of any site could."""
    if not is_loopback(host) and not allowed_hosts:
        raise LocalError(
            f"{host or 'every address'} can be reached from other machines: say by which names clients call it "
            "(allowed_hosts=['mcp.example.com'], or ['*'] behind a proxy that checks Host), or bind 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise LocalError(f"cannot listen on {host} port {port}: {error}") from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def serve_http(
    app: HttpApp, listener: socket.socket, *, drain: float = _DRAIN, stop: asyncio.Event | None = None
) -> None:
    """The same on the running loop and a socket that listens already; `stop` ends it like a signal."""
    await _uvicorn(app, drain, stop, lambda: _announce(app.path, listener)).serve(sockets=[listener])


async def _serve_tied(app: HttpApp, listener: socket.socket, drain: float, line: Lifeline) -> None:
    """The same as one of several workers: it stops when the process that started it is gone."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def gone() -> None:
        loop.remove_reader(line.parent)
        stop.set()

    loop.add_reader(line.parent, gone)
    try:
        await _uvicorn(app, drain, stop, line.started).serve(sockets=[listener])
    finally:
        loop.remove_reader(line.parent)


def _announce(path: str, listener: socket.socket, more: str = "") -> None:
    host, port = listener.getsockname()[:2]
    sys.stderr.write(f"interlock: serving at http://{f'[{host}]' if ':' in host else host}:{port}{path}{more}\n")
    sys.stderr.flush()


def _uvicorn(app: HttpApp, drain: float, stop: asyncio.Event | None, on_started: Callable[[], None]) -> Any:
    import uvicorn

    class Serving(uvicorn.Server):
        """Its signals stop the app first, and end the process like any other end: with 0."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            with _Stop(app, self, drain).when_told(stop):
                yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            try:
                await super().startup(sockets)
            except SystemExit:  # what lives with the app could not begin
                raise app.failure or LocalError("the application could not start") from None
            on_started()

    return Serving(
        uvicorn.Config(
            app,
            http=_protocol(app.body_bytes),
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_AFTER_DRAIN,
        )
    )


def _protocol(body_bytes: int) -> Any:
    """uvicorn's httptools protocol reads headers of any length, as slowly as they come; ours does not."""
    try:
        from .http_protocol import bounded_by
    except ImportError:
        return "h11"  # which has a bound of its own
    return bounded_by(body_bytes)


class _Stop:
    """The way from the first signal to the end."""

    def __init__(self, app: HttpApp, server: Any, drain: float) -> None:
        self._app, self._server, self._drain = app, server, drain
        self._loop = asyncio.get_running_loop()
        self._winding_down: asyncio.Task[None] | None = None

    @contextmanager
    def when_told(self, stop: asyncio.Event | None) -> Generator[None]:
        """By a signal, or by the event."""
        waiting = None if stop is None else self._loop.create_task(self._wait(stop))
        taken = [number for number in (signal.SIGTERM, signal.SIGINT) if self._take(number)]
        try:
            yield
        finally:
            for number in taken:
                self._loop.remove_signal_handler(number)
            if waiting is not None:
                waiting.cancel()

    def _take(self, number: int) -> bool:
        try:
            self._loop.add_signal_handler(number, self._told)
        except (ValueError, NotImplementedError, RuntimeError):
            return False  # not in the main thread, or not on this platform
        return True

    async def _wait(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._told()

    def _told(self) -> None:
        if self._winding_down is None:
            self._winding_down = self._loop.create_task(self._wind_down(self._drain))
        else:
            self._winding_down.cancel()
            self._winding_down = self._loop.create_task(self._wind_down(0.0))

    async def _wind_down(self, drain: float) -> None:
        self._app.stop()
        await self._app.settle(drain)
        self._server.should_exit = True
