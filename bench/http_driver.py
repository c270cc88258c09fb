"""One raw HTTP driver for every contestant: no SDK, plain sockets, prepared bytes, connections kept open.

While the clock runs the driver reads until a response is complete and posts the next call; every answer is parsed and
checked afterwards. Nothing here can hang: every wait on a socket has the deadline of the server process.
"""

import select
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns, process_time, sleep

from driver import DriverError, clean_environment, no_garbage_collection, on_server_core, until_steady
from http_messages import ROUNDS, AskedCall, check_asked, is_complete, messages_of, prepared_posts
from messages import STATELESS, WrongAnswer, check_answers

CONNECTIONS = 16
_READ_SIZE = 1 << 16
_START_SECONDS = 20.0
_WARM_UP_CALLS = 30_000
# Before the rate is looked at: a server that compiles itself while it runs is slow for its first thousands of calls.
_FIRST_CALLS = 3_000
_FIRST_SECONDS = 4.0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class _Connection:
    """A socket and what has come of the response it waits for."""

    def __init__(self, port: int, seconds: float) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.came = b""

    def read(self) -> bytes | None:
        """The response, once all of it has come."""
        data = self.socket.recv(_READ_SIZE)
        if not data:
            raise DriverError("the server closed a connection")
        self.came += data
        if not is_complete(self.came):
            return None
        whole, self.came = self.came, b""
        return whole

    def exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        while (response := self.read()) is None:
            pass
        return response


class HttpDriver:
    """One server process on a port and the connections to it. Use as a context manager."""

    def __init__(self, command: Sequence[str], cwd: Path, deadline_seconds: float) -> None:
        self.port = _free_port()
        self._deadline = perf_counter() + deadline_seconds
        self._deadline_seconds = deadline_seconds
        self._connections: list[_Connection] = []
        self._posts = prepared_posts(self.port)
        self._next = 0
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
            while len(self._connections) < CONNECTIONS:
                self._connections.append(_Connection(self.port, self._deadline_seconds))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.socket.close()
        self._child.kill()
        self._child.wait()

    def _first_connection(self) -> _Connection:
        end = perf_counter() + _START_SECONDS
        while perf_counter() < end:
            if self._child.poll() is not None:
                raise DriverError(f"the server ended by itself with exit code {self._child.returncode}")
            try:
                return _Connection(self.port, self._deadline_seconds)
            except ConnectionRefusedError:
                sleep(0.02)
        raise DriverError(f"the server does not listen after {_START_SECONDS:.0f} s")

    # ---- many calls at once ----

    def warm_up(self, block_seconds: float, *, fixed: bool) -> None:
        last = self._next + _WARM_UP_CALLS
        end = perf_counter() + _FIRST_SECONDS
        while self._next < _FIRST_CALLS and perf_counter() < end:
            self.per_second(block_seconds, fixed=fixed)
        until_steady(lambda: self.per_second(block_seconds, fixed=fixed) if self._next < last else None)

    def per_second(self, seconds: float, *, fixed: bool) -> float:
        """Calls per second with one call under way on every connection. `fixed`: all answers are the same bytes."""
        first = self._next
        responses: list[bytes] = []
        with no_garbage_collection():
            used = process_time()
            elapsed = self._keep_busy(responses, seconds)
            self.busy = (process_time() - used) / elapsed
        if fixed:
            _check_fixed(responses, self._next - first)
        else:
            check_answers(messages_of(responses), first + 1, self._next - first, STATELESS)
        return len(responses) / elapsed

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
            raise DriverError("no prepared calls left")
        try:
            self._serve(poll, waiting, responses, started + seconds)
        finally:
            poll.close()
        return perf_counter() - started

    def _serve(self, poll: select.epoll, waiting: dict[int, _Connection], responses: list[bytes], end: float) -> None:
        while waiting:
            ready = poll.poll(self._deadline - perf_counter())
            if not ready:
                raise DriverError(f"no answer within {self._deadline_seconds:.0f} s")
            for number, _ in ready:
                connection = waiting[number]
                response = connection.read()
                if response is not None:
                    responses.append(response)
                    if not self._post(connection, end):
                        del waiting[number]

    def _post(self, connection: _Connection, end: float) -> bool:
        """Post the next call, unless the block is over."""
        if self._next >= len(self._posts) or perf_counter() >= end:
            return False
        connection.socket.sendall(self._posts[self._next])
        self._next += 1
        return True

    # ---- a call that asks ----

    def asking_in_plain_calls(self, seconds: float) -> float:
        """The median time of a call with two questions, in median times of a plain call; both turn by turn."""
        connection, call = self._connections[0], AskedCall(self.port)
        plain: list[int] = []
        asked: list[int] = []
        kept: list[list[bytes]] = []
        sums: list[bytes] = []
        first, end = self._next, perf_counter() + seconds
        with no_garbage_collection():
            while perf_counter() < end and self._next < len(self._posts):
                started = perf_counter_ns()
                sums.append(connection.exchange(self._posts[self._next]))
                between = perf_counter_ns()
                kept.append(_ask(connection, call))
                plain.append(between - started)
                asked.append(perf_counter_ns() - between)
                self._next += 1
        check_answers(messages_of(sums), first + 1, len(sums), STATELESS)
        for responses in kept:
            check_asked(responses)
        return median(asked) / median(plain)


def _ask(connection: _Connection, call: AskedCall) -> list[bytes]:
    responses: list[bytes] = []
    response = b""
    for number in range(ROUNDS):
        response = connection.exchange(call.request(number, response))
        responses.append(response)
    return responses


def _check_fixed(responses: list[bytes], count: int) -> None:
    if len(responses) != count or len(set(messages_of(responses))) != 1:
        raise WrongAnswer(f"{len(responses)} of {count} calls were answered, not all with the same bytes")
