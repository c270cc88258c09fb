"""bench/: the raw HTTP driver counts what was answered, survives what servers do between two turns, and never hangs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

import awake  # noqa: E402 - they live among the benchmarks
import open_loop  # noqa: E402
import run  # noqa: E402
from awake import server_core_awake  # noqa: E402
from driver import CORES, WARM_UP_CALLS, DriverError, before_others, on_server_core  # noqa: E402
from http_connection import Connection  # noqa: E402
from http_driver import HttpDriver  # noqa: E402
from http_loads import Load, nothing  # noqa: E402
from http_rounds import OverHttp  # noqa: E402
from messages import HANDSHAKE, MAX_CALLS, MAX_CALLS_PER_SECOND, STATELESS, listing, prepared_calls  # noqa: E402
from peers import Contestant  # noqa: E402
from plans import FULL, QUICK  # noqa: E402
from samples import Key, Samples  # noqa: E402
from turns import Guest, Turns  # noqa: E402

CALL, CLOSE_OTHERS, SAY_NOTHING = (b"GET /%b HTTP/1.1\r\n\r\n" % name for name in (b"call", b"close", b"silence"))
SERVER = """\
import socket, sys, threading
there = set()
def serve(peer):
    while line := peer.recv(1000):
        if b"silence" in line:
            continue
        for other in list(there - {peer}) if b"close" in line else ():
            there.discard(other)
            other.shutdown(socket.SHUT_RDWR)
        peer.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
    there.discard(peer)
    peer.close()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer = listener.accept()[0]
    there.add(peer)
    threading.Thread(target=serve, args=[peer], daemon=True).start()
