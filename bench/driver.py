"""One raw stdio driver for every contestant: no SDK, prepared bytes, answers counted by their newlines.

While the clock runs the driver only reads, counts and writes; every answer is parsed and checked afterwards.
Nothing here can hang: a watchdog ends the server process at its deadline, and that ends the read that waits.
"""

import gc
import math
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns

from messages import MAX_CALLS, MAX_CALLS_PER_SECOND, Era, check_answers, check_hello, prepared_calls

IN_FLIGHT = 64
_READ_SIZE = 1 << 20
_EXIT_SECONDS = 3.0  # from the end of a server's output to its exit code

# Warm-up goes on while the rate still grows: a server that compiles itself while it runs needs a second, an
# interpreted one nothing, and measuring the first too early would make it look five times slower than it is.
_STILL_GROWING = 1.1
_STEADY_BLOCKS = 2
_WARM_UP_BLOCKS = 16
WARM_UP_CALLS = 60_000


class DriverError(Exception):
    """The server ended, or was ended at its deadline, before it had answered."""


@dataclass(frozen=True)
class Memory:
    rss_mb: float
    pss_mb: float | None


def _cores() -> tuple[int, int] | None:
    """(driver's core, server's core), or None where processes cannot be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) >= 2 else None


# Read once, at import: the driver narrows its own affinity later and would then see one core only.
CORES = _cores()


def pin_driver() -> None:
    if CORES is not None:
        os.sched_setaffinity(0, {CORES[0]})


@contextmanager
def on_server_core() -> Iterator[None]:
    """Children started inside inherit the server's core, with every thread they will ever have."""
    if CORES is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {CORES[1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def before_others(pid: int) -> Iterator[bool]:
    """Meanwhile the main thread of this process, on a core without the driver, gets that whenever it has work, before
    everything else there. False: the system does not let us say so, and nothing changes."""
    if CORES is None:
        yield False
        return
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(ProcessLookupError):  # to take the flag back as well would need more than we may have
            os.sched_setscheduler(pid, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would change how a contestant's Python or Node behaves."""
    unwanted = ("PYTHON", "NODE_OPTIONS", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


class Driver:
    """One server process and the conversation with it. Use as a context manager."""

    def __init__(self, command: Sequence[str], cwd: Path, era: Era, deadline_seconds: float) -> None:
        self._era = era
        self._calls = prepared_calls(era, 1)
        self._next = 0  # index of the next prepared call; its id is one more
        self._deadline_seconds = deadline_seconds
        self._overdue = False
        self.answer_bytes = 0
        self._started = perf_counter()
        with on_server_core():
            self._child = subprocess.Popen(
                command,
                cwd=cwd,
                env=clean_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._to_server = self._child.stdin.fileno()
        self._from_server = self._child.stdout.fileno()
        self._watchdog = threading.Timer(deadline_seconds, self._end_overdue_server)
        self._watchdog.daemon = True

    def __enter__(self) -> "Driver":
        self._watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        assert self._child.stdin is not None and self._child.stdout is not None
        # All is measured by now; waiting for an orderly end would only lengthen the run.
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()

    def _end_overdue_server(self) -> None:
        self._overdue = True
        self._child.kill()

    # ---- the measures ----

    def first_answer_ms(self) -> float:
        """From before the process was started to its answer to the first call (hello included)."""
        if self._era.hello:
            self._write(self._era.hello)
            hello = self._read_line()
            self._write(self._era.after_hello)
        self._write(self._calls[0])
        answer = self._read_line()
        elapsed = perf_counter() - self._started
        if self._era.hello:
            check_hello(hello, self._era)
        check_answers([answer], 1, 1, self._era)
        self.answer_bytes = len(answer)
        self._next = 1
        return elapsed * 1e3

    def warm_up(self, block_seconds: float) -> None:
        """Calls in blocks until two blocks in a row were not faster than the best before them."""
        last = self._next + WARM_UP_CALLS
        until_steady(lambda: self.pipelined_per_second(block_seconds, last - self._next) if self._next < last else None)

    def pipelined_per_second(self, seconds: float, at_most: int | None = None) -> float:
        """Calls per second with IN_FLIGHT calls always under way, for so long or for so many calls."""
        first = self._next
        last = self._prepare(seconds, at_most)
        chunks: list[bytes] = []
        with no_garbage_collection():
            sent, elapsed = self._keep_in_flight(chunks, last, seconds)
        self._next = sent
        count = sent - first
        check_answers(b"".join(chunks).splitlines(), first + 1, count, self._era)
        return count / elapsed

    def _keep_in_flight(self, chunks: list[bytes], last: int, seconds: float) -> tuple[int, float]:
        calls, read, write = self._calls, os.read, self._write
        answered = self._next
        sent = min(self._next + IN_FLIGHT, last)
        started = perf_counter()
        write(b"".join(calls[answered:sent]))
        while answered < sent:
            chunk = read(self._from_server, _READ_SIZE)
            if not chunk:
                raise self._ended()
            chunks.append(chunk)
            count = chunk.count(b"\n")
            answered += count
            if count and sent < last and perf_counter() - started < seconds:
                write(b"".join(calls[sent : min(sent + count, last)]))
                sent = min(sent + count, last)
        return sent, perf_counter() - started

    def sequential_p50_us(self, seconds: float, at_most: int | None = None) -> float:
        """The median time from writing one call to its whole answer, one call at a time."""
        first = self._next
        last = self._prepare(seconds, at_most)
        times: list[int] = []
        answers: list[bytes] = []
        with no_garbage_collection():
            end = perf_counter() + seconds
            while self._next < last and perf_counter() < end:
                call = self._calls[self._next]
                started = perf_counter_ns()
                self._write(call)
                answer = self._read_line()
                times.append(perf_counter_ns() - started)
                answers.append(answer)
                self._next += 1
        check_answers(answers, first + 1, len(answers), self._era)
        return median(times) / 1e3

    def _prepare(self, seconds: float, at_most: int | None) -> int:
        """The end of a block that is so long, or has so many calls; these are prepared now, before the clock runs."""
        count = math.ceil(seconds * MAX_CALLS_PER_SECOND) if at_most is None else at_most
        last = min(self._next + count, MAX_CALLS)
        if last <= self._next:
            raise DriverError(f"too many calls of one server (limit {MAX_CALLS:,})")
        prepared_calls(self._era, last)
        return last

    def memory_after(self, calls: int) -> Memory:
        """Memory once the process has answered exactly so many calls: take it before the timed measures."""
        if self._next > calls:
            raise DriverError(f"{self._next} calls were made already")
        if self._next < calls:
            self.pipelined_per_second(self._deadline_seconds, calls - self._next)
        return memory_of(self._child.pid)

    # ---- the pipe ----

    def _write(self, data: bytes) -> None:
        # At most IN_FLIGHT short calls are unread at any time, so the pipe takes all of it at once.
        try:
            written = os.write(self._to_server, data)
        except BrokenPipeError:
            raise self._ended() from None
        if written != len(data):
            raise DriverError("the pipe to the server is full")

    def _read_line(self) -> bytes:
        line = os.read(self._from_server, _READ_SIZE)
        while not line.endswith(b"\n"):
            more = os.read(self._from_server, _READ_SIZE)
            if not more:
                raise self._ended()
            line += more
        return line

    def _ended(self) -> DriverError:
        if self._overdue:
            return DriverError(f"no answer within {self._deadline_seconds:.0f} s, ended by the driver")
        try:
            code = self._child.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return DriverError("the server closed its output but goes on running")
        return DriverError(f"the server ended by itself with exit code {code}")


def until_steady(block: Callable[[], float | None]) -> None:
    """Blocks until two in a row were not faster than the best before them, or there are none left (None)."""
    best, steady = 0.0, 0
    for _ in range(_WARM_UP_BLOCKS):
        rate = block() if steady < _STEADY_BLOCKS else None
        if rate is None:
            return
        steady = 0 if rate > best * _STILL_GROWING else steady + 1
        best = max(best, rate)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def memory_of(pid: int) -> Memory:
    try:
        rss = _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS:")
    except (OSError, LookupError):
        raise DriverError("this system does not tell the memory of a process") from None
    try:
        pss = _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
    except (OSError, LookupError):
        return Memory(rss / 1024, None)
    return Memory(rss / 1024, pss / 1024)


def waited_for_core(pid: int) -> float:
    """Seconds in which the threads of a process could have run and their core ran something else; 0 where the system
    does not tell."""
    threads = [thread.read_text().split() for thread in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(nanoseconds) for _, nanoseconds, _ in threads) / 1e9


def _kilobytes(path: Path, field: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise LookupError(field)
