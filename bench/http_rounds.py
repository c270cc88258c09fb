"""The measures over HTTP: how many calls, how long one takes at a given rate, with progress, and with questions."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median

from awake import server_core_awake
from http_driver import CONNECTIONS, HttpDriver
from http_loads import Talk, calls, nothing, slow_calls
from messages import HANDSHAKE, STATELESS, Era
from open_loop import HalfRate, Paced, p99
from peers import REPOSITORY, SERVERS, Contestant, interlock_over_http
from rounds import ROUND_SECONDS, SERVER_SECONDS, Rounds
from samples import Key
from turns import Guest, Turns

MANY = 128
PACED_CONNECTIONS = MANY // 2
_NAMES = {STATELESS: "http", HANDSHAKE: "http-session"}
_PACED = ("interlock", "empty-asgi")  # at the same rate: ours, and what HTTP alone takes


def _told(runs: list[Paced], awake: str, middle: float) -> str:
    taken = [seconds for run in runs for seconds in run.taken]
    rates, late = [run.rate for run in runs], [seconds for run in runs for seconds in run.late]
    still, waited = sum(run.stood_still for run in runs), sum(run.waited_for_core for run in runs)
    rank = "before" if all(run.first for run in runs) else "among"
    return (
        f"{len(taken):,} calls in {len(runs)} windows at {min(rates):,.0f} - {max(rates):,.0f} a second; "
        f"p99 of the middle window {middle:,.0f} µs, of all calls {p99(taken):,.0f} µs; 99 % sent at "
        f"most {p99(late):,.0f} µs late; the driver stood still for {still * 1e3:,.0f} ms, the server, {rank} all "
        f"others on its core, {f'kept from resting {awake}' if awake else 'which also rested'}, waited for it for "
        f"{waited * 1e3:,.0f} ms"
    )


def _talk(contestant: Contestant, era: Era) -> Talk:
    return nothing(era) if contestant.group == "null" else calls(era)


class OverHttp(Rounds):
    def run(self) -> None:
        rounds = {STATELESS: self._plan.http_rounds, HANDSHAKE: self._plan.session_rounds}
        for number in range(max(*rounds.values(), self._plan.paced_rounds)):
            for era in rounds:
                if _NAMES[era] in self._wanted and number < rounds[era]:
                    self._tell(f"http round {number + 1}, {era.name}")
                    self._rates(era, number)
                if "p99" in self._wanted and number < self._plan.paced_rounds:
                    self._tell(f"p99 round {number + 1}, {era.name}")
                    self._pace(era, number)
        if "progress" in self._wanted:
            self._progress_rounds()
        if "asking" in self._wanted:
            self._asking_rounds()

    # ---- plain calls ----

    def _rates(self, era: Era, number: int) -> None:
        """All servers at once, taking turns."""
        keys = {who.name: [self._key(who.name, era, many) for many in (CONNECTIONS, MANY)] for who in self._contestants}
        with ExitStack() as stack:
            turns = self._turns(stack, self._contestants, era, _NAMES[era], keys)
            for connections in (CONNECTIONS, MANY):
                self._rate(turns, era, number, connections)

    def _turns(
        self, stack: ExitStack, contestants: list[Contestant], era: Era, measure: str, keys: dict[str, list[Key]]
    ) -> Turns:
        """The servers of these, up and warm."""

        def attempt(contestant: Contestant, act: Callable[[], None]) -> bool:
            return self._attempt((measure, contestant.name, era.name), keys[contestant.name], act)

        turns = Turns(stack, lambda guest, act: attempt(guest.contestant, act))
        for contestant in contestants:
            if (command := contestant.over_http(era)) is not None:
                attempt(contestant, lambda who=contestant, command=command: self._start(turns, who, era, command))
        return turns

    def _key(self, name: str, era: Era, connections: int) -> Key:
        return Key(_NAMES[era], name, f"{era.name} × {connections}")

    def _start(self, turns: Turns, contestant: Contestant, era: Era, command: Sequence[str]) -> None:
        driver = HttpDriver(command, REPOSITORY, ROUND_SECONDS)
        with turns.welcome(contestant, era, driver):
            driver.begin(_talk(contestant, era))
            driver.warm_up(self._plan.warm_up_block_seconds)

    def _rate(self, turns: Turns, era: Era, number: int, connections: int) -> None:
        seconds = self._plan.window_seconds
        turns.each(turns.guests, lambda guest: guest.driver.begin(_talk(guest.contestant, era), connections))
        busy = self.samples.facts["share of the http measures in which the driver itself was busy"]
        for guest, rate in turns.take(turns.guests, self._plan.windows, lambda driver: driver.per_second(seconds)):
            key = self._key(guest.contestant.name, era, connections)
            self.samples.add(key, number, rate)
            busy[f"{guest.contestant.name} {key.era}"] = f"{guest.driver.busy:.0%}"

    # ---- plain calls at a given rate ----

    def _pace(self, era: Era, number: int) -> None:
        """Only these two are up: servers at rest still wake ten times a second, and one call in a hundred decides."""
        contestants = [contestant for contestant in self._contestants if contestant.name in _PACED]
        keys = {name: [Key("p99", name, era.name)] for name in _PACED}
        with ExitStack() as stack:
            turns = self._turns(stack, contestants, era, "p99", keys)
            awake = stack.enter_context(server_core_awake())
            runs: dict[str, list[Paced]] = {guest.contestant.name: [] for guest in turns.guests}
            self._pace_turns(turns, era, runs)
        if any(len(runs.get(name, ())) != self._plan.paced_windows for name in _PACED):
            return  # what one of them took means nothing alone
        for name, mine in runs.items():
            self._keep_paced(Key("p99", name, era.name), number, mine, awake)

    def _keep_paced(self, key: Key, number: int, mine: list[Paced], awake: str) -> None:
        middle = median(p99(run.taken) for run in mine)
        self.samples.add(key, number, middle)
        facts = self.samples.facts["the p99 measure, by rounds"]
        facts[f"{key.contestant} {key.era}, round {number + 1}"] = _told(mine, awake, middle)

    def _pace_turns(self, turns: Turns, era: Era, runs: dict[str, list[Paced]]) -> None:
        """At half of what Interlock reaches just before over as many connections, whoever is asked: this machine
        loses a third of its speed within seconds, and half of what it was a minute ago may be all there is."""
        plan, ours, half = self._plan, turns.of(_PACED[0]), HalfRate()

        def take(guest: Guest) -> None:
            runs[guest.contestant.name].append(guest.driver.paced(half.rate, plan.paced_seconds))

        turns.each(turns.guests, lambda guest: guest.driver.begin(_talk(guest.contestant, era), PACED_CONNECTIONS))
        for _ in range(plan.paced_windows):
            turns.each(ours, lambda guest: half.tried(guest.driver.reaches(plan.reach_seconds)))
            if not half.known or any(guest.failed for guest in turns.guests):
                return  # there is no rate to compare at, or nobody to compare with
            turns.each(turns.guests[::-1], take)  # ours last: the load just before must not keep it warm

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
