"""One scenario after another: our server under the suite's client, our client under the suite's server."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .install import ROOT, Suite
from .processes import Child
from .results import Outcome, judge, last_words, read_checks

__all__ = ["EXAMPLE", "EXTENSIONS", "Runner", "ServerGone"]

EXAMPLE = ROOT / "examples" / "everything.py"
CLIENT = ROOT / "conformance" / "client.py"
EXTENSIONS = tuple(
    f"auth/{name}"
    for name in (
        *("client-credentials-jwt", "client-credentials-basic", "enterprise-managed-authorization"),
        *("dpop", "dpop-nonce", "wif-jwt-bearer"),
    )
)
"""Of authorization: the suite runs them at any revision, when it is told to."""
SCENARIO_SECONDS = 60.0  # of wall time for one scenario, whatever the suite itself allows
CLIENT_SECONDS = 25  # for our client within: the suite waits for it without end (contract: it signals only the shell)
START_SECONDS = 30.0
_ENV = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
}


class ServerGone(Exception):
    """Our own server did not start, or ended before it was told to."""


class Runner:
    """Runs scenarios of one version of the specification and keeps what they say below `folder`."""

    def __init__(self, suite: Suite, folder: Path, version: str, workers: int = 1) -> None:
        self._suite, self._folder, self._version = suite, folder, version
        self._workers = workers
        self._env = {**_ENV, "PATH": os.pathsep.join([str(suite.node.parent), os.environ.get("PATH", os.defpath)])}

    def serve(self, *options: str) -> Served:
        """Our server, answering. Ends with the context."""
        return Served(self._folder, self._workers, options)

    def server_scenario(self, name: str, url: str) -> Outcome:
        return self._run("server", name, "--url", url)

    def client_scenario(self, name: str) -> Outcome:
        # In the foreground `timeout` stays in our process group, so that nothing can outlive it.
        bounded = ["timeout", "--foreground", "-k", "2", str(CLIENT_SECONDS)] if shutil.which("timeout") else []
        return self._run("client", name, "--command", shlex.join([*bounded, sys.executable, str(CLIENT)]))

    def _run(self, side: str, name: str, *words: str) -> Outcome:
        folder = self._folder / side / name.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        command = self._suite.command(side, *words, "--scenario", name, "--spec-version", self._version)
        forced = ["--force"] if name in EXTENSIONS else []
        with Child([*command, "-o", str(folder), *forced], folder / "suite.log", env=self._env, cwd=ROOT) as child:
            code = child.wait(SCENARIO_SECONDS)
        try:
            outcome = judge(side, name, read_checks(folder), code=code)
        except ValueError as error:
            broken = {"status": "FAILURE", "id": "checks.json", "errorMessage": str(error)}
            outcome = judge(side, name, [broken], code=code)
        if not outcome.good:
            outcome.lines.extend(last_words(folder))
        return outcome


class Served:
    """examples/everything.py over HTTP on a free port of this machine, in one process or several."""

    def __init__(self, folder: Path, workers: int = 1, options: Sequence[str] = ()) -> None:
        self._log = folder / f"server{''.join(options)}.log"
        shared = ["--workers", str(workers), "--state", str(folder / "state.db")] if workers > 1 else []
        self._options = [*shared, *options]
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> Served:
        words = ["-m", "interlock", "run", str(EXAMPLE), "--http", "--port", str(self.port), *self._options]
        self._child = Child([sys.executable, *words], self._log, env=_ENV, cwd=ROOT)
        try:
            self._wait()
        except BaseException:
            self._child.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()

    def check(self) -> None:
        """Still there? What it said last is the best explanation if not."""
        if not self._child.running:
            raise ServerGone(f"our server ended. The end of what it said:\n{self._child.tail()}")

    def _wait(self) -> None:
        """Until it answers a request; the first one is slow and should not be one of the suite's."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            if self._answers():
                return
            time.sleep(0.05)
        raise ServerGone(f"our server does not answer at {self.url}:\n{self._child.tail()}")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}})
            connection.request("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "application/json"})
            connection.getresponse().read()
        except OSError:
            return False
        except http.client.HTTPException:
            return False
        finally:
            connection.close()
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
