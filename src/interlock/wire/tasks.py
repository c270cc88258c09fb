"""Whose turn it is on a loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, cast

__all__ = ["task_of"]

# Python 3.11 has no such function in C, but the table behind it: looked up with every request, that counts.
task_of: Callable[[asyncio.AbstractEventLoop], asyncio.Task[Any] | None] = (
    asyncio.current_task if sys.version_info >= (3, 12) else cast(Any, asyncio.tasks)._current_tasks.get
)
