"""How work grows with its input, in CPU time of this thread alone: other processes and the clock do not count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")

TIMES = 10
MAX_GROWTH = 3 * TIMES  # linear work grows 10 times, quadratic work 100 times


def assert_linear(work: Callable[[Input], object], make: Callable[[int], Input], size: int) -> None:
    """`make(n)` is an input of about n characters; ten times as many may not cost three times as much per one."""
    small, large = (min(_cpu_time(work, make(characters)) for _ in range(3)) for characters in (size, size * TIMES))
    assert large < small * MAX_GROWTH, f"{size} characters: {small} ns, {size * TIMES}: {large} ns"


def _cpu_time(work: Callable[[Input], object], given: Input) -> int:
    begun = time.thread_time_ns()
    work(given)
    return time.thread_time_ns() - begun