"""


def driver_of(deadline_seconds: float) -> HttpDriver:
    return HttpDriver([sys.executable, "-c", SERVER], ROOT, deadline_seconds)


def many(post: bytes, counts: list[int], prepared: int = 100_000):
    """At most so many calls for each turn."""

    def check(responses: list[bytes], first: int, count: int) -> None:
        assert len(responses) == count
        counts.append(count)

    return lambda port, exchange: Load(lambda numbers: [post] * min(len(numbers), prepared), check)


def test_a_quiet_connection_counts_as_open_until_its_server_closes_it():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname()[1], 10.0)
        peer = listener.accept()[0]
        try:
            assert not connection.is_closed()
            peer.close()
            connection.socket.recv(1)  # the end has come
            assert connection.is_closed()
        finally:
            connection.socket.close()


def test_the_driver_opens_anew_what_a_server_closed_between_two_turns():
    """A turn ends with the calls that were prepared for it, long before its time is over."""
    counts: list[int] = []
    with driver_of(60.0) as driver:
        driver.begin(many(CALL, counts, 8), 4)
        assert driver.per_second(600.0) > 0
        before = list(driver._connections)
        driver.exchange(CLOSE_OTHERS)
        assert driver.per_second(600.0) > 0
        assert [one is other for one, other in zip(before, driver._connections, strict=True)] == [True] + [False] * 3
    assert counts == [8, 8]


def test_the_driver_gives_up_a_server_that_does_not_answer():
    with driver_of(1.0) as driver:
        driver.begin(many(SAY_NOTHING, [], 8), 2)
        with pytest.raises(DriverError, match="no answer within 1 s"):
            driver.per_second(600.0)
        with pytest.raises(DriverError, match="no answer within 1 s"):
            driver.per_second(600.0)  # its deadline is over: that is no wait without an end


class Laboratory:
    """A clock that goes on by 10 µs with every look, and a server that answers 50 µs after it was asked.

    `driver_rests`: how long a look takes that comes when the clock has reached a time; `server_rests`: how long the
    answer to a call takes, by the number of the call.
    """

    def __init__(
        self, *, driver_rests: dict[float, float] | None = None, server_rests: dict[int, float] | None = None
    ) -> None:
        self.now = 0.0
        self._driver_rests = sorted((driver_rests or {}).items())
        self._server_rests = server_rests or {}
        self._answers: list[tuple[float, socket.socket]] = []
        self._asked = 0
        self.pairs = [socket.socketpair() for _ in range(8)]
        self.connections = [self._connection(*pair) for pair in self.pairs]

    def _connection(self, near: socket.socket, far: socket.socket) -> Connection:
        class Wire:
            fileno = staticmethod(near.fileno)
            recv = staticmethod(near.recv)
            sendall = staticmethod(lambda post: self._ask(far))

        connection = Connection.__new__(Connection)
        connection.socket, connection.came = Wire, b""
        return connection

    def _ask(self, far: socket.socket) -> None:
        self._asked += 1
        free = max([self.now, *(at for at, _ in self._answers)])  # one after the other
        self._answers.append((free + 50e-6 + self._server_rests.get(self._asked, 0.0), far))

    def perf_counter(self) -> float:
        self.now += 10e-6
        if self._driver_rests and self._driver_rests[0][0] <= self.now:
            self.now += self._driver_rests.pop(0)[1]
        for answer in [answer for answer in self._answers if answer[0] <= self.now]:
            self._answers.remove(answer)
            answer[1].sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        return self.now

    def close(self) -> None:
        for near, far in self.pairs:
            near.close()
            far.close()


@pytest.fixture
def paced(monkeypatch):
    """200 calls at 5,000 a second: 40 ms, if nobody rests."""

    def run(laboratory: Laboratory, *, own_core: bool = True) -> open_loop.Paced:
        monkeypatch.setattr(open_loop, "perf_counter", laboratory.perf_counter)
        run = open_loop.Paced(laboratory.connections, [CALL] * 200, 5_000.0, 60.0, own_core=own_core)
        try:
            run.run()
        finally:
            laboratory.close()
        run.lasted = laboratory.now
        return run

    return run


def slow(run: open_loop.Paced, seconds: float = 1e-3) -> int:
    return sum(taken > seconds for taken in run.taken)


def test_at_a_given_rate_every_call_is_sent_when_it_is_due(paced):
    run = paced(Laboratory())
    assert slow(run, 2e-4) == 0 and max(run.late) < 1e-4
    assert run.lasted == pytest.approx(40e-3, abs=1e-3)


def test_a_rest_of_the_server_is_charged_to_every_call_that_was_due_in_it(paced):
    run = paced(Laboratory(server_rests={100: 10e-3}))
    assert slow(run) >= 40  # 10 ms at 5,000 a second, and what it caught up with
    assert max(run.taken) >= 10e-3
    assert max(run.taken[:99]) < 1e-3 < run.taken[99]  # in the order in which the calls were due
    assert run.stood_still == 0


def test_a_rest_of_the_driver_moves_what_was_due_in_it_by_just_as_much(paced):
    run = paced(Laboratory(driver_rests={20e-3: 10e-3}))
    assert slow(run) <= 1  # a call under way: its answer lay unread
    assert max(run.late) < 1e-4
    assert run.stood_still == pytest.approx(10e-3, abs=1e-4)
    assert run.lasted == pytest.approx(50e-3, abs=1e-3)


def test_a_call_under_way_is_charged_with_a_rest_of_the_driver(paced):
    # the call of 20 ms is sent within three looks of that time, and answered 50 µs later
    run = paced(Laboratory(driver_rests={20e-3 + 40e-6: 10e-3}))
    assert slow(run) == 1
    assert run.taken[100] > 10e-3


def test_a_step_of_the_driver_is_no_rest(paced):
    run = paced(Laboratory(driver_rests={20e-3: 150e-6}))
    assert run.stood_still == 0
    assert paced(Laboratory(driver_rests={20e-3: 250e-6})).stood_still == pytest.approx(260e-6, abs=1e-6)


def test_a_driver_that_could_have_sent_nothing_forgives_nothing(paced):
    """All connections wait for the server, from 2 ms after its rest has begun."""
    alone = paced(Laboratory(server_rests={50: 20e-3}))
    both = paced(Laboratory(server_rests={50: 20e-3}, driver_rests={15e-3: 12e-3}))
    assert both.stood_still > 10e-3
    assert slow(both) >= slow(alone)
    assert both.lasted == pytest.approx(alone.lasted, abs=1e-3)


def test_a_driver_without_a_core_of_its_own_moves_nothing(paced):
    run = paced(Laboratory(driver_rests={20e-3: 10e-3}), own_core=False)
    assert slow(run) >= 40


def test_calls_that_only_lead_in_do_not_count():
    counts: list[int] = []
    with driver_of(30.0) as driver:
        driver.begin(many(CALL, counts), 4)
        run = driver.paced(1_000.0, 0.1)
        assert len(run.taken) == len(run.late) == 100
        assert counts == [150]


def test_the_slowest_in_a_hundred():
    assert open_loop.p99([1e-6] * 99 + [5e-6]) == pytest.approx(5.0)
    assert open_loop.p99([1e-6] * 990 + [2e-6, *[5e-6] * 9]) == pytest.approx(2.0)


def policy_of(pid: int) -> int:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
def test_a_server_goes_before_others_only_while_it_is_measured():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        with before_others(child.pid) as first:
            assert policy_of(child.pid) == (os.SCHED_FIFO if first else os.SCHED_OTHER)
        assert policy_of(child.pid) == os.SCHED_OTHER
        child.communicate(b"\n")


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
def test_where_the_system_does_not_let_us_nothing_changes(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with before_others(os.getpid()) as first:
        assert first is False


@pytest.fixture
def nobody_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine whose kernel cannot be asked to wait at work."""
    monkeypatch.setattr(awake, "WANTED", tmp_path / "not there")


