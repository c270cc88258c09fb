"""Starting a task at once where Python can (3.12), soon where it cannot."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["start_task"]

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in a task of its own, its first step right away."""
        return asyncio.Task(work, loop=loop, eager_start=True)

else:

    def start_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in a task of its own, from the next turn of the loop on."""
        return loop.create_task(work)
