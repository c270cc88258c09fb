"""The measures and their order: every round visits every contestant once, A-B-C-A-B-C."""

from collections.abc import Callable
from dataclasses import dataclass

import probes
from driver import Driver, DriverError
from http_driver import CONNECTIONS, HttpDriver
from messages import HANDSHAKE, STATELESS, Era, WrongAnswer, listing
from peers import REPOSITORY, SERVERS, Contestant, interlock_over_http, plain_reason
from samples import Key, Samples

_SERVER_SECONDS = 60.0  # no server process lives longer
_ENOUGH_FAILURES = 2  # a contestant that failed so often in a row is left out of the rest


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
        Measure("http", f"HTTP tools/call, {CONNECTIONS} connections kept open", "calls/s", True, 0),
        Measure(
            "asking",
            "HTTP tools/call with two questions one after the other (three rounds), p50",
            "plain calls",
            False,
            2,
        ),
        Measure("sync", "stdio tools/call of a plain function, 64 in flight", "async calls", False, 2),
        Measure("list", "stdio tools/list of 500 tools, one at a time, p50", "µs", False, 0),
    )
}

# What --only takes; PSS is read whenever RSS is.
SELECTABLE = tuple(name for name in MEASURES if name != "memory-pss")
_OVER_STDIO = {"pipelined", "sequential", "cold", "memory"}


@dataclass(frozen=True)
class Plan:
    """How long and how often. Rounds of one measure are spread over the run, not taken in a row."""

    name: str
    stdio_rounds: int
    cold_rounds: int
    warm_up_block_seconds: float
    pipelined_seconds: float
    sequential_seconds: float
    memory_rounds: int
    memory_calls: int
    import_rounds: int
    in_memory_rounds: int
    in_memory_seconds: float
    kills: int
    http_rounds: int
    http_seconds: float
    asking_rounds: int
    asking_seconds: float
    author_rounds: int
    list_calls: int


FULL = Plan(
    name="full",
    stdio_rounds=5,
    cold_rounds=9,
    warm_up_block_seconds=0.25,
    pipelined_seconds=0.8,
    sequential_seconds=0.4,
    memory_rounds=2,
    memory_calls=10_000,
    import_rounds=9,
    in_memory_rounds=5,
    in_memory_seconds=1.0,
    kills=20,
    http_rounds=5,
    http_seconds=1.0,
    asking_rounds=5,
    asking_seconds=0.8,
    author_rounds=5,
    list_calls=200,
)

QUICK = Plan(
    name="quick",
    stdio_rounds=2,
    cold_rounds=2,
    warm_up_block_seconds=0.12,
    pipelined_seconds=0.25,
    sequential_seconds=0.15,
    memory_rounds=1,
    memory_calls=1_000,
    import_rounds=2,
    in_memory_rounds=2,
    in_memory_seconds=0.3,
    kills=3,
    http_rounds=2,
    http_seconds=0.4,
    asking_rounds=2,
    asking_seconds=0.4,
    author_rounds=2,
    list_calls=50,
)


