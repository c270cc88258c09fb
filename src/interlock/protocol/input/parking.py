"""Asking while the run waits in memory: for work that is too costly to do again.

Between two rounds the run is parked under a ticket that only this process knows and that names it among several; the
client carries the ticket, sealed. A ticket is good once and for a limited time, then the run is cancelled. So it is
when the connection ends on which it was given out: over HTTP there is none to end, and the client may come back from
anywhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from ...wire.errors import InvalidParams
from ...wire.exchange import Exchange, Handler, Question, Result
from ...wire.once import Acts
from ..request import Served
from .callback import check_can_ask
from .parking_lot import Parking
from .rounds import STATE_REFUSED, Questions, Round
from .settings import AskingRules
from .validation import check_answer

__all__ = ["Park", "Run"]

log = logging.getLogger("interlock.server")


class Run:
    """One run of a handler over all its rounds: what it asked last, and what stirs whoever serves the round."""

    def __init__(self, rules: AskingRules, handler: Handler, exchange: Served, given: dict[str, Any]) -> None:
        self.exchange = exchange
        self._given = given  # without a state, which is an empty one, answers match by key alone
        self.questions = Questions(rules.grace, self._stir)
        self._waiting: dict[str, asyncio.Future[Result]] = {}
        self._stirred = asyncio.Event()
        self._over = False
        self.task = asyncio.get_running_loop().create_task(self._go(handler))
        self.task.add_done_callback(_look_at)  # it may fail while it is parked, and nobody come back for it

    async def _go(self, handler: Handler) -> Result:
        try:
            return await handler(self.exchange)
        finally:
            self._over = True
            self.questions.stop()
            for waiting in self._waiting.values():  # threads and tasks that outlive it: nobody answers them
                waiting.cancel()
            self._stir()

    def _stir(self) -> None:
        self._stirred.set()

    async def until_quiet(self) -> None:
        """Until it has ended, or waits for nothing but answers."""
        await self._stirred.wait()
        self._stirred.clear()

    async def ask(self, exchange: Served, question: Question) -> Result:
        if self._over:
            raise asyncio.CancelledError
        check_can_ask(exchange.revision, exchange.peer, question)
        key, digest = self.questions.key_of(question)
        if key in self._given:
            members = check_answer(question, self._given.pop(key))  # once, whether it fits or not
            self.questions.digests[key] = digest
            return members
        waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        self.questions.add(key, digest, question)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self.questions.withdraw(key)
            self._waiting.pop(key, None)
            raise

    def read(self, given: Mapping[str, Any]) -> dict[str, Result]:
        """The answers to what it asks; a malformed one raises, and nothing has happened yet."""
        open = self.questions.open
        return {key: check_answer(open[key], given[key]) for key in open if key in given}

    def check_can_ask_again(self, exchange: Served, answers: Mapping[str, Result]) -> None:
        """What stays open is asked once more: this very request must say that it can be asked (patterns/mrtr)."""
        for key, question in self.questions.open.items():
            if key not in answers:
                check_can_ask(exchange.revision, exchange.peer, question)

    def answer(self, answers: Mapping[str, Result]) -> None:
        open = self.questions.open
        for key, members in answers.items():
            del open[key]
            self._waiting.pop(key).set_result(members)
        if open:
            self.questions.look_again()  # asked once more, unless the run asks for others before

    def speak_through(self, exchange: Served) -> None:
        """The round now open is where it is heard and whom it serves."""
        mine = self.exchange
        mine.outlet, mine.meta, mine.peer, mine.meter = exchange.outlet, exchange.meta, exchange.peer, None
        mine.live = True
        self._stirred.clear()
        if self.task.done():
            self._stir()


def _look_at(task: asyncio.Task[Result]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.debug("= a parked run failed: %r", task.exception())


class Park:
    """One round of a parked run. As a `Handler` it starts the run or goes on with it."""

    def __init__(self, rules: AskingRules, parking: Parking, handler: Handler, exchange: Served) -> None:
        self._rules = rules
        self._parking = parking
        self._handler = handler
        self._round = Round.of(rules, exchange)
        self._run: Run | None = None
        self._acts = Acts()

    async def __call__(self, exchange: Exchange) -> Result:
        assert isinstance(exchange, Served)
        run = await self._find(exchange)
        try:
            await run.until_quiet()
            while not run.questions.open and not run.task.done():
                await run.until_quiet()  # what it asked was withdrawn before anybody looked
        except asyncio.CancelledError:
            run.task.cancel()
            raise
        exchange.meter = run.exchange.meter  # what it held back goes out before this round's answer
        if run.task.done():
            return run.task.result()
        run.exchange.live = False  # nobody hears it until the next round
        return self._round.input_required(run.questions.open, self._round.state_of(ticket=self._parking.put(run)))

    async def _find(self, exchange: Served) -> Run:
        if self._round.sealed is None:
            self._parking.check_room(exchange.peer.principal)
            self._run = Run(self._rules, self._handler, exchange, self._round.given)
            return self._run
        ticket = self._round.state(self._round.sealed).ticket
        run = self._parking.look(ticket)
        if run is None:
            raise InvalidParams(STATE_REFUSED)
        answers = run.read(self._round.given)  # before the ticket is used: who sent a wrong one may send a right one
        run.check_can_ask_again(exchange, answers)
        self._parking.take(ticket)
        run.speak_through(exchange)
        run.answer(answers)
        return run

    async def ask(self, exchange: Served, question: Question) -> Result:
        assert self._run is not None
        return await self._run.ask(exchange, question)

    def begin_once(self, key: str) -> bytes | None:
        """The run goes on where it was, so an act is done once by itself; under one key all the same."""
        return self._acts.begin(key)

    def end_once(self, key: str, result: bytes | None) -> None:
        self._acts.end(key, result)
