"""How long calls take at a rate that is given: each is due at its time, whether those before it are answered or not.

The time of a call begins when it should have been sent. So a server that stands still for a moment is charged for
every call that was due in that moment, not only for the one it held up. When the driver itself stands still, because
its core runs something else, nobody sends: what became due then is due as much later. Otherwise the server would be
charged for the driver's rest, and met by a burst behind it. Calls under way are charged nevertheless, and nothing
moves while calls are overdue because the server holds every connection.
"""

import select
from collections import deque
from statistics import median
from time import perf_counter

from driver import DriverError, no_garbage_collection
from http_connection import Connection

LAST_TRIES = 3  # of which the middle counts: a single one may have met a bad moment
STANDSTILL_SECONDS = 2e-4  # between two looks at the clock: one step of the driver takes a tenth of it


class Paced:
    """One such run over connections that are open and idle. A driver that shares its core with the server cannot tell
    a rest of its own from the server's work: then nothing moves."""

    def __init__(
        self, connections: list[Connection], posts: list[bytes], rate: float, deadline: float, *, own_core: bool
    ) -> None:
        self._free = deque(connections)
        self._by_number = {connection.socket.fileno(): connection for connection in connections}
        self._posts = posts
        self._deadline = deadline
        self._own_core = own_core
        self._under_way: dict[int, int] = {}
        self._due: list[float] = []
        self._started = self._looked = 0.0
        self.rate = rate
        self.responses: list[bytes] = []
        self.taken = [0.0] * len(posts)
        self.late: list[float] = []
        """How late each was sent: a step of the driver, or as long as there was no free connection."""
        self.stood_still = 0.0
        self.waited_for_core = 0.0
        """How long the server did, from whoever knows its process."""
        self.first = False
        """Did the server get its core before everything else there?"""

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
        count = len(self._posts)
        self._started = self._looked = perf_counter()
        while len(self.responses) < count:
            if self._look() > self._deadline:
                raise DriverError(f"{count - len(self.responses)} of {count} calls were not answered in time")
            while len(self._due) < count and self._free and self._look() >= self._next_due():
                self._send()
            for number, _ in poll.poll(0):  # its shortest wait would be a millisecond: a dozen calls are due in that
                self._read(number)

    def _next_due(self) -> float:
        return self._started + len(self._due) / self.rate

    def _look(self) -> float:
        """At the clock. A standstill since the last look moves all calls to come, if none was overdue by then."""
        now = perf_counter()
        gap, behind = now - self._looked, self._looked - self._next_due()
        if gap > STANDSTILL_SECONDS:
            self.stood_still += gap
            if self._own_core and behind < STANDSTILL_SECONDS:
                self._started += gap
        self._looked = now
        return now

    def _send(self) -> None:
        call, connection = len(self._due), self._free.popleft()
        self._under_way[connection.socket.fileno()] = call
        self._due.append(self._next_due())
        self.late.append(self._looked - self._due[call])
        connection.socket.sendall(self._posts[call])

    def _read(self, number: int) -> None:
        connection = self._by_number[number]
        response = connection.read()
        now = self._look()
        if response is not None:
            call = self._under_way.pop(number)
            self.taken[call] = now - self._due[call]
            self.responses.append(response)
            self._free.append(connection)


class HalfRate:
    """Half of what a server reaches, by the median of its last tries."""

    def __init__(self) -> None:
        self._tries: deque[float] = deque(maxlen=LAST_TRIES)

    def tried(self, reached: float) -> None:
        self._tries.append(reached)

    @property
    def known(self) -> bool:
        return bool(self._tries)

    @property
    def rate(self) -> float:
        return median(self._tries) / 2


def p99(seconds: list[float]) -> float:
    """In microseconds."""
    return sorted(seconds)[(len(seconds) * 99) // 100] * 1e6
