"""How long calls take at a rate that is given: each is due at its time, whether those before it are answered or not.

The time of a call begins when it should have been sent. So a server that stands still for a moment is charged for
every call that was due in that moment, not only for the one it held up. When the driver itself stands still, because
its core runs something else, nobody sends: what was due then is due as much later. Otherwise the server would be
charged for the driver's rest, and met by a burst behind it.
"""

import select
from collections import deque
from time import perf_counter

from driver import STANDSTILL_SECONDS, DriverError, no_garbage_collection
from http_connection import Connection


class Paced:
    """One such run over connections that are open and idle."""

    def __init__(self, connections: list[Connection], posts: list[bytes], rate: float, deadline: float) -> None:
        self._free = deque(connections)
        self._by_number = {connection.socket.fileno(): connection for connection in connections}
        self._posts = posts
        self._rate = rate
        self._deadline = deadline
        self._due: dict[int, float] = {}
        self._started = self._looked = 0.0
        self.responses: list[bytes] = []
        self.taken: list[float] = []
        self.late: list[float] = []
        """How late each was sent: a step of the driver, or as long as there was no free connection."""
        self.stood_still = 0.0

    def run(self) -> None:
        poll = select.epoll()
        try:
            for number in self._by_number:
                poll.register(number, select.EPOLLIN)
            with no_garbage_collection():
                self._run(poll)
        finally:
            poll.close()

    def _run(self, poll: select.epoll) -> None:
        sent, count = 0, len(self._posts)
        self._started = self._looked = perf_counter()
        while len(self.taken) < count:
            if self._look() > self._deadline:
                raise DriverError(f"{count - len(self.taken)} of {count} calls were not answered in time")
            while sent < count and self._free and self._look() >= (due := self._started + sent / self._rate):
                self._send(self._posts[sent], due)
                sent += 1
            for number, _ in poll.poll(0):  # its shortest wait would be a millisecond: a dozen calls are due in that
                self._read(number)

    def _look(self) -> float:
        """At the clock; a standstill since the last look moves the times of all calls that are not sent yet."""
        now = perf_counter()
        if now - self._looked > STANDSTILL_SECONDS:
            self._started += now - self._looked
            self.stood_still += now - self._looked
        self._looked = now
        return now

    def _send(self, post: bytes, due: float) -> None:
        connection = self._free.popleft()
        self.late.append(self._looked - due)
        self._due[connection.socket.fileno()] = due
        connection.socket.sendall(post)

    def _read(self, number: int) -> None:
        connection = self._by_number[number]
        response = connection.read()
        if response is not None:
            self.taken.append(self._look() - self._due[number])
            self.responses.append(response)
            self._free.append(connection)


def p99(seconds: list[float]) -> float:
    """In microseconds."""
    return sorted(seconds)[(len(seconds) * 99) // 100] * 1e6
