"""Who takes part: each contestant with its command and eras, and the set-up of the environments they run in.

Environments are made once below .cache/bench and made anew when their pins change. A contestant that cannot
be set up is absent with a reason; the others are measured all the same.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from driver import clean_environment
from messages import HANDSHAKE, MAX_CALLS, STATELESS, Era

REPOSITORY = Path(__file__).resolve().parent.parent
SERVERS = REPOSITORY / "bench" / "servers"
CACHE = REPOSITORY / ".cache" / "bench"
_INSTALL_SECONDS = 300
_ASK_SECONDS = 60

BOTH = (STATELESS, HANDSHAKE)
_DIALS = ({"revision": STATELESS.name}, {"revision": HANDSHAKE.name})


class Absent(Exception):
    """This contestant cannot take part; the text says why."""


@dataclass(frozen=True)
class InPython:
    """How a Python contestant is imported, for the measures that need no pipe."""

    python: str
    imports: str
    client: str  # module:name
    server_file: Path
    dials: tuple[dict[str, str], ...] = ()  # what its client is told to speak each era over HTTP


@dataclass(frozen=True)
class Contestant:
    name: str
    group: str  # what --peers selects
    title: str
    command: tuple[str, ...]
    eras: tuple[Era, ...]
    version: str
    in_python: InPython | None = None
    http_command: tuple[str, ...] | None = None  # takes the port as its last word
    session_command: tuple[str, ...] | None = None  # the same with sessions, for clients of the handshake era
    progress_command: tuple[str, ...] | None = None  # the same with streams and a tool that tells its progress
    list_command: tuple[str, ...] | None = None  # a server with many tools, over stdio

    def over_http(self, era: Era) -> tuple[str, ...] | None:
        return self.http_command if era is STATELESS else self.session_command

    @property
    def is_ours(self) -> bool:
        return self.group == "interlock"


def plain_reason(text: str) -> str:
    """The last line of an error, without the addresses and paths of the machine it happened on."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[-1] if lines else "no reason given"
    without_places = re.sub(r"\S*://\S+|(?<![\w.])/[\w.\-/]+", "…", line)
    return without_places.replace("|", "¦")[:120]  # it stands in a cell of a table


def _run(command: Sequence[str], cwd: Path, seconds: float) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise Absent(f"{Path(command[0]).name} took more than {seconds:.0f} s") from None
    except OSError as error:
        raise Absent(plain_reason(str(error))) from None
    if done.returncode != 0:
        raise Absent(plain_reason(done.stderr or done.stdout))
    return done.stdout


def _make_once(directory: Path, pins: str, make: Callable[[], None]) -> None:
    """Runs make() unless the directory was completely made for the same pins and the same Python."""
    stamp = directory / "made-for.txt"
    wanted = f"{sys.version}\n{pins}"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"setting up {directory.relative_to(REPOSITORY)} …", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    make()
    stamp.write_text(wanted)


def _python_environment(name: str) -> str:
    """The interpreter of a virtual environment that holds requirements/bench-<name>.txt."""
    pins = REPOSITORY / "requirements" / f"bench-{name}.txt"
    directory = CACHE / name
    python = str(directory / "bin" / "python")

    def make() -> None:
        _run([sys.executable, "-m", "venv", str(directory)], CACHE, _INSTALL_SECONDS)
        _run([python, "-m", "pip", "install", "--quiet", "-r", str(pins)], CACHE, _INSTALL_SECONDS)

    _make_once(directory, pins.read_text(), make)
    return python


def _node_project() -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Absent("node and npm are not installed here")
    pins = (SERVERS / "package.json").read_text()
    directory = CACHE / "node"

    def make() -> None:
        (directory / "package.json").write_text(pins)
        _run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], directory, _INSTALL_SECONDS)

    _make_once(directory, pins, make)
    return directory


