"""`interlock run FILE[:OBJECT] [--http …]`: load a server from a file and serve it over stdio or HTTP.

Over stdio the standard streams are taken before the file is imported, so that nothing it prints can reach the client.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from ...server.server import Server
from ...transport.stdio.server import take_stdio
from ...wire.errors import LocalError
from ..errors import USAGE, Failure
from ..options import Kind, Number, read_words

if TYPE_CHECKING:
    from ...transport.http.server.app import HttpApp
    from ...transport.http.server.options import HttpOptions

__all__ = ["HELP", "command", "check_target", "run", "load_server", "read_options", "Endpoint", "Orders"]

HELP = """\
examples:
  interlock run server.py                    the one Server in server.py, over stdio
  interlock run server.py:notes              the Server called notes
  interlock run server.py --http --port 0    over HTTP, on any free port, which is printed
  interlock run server.py --http --reload    again whenever its code changes

usage: interlock run FILE[:OBJECT] [options]

  --log-level LEVEL   debug, info, warning or error: what the library logs, on stderr

usage: interlock run FILE[:OBJECT] --http [options]

  --host HOST         bind this address (127.0.0.1)
  --port PORT         listen on this port (8000; 0 takes any free one)
  --path PATH         the endpoint (/mcp)
  --allow NAME        a name or an address by which other machines call it; once for each
  --forwarded-allow-ips ADDRESSES
                      believe X-Forwarded-For of these proxies, separated by commas (none): 10.0.0.5,10.1.0.0/16
  --origin ORIGIN     https://app.example.com: its pages may call it from a browser; once for each
  --state FILE        keep sessions and keys in this file, for all processes that name it
  --workers N         serve with so many processes (1); more than one need --state
  --heartbeat-timeout SECONDS
                      kill and replace one of several workers whose event loop stands still for so long (60; 0: never)
  --always-stream     every answer is a stream of events, for clients that read these
  --connections N     so many may be open at once (4096)
  --connections-per-address N
                      of these from one address (a quarter; more behind a proxy on another machine)
  --drain SECONDS     what calls in flight get when it is told to stop (5)
  --health PATH       where a GET tells whether it takes requests (/health)
  --no-health         nowhere
  --reload            start anew when a Python file in or below the folder of FILE changes; not for production
"""
LEVELS = ("debug", "info", "warning", "error")
_ANYWHERE: dict[str, Kind] = {"http": "flag", "log-level": "text"}
_OF_HTTP: dict[str, Kind] = {
    "host": "text",
    "port": Number(0, 65_535, whole=True),
    "path": "text",
    "allow": "texts",
    "origin": "texts",
    "forwarded-allow-ips": "text",
    "workers": Number(1, 1024, whole=True),
    "state": "text",
    "connections": Number(1, 1_000_000, whole=True),
    "connections-per-address": Number(1, 1_000_000, whole=True),
    "drain": Number(0, 3600),
    "heartbeat-timeout": Number(0, 3600),
    "health": "text",
    "no-health": "flag",
    "always-stream": "flag",
    "reload": "flag",
}


class _CannotRun(Exception):
    """What is wrong with the target, for the person who typed it."""


class Endpoint(msgspec.Struct):
    """Where to serve over HTTP, and how. What is None is as `Server.run` has it."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    allow: list[str] = []
    origin: list[str] = []
    forwarded_allow_ips: str = ""
    workers: int = 1
    state: str | None = None
    connections: int | None = None
    connections_per_address: int | None = None
    drain: float | None = None
    heartbeat_timeout: float | None = None
    health: str | None = "/health"
    always_stream: bool = False
    reload: bool = False


class Orders(msgspec.Struct):
    """All that the options say."""

    endpoint: Endpoint | None = None
    """None: over stdio."""
    log_level: str | None = None


def command(words: list[str]) -> int:
    """`interlock run …`."""
    if not words or words[0].startswith("-") or (len(words) > 1 and not words[1].startswith("-")):
        raise Failure("this takes one FILE[:OBJECT], and options after it", code=USAGE, hint="interlock help run")
    return run(words[0], words[1:])


def run(target: str, options: Sequence[str] = ()) -> int:
    """Serve `target`; the exit code: 1 when it cannot be served. Wrong options are a `Failure`."""
    orders = read_options(options)
    if orders.endpoint is None:
        take_stdio()
    if orders.log_level is not None:
        _log(orders.log_level)
    try:
        if orders.endpoint is not None and orders.endpoint.reload:
            return _serve_again_and_again(target, options, orders.endpoint)
        _serve(target, orders.endpoint)
    except (_CannotRun, LocalError) as error:
        hint = getattr(error, "hint", None)
        print(f"interlock run: {error}", *([f"  hint: {hint}"] if hint else []), sep="\n", file=sys.stderr)
        return 1
    return 0


def _log(level: str) -> None:
    """To stderr, which is nobody's channel but people's."""
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def _serve_again_and_again(target: str, options: Sequence[str], endpoint: Endpoint) -> int:
    from .run_reload import serve_reloading  # few servers are run like this

    path, _ = _split(target)
    return serve_reloading(path, [target, *_without_port(options)], endpoint.host, endpoint.port)


