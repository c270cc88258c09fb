"""The official suite's scenarios for authorization servers, against the one in examples/protected.py.

python tools/authorization.py            both scenarios, at every revision that has them

The suite waits for somebody to log in: we open its URL, fill in the form and follow it back, as a browser would.
The exit code is 0 when every check succeeded, 1 when anything failed or warned, 3 when the suite could not be had.
"""

from __future__ import annotations

import html
import http.client
import json
import os
import re
import secrets
import socket
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from official.install import ROOT, Suite, Unavailable, install
from official.processes import Child

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
SECONDS = 60.0
PASSWORD = secrets.token_urlsafe(12)
_URL = re.compile(r"https?://[^\s\"'<>]+/authorize\?[^\s\"'<>]+")


def main() -> int:
    try:
        suite = install(ROOT / ".cache" / "conformance")
    except Unavailable as error:
        print(f"authorization: nothing was run. {error}", file=sys.stderr)
        return 3
    good = [_judged(suite, version) for version in VERSIONS]
    return int(not all(good))


def _judged(suite: Suite, version: str) -> bool:
    with tempfile.TemporaryDirectory() as name:
        checks = _run(suite, version, Path(name))
    for check in checks:
        print(f"{version} {check['status']:8} {check['id']} {check.get('errorMessage') or ''}")
    return bool(checks) and all(check["status"] in ("SUCCESS", "INFO", "SKIPPED") for check in checks)


def _run(suite: Suite, version: str, folder: Path) -> list[dict[str, str]]:
    """All that the suite checked at one revision."""
    port, callback = _free_port(), _free_port()
    env = {**os.environ, "INTERLOCK_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT / "src")}
    program = (
        "import sys; sys.path.insert(0, 'examples'); from protected import protected; "
        f"protected({port}, {PASSWORD!r}, redirect_uri='http://127.0.0.1:{callback}/callback')"
        f".run('http', port={port})"
    )
    words = ["authorization", "--url", f"http://127.0.0.1:{port}", "--client-id", "example", "-p", str(callback)]
    words += ["--resource", f"http://127.0.0.1:{port}/mcp", "--spec-version", version, "-o", str(folder)]
    with Child([sys.executable, "-c", program], folder / "server.log", env=env, cwd=ROOT):
        _wait_for(port)
        with Child(suite.command(*words), folder / "suite.log", env=env, cwd=ROOT) as child:
            url = _printed(folder / "suite.log", child)
            if url is not None:
                _log_in(url)
            code = child.wait(SECONDS)
        print(f"{version} exit code {code}")
        checks = [each for path in sorted(folder.rglob("checks.json")) for each in json.loads(path.read_text())]
    if code != 0:
        checks.append({"id": "suite", "status": "FAILURE", "errorMessage": child.tail(20)})
    return checks


def _printed(log: Path, child: Child) -> str | None:
    """The URL that the suite wants opened, as soon as it has printed it."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and child.running:
        found = _URL.search(log.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            return found[0]
        time.sleep(0.05)
    return None


def _log_in(url: str) -> None:
    """What a person does with a browser, up to the redirect."""
    status, headers, body = _ask("GET", url)
    assert status == 200, f"no page: {status}"
    [ticket] = re.findall(r'name="ticket" value="([^"]*)"', body)
    [action] = re.findall(r'action="([^"]*)"', body)
    form = {"ticket": html.unescape(ticket), "user": "ada", "password": PASSWORD, "decision": "allow"}
    cookie = {"Cookie": headers["set-cookie"].partition(";")[0]}
    status, headers, _ = _ask("POST", html.unescape(action), urlencode(form), cookie)
    assert status == 303, f"not allowed: {status}"
    _ask("GET", headers["location"])


def _ask(verb: str, url: str, body: str | None = None, more: dict[str, str] | None = None) -> tuple[int, dict, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    kind = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
    try:
        connection.request(verb, f"{parts.path}?{parts.query}".rstrip("?"), body, {**kind, **(more or {})})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("our server did not start")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
