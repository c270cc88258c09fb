"""Clients over HTTP: each calls the same server, ours, from the driver's core."""

import probes
from http_driver import HttpDriver
from messages import STATELESS, Era
from peers import REPOSITORY, SERVERS, Contestant, interlock_over_http
from rounds import SERVER_SECONDS, Rounds
from samples import Key

AT_ONCE = 16
_MEASURES = {"client": 1, "client-16": AT_ONCE}


class Clients(Rounds):
    def run(self) -> None:
        wanted = {name: count for name, count in _MEASURES.items() if name in self._wanted}
        for number in range(self._plan.client_rounds if wanted else 0):
            self._tell(f"client round {number + 1}")
            for name, at_once in wanted.items():
                self._round(name, at_once, number)

    def _round(self, name: str, at_once: int, number: int) -> None:
        for contestant in self._in_python():
            for era in contestant.eras if contestant.in_python and contestant.in_python.dials else ():
                key = Key(name, contestant.name, era.name)
                self._attempt(
                    (name, contestant.name, era.name),
                    [key],
                    lambda c=contestant, e=era, k=key: self._call(c, e, k, number, at_once),
                )

    def _call(self, contestant: Contestant, era: Era, key: Key, number: int, at_once: int) -> None:
        command = interlock_over_http(SERVERS / "interlock_server.py")
        with HttpDriver(command, REPOSITORY, SERVER_SECONDS) as driver:
            url = f"http://127.0.0.1:{driver.port}/mcp"
            rate = probes.client_per_second(contestant, url, era is STATELESS, at_once, self._plan.client_seconds)
            self.samples.add(key, number, rate)
