"""transport/workers.py: real processes on one port, spoken to over sockets that each reach one of them."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import interlock
from interlock.transport.workers import check_can_fork
from interlock.wire.errors import LocalError
from interlock.wire.sse import EventParser

MANY = Path(__file__).resolve().parents[1] / "support" / "servers" / "many.py"
WAIT = 30.0
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@contextmanager
def running(*words):
    """A server in processes of its own. At the end the first is killed without a word, and the workers that it still
    has must notice that and end by themselves."""
    paths = [str(Path(interlock.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        children = children_of(process.pid)
        process.kill()
        process.wait(WAIT)
        process.stderr.close()
        until(lambda: not any(map(lives, children)))


def until(condition):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children_of(pid):
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in found.split()]


def port_of(process):
    said = process.stderr.readline()
    found = re.fullmatch(r"interlock: serving at http://127\.0\.0\.1:(\d+)/mcp with 2 workers\n", said)
    assert found, said
    return int(found[1])


class Line:
    """One connection, and so one worker: who accepted it serves all that is asked on it."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)

    def ask(self, verb, frame=None, **headers):
        body = None if frame is None else json.dumps(frame).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.http.request(verb, "/mcp", body, {**HEADERS, **named})
        return self.http.getresponse()

    def close(self):
        self.http.close()


