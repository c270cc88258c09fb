"""Measures that run inside a contestant's own Python: import, in-memory client, killed child."""

import json
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter

from driver import CORES, clean_environment, on_server_core
from peers import CACHE, Contestant, InPython, plain_reason

_INSIDE = Path(__file__).resolve().parent / "inside"
_IMPORT_SECONDS = 30.0
_START_SECONDS = 30.0
_SECONDS_PER_KILL = 10.0

# Each costs start-up time or drags in native code; a server over stdio needs none of them.
HEAVY_MODULES = (
    "aiohttp",
    "httpx",
    "httpx2",
    "cryptography",
    "opentelemetry",
    "jsonschema",
    "jsonschema_rs",
    "pydantic",
    "click",
    "rich",
    "uvicorn",
    "starlette",
    "ssl",
)


class ProbeFailed(Exception):
    """A process started for a measure failed or took too long."""


def _python_of(contestant: Contestant) -> InPython:
    if contestant.in_python is None:
        raise ProbeFailed(f"{contestant.name} has no Python of its own")
    return contestant.in_python


def _run(command: Sequence[str], seconds: float, *, beside_server: bool = False) -> str:
    with nullcontext() if beside_server else on_server_core():
        child = subprocess.Popen(
            command,
            cwd=CACHE,  # nothing to import lies there
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        out, complaint = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"not done within {seconds:.0f} s, ended by the bench") from None
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    if child.returncode != 0:
        raise ProbeFailed(plain_reason(complaint) if complaint else f"exit code {child.returncode}")
    return out


def _process_ms(python: str, code: str) -> float:
    started = perf_counter()
    _run([python, "-c", code], _IMPORT_SECONDS)
    return (perf_counter() - started) * 1e3


def import_ms(contestant: Contestant) -> float:
    """A fresh process that imports server and client, less one that imports nothing.

    Both leave without teardown: taking a large module graph apart again costs a fifth more and is no import.
    """
    inside = _python_of(contestant)
    leave = "import os; os._exit(0)"
    bare = _process_ms(inside.python, leave)
    return max(0.1, _process_ms(inside.python, f"{inside.imports}\n{leave}") - bare)


def modules_loaded(contestant: Contestant) -> list[str]:
    inside = _python_of(contestant)
    code = f"{inside.imports}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(_run([inside.python, "-c", code], _IMPORT_SECONDS).splitlines()[-1]))
    return [name for name in HEAVY_MODULES if name in loaded]


def in_memory_per_second(contestant: Contestant, seconds: float) -> float:
    inside = _python_of(contestant)
    command = [
        inside.python,
        str(_INSIDE / "in_memory.py"),
        str(inside.server_file),
        inside.client,
        str(seconds),
    ]
    return float(_answer(command, _START_SECONDS + 3 * seconds)["calls_per_second"])


def client_per_second(contestant: Contestant, url: str, stateless: bool, at_once: int, seconds: float) -> float:
    """A server runs already, on the server's core: the client takes the driver's."""
    inside = _python_of(contestant)
    options = json.dumps(inside.dials[0 if stateless else 1])
    script = str(_INSIDE / "http_client.py")
    command = [inside.python, script, inside.client, url, options, str(at_once), str(seconds)]
    answer = _answer(command, _START_SECONDS + 3 * seconds, beside_server=True)
    return float(answer["calls_per_second"])


def host_ratio(contestant: Contestant, seconds: float) -> float:
    """How many plain calls one through a host costs; the servers of both on the server's core."""
    inside = _python_of(contestant)
    server = [inside.python, str(inside.server_file)]
    if CORES is not None:
        server = [inside.python, str(_INSIDE / "on_core.py"), str(CORES[1]), *server]
    command = [inside.python, str(_INSIDE / "host_calls.py"), "calls", str(seconds), *server]
    return float(_answer(command, _START_SECONDS + 3 * seconds, beside_server=True)["ratio"])


def merge_ratio(contestant: Contestant, times: int) -> float:
    """How many times the listing of all tools their merge costs."""
    command = [_python_of(contestant).python, str(_INSIDE / "host_calls.py"), "merge", str(times)]
    return float(_answer(command, _START_SECONDS + times)["ratio"])


def killed_child_ms(contestant: Contestant, kills: int) -> tuple[list[float], list[str]]:
    """Milliseconds of each kill, and the names of the exception classes that came."""
    inside = _python_of(contestant)
    command = [inside.python, str(_INSIDE / "killed_child.py"), str(inside.server_file), str(kills)]
    answer = _answer(command, _START_SECONDS + kills * _SECONDS_PER_KILL)
    return [float(value) for value in answer["milliseconds"]], sorted(set(answer["exceptions"]))


def _answer(command: Sequence[str], seconds: float, *, beside_server: bool = False) -> dict:
    """The script's last line, which is JSON; a library may have printed something before."""
    lines = _run(command, seconds, beside_server=beside_server).splitlines()
    if not lines:
        raise ProbeFailed("the script printed nothing")
    return json.loads(lines[-1])
