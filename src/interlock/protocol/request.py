"""A request as the server's edge serves it: what is said while it runs stays on its stream and in its revision."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw

from ..revisions.revision import Revision
from ..revisions.shaping import shape_noun
from ..revisions.table import REVISIONS
from ..wire.channel import Outlet
from ..wire.exchange import Exchange, Params, Peer, Question, Result, Timer
from ..wire.meta import SUBSCRIPTION_ID, RequestMeta

if TYPE_CHECKING:
    from .throttling import ProgressMeter

__all__ = ["Served", "Asking", "Rounds"]

_OFFICIAL_NOTICES = frozenset[str]().union(*(row.server_notices for row in REVISIONS.values()))


class Asking(Protocol):
    """How a question travels to the client: the strategy of an era."""

    async def __call__(self, exchange: Served, question: Question) -> Result: ...


class Rounds(Protocol):
    """Asking by returning: the questions are the result, the answers come with the next request."""

    async def ask(self, exchange: Served, question: Question) -> Result: ...

    def begin_once(self, key: str) -> bytes | None: ...

    def end_once(self, key: str, result: bytes | None) -> None: ...


class Served(Exchange):
    __slots__ = ("_asking", "meter", "revision", "rounds", "subscription")

    outlet: Outlet

    def __init__(
        self,
        method: str,
        params: Any,
        raw: Raw | None,
        peer: Peer,
        meta: RequestMeta,
        outlet: Outlet,
        revision: Revision,
        asking: Asking,
    ) -> None:
        self.method = method
        self.params = params
        self.raw = raw
        self.peer = peer
        self.meta = meta
        self.patience = None
        self.live = True
        self.timer = None
        self._done = None
        self.outlet = outlet
        self.revision = revision
        self.subscription: int | str | None = None
        """The id of a listen request, which tags everything said on its stream."""
        self._asking = asking
        self.meter: ProgressMeter | None = None
        """Of the progress reported so far, if any was."""
        self.rounds: Rounds | None = None
        """How a stateless client is asked, where it can be."""

    async def notify(self, method: str, params: Params) -> None:
        if not self.live or (method in _OFFICIAL_NOTICES and method not in self.revision.server_notices):
            return
        if method in self.revision.deprecated:
            _deprecation().warn_of_deprecated(method)
        if method == "notifications/message":
            await self._log(params)
            return
        if method == "notifications/progress":
            admitted = self._admit(params)
            if admitted is None:
                return
            told = shape_noun(self.revision, "Progress", admitted)
        else:
            told = dict(params)
        if self.subscription is not None:
            told["_meta"] = {**told.get("_meta", {}), SUBSCRIPTION_ID: self.subscription}
        await self.outlet.tell(method, told)

    def _admit(self, params: Params) -> dict[str, Any] | None:
        now = monotonic()
        if self.meter is None:
            self.meter = _progress().ProgressMeter(now)
        return self.meter.admit(params, now)

    async def _log(self, params: Params) -> None:
        if self.subscription is not None:
            return  # a stream of change notices carries no log messages (2026-07-28 server/utilities/logging)
        said = _log_meter().log_notices(self.peer, params, getattr(self, "redact", None), monotonic())
        for told in said:
            await self.outlet.tell("notifications/message", told)
        if not said and self.meter is None:
            self.meter = _progress().ProgressMeter(monotonic())  # what has one is looked at once more before its answer

    async def release_stream(self, retry_ms: int) -> bool:
        release: Callable[[int], bool] | None = getattr(self.outlet, "release", None)
        return self.live and self.revision.polling and release is not None and release(retry_ms)

    def ask(self, question: Question) -> CoroutineType[Any, Any, Result]:
        """As it is, to be awaited: nothing stands between who asks and how it is done."""
        if question.method in self.revision.deprecated:
            _deprecation().warn_of_deprecated(question.method)
        rounds, timer = self.rounds, self.timer
        asking = self._asking(self, question) if rounds is None else rounds.ask(self, question)
        return asking if timer is None else _beside(timer, asking)

    def begin_once(self, key: str) -> bytes | None:
        return super().begin_once(key) if self.rounds is None else self.rounds.begin_once(key)

    def end_once(self, key: str, result: bytes | None) -> None:
        if self.rounds is None:
            super().end_once(key, result)
        else:
            self.rounds.end_once(key, result)

    async def finish(self) -> None:
        """Before the answer: the last progress that was held back, and how many log messages were left out."""
        held = self.meter.rest() if self.meter is not None else None
        if held is not None:
            await self.outlet.tell("notifications/progress", shape_noun(self.revision, "Progress", held))
        if self.peer.log_meter is None:
            return
        if (told := _log_meter().left_out_notice(self.peer, monotonic(), last=True)) is not None:
            await self.outlet.tell("notifications/message", told)


async def _beside(timer: Timer, asking: CoroutineType[Any, Any, Result]) -> Result:
    timer.pause()
    try:
        return await asking
    finally:
        timer.resume()


# --- what many servers never say: each is loaded when it is said first ---


@cache
def _deprecation():
    from ..revisions import deprecation

    return deprecation


@cache
def _log_meter():
    from . import throttling

    return throttling


@cache
def _progress():
    from . import throttling

    return throttling