class Client:
    """A session, and a line to each of the workers."""

    def __init__(self, port):
        self.port = port
        self._last = 0
        self._lines = [Line(port)]
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}
        hello["clientInfo"] = {"name": "c", "version": "1"}
        answer = self._lines[0].ask("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        self.session = answer.getheader("mcp-session-id")
        assert (answer.status, bool(answer.read())) == (200, True)
        self.tell(self._lines[0], "notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for line in self._lines:
            line.close()

    def line(self):
        line = Line(self.port)
        self._lines.append(line)
        return line

    def lines(self, count=2):
        """One to each worker, by its process id; the system decides who accepts."""
        found = {}

        def look():
            line = self.line()
            found.setdefault(self.result(line, "who"), line)
            return found if len(found) == count else None

        return until(look)

    def to(self, pid):
        """One more line to this worker."""

        def look():
            line = self.line()
            return line if self.result(line, "who") == pid else None

        return until(look)

    def ask(self, line, verb, frame=None, **headers):
        return line.ask(verb, frame, mcp_session_id=self.session, **headers)

    def tell(self, line, method, **params):
        answer = self.ask(line, "POST", {"jsonrpc": "2.0", "method": method, "params": params})
        assert (answer.status, answer.read()) == (202, b"")

    def call(self, line, tool, **arguments):
        self._last += 1
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        return self.ask(line, "POST", {"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params})

    def result(self, line, tool, **arguments):
        answer = self.call(line, tool, **arguments)
        return json.loads(json.loads(answer.read())["result"]["content"][0]["text"])


class Events:
    """What a response says, as it comes."""

    def __init__(self, response):
        assert response.status == 200, response.read()
        self._response, self._parser, self._events = response, EventParser(10**6), []
        self.last = None

    def next(self):
        """The next message; None at the end of the stream."""
        while not self._events:
            data = self._response.read1(65536)
            if not data:
                return None
            self._events = [event for event in self._parser.feed(data) if event.data or event.id]
        event = self._events.pop(0)
        self.last = event.id or self.last
        return json.loads(event.data) if event.data else self.next()

    def rest(self):
        return list(iter(self.next, None))


def short(frames):
    """Messages in a word each."""
    return [
        frame["params"]["progress"] if "params" in frame else frame.get("error", {}).get("message") or "answer"
        for frame in frames
    ]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    with running(MANY, tmp_path_factory.mktemp("many") / "state.db") as process:
        yield process, port_of(process)


# --- any worker serves any request ---


def test_questions_cancellations_and_the_end_reach_the_worker_they_are_for(many):
    with Client(many[1]) as client:
        a, b = client.lines().values()
        asking = Events(client.call(a, "where"))
        question = asking.next()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///x"}]}}
        assert client.ask(b, "POST", answer).read() == b""
        assert asking.next()["result"]["content"][0]["text"] == "file:///x" and asking.next() is None
        endless = Events(client.call(a, "steps", count=10**6))
        assert endless.next()["params"]["progress"] == 0
        client.tell(b, "notifications/cancelled", requestId=client._last)
        assert set(short(endless.rest())) <= set(range(1, 100))  # it ends without an answer
        assert client.ask(b, "DELETE").read() == b""
        for line in (a, b):
            answer = client.call(line, "who")
            assert (answer.status, bool(answer.read())) == (404, True)


def test_streams_are_read_on_at_another_worker_and_changes_reach_them(many):
    with Client(many[1]) as client:
        lines = client.lines()
        (_, a), (second, b) = lines.items()
        stream = Events(client.call(a, "steps", count=6))
        first = stream.next()
        a.close()
        resumed = Events(client.ask(b, "GET", last_event_id=stream.last))
        assert short([first, *resumed.rest()]) == [0, 1, 2, 3, 4, 5, "answer"]
        listening = Events(client.ask(client.to(second), "GET"))
        subscribe = {"jsonrpc": "2.0", "id": "s", "method": "resources/subscribe", "params": {"uri": "note://1"}}
        other = next(pid for pid in lines if pid != second)
        assert json.loads(client.ask(client.to(other), "POST", subscribe).read())["result"] == {}
        client.call(client.to(other), "change").read()
        assert listening.next()["method"] == "notifications/resources/updated"


# --- workers that die ---


def test_when_a_worker_is_killed_its_streams_end_elsewhere_and_another_takes_its_place(many):
    with Client(many[1]) as client:
        lines = client.lines()
        (victim, a), (second, b) = lines.items()
        stream = Events(client.call(a, "steps", count=10**6))
        heard = [stream.next(), stream.next()]
        os.kill(victim, signal.SIGKILL)
        resumed = Events(client.ask(b, "GET", last_event_id=stream.last))
        rest = short(resumed.rest())
        assert rest[-1] == "Cancelled: the worker that served this request is gone"
        numbers = [*short(heard), *rest[:-1]]
        assert numbers == list(range(len(numbers)))  # no gap, no duplicate
        until(lambda: len(set(children_of(many[0].pid)) - {victim}) == 2)
        until(lambda: set(client.lines()) == {second, *children_of(many[0].pid)})  # the session goes on


# --- how they stop ---


def test_told_to_stop_they_finish_what_they_have(tmp_path):
    with running(MANY, tmp_path / "state.db") as process, Client(port_of(process)) as client:
        children = children_of(process.pid)
        streams = [Events(client.call(line, "steps", count=5)) for line in client.lines().values()]
        assert [stream.next()["params"]["progress"] for stream in streams] == [0, 0]
        process.send_signal(signal.SIGTERM)
        for stream in streams:
            assert short(stream.rest()) == [1, 2, 3, 4, "answer"]
        assert process.wait(WAIT) == 0
        assert not any(map(lives, children))


# --- how they do not start ---


def test_what_cannot_start_is_said_once_and_ends_with_1(tmp_path):
    path = tmp_path / "server.py"
    path.write_text("from interlock import Server\nserver = Server('s')\n")
    with running("-m", "interlock", "run", path, "--http", "--port", "0", "--workers", "2") as process:
        told = process.stderr.read()
        assert process.wait(WAIT) == 1
    assert told.count("2 workers must share their sessions, keys and used states") == 1
    assert told.endswith("interlock run: the workers could not start\n")


@pytest.mark.parametrize("count", [0, -1, 5000])
def test_so_many_workers_are_refused(count):
    with pytest.raises(LocalError, match="from 1 to 1024"):
        check_can_fork(count)
