"""Several processes on one port: one binds it, starts the others, and sees to it that there are always as many.

The workers inherit the socket and accept from it in turn. A worker that dies is replaced, with a delay that grows while
they keep dying. A worker whose event loop stands still sends no heartbeats: it is killed and replaced. When the first
process is told to stop, all of them get to finish what they have; when it is killed, they notice and stop by
themselves, so that none is left.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from ....wire.errors import InterlockError, LocalError

__all__ = ["HEARTBEAT_TIMEOUT", "Lifeline", "check_can_fork", "check_heartbeat", "supervise"]

HEARTBEAT_TIMEOUT = 60.0  # seconds without a heartbeat after which a worker is killed and replaced

_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0  # seconds before a worker that died is replaced; doubled each time
_STEADY = 10.0  # seconds after which a worker counts as one that started well
_MARGIN = 5.0  # seconds beyond their own patience, after which workers that were told to stop are killed
_BEATS = 4  # heartbeats that a worker sends in that time
_MAX_HEARTBEAT_TIMEOUT = 3600.0
_SERVES = b"."
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Lifeline(msgspec.Struct):
    """What ties a worker to the process that started it."""

    parent: int
    """A descriptor that can be read once that process is gone."""
    started: Callable[[], None]
    """To be called when the worker serves."""
    beat: Callable[[], None]
    """To be called every `interval` seconds from then on, by the event loop."""
    interval: float
    """0 where heartbeats are off."""


Work = Callable[[Lifeline], None]
"""What a worker does, in its own process; it returns when it has stopped, and raises `LocalError` if it cannot."""


class _Child(msgspec.Struct):
    pid: int
    pipe: int
    since: float
    serves: bool | None = None
    """None while it has said nothing, False once its end of the pipe is closed before that."""
    is_open: bool = True
    """Can more come from its pipe?"""
    due: float = float("inf")
    """When it is killed, unless it gives a heartbeat before."""


def check_can_fork(count: int) -> None:
    if not 1 <= count <= 1024:
        raise LocalError(f"{count} workers: from 1 to 1024 are possible")
    if count > 1 and not hasattr(os, "fork"):
        raise LocalError("this system cannot start several workers: run one, or several processes behind a proxy")
    if count > 1 and threading.current_thread() is not threading.main_thread():
        raise LocalError("several workers can be started only in the main thread: it hears when to stop")


def check_heartbeat(timeout: float) -> None:
    if timeout and not 1 <= timeout <= _MAX_HEARTBEAT_TIMEOUT:  # also what is not a number
        limits = f"from 1 to {_MAX_HEARTBEAT_TIMEOUT:g}, or 0 to keep a worker that is stuck"
        raise LocalError(f"heartbeat_timeout={timeout!r}: give seconds {limits}")


def supervise(
    work: Work,
    count: int,
    *,
    patience: float,
    on_started: Callable[[], None],
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
) -> None:
    """Keep `count` workers until told to stop; `on_started` is called once all of them serve.

    A worker that serves and then gives no heartbeat for `heartbeat_timeout` is killed and replaced; 0 keeps it.
    Raises `LocalError` when one cannot start in the first place: what it said is on stderr.
    """
    _Supervisor(work, count, patience, on_started, heartbeat_timeout).run()


class _Supervisor:
    def __init__(
        self, work: Work, count: int, patience: float, on_started: Callable[[], None], heartbeat_timeout: float
    ) -> None:
        self._work, self._count, self._patience = work, count, patience
        self._on_started = on_started
        self._heartbeat_timeout = heartbeat_timeout
        self._children: dict[int, _Child] = {}
        self._due: list[float] = []
        self._delay = _FIRST_DELAY
        self._told = self._stopping = self._failed = False
        self._kill_at = float("inf")
        self._life: tuple[int, int] = (-1, -1)

    def run(self) -> None:
        self._life = os.pipe()
        try:
            with _signals() as wake:
                self._due = [0.0]  # one first: what is wrong with all of them is said once
                while self._children or self._due:
                    self._start_due()
                    self._wait(wake)
                    self._reap()
                    self._kill_late()
                    self._kill_stuck()
        finally:
            for descriptor in self._life:
                os.close(descriptor)
        if self._failed:
            raise LocalError("the workers could not start")

    # --- what happens -----------------------------------------------------------------------------

    def _wait(self, wake: int) -> None:
        """Until a signal comes, a worker says something, or something is due."""
        children = self._children.values()
        due = min([*self._due, self._kill_at, *(child.due for child in children)])
        timeout = None if due == float("inf") else max(0.0, due - time.monotonic())
        pipes = {child.pipe: child for child in children if child.is_open}
        for descriptor in _readable([wake, *pipes], timeout):
            if descriptor == wake:
                self._hear(os.read(wake, 4096))
            else:
                self._take(pipes[descriptor], os.read(descriptor, 4096))
        if time.monotonic() - due >= self._heartbeat_timeout / _BEATS:
            self._expect_beats()  # this process stood still, perhaps together with the workers
        if not self._told and not self._stopping:
            self._go_on()

    def _take(self, child: _Child, said: bytes) -> None:
        if child.serves is None:
            child.serves = bool(said)
        child.is_open = bool(said)  # nothing: it has died, or sends no heartbeats
        if said and self._heartbeat_timeout and not self._stopping:
            child.due = time.monotonic() + self._heartbeat_timeout

    def _expect_beats(self) -> None:
        for child in self._children.values():
            if child.due < float("inf"):
                child.due = time.monotonic() + self._heartbeat_timeout

    def _kill_stuck(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if child.due <= now:
                child.due = float("inf")
                _say(
                    f"worker {child.pid} gave no heartbeat for {self._heartbeat_timeout:g} s and is killed: its event "
                    "loop is blocked or it was stopped. Look above for the handler that has blocked the event loop and "
                    "run its work in a thread; heartbeat_timeout=0 keeps such a worker, for a debugger"
                )
                os.kill(child.pid, signal.SIGKILL)

    def _go_on(self) -> None:
        """From the first worker that serves to all of them."""
        serving = sum(child.serves is True for child in self._children.values())
        if serving and len(self._children) + len(self._due) < self._count:
            self._due += [0.0] * (self._count - len(self._children) - len(self._due))
        elif serving == self._count:
            self._told = True
            self._on_started()

    def _hear(self, numbers: bytes) -> None:
        for number in numbers:
            if number in _SIGNALS:
                self._stop()

    def _stop(self) -> None:
        """Tell all; a second time, each of them skips its waiting."""
        self._stopping = True
        self._due = []
        for child in self._children.values():
            child.due = float("inf")
        self._kill_at = min(self._kill_at, time.monotonic() + self._patience + _MARGIN)
        for child in self._children.values():
            os.kill(child.pid, signal.SIGTERM)

    def _kill_late(self) -> None:
        if time.monotonic() >= self._kill_at:
            self._kill_at = float("inf")
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)

    def _reap(self) -> None:
        for child in list(self._children.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                del self._children[pid]
                os.close(child.pipe)
                if not self._stopping:
                    self._replace(child, os.waitstatus_to_exitcode(status))

    def _replace(self, child: _Child, code: int) -> None:
        if not self._told and code > 0:  # it said why: the next one would say the same
            self._failed = True
            self._stop()
            return
        now = time.monotonic()
        if now - child.since >= _STEADY:
            self._delay = _FIRST_DELAY
        how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        _say(f"worker {child.pid} {how}; another one starts in {self._delay:g} s")
        self._due.append(now + self._delay)
        self._delay = min(2 * self._delay, _LONGEST_DELAY)

    # --- workers ----------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            try:
                self._start()
            except OSError as error:  # no room for one more process at the moment
                _say(f"a worker could not be started: {error}")
                self._due.append(now + _LONGEST_DELAY)

    def _start(self) -> None:
        read, write = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none is lost between the two kinds of handlers
        try:
            pid = os.fork()
            if pid == 0:
                self._be_worker(read, write)
        except OSError:
            os.close(read)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(write)
        self._children[pid] = _Child(pid, read, time.monotonic())

    def _be_worker(self, read: int, write: int) -> None:
        """In the new process, which ends here."""
        code = 1
        try:
            os.setpgid(0, 0)  # a terminal's signal goes to the first process, which tells the others once
            for descriptor in (read, self._life[1], *(child.pipe for child in self._children.values())):
                os.close(descriptor)
            signal.set_wakeup_fd(-1)
            for number in (*_SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.set_blocking(write, False)
            self._work(self._lifeline(write))
            code = 0
        except InterlockError as error:
            _say(str(error))
        except BaseException:
            traceback.print_exc()
        finally:
            _flush()
            os._exit(code)

    def _lifeline(self, write: int) -> Lifeline:
        def started() -> None:
            _beat(write)
            if not self._heartbeat_timeout:
                os.close(write)

        return Lifeline(self._life[0], started, lambda: _beat(write), self._heartbeat_timeout / _BEATS)


@contextmanager
def _signals() -> Generator[int]:
    """A descriptor on which the numbers of the signals come that matter here."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, _nothing) for number in (*_SIGNALS, signal.SIGCHLD)}
    try:
        yield read
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)


def _readable(descriptors: list[int], timeout: float | None) -> list[int]:
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        return [key.fd for key, _ in selector.select(timeout)]


def _beat(pipe: int) -> None:
    try:
        os.write(pipe, _SERVES)
    except (BlockingIOError, BrokenPipeError):
        pass  # the first process stands still and has enough of them, or is gone, which is noticed elsewhere


def _nothing(number: int, frame: object) -> None:
    """Its number is read from the descriptor."""


def _say(text: str) -> None:
    sys.stderr.write(f"interlock: {text}\n")
    sys.stderr.flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
