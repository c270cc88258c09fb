"""cli/commands/run_reload.py: a server that is started anew when its code changes."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from interlock.cli.commands import run_reload
from interlock.cli.commands.run_reload import _settled, _Told, _until_change, python_files, snapshot

SERVER = "from interlock import Server\nserver = Server({name!r})\n"
HEADERS = {
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "server/discover",
}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


def test_only_code_of_ones_own_is_looked_at(tmp_path):
    for name in ("a.py", "sub/b.py", ".git/c.py", "__pycache__/d.py", "node_modules/e.py", "env/f.py", "g.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert [str(path.relative_to(tmp_path)) for path in python_files(tmp_path)] == ["a.py", "sub/b.py"]


def test_a_folder_that_is_too_large_is_not_looked_at_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(run_reload, "MOST_FILES", 2)
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text("")
    assert len(list(python_files(tmp_path))) == 2


def test_a_change_is_a_new_time_a_new_length_or_a_file_that_came_or_went(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("1")
    seen = [snapshot(tmp_path)]
    os.utime(path, ns=(1, 1))
    seen.append(snapshot(tmp_path))
    path.write_text("12")
    os.utime(path, ns=(1, 1))
    seen.append(snapshot(tmp_path))
    path.unlink()
    seen.append(snapshot(tmp_path))
    assert len({json.dumps(each) for each in seen}) == 4
    os.symlink("/nowhere", tmp_path / "gone.py")
    assert snapshot(tmp_path) == {}


class Process:
    """Ends when it is told to, or has ended."""

    def __init__(self, code=None):
        self.returncode, self.told = code, 0

    def poll(self):
        return self.returncode

    def terminate(self):
        self.told += 1
        self.returncode = 0

    def wait(self, timeout=None):
        if self.returncode is None:
            raise subprocess.TimeoutExpired("x", timeout)
        return self.returncode


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(run_reload, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(run_reload, "STILL_SECONDS", 0.0)
    made = _Told()
    yield made
    made.restore()


def test_a_save_is_over_once_nothing_changes_any_more(told, tmp_path, monkeypatch):
    looks = iter([{"a.py": (1, 0)}, {"a.py": (2, 7)}, {"a.py": (3, 9)}, {"a.py": (3, 9)}])
    monkeypatch.setattr(run_reload, "snapshot", lambda folder: next(looks))
    assert _settled(tmp_path, told) == {"a.py": (3, 9)} and next(looks, None) is None


def test_files_that_never_rest_keep_a_server_neither_from_starting_nor_from_stopping(told, tmp_path, monkeypatch):
    count = itertools.count()
    monkeypatch.setattr(run_reload, "snapshot", lambda folder: {"a.py": (next(count), 0)})
    assert _settled(tmp_path, told) == {"a.py": (run_reload._MOST_STILL, 0)}
    told.stop, before = True, next(count)
    assert _settled(tmp_path, told) and next(count) == before + 3


def test_a_change_ends_the_process(told, tmp_path, capsys):
    (tmp_path / "a.py").write_text("")
    process = Process()
    assert _until_change(process, tmp_path, {}, told) is None
    assert process.told == 1 and "a.py changed, starting anew" in capsys.readouterr().err


def test_a_process_that_could_not_start_waits_for_the_change(told, tmp_path, capsys, monkeypatch):
    process, looks = Process(code=1), []

    def look(folder):
        looks.append(folder)
        return {"a.py": (1, 1)} if len(looks) == 3 else {}

    monkeypatch.setattr(run_reload, "snapshot", look)
    assert _until_change(process, tmp_path, {}, told) is None
    assert process.told == 0 and capsys.readouterr().err.count("waiting for a change") == 1


def test_a_process_that_ended_well_is_the_end(told, tmp_path):
    assert _until_change(Process(code=0), tmp_path, {}, told) == 0


def test_a_signal_is_passed_on_once(told, tmp_path):
    process = told.process = Process()
    os.kill(os.getpid(), signal.SIGTERM)
    assert _until_change(process, tmp_path, {}, told) == 0 and process.told == 1
    late = Process()
    assert _until_change(late, tmp_path, {}, told) == 0 and late.told == 1, "started in that very moment"


def test_a_signal_between_two_servers_is_the_end(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(run_reload.subprocess, "Popen", lambda *_, **__: started.append(Process(code=1)) or started[-1])
    ends = iter([None, 7])  # a second one ends by itself
    monkeypatch.setattr(run_reload, "_until_change", lambda *_: next(ends))
    monkeypatch.setattr(run_reload, "_settled", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert run_reload.serve_reloading(str(tmp_path / "a.py"), [], "127.0.0.1", 1) == 0 and len(started) == 1


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    made = _Told()
    assert signal.getsignal(signal.SIGTERM) != before
    made.restore()
    assert signal.getsignal(signal.SIGTERM) == before


def name_at(url):
    request = urllib.request.Request(url, json.dumps(DISCOVER).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]


def test_a_server_is_served_anew_at_the_same_address(tmp_path):
    path = Path(tmp_path / "server.py")
    path.write_text(SERVER.format(name="first"))
    words = [sys.executable, "-m", "interlock", "run", str(path), "--http", "--port", "0", "--reload"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    hang = threading.Timer(90, process.kill)
    hang.start()
    try:
        url = serving(process)
        assert name_at(url) == "first"
        save(path, "1 +")
        told_of(process, "waiting for a change")
        save(path, SERVER.format(name="second"))
        assert serving(process) == url and name_at(url) == "second"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        hang.cancel()
        hang.join()
        process.kill()
        process.communicate()


def save(path, text):
    """In one step: what is looked at here is the server, and not what a look between two steps of a save does."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def serving(process):
    return re.findall(r"http://127\.0\.0\.1:\d+/mcp", told_of(process, "serving at"))[0]


def told_of(process, text):
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"{text!r} was not said")
