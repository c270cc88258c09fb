"""transport/http/runner/workers.py: real processes on one port, spoken to over sockets that each reach one of them."""

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
from interlock.transport.http.runner import workers
from interlock.transport.http.runner.workers import check_can_fork, check_heartbeat
from interlock.wire.errors import LocalError
from interlock.wire.sse import EventParser
from support.children import alive

MANY = Path(__file__).resolve().parents[3] / "support" / "servers" / "many.py"
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
        until(lambda: not any(map(alive, children)))


def until(condition):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


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
        self.begin(verb, frame, **headers)
        return self.http.getresponse()

    def begin(self, verb, frame=None, **headers):
        body = None if frame is None else json.dumps(frame).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.http.request(verb, "/mcp", body, {**HEADERS, **named})

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
        return self.ask(line, "POST", self._frame(tool, arguments))

    def call_unread(self, line, tool, **arguments):
        """Its answer is on the line when somebody reads it."""
        line.begin("POST", self._frame(tool, arguments), mcp_session_id=self.session)

    def _frame(self, tool, arguments):
        self._last += 1
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        return {"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params}

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


def outcomes(client, first, *pids):
    """How a call ended, asked for twice at each of these workers: a stream may end without an answer, once."""

    def look(pid):
        told = Events(client.ask(client.to(pid), "GET", last_event_id=first)).rest()
        return short(frame for frame in told if "params" not in frame)

    return [until(lambda pid=pid: look(pid)) for pid in pids * 2]


GONE = "Cancelled: the worker that served this request is gone"


def test_a_worker_that_was_stopped_and_goes_on_gives_no_second_answer(many):
    with Client(many[1]) as client:
        (victim, a), (second, b) = client.lines().items()
        stream = Events(client.call(a, "steps", count=20))
        stream.next()
        first = stream.last
        os.kill(victim, signal.SIGSTOP)
        try:
            told = Events(client.ask(b, "GET", last_event_id=first)).rest()
        finally:
            os.kill(victim, signal.SIGCONT)
        assert short(told)[-1] == GONE
        assert all("params" in frame for frame in stream.rest())  # the connection that was open all the time
        assert outcomes(client, first, victim, second) == [[GONE]] * 4


def test_a_handler_that_blocks_the_loop_gives_no_second_answer(many):
    with Client(many[1]) as client:
        (victim, a), (second, b) = client.lines().items()
        stream = Events(client.call(a, "steps", count=10**6))
        stream.next()
        first = stream.last
        blocked = client.to(victim)
        client.call_unread(blocked, "block", seconds=3)
        told = Events(client.ask(b, "GET", last_event_id=first)).rest()
        assert short(told)[-1] == GONE
        assert all("params" in frame for frame in stream.rest())
        answer = json.loads(blocked.http.getresponse().read())  # of this one nobody was told anything else
        assert answer["result"]["content"][0]["text"] == "done"
        assert outcomes(client, first, victim, second) == [[GONE]] * 4


# --- workers that are stuck ---


@pytest.mark.parametrize("how", ["blocked", "stopped"])
def test_a_worker_that_gives_no_heartbeat_is_killed_and_replaced(tmp_path, how):
    with running(MANY, tmp_path / "state.db", "1") as process, Client(port_of(process)) as client:
        lines = client.lines()
        (victim, a), (second, _) = lines.items()
        if how == "blocked":
            client.call_unread(a, "block", seconds=600)
        else:
            os.kill(victim, signal.SIGSTOP)
        told = process.stderr.readline()
        while "gave no heartbeat" not in told:
            assert told, "it ended"
            told = process.stderr.readline()
        assert f"worker {victim} gave no heartbeat for 1 s and is killed" in told
        assert "run its work in a thread; heartbeat_timeout=0" in told
        until(lambda: victim not in children_of(process.pid) and len(children_of(process.pid)) == 2)
        assert second in children_of(process.pid)
        until(lambda: victim not in client.lines())
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0


class Watched:
    """A supervisor of one worker, with a clock that goes on only while it waits."""

    def __init__(self, monkeypatch):
        self.now, self.passes, self.said, self.killed = 100.0, 0.0, b"", []
        self.read, self.write = os.pipe()
        monkeypatch.setattr(workers.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(workers, "_readable", self.readable)
        monkeypatch.setattr(workers.os, "kill", lambda pid, number: self.killed.append((pid, number)))
        self.supervisor = workers._Supervisor(lambda line: None, 1, 5.0, lambda: None, 60.0)
        self.supervisor._children[7] = workers._Child(7, self.read, self.now)

    def readable(self, descriptors, timeout):
        self.now += self.passes
        return [self.read] if self.said and self.read in descriptors else []

    def wait(self, passes, said=b""):
        """So long, at whose end this came from the worker; was it killed?"""
        self.passes, self.said = passes, said
        if said:
            os.write(self.write, said)
        self.supervisor._wait(-1)
        self.supervisor._kill_stuck()
        return bool(self.killed)

    def close(self):
        for descriptor in (self.read, self.write):
            os.close(descriptor)


@pytest.fixture
def watched(monkeypatch):
    found = Watched(monkeypatch)
    yield found
    found.close()


def test_a_worker_is_killed_once_and_only_after_the_whole_time_without_a_heartbeat(watched, capfd):
    assert not watched.wait(1000)  # it starts as slowly as it does
    assert not watched.wait(1, b".")
    assert not watched.wait(59) and not watched.wait(0.5, b"...") and not watched.wait(59.5)
    assert watched.wait(0.5) and watched.wait(100)
    assert watched.killed == [(7, signal.SIGKILL)]
    assert capfd.readouterr().err.count("gave no heartbeat for 60 s") == 1


def test_one_that_stood_still_itself_gives_the_workers_their_time(watched):
    """As when all of a container is frozen: they had no chance to give a heartbeat."""
    watched.wait(1, b".")
    assert not watched.wait(1000)
    assert not watched.wait(59)
    assert watched.wait(1)


def test_no_heartbeats_are_expected_of_workers_that_were_told_to_stop(watched):
    watched.wait(1, b".")
    watched.supervisor._stop()
    watched.killed.clear()
    assert not watched.wait(1, b".") and not watched.wait(120)
    assert watched.supervisor._children[7].due == float("inf")  # nor does it wake up for one


def test_without_a_heartbeat_timeout_a_worker_that_is_stuck_is_kept(tmp_path):
    lease = "60"  # far longer than it is stuck: what becomes of its sessions is another matter
    with running(MANY, tmp_path / "state.db", "0", lease) as process, Client(port_of(process)) as client:
        (victim, a), _ = client.lines().items()
        assert client.result(a, "who") == victim
        assert client.call(a, "block", seconds=1.5).read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
        assert "heartbeat" not in process.stderr.read()


@pytest.mark.parametrize("seconds", [-1, 0.5, 3601, float("nan")])
def test_such_a_heartbeat_timeout_is_refused(seconds):
    with pytest.raises(LocalError, match=r"heartbeat_timeout=.*: give seconds from 1 to 3600, or 0"):
        check_heartbeat(seconds)


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
        assert not any(map(alive, children))


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
