"""bench/: the raw HTTP driver counts what was answered, survives what servers do between two turns, and never hangs."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

from driver import DriverError  # noqa: E402 - they live among the benchmarks
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
