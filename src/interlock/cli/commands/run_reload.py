"""`interlock run --reload`: the server in a process of its own, which is started anew when its code changes.

For people who write servers. Files are looked at, not watched: that works on every platform and every file system. A
server that does not start, because it was saved in the middle of a sentence, is tried again at the next change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from types import FrameType

from ...transport.http.runner.serve import bind
from ..errors import OK

__all__ = ["serve_reloading", "python_files"]

LOOK_SECONDS = 0.3  # between two looks
STILL_SECONDS = 0.1  # without a change: then a save is over
_MOST_STILL = 50  # looks at what goes on changing; then the server is started all the same
MOST_FILES = 5000  # that are looked at; a folder with more is a home, not a project
_END_SECONDS = 30.0  # for a server that was told to stop; then it is killed
_NOT_CODE = {"__pycache__", "node_modules", "site-packages"}

Snapshot = dict[str, tuple[int, int]]


def serve_reloading(path: str, words: list[str], host: str, port: int) -> int:
    """Run `interlock run` with these words again and again, until it is told to stop. The code of the last run."""
    folder = Path(path).resolve().parent
    command = [sys.executable, "-m", "interlock", "run", *words, "--port", str(port or _free_port(host))]
    before = snapshot(folder)
    told = _Told()
    try:
        while True:
            # a group of its own: a key pressed at the terminal reaches it once, through us
            process = told.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
            code = _until_change(process, folder, before, told)
            if code is not None:
                return code
            before = _settled(folder, told)
            if told.stop:
                return OK
    finally:
        told.restore()


def _free_port(host: str) -> int:
    """Chosen once: whoever talks to the server finds it again."""
    listener = bind(host, 0)
    try:
        return listener.getsockname()[1]
    finally:
        listener.close()


class _Told:
    """A signal to us is one to the server; then we end with it."""

    process: subprocess.Popen[bytes] | None = None

    def __init__(self) -> None:
        self.stop = False
        self._passed: subprocess.Popen[bytes] | None = None
        self._before = {number: signal.signal(number, self._hear) for number in _signals()}

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """A second one is passed on too: the server then ends at once."""
        self.stop = True
        if self.process is not None and self.process.poll() is None:
            self._passed = self.process
            self.process.terminate()

    def pass_on(self, process: subprocess.Popen[bytes]) -> None:
        """Should it have been started in the very moment of the signal."""
        if self._passed is not process and process.poll() is None:
            process.terminate()

    def restore(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


def _signals() -> list[signal.Signals]:
    return [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


def _until_change(process: subprocess.Popen[bytes], folder: Path, before: Snapshot, told: _Told) -> int | None:
    """None: something changed, and the process has ended. Else how it ended after it, or we, were told to stop."""
    said = False
    while True:
        code = _waited(process, LOOK_SECONDS)
        if told.stop:
            told.pass_on(process)
            return _ended(process)
        if code == OK:
            return OK
        if code is not None and not said:
            said = True
            _say("it ended; waiting for a change")
        changed = snapshot(folder)
        if changed != before:
            names = [name for name in {*changed, *before} if changed.get(name) != before.get(name)]
            _say(f"{min(names)} changed, starting anew")
            if code is None:
                process.terminate()
            _ended(process)
            return OK if told.stop else None


def _say(text: str) -> None:
    print(f"interlock run: {text}", file=sys.stderr, flush=True)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Its exit code, after a while in any case."""
    if process.returncode is not None:
        sleep(seconds)
        return process.returncode
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit code, by force if need be."""
    try:
        return process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def snapshot(folder: Path) -> Snapshot:
    """When each file was changed, and how long it is."""
    found: Snapshot = {}
    for path in python_files(folder):
        try:
            about = path.stat()
        except OSError:
            continue  # it went in this very moment
        found[str(path)] = (about.st_mtime_ns, about.st_size)
    return found


def _settled(folder: Path, told: _Told) -> Snapshot:
    """Once a save is over. An editor empties a file before it fills it, a checkout changes many one by one: who starts
    in the midst of that starts once more a moment later, and clients that came in between are turned away."""
    before = snapshot(folder)
    for _ in range(_MOST_STILL):
        sleep(STILL_SECONDS)
        changed = snapshot(folder)
        if changed == before or told.stop:
            break
        before = changed
    return before


def python_files(folder: Path) -> Iterator[Path]:
    """Those in and below it; neither hidden folders nor environments are anybody's own code."""
    count = 0
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _NOT_CODE and not Path(here, name, "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(".py"):
                count += 1
                if count > MOST_FILES:
                    return
                yield Path(here, name)
