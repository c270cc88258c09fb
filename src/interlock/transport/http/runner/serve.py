"""An application on a port: uvicorn with our bounds and our way to stop. Nothing of it is imported before it runs.

Stopping takes four steps: new requests are refused and the streams of change notices end with their results; what is
in flight gets its time; what is left is cancelled and told so; what lives with the application ends. A second signal
skips the waiting, in whichever step.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from ....wire.errors import LocalError
from ...event_loop import counting, run_main, set_aside
from ..server.app import HttpApp
from ..server.lifecycle import DRAIN
from .workers import HEARTBEAT_TIMEOUT, Lifeline, check_can_fork, check_heartbeat, supervise

__all__ = ["run_http", "run_workers", "serve_http", "bind", "check_binding"]

log = logging.getLogger("interlock.http")
_LAST = 14.0  # and everything behind that: the end of a lifespan may take ten of them (server/lifespans.py)
_AFTER_DRAIN = 1  # and the connections, once no request is left
_IDLE = 60  # seconds that a connection may be kept open without a request
_CONNECTIONS = 4096  # open at once; requests on further ones are 503
_OTHER_FILES = 320  # descriptors beside them: connections being turned away, standard streams, what handlers open
_VANISHED = 60  # seconds after which a peer counts as gone that acknowledges nothing, not even that it is there
_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # no name that anybody calls a server by
_PLAIN = "h11"  # the protocol where there is no httptools: its heads are bounded, its connections by uvicorn
_BACKLOG = 1024  # connections the system holds until they are accepted
_life = logging.Logger("interlock.http.life", logging.ERROR)
_life.parent = log
_life.addFilter(lambda record: record.exc_info is not None)  # why it cannot start is raised, and so said once


def run_http(
    app: HttpApp,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    drain: float = DRAIN,
    connections: int = _CONNECTIONS,
    connections_per_address: int | None = None,
    workers: int = 1,
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
) -> None:
    """Serve `app` until the process is told to stop. Port 0 takes any free one; which one is said on stderr."""
    check_can_fork(workers)
    check_heartbeat(heartbeat_timeout)
    _check(app, host, workers)
    if workers > 1:
        where: Any = {"host": host, "port": port, "path": app.path, "drain": drain, "connections": connections}
        where |= {"connections_per_address": connections_per_address, "heartbeat_timeout": heartbeat_timeout}
        run_workers(lambda: app, workers, **where)
        return
    listener = bind(host, port)
    try:
        bounds = _Bounds(drain, room_for(connections), connections_per_address)
        server = _uvicorn(app, bounds, None, lambda: _begun(app.path, listener))
        run_main(server.serve(sockets=[listener]), _loop_factory(), app.watcher)
    finally:
        listener.close()


def run_workers(
    make: Callable[[], HttpApp],
    count: int,
    *,
    host: str,
    port: int,
    path: str,
    drain: float = DRAIN,
    connections: int = _CONNECTIONS,
    connections_per_address: int | None = None,
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
) -> None:
    """Serve what `make` gives in each of `count` processes, all of them at one port, until told to stop."""
    check_can_fork(count)
    check_heartbeat(heartbeat_timeout)
    listener = bind(host, port)

    def work(line: Lifeline) -> None:
        app = make()
        _check(app, host, count)
        serving = _serve_tied(app, listener, _Bounds(drain, room_for(connections), connections_per_address), line)
        run_main(serving, _loop_factory(), app.watcher)

    try:
        supervise(
            work,
            count,
            patience=drain + _LAST,
            on_started=lambda: _announce(path, listener, f" with {count} workers"),
            heartbeat_timeout=heartbeat_timeout,
        )
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
    spread = getattr(app.handler, "spread", None)
    if spread is not None:
        spread(workers)  # rates are counted in each of them


def check_binding(host: str, allowed_hosts: tuple[str, ...]) -> None:
    """Whoever opens a server to others says by which names they call it: else pages of any site could."""
    if not is_loopback(host) and not allowed_hosts:
        raise LocalError(
            f"{host or 'every address'} can be reached from other machines: say by which names clients call it "
            "(allowed_hosts=['mcp.example.com'], on the command line --allow mcp.example.com; '*' behind a proxy that "
            "checks Host), or bind 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise _cannot_listen(host, port, error) from None
    _notice_who_vanishes(listener)
    return listener


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> LocalError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    told = LocalError(f"cannot listen on {host} port {port}: {'another process does so already' if taken else error}")
    told.hint = "stop that process, or take another port (0 is any free one)" if taken else None
    return told


def _notice_who_vanishes(listener: socket.socket) -> None:
    """A peer that lost its power or its network says no goodbye: its stream would stand for as long as the system tries
    to reach it, a quarter of an hour. Connections inherit what their listener was told."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    asked = {"TCP_KEEPIDLE": _VANISHED // 2, "TCP_KEEPINTVL": _VANISHED // 6, "TCP_USER_TIMEOUT": _VANISHED * 1000}
    for name, value in asked.items():
        if (option := getattr(socket, name, None)) is not None:  # not every platform has all of them
            listener.setsockopt(socket.IPPROTO_TCP, option, value)


