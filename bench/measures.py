"""The measures and their order: in every round each contestant has its turn, A-B-C-A-B-C."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

import probes
from client_rounds import AT_ONCE, Clients
from driver import Driver
from holding import Holding
from host_rounds import Hosts
from http_driver import CONNECTIONS
from http_rounds import MANY, OverHttp
from messages import HANDSHAKE, Era, listing
from peers import REPOSITORY, SERVERS, Contestant
from rounds import ROUND_SECONDS, SERVER_SECONDS, Rounds
from samples import Key
from turns import Turns


@dataclass(frozen=True)
class Measure:
    name: str
    title: str
    unit: str
    higher_is_better: bool
    digits: int = 1


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("pipelined", "stdio tools/call, 64 in flight", "calls/s", True, 0),
        Measure("sequential", "stdio tools/call, one at a time, p50", "µs", False, 0),
        Measure("cold", "cold start: spawn to the first call's answer", "ms", False, 0),
        Measure("memory", "resident memory (VmRSS)", "MB", False),
        Measure("memory-pss", "proportional memory (PSS)", "MB", False),
        Measure(
            "import",
            "import of server and client, less a bare interpreter; teardown not counted",
            "ms",
            False,
            0,
        ),
        Measure("in-memory", "in-memory client, one call at a time", "calls/s", True, 0),
        Measure("killed", "server killed in mid-call, until the caller's exception", "ms", False),
        Measure("http", f"HTTP tools/call, {CONNECTIONS} and {MANY} connections kept open", "calls/s", True, 0),
        Measure("http-session", "the same in a session of the handshake era", "calls/s", True, 0),
        Measure(
            "p99",
            "HTTP tools/call at half our highest rate, from when each should have been sent to its answer, p99",
            "µs",
            False,
            0,
        ),
        Measure(
            "progress",
            f"HTTP tools/call with 10 progress notifications, {CONNECTIONS} connections",
            "calls/s",
            True,
            0,
        ),
        Measure("idle-session", "memory of a session that is not used", "kB", False),
        Measure("idle-listen", "memory of a stream of change notices on which nothing is said", "kB", False),
        Measure("client", "HTTP client, one call at a time", "calls/s", True, 0),
        Measure("client-16", f"HTTP client, {AT_ONCE} calls at a time", "calls/s", True, 0),
        Measure(
            "asking",
            "HTTP tools/call with two questions one after the other (three rounds), p50",
            "plain calls",
            False,
            2,
        ),
        Measure("sync", "stdio tools/call of a plain function, 64 in flight", "async calls", False, 2),
        Measure("host", "stdio tools/call through a host that pins, decides, caps and audits", "plain calls", False, 2),
        Measure("merge", "1,000 tools of 20 servers merged into one catalogue", "listings", False, 2),
        Measure("list", "stdio tools/list of 500 tools, one at a time, p50", "µs", False, 0),
    )
}

# What --only takes; PSS is read whenever RSS is.
SELECTABLE = tuple(name for name in MEASURES if name != "memory-pss")
_OVER_STDIO = {"pipelined", "sequential", "cold", "memory"}


class Bench(Rounds):
    """One run: takes the wanted measures of the present contestants into `samples`."""

    def run(self) -> None:
        over_stdio = self._wanted & _OVER_STDIO
        for number in range(self._stdio_rounds(over_stdio)):
            self._tell(f"stdio round {number + 1}")
            self._stdio_round(number, over_stdio)
        if "import" in self._wanted:
            self._import_rounds()
        if "in-memory" in self._wanted:
            self._in_memory_rounds()
        if "killed" in self._wanted:
            self._killed()
        OverHttp(self._contestants, self._wanted, self._plan, self.samples).run()
        Holding(self._contestants, self._wanted, self._plan, self.samples).run()
        Clients(self._contestants, self._wanted, self._plan, self.samples).run()
        Hosts(self._contestants, self._wanted, self._plan, self.samples).run()
        for number in range(self._plan.author_rounds):
            self._author_round(number, self._wanted & {"sync", "list"})

    def _stdio_rounds(self, wanted: set[str]) -> int:
        rounds = [0]
        if "cold" in wanted:
            rounds.append(self._plan.cold_rounds)
        if wanted - {"cold", "memory"}:
            rounds.append(self._plan.stdio_rounds)
        if "memory" in wanted:
            rounds.append(self._plan.memory_rounds)
        return max(rounds)

    # ---- over stdio ----

    def _stdio_round(self, number: int, wanted: set[str]) -> None:
        """Each starts alone, and is warmed up; then all take turns. Memory is looked at while there is no other."""
        for contestant in self._contestants:
            for era in contestant.eras if "memory" in self._due(contestant, number, wanted) else ():
                weigh = partial(self._weigh, contestant, era, number)
                self._attempt(("memory", contestant.name, era.name), [Key("memory", contestant.name, era.name)], weigh)
        wanted = wanted - {"memory"}
        with ExitStack() as stack:
            turns = Turns(stack, lambda guest, act: self._attempt_of(guest.contestant, guest.era, number, wanted, act))
            for contestant in self._contestants:
                for era in contestant.eras if self._due(contestant, number, wanted) else ():
                    start = partial(self._start, turns, contestant, era, number, wanted)
                    self._attempt_of(contestant, era, number, wanted, start)
            self._speeds(turns, number, wanted)

    def _attempt_of(
        self, contestant: Contestant, era: Era, number: int, wanted: set[str], act: Callable[[], None]
    ) -> bool:
        due = self._due(contestant, number, wanted)
        keys = [Key(name, contestant.name, era.name) for name in sorted(due)]
        return self._attempt(("stdio", contestant.name, era.name), keys, act)

    def _due(self, contestant: Contestant, number: int, wanted: set[str]) -> set[str]:
        limits = {
            "pipelined": self._plan.stdio_rounds,
            "sequential": self._plan.stdio_rounds,
            "cold": self._plan.cold_rounds,
            "memory": self._plan.memory_rounds,
        }
        due = {name for name in wanted if number < limits[name]}
        # The null server shows the driver's ceiling; its start and its memory mean nothing.
        return due & {"pipelined", "sequential"} if contestant.group == "null" else due

    def _start(self, turns: Turns, contestant: Contestant, era: Era, number: int, wanted: set[str]) -> None:
        """One server process, from its cold start until it is warm."""
        due = self._due(contestant, number, wanted)
        driver = Driver(contestant.command, REPOSITORY, era, ROUND_SECONDS)
        with turns.welcome(contestant, era, driver):
            first_answer = driver.first_answer_ms()
            if "cold" in due:
                self.samples.add(Key("cold", contestant.name, era.name), number, first_answer)
            if due & {"pipelined", "sequential"}:
                driver.warm_up(self._plan.warm_up_block_seconds)
            self.samples.facts["bytes in an answer"][f"{contestant.name} {era.name}"] = str(driver.answer_bytes)

    def _weigh(self, contestant: Contestant, era: Era, number: int) -> None:
        """After the agreed number of calls."""
        with Driver(contestant.command, REPOSITORY, era, SERVER_SECONDS) as driver:
            driver.first_answer_ms()
            memory = driver.memory_after(self._plan.memory_calls)
        self.samples.add(Key("memory", contestant.name, era.name), number, memory.rss_mb)
        if memory.pss_mb is not None:
            self.samples.add(Key("memory-pss", contestant.name, era.name), number, memory.pss_mb)

    def _speeds(self, turns: Turns, number: int, wanted: set[str]) -> None:
        plan = self._plan
        if number >= plan.stdio_rounds:
            return
        takes: dict[str, Callable[[Driver], float]] = {
            "sequential": lambda driver: driver.sequential_p50_us(plan.sequential_seconds),
            "pipelined": lambda driver: driver.pipelined_per_second(plan.pipelined_seconds),
        }
        for name in sorted(wanted & takes.keys()):
            for guest, value in turns.take(turns.guests, plan.windows, takes[name]):
                self.samples.add(Key(name, guest.contestant.name, guest.era.name), number, value)

    # ---- without a pipe ----

    def _import_rounds(self) -> None:
        for contestant in self._in_python():
            self._attempt_one("import", contestant, lambda c=contestant: self._note_modules(c))
        for number in range(self._plan.import_rounds):
            self._tell(f"import round {number + 1}")
            for contestant in self._in_python():
                self._attempt_one(
                    "import",
                    contestant,
                    lambda c=contestant, n=number: self._keep("import", c, n, probes.import_ms(c)),
                )

    def _note_modules(self, contestant: Contestant) -> None:
        loaded = probes.modules_loaded(contestant)
        self.samples.facts["heavy modules loaded by the import"][contestant.name] = ", ".join(loaded) or "none"

    def _in_memory_rounds(self) -> None:
        for number in range(self._plan.in_memory_rounds):
            self._tell(f"in-memory round {number + 1}")
            for contestant in self._in_python():
                self._attempt_one(
                    "in-memory",
                    contestant,
                    lambda c=contestant, n=number: self._keep(
                        "in-memory", c, n, probes.in_memory_per_second(c, self._plan.in_memory_seconds)
                    ),
                )

    def _killed(self) -> None:
        self._tell("killed in mid-call")
        for contestant in self._in_python():
            if contestant.is_ours:
                self._attempt_one("killed", contestant, lambda c=contestant: self._kill_children(c))

    def _kill_children(self, contestant: Contestant) -> None:
        milliseconds, exceptions = probes.killed_child_ms(contestant, self._plan.kills)
        for number, value in enumerate(milliseconds):
            self._keep("killed", contestant, number, value)
        self.samples.facts["exception after the kill"][contestant.name] = ", ".join(exceptions)

    # ---- what authors may write ----

    def _author_round(self, number: int, wanted: set[str]) -> None:
        if wanted:
            self._tell(f"round {number + 1} of plain functions and long lists")
        for contestant in self._contestants:
            if "sync" in wanted and contestant.is_ours and contestant.list_command is not None:
                self._attempt_one("sync", contestant, lambda c=contestant: self._call_plainly(c, number))
            for era in contestant.eras if "list" in wanted and contestant.list_command is not None else ():
                key = Key("list", contestant.name, era.name)
                self._attempt(
                    ("list", contestant.name, era.name),
                    [key],
                    lambda c=contestant, e=era, k=key: self._list(c, e, k, number),
                )

    def _call_plainly(self, contestant: Contestant, number: int) -> None:
        """How many calls of an async function one of a plain function costs; two processes, which take turns."""
        plain = (*contestant.command[:-1], str(SERVERS / "sync_server.py"))
        seconds = self._plan.pipelined_seconds
        with self._warm(contestant.command) as asynchronous, self._warm(plain) as synchronous:
            drivers, ratios = (asynchronous, synchronous), list[float]()
            for _ in range(self._plan.windows):
                rates = [driver.pipelined_per_second(seconds) for driver in drivers]
                ratios.append(rates[0] / rates[1])
        self._keep("sync", contestant, number, median(ratios))

    @contextmanager
    def _warm(self, command: tuple[str, ...]) -> Iterator[Driver]:
        with Driver(command, REPOSITORY, HANDSHAKE, SERVER_SECONDS) as driver:
            driver.first_answer_ms()
            driver.warm_up(self._plan.warm_up_block_seconds)
            yield driver

    def _list(self, contestant: Contestant, era: Era, key: Key, number: int) -> None:
        assert contestant.list_command is not None
        with Driver(contestant.list_command, REPOSITORY, listing(era), SERVER_SECONDS) as driver:
            driver.first_answer_ms()
            driver.sequential_p50_us(SERVER_SECONDS, self._plan.list_calls // 4)
            self.samples.add(key, number, driver.sequential_p50_us(SERVER_SECONDS, self._plan.list_calls))
