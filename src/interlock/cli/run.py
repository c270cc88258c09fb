"""`interlock run FILE[:OBJECT] [--http …]`: load a server from a file and serve it over stdio or HTTP.

Over stdio the standard streams are taken before the file is imported, so that nothing it prints can reach the client.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from ..server.server import Server
from ..transport.stdio_server import take_stdio
from ..wire.errors import LocalError
from .failing import USAGE, Failure

if TYPE_CHECKING:
    from ..transport.http_server import HttpApp, HttpOptions

__all__ = ["HELP", "command", "run", "load_server", "read_options", "Endpoint"]

HELP = """\
examples:
  interlock run server.py                    the one Server in server.py, over stdio
  interlock run server.py:notes              the Server called notes
  interlock run server.py --http --port 0    over HTTP, on any free port, which is printed

usage: interlock run FILE[:OBJECT]           serve a Server over stdio
       interlock run FILE[:OBJECT] --http    serve it over HTTP
           --host HOST     bind this address (127.0.0.1)
           --port PORT     listen on this port (8000; 0 takes any free one)
           --path PATH     the endpoint (/mcp)
           --allow NAME    a name or an address by which other machines call it; once for each
           --state FILE    keep sessions and keys in this file, for all processes that name it
           --workers N     serve with so many processes (1); more than one need --state
"""


class _CannotRun(Exception):
    """What is wrong with the target, for the person who typed it."""


class Endpoint(msgspec.Struct):
    """Where to serve over HTTP."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    allow: list[str] = []
    workers: int = 1
    state: str | None = None


def command(words: list[str]) -> int:
    """`interlock run …`."""
    if not words or words[0].startswith("-") or (len(words) > 1 and not words[1].startswith("-")):
        raise Failure("this takes one FILE[:OBJECT], and options after it", code=USAGE, hint="interlock help run")
    return run(words[0], words[1:])


def run(target: str, options: Sequence[str] = ()) -> int:
    """Serve `target`; the exit code: 1 when it cannot be served, 2 when the options are wrong."""
    try:
        endpoint = read_options(options)
    except _CannotRun as error:
        print(f"interlock run: {error}", file=sys.stderr)
        return 2
    if endpoint is None:
        take_stdio()
    try:
        _serve(target, endpoint)
    except (_CannotRun, LocalError) as error:
        print(f"interlock run: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(target: str, endpoint: Endpoint | None) -> None:
    if endpoint is None:
        load_server(target).run()
        return
    where: dict[str, Any] = {"host": endpoint.host, "port": endpoint.port}
    options: HttpOptions = {"path": endpoint.path, "allowed_hosts": endpoint.allow}
    if endpoint.state is not None:
        options["state"] = endpoint.state
    if endpoint.workers == 1:
        load_server(target).run("http", **where, **options)
        return
    from ..transport.runner import run_workers  # a server over stdio starts without it

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


def read_options(words: Sequence[str]) -> Endpoint | None:
    """None for stdio. Options of HTTP without `--http` are a mistake, not a wish."""
    found, rest = Endpoint(), list(words)
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        if word == "--http" and not equals:
            continue
        if word not in ("--host", "--port", "--path", "--allow", "--workers", "--state"):
            raise _CannotRun(f"there is no option {word!r}")
        if not equals:
            if not rest:
                raise _CannotRun(f"{word} needs a value")
            value = rest.pop(0)
        _set(found, word.removeprefix("--"), value)
    if words and "--http" not in words:
        raise _CannotRun(f"{words[0]} needs --http")
    return found if words else None


def _set(endpoint: Endpoint, name: str, value: str) -> None:
    if name == "allow":
        endpoint.allow.append(value)
    elif name == "port":
        endpoint.port = _number(name, value, 0, 65_535)
    elif name == "workers":
        endpoint.workers = _number(name, value, 1, 1024)
    else:
        setattr(endpoint, name, value)


def _number(name: str, value: str, least: int, most: int) -> int:
    number = int(value[:9]) if value.isascii() and value.isdigit() else -1
    if not least <= number <= most:
        raise _CannotRun(f"--{name} {value!r}: this is a number from {least} to {most}")
    return number


def load_server(target: str) -> Server:
    """The Server that `FILE[:OBJECT]` names."""
    path, name = _split(target)
    module = _import(path)
    if name:
        found = getattr(module, name, None)
        if not isinstance(found, Server):
            raise _CannotRun(f"{path} has no Server called {name!r}. {_hint(path, module)}")
        return found
    servers = {id(value): value for value in vars(module).values() if isinstance(value, Server)}
    if len(servers) != 1:
        raise _CannotRun(f"{path} defines {len(servers)} servers. {_hint(path, module)}")
    return next(iter(servers.values()))


def _split(target: str) -> tuple[str, str]:
    if os.path.exists(target):
        return target, ""
    path, colon, name = target.rpartition(":")
    if colon and os.path.exists(path):
        return path, name
    raise _CannotRun(f"there is no file {path or target!r}")


def _import(path: str) -> ModuleType:
    """Import a file as a module of its own, with its folder importable, as `python FILE` would."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _CannotRun(f"{path} is no Python file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _CannotRun(f"{error.filename or path} line {error.lineno}: {error.msg}") from error
    except LocalError as error:
        raise _CannotRun(f"{path} line {_line_in(path, error)}: {error}") from error
    except Exception as error:
        raise _CannotRun(f"{path} could not be imported:\n{_trace_from(path, error)}") from error
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