def room_for(connections: int) -> int:
    """As many as were asked for, or as the system lets this process hold: its own limit is raised where it may be."""
    try:
        import resource
    except ImportError:  # not made for this platform
        return connections
    wanted = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (ValueError, OSError):
        allowed = soft
    return max(1, min(connections, allowed - _OTHER_FILES))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.new_event_loop
    return counting(uvloop.Loop)


async def serve_http(
    app: HttpApp,
    listener: socket.socket,
    *,
    drain: float = DRAIN,
    connections: int = _CONNECTIONS,
    connections_per_address: int | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """The same on the running loop and a socket that listens already; `stop` ends it like a signal."""
    bounds = _Bounds(drain, connections, connections_per_address)
    await _uvicorn(app, bounds, stop, lambda: _announce(app.path, listener)).serve(sockets=[listener])


async def _serve_tied(app: HttpApp, listener: socket.socket, bounds: _Bounds, line: Lifeline) -> None:
    """The same as one of several workers: it gives heartbeats to the process that started it, and stops when that is
    gone."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def gone() -> None:
        loop.remove_reader(line.parent)
        stop.set()

    def started() -> None:
        set_aside()
        line.started()
        if line.interval:
            beats.append(loop.call_later(line.interval, beat))

    def beat() -> None:
        line.beat()
        beats[0] = loop.call_later(line.interval, beat)

    beats: list[asyncio.TimerHandle] = []
    loop.add_reader(line.parent, gone)
    try:
        await _uvicorn(app, bounds, stop, started).serve(sockets=[listener])
    finally:
        loop.remove_reader(line.parent)
        for handle in beats:
            handle.cancel()


def _begun(path: str, listener: socket.socket) -> None:
    set_aside()
    _announce(path, listener)


def _announce(path: str, listener: socket.socket, more: str = "") -> None:
    host, port = listener.getsockname()[:2]
    sys.stderr.write(f"interlock: serving at http://{f'[{host}]' if ':' in host else host}:{port}{path}{more}\n")
    sys.stderr.flush()


class _Bounds(NamedTuple):
    drain: float
    connections: int
    connections_per_address: int | None


def _uvicorn(app: HttpApp, bounds: _Bounds, stop: asyncio.Event | None, on_started: Callable[[], None]) -> Any:
    import uvicorn

    class Serving(uvicorn.Server):
        """Its signals stop the app first, and end the process like any other end: with 0."""

        stopping: _Stop

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            self.stopping = _Stop(app, self, bounds.drain)
            with self.stopping.when_told(stop):
                yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await self.stopping.bounded(super().shutdown(sockets))

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self.lifespan.logger = _life
            try:
                await super().startup(sockets)
            except SystemExit:  # what lives with the app could not begin
                raise app.failure or LocalError("the application could not start") from None
            on_started()

    app.ignore_listener()
    protocol = _protocol(app.body_bytes, bounds)
    return Serving(
        uvicorn.Config(
            app,
            http=protocol,
            limit_concurrency=bounds.connections if protocol == _PLAIN else None,
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_AFTER_DRAIN,
        )
    )


def _protocol(body_bytes: int, bounds: _Bounds) -> Any:
    """uvicorn's httptools protocol reads headers of any length, as slowly as they come; ours does not.

    Only a missing httptools falls back to h11. A uvicorn without the classes that ours builds on is an error: the
    fallback would lose the bounds without a word.
    """
    if find_spec("httptools") is None:
        return _PLAIN
    from .protocol import bounded_by

    return bounded_by(body_bytes, bounds.connections, bounds.connections_per_address)


class _Stop:
    """The way from the first signal to the end."""

    def __init__(self, app: HttpApp, server: Any, drain: float) -> None:
        self._app, self._server, self._drain = app, server, drain
        self._loop = asyncio.get_running_loop()
        self._winding_down: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()

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
            self._hurried.set()
            self._winding_down.cancel()
            self._winding_down = self._loop.create_task(self._wind_down(0.0))

    async def _wind_down(self, drain: float) -> None:
        self._app.stop()
        await self._app.settle(drain)
        self._server.should_exit = True

    async def bounded(self, last: Coroutine[Any, Any, None]) -> None:
        """The end of connections and lifespans: what hangs there keeps nobody who was told to stop."""
        ending, hurried = self._loop.create_task(last), self._loop.create_task(self._hurried.wait())
        await asyncio.wait((ending, hurried), timeout=_LAST, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if ending.done():
            await ending
            return
        ending.cancel()
        log.warning("! what lives with the application did not end in time: the process ends without it")
