"""Questions to the person: one at a time, in their order, and never for ever.

Somebody who is shown two questions at once answers the wrong one. So all others wait, up to a number, and are looked
at again when it is their turn: what was answered meanwhile may answer them as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic

from ...wire.escaping import display
from ..user import Absent, Ask, Leave, User
from .action import Deed, Denied, Kind, Scope

__all__ = ["Consent", "ConsentTime", "How", "measure_consent"]

log = logging.getLogger("interlock.host")
How = Callable[[Ask], Awaitable[Leave]]
_OF_ONE = 8  # questions that one server has asked and that wait: it must not keep those of others from being shown
_ASKED: tuple[Kind, ...] = ("sampling", "sampling_answer", "elicitation", "open_url", "roots")
_OF_SERVERS: tuple[Kind, ...] = ("launch", "definitions")  # no more than there are servers: none is refused unasked
_SCOPES: tuple[Scope, ...] = ("once", "session", "always")  # from the shortest on
_NOBODY = "allow it by a rule of the policy: nobody can be asked here"


class ConsentTime:
    """How long answers of the user were waited for within one block."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def measure(self) -> Generator[None]:
        began = monotonic()
        try:
            yield
        finally:
            self.seconds += monotonic() - began


_measured: ContextVar[ConsentTime | None] = ContextVar("interlock-consent-time", default=None)


@contextmanager
def measure_consent() -> Generator[ConsentTime]:
    """Count what is waited for the user in here, by this task: it is not the time of the tool that is asked about."""
    before = _measured.set(found := ConsentTime())
    try:
        yield found
    finally:
        _measured.reset(before)


class Consent:
    """Of one person. `seconds`: how long an answer may take; then it counts as a no. `waiting`: how many questions may
    wait, the one that is shown included; a further one counts as answered with no."""

    def __init__(self, user: User, *, seconds: float = 600.0, waiting: int = 64) -> None:
        self._user, self._seconds, self._most = user, seconds, waiting
        self._turns = asyncio.Lock()
        self._waiting = 0
        self._by_server: Counter[str] = Counter()
        self._open: dict[asyncio.Timeout, str] = {}

    @asynccontextmanager
    async def turn(self, deed: Deed) -> AsyncGenerator[None]:
        """Until it is this one's turn to be shown."""
        if isinstance(self._user, Absent):
            raise Denied(deed, "it must be asked about, and nobody is there", hint=_NOBODY)
        self._check_room(deed)
        self._count(deed, 1)
        until, measured = asyncio.timeout(None), _measured.get()  # it times out when it is withdrawn
        try:
            with measured.measure() if measured is not None else nullcontext():
                async with until:
                    self._open[until] = deed.server
                    async with self._turns:
                        yield
        except TimeoutError:
            if not until.expired():
                raise
            raise Denied(deed, "its server was removed", hint="add the server again") from None
        finally:
            self._open.pop(until, None)
            self._count(deed, -1)

    def withdraw(self, server: str) -> None:
        """Nobody needs the answers to what is asked about this server, shown or not: they end with no."""
        now = asyncio.get_running_loop().time()
        for until in [each for each, whose in self._open.items() if whose == server and not each.expired()]:
            until.reschedule(now)

    def _check_room(self, deed: Deed) -> None:
        if deed.kind not in _OF_SERVERS and self._waiting >= self._most:
            raise Denied(
                deed, f"{self._waiting} questions wait for an answer already", hint="answer some of them first"
            )
        if deed.kind in _ASKED and self._by_server[deed.server] >= _OF_ONE:
            raise Denied(deed, f"{_OF_ONE} questions of this server wait for an answer already")

    def _count(self, deed: Deed, by: int) -> None:
        self._waiting += by if deed.kind not in _OF_SERVERS else 0
        self._by_server[deed.server] += by if deed.kind in _ASKED else 0
        if not self._by_server[deed.server]:
            del self._by_server[deed.server]

    async def answer(self, ask: Ask, how: How | None = None) -> Leave:
        """Show it; what raises, lasts too long, or is no answer is a no. For some deeds there is another way than
        `User.allow` to show them: `how`."""
        show = how if how is not None else self._user.allow
        timer = asyncio.timeout(self._seconds)
        try:
            async with timer:
                leave = await show(ask)
        except TimeoutError as error:
            told = f"nobody answered within {self._seconds:g} s" if timer.expired() else "the answer failed"
            raise Denied(ask.deed, told) from error
        except Denied:
            raise
        except Exception as error:
            log.exception("! a question could not be shown")
            raise Denied(ask.deed, f"the question could not be shown: {display(repr(error), 200)}") from error
        return _sound(ask, leave)


def _sound(ask: Ask, leave: object) -> Leave:
    """What was answered, as far as it was on offer. Edited arguments were seen once: leave for them lasts as long."""
    if not isinstance(leave, Leave) or leave.scope not in _SCOPES:
        raise Denied(ask.deed, "the answer was none")
    scope: Scope = "once"
    for each in _SCOPES[: _SCOPES.index(leave.scope) + 1]:
        if each in ask.scopes and leave.arguments is None:
            scope = each
    because = display(str(leave.because), 300)
    return Leave(granted=leave.granted is True, scope=scope, arguments=leave.arguments, because=because)
