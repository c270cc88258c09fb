"""A test that hangs costs itself and not the run: after its time it fails, and says where each thread stood.

Async tests have a deadline of their own (tests/conftest.py), which a loop that is blocked never sees. This one comes
by a signal, so it interrupts whatever Python does; what does not even come back to Python ends with its process
(`faulthandler_timeout` in pyproject.toml), and pytest-xdist begins another one.
"""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["watched"]

_AGAIN = 30.0  # seconds after which a test that caught it is told once more


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """What takes longer is interrupted by a failure."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def bite(*_: object) -> None:
        faulthandler.dump_traceback(2, all_threads=False)  # where pytest captures it, for the report of the failure
        faulthandler.dump_traceback(2)  # the first hundred of them
        pytest.fail(f"hung: not done after {seconds:g} s")

    outer = signal.signal(signal.SIGALRM, bite)
    left, again = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, again)
        signal.signal(signal.SIGALRM, outer)
