"""One raw HTTP driver for every contestant: no SDK, plain sockets, prepared bytes, connections kept open.

While the clock runs the driver reads until a response is complete and posts the next call; every answer is parsed and
checked afterwards. Nothing here can hang: every wait on a socket has the deadline of the server process.
"""

import select
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns, process_time, sleep

from driver import (
    CORES,
    DriverError,
    Memory,
    before_others,
    clean_environment,
    memory_of,
    no_garbage_collection,
    on_server_core,
    until_steady,
    waited_for_core,
)
from http_connection import Connection
from http_loads import Load, Talk, calls
from http_messages import MAX_POSTS_PER_SECOND, ROUNDS, AskedCall, check_asked
from messages import STATELESS
from open_loop import Paced

CONNECTIONS = 16
_START_SECONDS = 20.0
_WARM_UP_CALLS = 30_000
# Before the rate is looked at: a server that compiles itself while it runs is slow for its first thousands of calls.
_FIRST_CALLS = 3_000
_FIRST_SECONDS = 4.0
_LEAD_SECONDS = 0.05


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class HttpDriver:
    """One server process on a port and the connections to it. Use as a context manager."""

    def __init__(self, command: Sequence[str], cwd: Path, deadline_seconds: float) -> None:
        self.port = _free_port()
        self._deadline = perf_counter() + deadline_seconds
        self._deadline_seconds = deadline_seconds
        self._connections: list[Connection] = []
        self._load = Load(_unprepared, _unchecked)
        self._next = 0  # calls of this load so far: the number of the next one is one more
        self._block: Iterator[bytes] = iter(())
        self.busy = 0.0  # the driver's own share of the time of the last block
        with on_server_core():
            self._child = subprocess.Popen(
                [*command, str(self.port)],
                cwd=cwd,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def __enter__(self) -> "HttpDriver":
        try:
            self._connections.append(self._first_connection())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.socket.close()
        self._child.kill()
        self._child.wait()

    def begin(self, talk: Talk, connections: int = CONNECTIONS) -> None:
        """A new set of connections, with calls of its own, of which the first has the number 1."""
        for connection in self._connections[connections:]:
            connection.socket.close()
        del self._connections[connections:]
        while len(self._connections) < connections:
            self._connections.append(Connection(self.port, self._deadline_seconds))
        self._renew()
        self._load = talk(self.port, self.exchange)
        self._next = 0

    def _renew(self) -> None:
        """Some servers close what is quiet for five seconds, and others had their turns meanwhile."""
        for place, connection in enumerate(self._connections):
            if connection.is_closed():
                connection.socket.close()
                self._connections[place] = Connection(self.port, self._deadline_seconds)

    def exchange(self, request: bytes) -> bytes:
        return self._connections[0].exchange(request)

    def memory(self) -> Memory:
        return memory_of(self._child.pid)

    def _first_connection(self) -> Connection:
        end = perf_counter() + _START_SECONDS
        while perf_counter() < end:
            if self._child.poll() is not None:
                raise DriverError(f"the server ended by itself with exit code {self._child.returncode}")
            try:
                return Connection(self.port, self._deadline_seconds)
            except ConnectionRefusedError:
                sleep(0.02)
        raise DriverError(f"the server does not listen after {_START_SECONDS:.0f} s")

    # ---- many calls at once ----

    def warm_up(self, block_seconds: float, first_calls: int = _FIRST_CALLS) -> None:
        last = self._next + _WARM_UP_CALLS
        end = perf_counter() + _FIRST_SECONDS
        while self._next < first_calls and perf_counter() < end:
            self.per_second(block_seconds)
        until_steady(lambda: self.per_second(block_seconds) if self._next < last else None)

    def per_second(self, seconds: float) -> float:
        """Calls per second with one call under way on every connection."""
        self._renew()
        first = self._next
        self._block = self._prepare(seconds)
        responses: list[bytes] = []
        with no_garbage_collection():
            used = process_time()
            elapsed = self._keep_busy(responses, seconds)
            self.busy = (process_time() - used) / elapsed
        self._load.check(responses, first + 1, self._next - first)
        return len(responses) / elapsed

    def reaches(self, seconds: float) -> float:
        """The same under the conditions of `paced`."""
        with before_others(self._child.pid):
            return self.per_second(seconds)

    def _prepare(self, seconds: float) -> Iterator[bytes]:
        """The next calls, more than can be made in so long."""
        count = max(1, int(seconds * MAX_POSTS_PER_SECOND))
        return iter(self._load.posts(range(self._next + 1, self._next + count + 1)))

    def _keep_busy(self, responses: list[bytes], seconds: float) -> float:
        poll = select.epoll()
        waiting = {connection.socket.fileno(): connection for connection in self._connections}
        for number in waiting:
            poll.register(number, select.EPOLLIN)
        started = perf_counter()
        for number, connection in list(waiting.items()):
            if not self._post(connection, started + seconds):
                del waiting[number]
        if not waiting:
            raise DriverError(f"no call was made within {seconds:g} s")
        try:
            self._serve(poll, waiting, responses, started + seconds)
        finally:
            poll.close()
        return perf_counter() - started

    def _serve(self, poll: select.epoll, waiting: dict[int, Connection], responses: list[bytes], end: float) -> None:
        while waiting:
            ready = poll.poll(max(0.0, self._deadline - perf_counter()))  # below zero it would wait for ever
            if not ready:
                raise DriverError(f"no answer within {self._deadline_seconds:.0f} s")
            for number, _ in ready:
                connection = waiting[number]
                response = connection.read()
                if response is not None:
                    responses.append(response)
                    if not self._post(connection, end):
                        del waiting[number]

    def _post(self, connection: Connection, end: float) -> bool:
        """Post the next call, unless the block is over."""
        request = next(self._block, None) if perf_counter() < end else None
        if request is None:
            return False
        connection.socket.sendall(request)
        self._next += 1
        return True

    def paced(self, rate: float, seconds: float) -> Paced:
        """Calls at this rate for so long, behind as many as lead in: the server has rested, and its caches are cold."""
        self._renew()
        first, lead = self._next, int(rate * _LEAD_SECONDS)
        count = lead + max(1, int(rate * seconds))
        posts = self._load.posts(range(first + 1, first + count + 1))
        paced = Paced(self._connections, posts, rate, self._deadline, own_core=CORES is not None)
        before = waited_for_core(self._child.pid)
        with before_others(self._child.pid) as paced.first:
            paced.run()
        paced.waited_for_core = waited_for_core(self._child.pid) - before
        self._next += count
        self._load.check(paced.responses, first + 1, count)
        del paced.taken[:lead], paced.late[:lead]
        return paced

    # ---- a call that asks ----

    def asking_in_plain_calls(self, seconds: float) -> float:
        """The median time of a call with two questions, in median times of a plain call; both turn by turn."""
        self.begin(calls(STATELESS), 1)
        connection, call = self._connections[0], AskedCall(self.port)
        plain: list[int] = []
        asked: list[int] = []
        kept: list[list[bytes]] = []
        sums: list[bytes] = []
        first, posts = self._next, self._prepare(seconds)
        with no_garbage_collection():
            end = perf_counter() + seconds
            while perf_counter() < end and (request := next(posts, None)) is not None:
                started = perf_counter_ns()
                sums.append(connection.exchange(request))
                between = perf_counter_ns()
                kept.append(_ask(connection, call))
                plain.append(between - started)
                asked.append(perf_counter_ns() - between)
                self._next += 1
        self._load.check(sums, first + 1, len(sums))
        for responses in kept:
            check_asked(responses)
        return median(asked) / median(plain)


def _ask(connection: Connection, call: AskedCall) -> list[bytes]:
    responses: list[bytes] = []
    response = b""
    for number in range(ROUNDS):
        response = connection.exchange(call.request(number, response))
        responses.append(response)
    return responses


def _unprepared(numbers: range) -> list[bytes]:
    raise DriverError("nothing was said about what is to be posted")


def _unchecked(responses: list[bytes], first: int, count: int) -> None:
    raise DriverError("nothing was said about what is to be posted")
