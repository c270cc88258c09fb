"""A request as its caller makes it: what is told meanwhile goes to the caller, what is asked to its callbacks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..protocol.client.base import meta_of
from ..wire.channel import Patience
from ..wire.errors import LocalError
from ..wire.exchange import Exchange, Params, Peer, Question, Result
from ..wire.json.lenient import is_number
from ..wire.meta import NO_META, SUBSCRIPTION_ID
from .callbacks import Answers

__all__ = ["Calling", "OnProgress", "OnNotification", "patience_of", "running_loop", "seconds_of"]

OnProgress = Callable[[float, float | None, str | None], Awaitable[None] | None]
OnNotification = Callable[[str, Params], Awaitable[None] | None]


class Calling(Exchange):
    __slots__ = ("_answers", "_on_notification", "_on_progress", "_otherwise")

    def __init__(
        self,
        method: str,
        params: dict[str, Any],
        me: Peer,
        patience: Patience | None,
        answers: Answers,
        on_progress: OnProgress | None = None,
        on_notification: OnNotification | None = None,
        otherwise: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.raw = None
        self.peer = me
        self.meta = NO_META
        self.patience = patience
        self.live = True
        self._done = None
        self._answers = answers
        self._on_progress = on_progress
        self._on_notification = on_notification
        self._otherwise = otherwise

    async def notify(self, method: str, params: Params) -> None:
        given: Any = None
        if method == "notifications/progress" and self._on_progress is not None:
            progress, total, message = (cast(Any, params.get(key)) for key in ("progress", "total", "message"))
            if is_number(progress):  # a peer's word: what is no number is no progress
                total = total if is_number(total) else None
                given = self._on_progress(progress, total, message if isinstance(message, str) else None)
        elif self._on_notification is not None:
            given = self._on_notification(method, params)
        elif self._otherwise is not None and _is_for_anybody(method, params):
            self._otherwise(method, {**params})
        if inspect.isawaitable(given):
            await given

    async def ask(self, question: Question) -> Result:
        return await self._answers.answer(question)


def _is_for_anybody(method: str, params: Params) -> bool:
    """A log message, say: its caller hears it, and where he does not listen whoever listens for the whole client."""
    return method != "notifications/progress" and SUBSCRIPTION_ID not in meta_of(cast("dict[str, Any]", params))


def patience_of(timeout: float | Patience) -> Patience:
    """A number is the idle deadline: seconds without a sign of life. The total one stays as it is by default."""
    if not isinstance(timeout, Patience):
        if not is_number(timeout) or not timeout > 0:
            raise LocalError(f"timeout={timeout!r:.60}: give a positive number of seconds, or a Patience")
        return Patience(idle=timeout)
    for each in (timeout.idle, timeout.total):  # what is compared with no number never comes: nothing may wait for it
        if each is not None and (not is_number(each) or each != each):
            raise LocalError(f"timeout={timeout!r:.100}: give numbers of seconds, or None for no deadline")
    return timeout


def seconds_of(name: str, value: Any) -> float:
    """A deadline that comes: what is no number never does."""
    if not is_number(value) or not value > 0:
        raise LocalError(f"{name}={value!r:.60}: give a positive number of seconds")
    return value


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