def _without_port(options: Sequence[str]) -> list[str]:
    """The same options for the process that serves; on which port is decided once."""
    kept: list[str] = []
    for place, word in enumerate(options):
        if word.startswith("--port=") or word in ("--port", "--reload") or (place and options[place - 1] == "--port"):
            continue
        kept.append(word)
    return kept


def _serve(target: str, endpoint: Endpoint | None) -> None:
    if endpoint is None:
        load_server(target).run()
        return
    given = {"host": endpoint.host, "port": endpoint.port, "drain": endpoint.drain, "connections": endpoint.connections}
    given["heartbeat_timeout"] = endpoint.heartbeat_timeout
    given["connections_per_address"] = endpoint.connections_per_address
    where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options: HttpOptions = {"path": endpoint.path, "allowed_hosts": endpoint.allow, "health": endpoint.health}
    if endpoint.origin:
        options["allowed_origins"] = endpoint.origin
    if endpoint.forwarded_allow_ips:
        options["trusted_proxies"] = endpoint.forwarded_allow_ips.split(",")
    if endpoint.always_stream:
        options["always_stream"] = True
    if endpoint.state is not None:
        options["state"] = endpoint.state
    if endpoint.workers == 1:
        load_server(target).run("http", **where, **options)
        return
    from ...transport.http.runner.serve import run_workers  # a server over stdio starts without it

    _split(target)  # that there is no such file is said once
    run_workers(lambda: _make(target, options), endpoint.workers, path=endpoint.path, **where)


def _make(target: str, options: HttpOptions) -> HttpApp:
    """In a worker: each imports the file itself, so that no thread or connection of it is shared by accident."""
    try:
        server = load_server(target)
    except _CannotRun as error:
        raise LocalError(str(error)) from error
    if server.store is not None:
        options.setdefault("state", server.store)
    return server.asgi(**options)


def read_options(words: Sequence[str]) -> Orders:
    """Options of HTTP without `--http` are a mistake, not a wish."""
    given = read_words(words, {**_ANYWHERE, **_OF_HTTP})
    level = given.options.get("log-level")
    if given.own or given.command is not None:
        raise Failure("this takes one FILE[:OBJECT], and options after it", code=USAGE, hint="interlock help run")
    if level not in (None, *LEVELS):
        raise Failure(f"--log-level {level[:40]!r}: this is one of {', '.join(LEVELS)}", code=USAGE)
    of_http = {name: value for name, value in given.options.items() if name in _OF_HTTP}
    if not given.flag("http"):
        for name in of_http:
            raise Failure(f"--{name} needs --http", code=USAGE)
        return Orders(None, level)
    if of_http.pop("no-health", False):
        if "health" in of_http:
            raise Failure("--health and --no-health contradict each other", code=USAGE)
        of_http["health"] = None
    return Orders(Endpoint(**{name.replace("-", "_"): value for name, value in of_http.items()}), level)


def load_server(target: str) -> Server:
    """The Server that `FILE[:OBJECT]` names."""
    path, name = _split(target)
    module = _import(path)
    if name:
        found = getattr(module, name, None)
        if not isinstance(found, Server):
            raise _CannotRun(f"{path} has no Server called {name!r}. {_hint(path, module)}")
        return found
    servers = _outermost({id(value): value for value in vars(module).values() if isinstance(value, Server)})
    if len(servers) != 1:
        raise _CannotRun(f"{path} defines {len(servers)} servers. {_hint(path, module)}")
    return servers[0]


def check_target(target: str) -> int:
    """Whether `FILE[:OBJECT]` names a Server: 0, or 1 with the reason on stderr. For a process of its own."""
    try:
        load_server(target)
    except (_CannotRun, LocalError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _outermost(servers: dict[int, Server]) -> list[Server]:
    """All but those that another one here has mounted: that one offers them already."""
    inner = {id(lives) for server in servers.values() for lives in server.lives.below}
    return [server for server in servers.values() if id(server.lives) not in inner]


def _split(target: str) -> tuple[str, str]:
    if os.path.exists(target):
        return target, ""
    path, colon, name = target.rpartition(":")
    if colon and os.path.exists(path):
        return path, name
    raise _CannotRun(f"there is no file {path or target!r}")


def _import(path: str) -> ModuleType:
    """Import a file as a module of its own, with its folder importable, as `python FILE` would."""
    whole = os.path.abspath(path)  # as tracebacks name it
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, whole)
    if spec is None or spec.loader is None:
        raise _CannotRun(f"{path} is no Python file")
    sys.path.insert(0, os.path.dirname(whole))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _CannotRun(f"{error.filename or path} line {error.lineno}: {error.msg}") from error
    except LocalError as error:
        raise _CannotRun(f"{path} line {_line_in(whole, error)}: {error}") from error
    except Exception as error:
        raise _CannotRun(f"{path} could not be imported:\n{_trace_from(whole, error)}") from error
    return module


def _line_in(path: str, error: Exception) -> int:
    """The line of the file that led to the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return (lines[-1] if lines else 0) or 0


def _trace_from(path: str, error: Exception) -> str:
    """The traceback without the frames that are ours: from the file on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _hint(path: str, module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, Server))
    if not names:
        return "Make one: server = interlock.Server('name')"
    return f"Choose one: {', '.join(f'{path}:{name}' for name in names)}"
