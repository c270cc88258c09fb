"""Questions of a server that are asked only while a command of the user runs.

Between two commands the prompt reads the keys. A question at that time would read them, too: what a user types for a
command of their own would be sent to the server as an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from .output import note

__all__ = ["CommandQuestions"]

Params = dict[str, Any]
Answer = Callable[[Params], Coroutine[Any, Any, Params]]


class CommandQuestions:
    """Wraps the callbacks `elicit` and `elicit_url` of a client. A question that comes between two commands is
    cancelled, and so is one that is still open when its command ends."""

    def __init__(self) -> None:
        self._runs = self._noted = False
        self._open: set[asyncio.Task[Params]] = set()

    def wrap(self, answer: Answer) -> Callable[[Params], Awaitable[Params]]:
        async def ask(params: Params) -> Params:
            return await self._ask(answer, params)

        return ask

    @asynccontextmanager
    async def command(self) -> AsyncGenerator[None]:
        """Questions are asked within this."""
        self._runs, self._noted = True, False
        try:
            yield
        finally:
            self._runs = False
            for task in self._open:
                task.cancel()
            if self._open:
                await asyncio.wait(self._open)

    async def _ask(self, answer: Answer, params: Params) -> Params:
        if not self._runs:
            if not self._noted:  # once per prompt, however often the server asks
                note("(the server asked a question while no command was running: it was cancelled)")
            self._noted = True
            return {"action": "cancel"}
        task = asyncio.create_task(answer(params))
        self._open.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._open.discard(task)
            task.cancel()
        return {"action": "cancel"} if task.cancelled() else task.result()