class Bench:
    """One run: takes the wanted measures of the present contestants into `samples`."""

    def __init__(self, contestants: list[Contestant], wanted: list[str], plan: Plan) -> None:
        self._contestants = contestants
        self._wanted = set(wanted)
        self._plan = plan
        self._failed_in_a_row: dict[tuple[str, str, str], int] = {}
        self.samples = Samples()

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
        if "http" in self._wanted:
            self._http_rounds()
        if "asking" in self._wanted:
            self._asking_rounds()
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
        for contestant in self._contestants:
            for era in contestant.eras:
                due = self._due(contestant, number, wanted)
                if due:
                    self._attempt(
                        ("stdio", contestant.name, era.name),
                        [Key(name, contestant.name, era.name) for name in sorted(due)],
                        lambda c=contestant, e=era, d=due: self._visit(c, e, number, d),
                    )

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

    def _visit(self, contestant: Contestant, era: Era, number: int, due: set[str]) -> None:
        """One server process: cold start, memory after the agreed number of calls, then speed once warm."""
        plan = self._plan

        def keep(name: str, value: float) -> None:
            self.samples.add(Key(name, contestant.name, era.name), number, value)

        with Driver(contestant.command, REPOSITORY, era, _SERVER_SECONDS) as driver:
            first_answer = driver.first_answer_ms()
            if "cold" in due:
                keep("cold", first_answer)
            if "memory" in due:
                memory = driver.memory_after(plan.memory_calls)
                keep("memory", memory.rss_mb)
                if memory.pss_mb is not None:
                    keep("memory-pss", memory.pss_mb)
            if due & {"pipelined", "sequential"}:
                driver.warm_up(plan.warm_up_block_seconds)
            if "sequential" in due:
                keep("sequential", driver.sequential_p50_us(plan.sequential_seconds))
            if "pipelined" in due:
                keep("pipelined", driver.pipelined_per_second(plan.pipelined_seconds))
            self.samples.facts["bytes in an answer"][f"{contestant.name} {era.name}"] = str(driver.answer_bytes)

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

    def _in_python(self) -> list[Contestant]:
        return [contestant for contestant in self._contestants if contestant.in_python is not None]

    # ---- over HTTP ----

    def _http_rounds(self) -> None:
        for number in range(self._plan.http_rounds):
            self._tell(f"http round {number + 1}")
            for contestant in self._contestants:
                if contestant.http_command is not None:
                    self._attempt(
                        ("http", contestant.name, STATELESS.name),
                        [Key("http", contestant.name, STATELESS.name)],
                        lambda c=contestant, n=number: self._visit_http(c, n),
                    )

    def _visit_http(self, contestant: Contestant, number: int) -> None:
        assert contestant.http_command is not None
        fixed = contestant.group == "null"
        with HttpDriver(contestant.http_command, REPOSITORY, _SERVER_SECONDS) as driver:
            driver.warm_up(self._plan.warm_up_block_seconds, fixed=fixed)
            rate = driver.per_second(self._plan.http_seconds, fixed=fixed)
            self.samples.add(Key("http", contestant.name, STATELESS.name), number, rate)
            busy = self.samples.facts["share of the http measure in which the driver itself was busy"]
            busy[contestant.name] = f"{driver.busy:.0%}"

    def _asking_rounds(self) -> None:
        for number in range(self._plan.asking_rounds):
            self._tell(f"asking round {number + 1}")
            for contestant in self._in_python():
                if contestant.is_ours:
                    self._attempt_one("asking", contestant, lambda c=contestant, n=number: self._ask(c, n))

    def _ask(self, contestant: Contestant, number: int) -> None:
        command = interlock_over_http(SERVERS / "asking_server.py")
        with HttpDriver(command, REPOSITORY, _SERVER_SECONDS) as driver:
            driver.asking_in_plain_calls(self._plan.warm_up_block_seconds)
            self._keep("asking", contestant, number, driver.asking_in_plain_calls(self._plan.asking_seconds))

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
        """How many calls of an async function one of a plain function costs; two processes, one after the other."""
        rates = [self._rate(contestant.command, HANDSHAKE)]
        rates.append(self._rate((*contestant.command[:-1], str(SERVERS / "sync_server.py")), HANDSHAKE))
        self._keep("sync", contestant, number, rates[0] / rates[1])

    def _rate(self, command: tuple[str, ...], era: Era) -> float:
        with Driver(command, REPOSITORY, era, _SERVER_SECONDS) as driver:
            driver.first_answer_ms()
            driver.warm_up(self._plan.warm_up_block_seconds)
            return driver.pipelined_per_second(self._plan.pipelined_seconds)

    def _list(self, contestant: Contestant, era: Era, key: Key, number: int) -> None:
        assert contestant.list_command is not None
        with Driver(contestant.list_command, REPOSITORY, listing(era), _SERVER_SECONDS) as driver:
            driver.first_answer_ms()
            driver.sequential_p50_us(_SERVER_SECONDS, self._plan.list_calls // 4)
            self.samples.add(key, number, driver.sequential_p50_us(_SERVER_SECONDS, self._plan.list_calls))

    # ---- common ----

    def _keep(self, measure: str, contestant: Contestant, number: int, value: float) -> None:
        self.samples.add(Key(measure, contestant.name, ""), number, value)

    def _attempt_one(self, measure: str, contestant: Contestant, take: Callable[[], None]) -> None:
        self._attempt((measure, contestant.name, ""), [Key(measure, contestant.name, "")], take)

    def _attempt(self, who: tuple[str, str, str], keys: list[Key], take: Callable[[], None]) -> None:
        """A contestant that fails is reported and does not stop the others."""
        if self._failed_in_a_row.get(who, 0) >= _ENOUGH_FAILURES:
            return
        try:
            take()
        except (DriverError, WrongAnswer, probes.ProbeFailed, ValueError, OSError) as error:
            self._failed_in_a_row[who] = self._failed_in_a_row.get(who, 0) + 1
            for key in keys:
                self.samples.fail(key, plain_reason(str(error)))
            self._tell(f"{' '.join(who)}: failed: {plain_reason(str(error))}")
        else:
            self._failed_in_a_row[who] = 0

    def _tell(self, text: str) -> None:
        print(f"[{self._plan.name}] {text}", flush=True)