def _version_in(python: str, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return _run([python, "-c", code], CACHE, _ASK_SECONDS).strip()


# ---- the contestants ----


def _interlock(name: str, title: str, launcher: tuple[str, ...]) -> Contestant:
    python, file = sys.executable, SERVERS / "interlock_server.py"
    imports = "from interlock import Server, Client"
    _run([python, "-c", imports], CACHE, _ASK_SECONDS)
    return Contestant(
        name=name,
        group="interlock",
        title=title,
        command=(python, *launcher, str(file)),
        eras=BOTH,
        version=_version_in(python, "interlock"),
        # Without a pipe both launches are the same program, so only one of them is measured.
        in_python=None if launcher else InPython(python, imports, "interlock:Client", file, _DIALS),
        http_command=None if launcher else interlock_over_http(file),
        session_command=None if launcher else interlock_over_http(file),
        progress_command=None if launcher else interlock_over_http(SERVERS / "interlock_progress_server.py"),
        list_command=None if launcher else (python, str(SERVERS / "interlock_list_server.py")),
    )


def interlock_over_http(file: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "interlock", "run", str(file), "--http", "--port")


def _python_peer(
    name: str,
    environment: str,
    title: str,
    imports: str,
    *,
    sessions: bool = False,
    dials: tuple[dict[str, str], ...] = (),
) -> Contestant:
    python, file = _python_environment(environment), SERVERS / f"{name}_server.py"
    return Contestant(
        name=name,
        group=name,
        title=title,
        command=(python, str(file)),
        eras=BOTH,
        version=_version_in(python, name),
        in_python=InPython(python, imports, f"{name}:Client", file, dials),
        http_command=(python, str(file)),
        session_command=(python, str(file), "--sessions") if sessions else None,
        progress_command=(python, str(SERVERS / f"{name}_progress_server.py")) if sessions else None,
        list_command=(python, str(SERVERS / f"{name}_list_server.py")),
    )


def _typescript(name: str, title: str, package: str, eras: tuple[Era, ...]) -> Contestant:
    project = _node_project()
    # A module finds its packages from where it lies, so it has to lie in the project.
    file, node = Path(shutil.copy(SERVERS / f"{name}_server.mjs", project)), str(shutil.which("node"))
    shutil.copy(SERVERS / "sessions.mjs", project)
    over_http, in_sessions = SERVERS / f"{name}_http_server.mjs", SERVERS / f"{name}_session_server.mjs"
    manifest = json.loads((project / "node_modules" / package / "package.json").read_text())
    return Contestant(
        name=name,
        group="ts",
        title=title,
        command=(node, str(file)),
        eras=eras,
        version=manifest["version"],
        http_command=(node, shutil.copy(over_http, project)) if over_http.is_file() else None,
        session_command=(node, shutil.copy(in_sessions, project)),
    )


def _null() -> Contestant:
    command = (sys.executable, str(SERVERS / "null_server.py"), str(MAX_CALLS))
    return Contestant("null", "null", "no server (driver's ceiling)", command, (STATELESS,), "-")


def _empty_asgi() -> Contestant:
    """Over HTTP only, so it has no command and no era of its own over stdio."""
    command = (sys.executable, str(SERVERS / "empty_asgi.py"))
    title = "empty ASGI application on uvicorn, httptools, uvloop"
    return Contestant("empty-asgi", "null", title, (), (), "-", http_command=command, session_command=command)


def _empty_own() -> Contestant:
    """The same where our protocol writes its answers: what HTTP alone costs there."""
    command = (sys.executable, str(SERVERS / "empty_asgi.py"), "--own")
    title = "empty ASGI application on Interlock's runner"
    return Contestant("empty-own", "null", title, (), (), "-", http_command=command)


_FACTORIES: dict[str, tuple[str, Callable[[], Contestant]]] = {
    "interlock": ("interlock", lambda: _interlock("interlock", "Interlock", ())),
    "interlock-cli": (
        "interlock",
        lambda: _interlock("interlock-cli", "Interlock, `interlock run`", ("-m", "interlock", "run")),
    ),
    "mcp": (
        "mcp",
        lambda: _python_peer(
            "mcp",
            "mcp2",
            "official Python SDK",
            "from mcp.server.mcpserver import MCPServer; from mcp import Client",
            sessions=True,
            dials=({"mode": "auto"}, {"mode": "legacy"}),
        ),
    ),
    "fastmcp": (
        "fastmcp",
        lambda: _python_peer("fastmcp", "fastmcp", "FastMCP", "from fastmcp import FastMCP, Client"),
    ),
    "ts": (
        "ts",
        lambda: _typescript("ts", "TypeScript SDK 1.x", "@modelcontextprotocol/sdk", (HANDSHAKE,)),
    ),
    "ts2": ("ts", lambda: _typescript("ts2", "TypeScript SDK 2.x", "@modelcontextprotocol/server", BOTH)),
    "null": ("null", _null),
    "empty-asgi": ("null", _empty_asgi),
    "empty-own": ("null", _empty_own),
}

GROUPS = tuple(dict.fromkeys(group for group, _ in _FACTORIES.values()))


def set_up(groups: Sequence[str]) -> tuple[list[Contestant], dict[str, str]]:
    """The contestants of these groups, and for each that cannot take part the reason."""
    CACHE.mkdir(parents=True, exist_ok=True)
    present: list[Contestant] = []
    absent: dict[str, str] = {}
    for name, (group, make) in _FACTORIES.items():
        if group not in groups:
            continue
        try:
            present.append(make())
        except Absent as reason:
            absent[name] = str(reason)
        except OSError as error:
            absent[name] = plain_reason(str(error))
    return present, absent
