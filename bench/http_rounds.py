"""The measures over HTTP: how many calls, how long one takes at a given rate, with progress, and with questions."""

from http_driver import CONNECTIONS, HttpDriver
from http_loads import Talk, calls, nothing, slow_calls
from messages import HANDSHAKE, STATELESS, Era
from peers import REPOSITORY, SERVERS, Contestant, interlock_over_http
from rounds import SERVER_SECONDS, Rounds
from samples import Key

MANY = 128
_NAMES = {STATELESS: "http", HANDSHAKE: "http-session"}
_PACED = ("interlock", "empty-asgi")  # at the same rate: ours, and what HTTP alone takes


def _talk(contestant: Contestant, era: Era) -> Talk:
    return nothing(era) if contestant.group == "null" else calls(era)


class OverHttp(Rounds):
    def run(self) -> None:
        rounds = {STATELESS: self._plan.http_rounds, HANDSHAKE: self._plan.session_rounds}
        for number in range(max(rounds.values())):
            for era in rounds:
                if number < rounds[era] and self._wanted & {_NAMES[era], "p99"}:
                    self._tell(f"http round {number + 1}, {era.name}")
                    self._round(era, number)
        if "progress" in self._wanted:
            self._progress_rounds()
        if "asking" in self._wanted:
            self._asking_rounds()

    # ---- plain calls ----

    def _round(self, era: Era, number: int) -> None:
        """Interlock comes first: half of what it did in this round is the rate for all."""
        rates: list[float] = []
        for contestant in self._contestants:
            paced = "p99" in self._wanted and contestant.name in _PACED
            if contestant.over_http(era) is not None and (_NAMES[era] in self._wanted or paced):
                self._attempt(
                    (_NAMES[era], contestant.name, era.name),
                    self._keys(contestant, era, paced),
                    lambda c=contestant, p=paced: self._visit(c, era, number, rates if p else None),
                )

    def _keys(self, contestant: Contestant, era: Era, paced: bool) -> list[Key]:
        keys = [Key("p99", contestant.name, era.name)] if paced else []
        if _NAMES[era] in self._wanted:
            keys += [self._key(contestant, era, connections) for connections in (CONNECTIONS, MANY)]
        return keys

    def _key(self, contestant: Contestant, era: Era, connections: int) -> Key:
        return Key(_NAMES[era], contestant.name, f"{era.name} × {connections}")

    def _visit(self, contestant: Contestant, era: Era, number: int, rates: list[float] | None) -> None:
        """One server process; `rates` where it is also to show how long calls take."""
        command, talk = contestant.over_http(era), _talk(contestant, era)
        assert command is not None
        with HttpDriver(command, REPOSITORY, SERVER_SECONDS) as driver:
            driver.begin(talk)
            driver.warm_up(self._plan.warm_up_block_seconds)
            rate = self._rate(driver, contestant, era, number, CONNECTIONS)
            if _NAMES[era] in self._wanted:
                driver.begin(talk, MANY)
                driver.per_second(self._plan.warm_up_block_seconds)
                self._rate(driver, contestant, era, number, MANY)
            if rates is not None:
                driver.begin(talk, MANY // 2)
                self._pace(driver, contestant, era, number, rates, rate)

    def _rate(self, driver: HttpDriver, contestant: Contestant, era: Era, number: int, connections: int) -> float:
        seconds = self._plan.http_seconds if connections == CONNECTIONS else self._plan.wide_seconds
        rate = driver.per_second(seconds)
        if _NAMES[era] in self._wanted:
            key = self._key(contestant, era, connections)
            self.samples.add(key, number, rate)
            busy = self.samples.facts["share of the http measures in which the driver itself was busy"]
            busy[f"{contestant.name} {key.era}"] = f"{driver.busy:.0%}"
        return rate

    def _pace(
        self, driver: HttpDriver, contestant: Contestant, era: Era, number: int, rates: list[float], rate: float
    ) -> None:
        if contestant.is_ours:
            rates.append(rate / 2)
        if not rates:
            return  # ours failed: there is no rate to compare at
        driver.p99_us(rates[0], self._plan.paced_seconds / 4)
        taken, late = driver.p99_us(rates[0], self._plan.paced_seconds)
        self.samples.add(Key("p99", contestant.name, era.name), number, taken)
        sent = self.samples.facts["rate of the p99 measure, and how late the driver sent 99 % of its calls at most"]
        sent[f"{contestant.name} {era.name}"] = f"{rates[0]:,.0f} calls/s, {late:,.0f} µs"

    # ---- calls with progress ----

    def _progress_rounds(self) -> None:
        for number in range(self._plan.progress_rounds):
            self._tell(f"progress round {number + 1}")
            for contestant in self._contestants:
                for era in contestant.eras if contestant.progress_command is not None else ():
                    self._attempt(
                        ("progress", contestant.name, era.name),
                        [Key("progress", contestant.name, era.name)],
                        lambda c=contestant, e=era, n=number: self._progress(c, e, n),
                    )

    def _progress(self, contestant: Contestant, era: Era, number: int) -> None:
        assert contestant.progress_command is not None
        with HttpDriver(contestant.progress_command, REPOSITORY, SERVER_SECONDS) as driver:
            driver.begin(slow_calls(era))
            driver.warm_up(self._plan.warm_up_block_seconds, first_calls=300)
            rate = driver.per_second(self._plan.progress_seconds)
            self.samples.add(Key("progress", contestant.name, era.name), number, rate)

    # ---- calls that ask ----

    def _asking_rounds(self) -> None:
        for number in range(self._plan.asking_rounds):
            self._tell(f"asking round {number + 1}")
            for contestant in self._in_python():
                if contestant.is_ours:
                    self._attempt_one("asking", contestant, lambda c=contestant, n=number: self._ask(c, n))

    def _ask(self, contestant: Contestant, number: int) -> None:
        command = interlock_over_http(SERVERS / "asking_server.py")
        with HttpDriver(command, REPOSITORY, SERVER_SECONDS) as driver:
            driver.asking_in_plain_calls(self._plan.warm_up_block_seconds)
            self._keep("asking", contestant, number, driver.asking_in_plain_calls(self._plan.asking_seconds))
