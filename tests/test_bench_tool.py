"""bench/: the raw HTTP driver counts what was answered, survives what servers do between two turns, and never hangs."""

from __future__ import annotations

import socket
import sys
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

import open_loop  # noqa: E402 - they live among the benchmarks
from driver import DriverError  # noqa: E402
from http_connection import Connection  # noqa: E402
from http_driver import HttpDriver  # noqa: E402
from http_loads import Load  # noqa: E402

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


def many(post: bytes, counts: list[int]):
    def check(responses: list[bytes], first: int, count: int) -> None:
        assert len(responses) == count
        counts.append(count)

    return lambda port, exchange: Load([post] * 1_000, check)


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
    counts: list[int] = []
    with driver_of(30.0) as driver:
        driver.begin(many(CALL, counts), 4)
        assert driver.per_second(0.02) > 0
        driver.exchange(CLOSE_OTHERS)
        assert driver.per_second(0.02) > 0
    assert sum(counts) >= 8


def test_the_driver_gives_up_a_server_that_does_not_answer():
    with driver_of(1.0) as driver:
        driver.begin(many(SAY_NOTHING, []), 2)
        with pytest.raises(DriverError, match="no answer within 1 s"):
            driver.per_second(0.02)
        with pytest.raises(DriverError, match="no answer within 1 s"):
            driver.per_second(0.02)  # its deadline is over: that is no wait without an end


class Laboratory:
    """A clock that goes on by 10 µs with every look, and a server that answers 50 µs after it was asked."""

    def __init__(self, connections: int, *, driver_rests: int = 0, server_rests: int = 0) -> None:
        self.now, self._looks = 0.0, count(1)
        self._driver_rests, self._server_rests = driver_rests, server_rests
        self._answers: list[tuple[float, socket.socket]] = []
        self._sent = count(1)
        self.pairs = [socket.socketpair() for _ in range(connections)]
        self.connections = [self._connection(*pair) for pair in self.pairs]

    def _connection(self, near: socket.socket, far: socket.socket) -> Connection:
        class Wire:
            fileno = staticmethod(near.fileno)
            recv = staticmethod(near.recv)
            sendall = staticmethod(lambda post: self._asked(far))

        connection = Connection.__new__(Connection)
        connection.socket, connection.came = Wire, b""
        return connection

    def _asked(self, far: socket.socket) -> None:
        rest = 10e-3 if next(self._sent) == self._server_rests else 0.0
        free = max([self.now, *(at for at, _ in self._answers)])  # one after the other
        self._answers.append((free + 50e-6 + rest, far))

    def perf_counter(self) -> float:
        self.now += 10e-3 if next(self._looks) == self._driver_rests else 10e-6
        for at, far in [answer for answer in self._answers if answer[0] <= self.now]:
            self._answers.remove((at, far))
            far.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        return self.now

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        for near, far in self.pairs:
            near.close()
            far.close()


def paced_in(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> open_loop.Paced:
    with laboratory:
        monkeypatch.setattr(open_loop, "perf_counter", laboratory.perf_counter)
        paced = open_loop.Paced(laboratory.connections, [CALL] * 200, rate=5_000.0, deadline=60.0)
        paced.run()
    return paced


def test_at_a_given_rate_a_rest_of_the_server_is_charged_to_every_call_that_was_due_in_it(monkeypatch):
    paced = paced_in(Laboratory(8, server_rests=100), monkeypatch)
    assert sum(seconds > 1e-3 for seconds in paced.taken) >= 40  # 10 ms at 5,000 a second, and what it caught up with
    assert max(paced.taken) >= 10e-3
    assert paced.stood_still == 0


def test_at_a_given_rate_a_rest_of_the_driver_is_not_charged_to_the_server(monkeypatch):
    paced = paced_in(Laboratory(8, driver_rests=1_000), monkeypatch)
    assert sum(seconds > 1e-3 for seconds in paced.taken) <= 1  # but for a call under way: its answer lay unread
    assert max(paced.late) < 1e-3
    assert paced.stood_still == pytest.approx(10e-3)
