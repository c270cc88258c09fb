"""What a session and a stream cost while nothing happens on them: memory of a server that holds thousands of them."""

import json
import resource
import sys
from collections.abc import Callable

from driver import DriverError
from http_connection import Connection
from http_driver import HttpDriver
from http_loads import open_session
from http_messages import listen_post
from peers import REPOSITORY, SERVERS, Contestant
from rounds import SERVER_SECONDS, Rounds

_FIRST = 200  # held before the memory is read for the first time: what grows only once has grown then
_SPARE = 200  # descriptors for everything else


class Holding(Rounds):
    def run(self) -> None:
        for name, hold in (("idle-session", _sessions), ("idle-listen", _streams)):
            if name in self._wanted:
                self._tell(name)
                for contestant in self._in_python():
                    if contestant.is_ours:
                        self._attempt_one(name, contestant, lambda c=contestant, n=name, h=hold: self._hold(n, c, h))

    def _hold(self, name: str, contestant: Contestant, hold: Callable[[HttpDriver, int], list[Connection]]) -> None:
        allow_files(self._plan.held + _FIRST + _SPARE)
        held: list[Connection] = []
        with HttpDriver((sys.executable, str(SERVERS / "holding_server.py")), REPOSITORY, SERVER_SECONDS) as driver:
            try:
                held += hold(driver, _FIRST)
                before = driver.memory().rss_mb
                held += hold(driver, self._plan.held)
                grown = driver.memory().rss_mb - before
            finally:
                for connection in held:
                    connection.socket.close()
        self._keep(name, contestant, 0, grown * 1024 * 1.024 / self._plan.held)
        self.samples.facts["held at once in the idle measures"][name] = f"{self._plan.held + _FIRST:,}"


def _sessions(driver: HttpDriver, count: int) -> list[Connection]:
    for _ in range(count):
        open_session(driver.port, driver.exchange)
    return []


def _streams(driver: HttpDriver, count: int) -> list[Connection]:
    """Each on a connection of its own, open as long as that is, and acknowledged."""
    opened: list[Connection] = []
    for _ in range(count):
        connection = Connection(driver.port, SERVER_SECONDS)
        opened.append(connection)
        connection.socket.sendall(listen_post(driver.port))
        came = b""
        while b"\n\n" not in came.partition(b"data:")[2]:
            more = connection.socket.recv(1 << 16)
            if not more:
                raise DriverError(f"a stream ended at once: {came[:160]!r}")
            came += more
        _check_acknowledged(came)
    return opened


def _check_acknowledged(came: bytes) -> None:
    said = came.partition(b"data:")[2].partition(b"\n\n")[0]
    if json.loads(said).get("method") != "notifications/subscriptions/acknowledged":
        raise DriverError(f"no stream of change notices: {came[:160]!r}")


def allow_files(count: int) -> None:
    """So many descriptors for us and for the servers we start; the system may refuse."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            raise DriverError(f"{count} open files are needed, the system allows {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