def keep_children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **more: started.append(begin(*words, **more)) or started[-1]
    )
    return started


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
@pytest.mark.usefixtures("nobody_is_told")
def test_what_keeps_the_servers_core_awake_gives_way_to_everything_and_ends_with_the_measure(monkeypatch):
    started = keep_children(monkeypatch)
    with server_core_awake() as how:
        [child] = started
        if how:
            assert how == "by a program that gives way"
            assert child.poll() is None and policy_of(child.pid) == os.SCHED_IDLE
            with on_server_core():
                assert os.sched_getaffinity(child.pid) == os.sched_getaffinity(0)
    assert child.returncode is not None


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
@pytest.mark.usefixtures("nobody_is_told")
def test_what_would_not_give_way_is_ended_at_once(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    started = keep_children(monkeypatch)
    with server_core_awake() as how:
        [child] = started
        assert how == "" and child.wait(60) == -signal.SIGKILL


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
@pytest.mark.usefixtures("nobody_is_told")
def test_where_nothing_gives_way_to_everything_the_core_may_rest(monkeypatch):
    monkeypatch.delattr(os, "SCHED_IDLE")
    with server_core_awake() as how:
        assert how == ""


@pytest.mark.skipif(CORES is None, reason="there is no core for the server alone")
@pytest.mark.parametrize("waited", [True, False])
def test_a_kernel_that_was_told_is_believed_when_it_is_seen_to_wait(monkeypatch, tmp_path, waited):
    """What it was told stands in a file as long as that is open; what it did, in another one."""
    (tmp_path / "wanted").touch()
    monkeypatch.setattr(awake, "WANTED", tmp_path / "wanted")
    monkeypatch.setattr(awake, "_STATES", tmp_path)
    state = tmp_path / f"cpu{CORES[1]}" / "cpuidle" / "state0"
    state.mkdir(parents=True)
    (state / "name").write_text("POLL\n")
    (state / "time").write_text("100\n")
    monkeypatch.setattr(awake, "sleep", lambda _: (state / "time").write_text("45100\n" if waited else "5100\n"))
    started = keep_children(monkeypatch)
    with server_core_awake() as how:
        assert (tmp_path / "wanted").read_bytes() == bytes(4)
        assert (how == "by the kernel") is waited and bool(started) is not waited
    (state / "name").write_text("C1\n")
    with server_core_awake() as how:
        assert how != "by the kernel", "its first way to wait gives the core away"


def test_half_is_half_of_the_middle_of_the_last_tries():
    half = open_loop.HalfRate()
    assert not half.known
    for reached in (900.0, 5_000.0, 1_000.0):
        half.tried(reached)
    assert half.known and half.rate == 500.0
    for reached in (2_000.0, 2_200.0):
        half.tried(reached)
    assert half.rate == 1_000.0, "earlier ones are forgotten"


class FakeDriver:
    """Reaches 1,000 calls a second, or what it is told to, and writes down what it is asked."""

    def __init__(
        self,
        name: str = "",
        asked: list[object] | None = None,
        *,
        fails: bool = False,
        reached: Iterable[float] = (),
    ) -> None:
        self.name, self.fails = name, fails
        self.asked = [] if asked is None else asked
        self.reached = chain(reached, repeat(1_000.0))

    def begin(self, talk: object, connections: int) -> None:
        if self.fails:
            raise DriverError("it does not")

    def reaches(self, seconds: float) -> float:
        self.asked.append(self.name)
        return next(self.reached)

    def paced(self, rate: float, seconds: float) -> open_loop.Paced:
        self.asked.append((self.name, rate))
        run = open_loop.Paced([], [], rate, 0.0, own_core=True)
        run.taken, run.late = [1e-3] * 100, [0.0] * 100
        return run


def paced_round(monkeypatch: pytest.MonkeyPatch, drivers: dict[str, FakeDriver]) -> OverHttp:
    contestants = [Contestant(name, "null", name, (), (STATELESS,), "-") for name in drivers]
    rounds = OverHttp(contestants, {"p99"}, QUICK, Samples())

    def turns_of(stack, contestants, era, measure, keys):
        turns = Turns(stack, lambda guest, act: rounds._attempt((measure, guest.contestant.name, ""), [], act))
        turns.guests.extend(Guest(contestant, era, drivers[contestant.name]) for contestant in contestants)
        return turns

    monkeypatch.setattr(rounds, "_turns", turns_of)
    rounds._pace(STATELESS, 0)
    return rounds


def test_both_are_asked_at_half_of_what_ours_reached_and_ours_last(monkeypatch):
    asked: list[object] = []
    drivers = {"interlock": FakeDriver("ours", asked), "empty-asgi": FakeDriver("empty", asked)}
    samples = paced_round(monkeypatch, drivers).samples
    assert asked == ["ours", ("empty", 500.0), ("ours", 500.0)] * QUICK.paced_windows
    assert {key.contestant: list(by_round.values()) for key, by_round in samples.values.items()} == {
        "interlock": [pytest.approx(1_000.0)],
        "empty-asgi": [pytest.approx(1_000.0)],
    }
    assert (
        "p99 of the middle window 1,000 µs, of all calls 1,000 µs"
        in samples.facts["the p99 measure, by rounds"][f"interlock {STATELESS.name}, round 1"]
    )


def test_the_middle_window_counts_and_that_of_all_calls_is_told(monkeypatch):
    slow = [0.050] * 10 + [1e-3] * 90
    windows = iter([slow if number == 1 else [number * 1e-3] * 100 for number in range(1, QUICK.paced_windows + 1)])
    ours = FakeDriver()

    def paced(rate: float, seconds: float) -> open_loop.Paced:
        run = FakeDriver.paced(ours, rate, seconds)
        run.taken = next(windows)
        return run

    ours.paced = paced
    samples = paced_round(monkeypatch, {"interlock": ours, "empty-asgi": FakeDriver()}).samples
    (seen,) = samples.values[Key("p99", "interlock", STATELESS.name)].values()
    assert seen == pytest.approx(4_000.0), "of 50, 2, 3, 4 and 5 ms"
    told = samples.facts["the p99 measure, by rounds"][f"interlock {STATELESS.name}, round 1"]
    assert "of the middle window 4,000 µs, of all calls 50,000 µs" in told


@pytest.mark.parametrize("failing", ["interlock", "empty-asgi"])
def test_one_that_fails_on_the_way_ends_the_round(monkeypatch, failing):
    drivers = {"interlock": FakeDriver(), "empty-asgi": FakeDriver()}

    def fail(rate: float, seconds: float) -> open_loop.Paced:
        raise DriverError("it does not any more")

    drivers[failing].paced = fail
    rounds = paced_round(monkeypatch, drivers)
    assert not rounds.samples.values and all(len(driver.asked) <= 3 for driver in drivers.values())


@pytest.mark.parametrize(
    "drivers", [{"empty-asgi": False}, {"interlock": True, "empty-asgi": False}, {"interlock": False}]
)
def test_without_either_of_them_nothing_is_measured(monkeypatch, drivers):
    rounds = paced_round(monkeypatch, {name: FakeDriver(fails=fails) for name, fails in drivers.items()})
    assert not rounds.samples.values


# --- calls are prepared as they are needed ---


def test_over_http_calls_go_on_where_the_last_block_ended():
    asked: list[range] = []
    checked: list[range] = []

    def talk(port, exchange):
        def posts(numbers: range) -> list[bytes]:
            asked.append(numbers)
            return [CALL] * len(numbers)

        return Load(posts, lambda responses, first, count: checked.append(range(first, first + count)))

    with driver_of(30.0) as driver:
        driver.begin(talk, 4)
        for _ in range(3):
            driver.per_second(0.02)
    assert [len(numbers) for numbers in asked] == [2_000] * 3, "0.02 s at the highest rate"
    assert [numbers.start for numbers in asked] == [numbers.start for numbers in checked]
    assert [numbers.stop for numbers in checked[:-1]] == [numbers.start for numbers in checked[1:]]


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
def test_one_server_may_be_called_as_often_as_a_round_may_call_it(plan):
    per_window = MAX_CALLS_PER_SECOND * plan.pipelined_seconds
    one_by_one = plan.sequential_seconds * 100_000  # a tenth of that would be a fast one
    assert 1 + WARM_UP_CALLS + (plan.windows + 1) * (per_window + one_by_one) <= MAX_CALLS


def test_over_stdio_no_more_calls_are_prepared_than_a_block_may_take():
    era = listing(STATELESS)  # nothing else here uses it
    assert len(prepared_calls(era, 5)) == 5
    assert len(prepared_calls(era, 3)) == 5
    calls = prepared_calls(era, 8)
    assert [json.loads(call)["id"] for call in calls] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("era", [STATELESS, HANDSHAKE], ids=lambda era: era.name)
@pytest.mark.parametrize("words", [[], ["--own"]], ids=["uvicorn", "our runner"])
def test_the_empty_application_answers_on_both_runners(words, era):
    server = [sys.executable, str(ROOT / "bench" / "servers" / "empty_asgi.py"), *words]
    with HttpDriver(server, ROOT, 60.0) as driver:
        driver.begin(nothing(era), 4)
        assert driver.per_second(0.02) > 0


# --- what failed ---


# A slow machine prepares the calls of one such round well within the time that a server has to start.
SHORT = replace(QUICK, warm_up_block_seconds=0.01, pipelined_seconds=0.01, sequential_seconds=0.01)
SHORT_CALLS = 2 * WARM_UP_CALLS


@pytest.fixture
def bench_run(monkeypatch, tmp_path):
    """A quick run over stdio that writes a page, of a contestant with this command; its status and its page."""

    def run_with(command: tuple[str, ...]) -> tuple[int, Path]:
        contestant = Contestant("null", "null", "nothing", command, (STATELESS,), "-")
        monkeypatch.setattr(run, "set_up", lambda groups: ([contestant], {}))
        monkeypatch.setattr(run, "pin_driver", lambda: None)  # it would pin the tests, too
        monkeypatch.setattr(run, "PAGE", tmp_path / "benchmarks.md")
        monkeypatch.setattr(run, "QUICK", SHORT)
        monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--write", "--only", "pipelined,sequential"])
        return run.main(), run.PAGE

    return run_with


def test_a_run_without_failures_writes_the_page(bench_run):
    status, page = bench_run((sys.executable, str(ROOT / "bench" / "servers" / "null_server.py"), str(SHORT_CALLS)))
    assert status == 0
    rows = [
        line.split("|")
        for line in page.read_text(encoding="utf-8").splitlines()
        if "| null " in line and "calls/s" in line
    ]
    assert len(rows) == 1 and rows[0][1].strip() == "pipelined"


def test_a_run_in_which_something_failed_tells_and_leaves_the_page_alone(bench_run, capsys):
    status, page = bench_run((sys.executable, "-c", "pass"))
    assert status == 1
    assert not page.exists()
    told = capsys.readouterr()
    assert f"failed: pipelined null {STATELESS.name}: the server ended by itself" in told.err
    assert "benchmarks.md was not written" in told.out


def test_no_row_of_the_page_failed():
    assert "failed" not in run.PAGE.read_text(encoding="utf-8")
