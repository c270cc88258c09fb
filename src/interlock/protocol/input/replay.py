"""Asking by running again: the default way to ask a stateless client.

A run that asks registers its question and waits. When the round is over the run's own task is cancelled, as a timeout
would, and all open questions are the result; a run that is known to be alone is unwound at once. The retry runs the
function again, and the answers are simply there. What stands before a question may therefore run again; `once` keeps an
act from being done twice.
"""

from __future__ import annotations

import asyncio
import logging
from operator import methodcaller
from os import urandom
from typing import Any

import msgspec

from ...wire.aio import task_of
from ...wire.errors import LocalError
from ...wire.exchange import ENDED, Exchange, Handler, Question, Result
from ...wire.json.reader import read_members
from ...wire.once import is_part_of_an_act
from ..request import Served
from .callback import check_can_ask
from .rounds import Questions, Round
from .validation import check_answer

__all__ = ["Replay"]

log = logging.getLogger("interlock.server")
_is_done = methodcaller("done")


class Replay(msgspec.Struct, eq=False):
    """The questions of one request. As a `Handler` it runs another one and turns what was asked into the result."""

    _handler: Handler
    _round: Round
    _params: Any
    _known: Questions | None = None
    _asked: dict[str, bytes] = {}
    _answers: dict[str, bytes] = {}
    _done: dict[str, bytes] = {}
    _waiting: list[asyncio.Future[Result]] = []
    _task: asyncio.Task[object] | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _over: bool = False
    """The round, by our own cancellation."""
    _closed: bool = False
    """The run: nothing asks for it any more."""
    _cancelled: bool = False
    """Its task, by us."""
    _cancelled_before: int = 0
    _uses_before: int = -1
    """Of its loop by tasks and timeouts, where they are counted."""

    def _questions(self) -> Questions:
        """Made for the few runs that ask."""
        if self._known is None:
            self._known = Questions(self._round.rules.grace, self._end, self._loop)
        return self._known

    async def __call__(self, exchange: Exchange) -> Result:
        if self._round.sealed is not None:
            state = self._round.state(self._round.sealed)
            if state.nonce:
                await self._round.use_up(state)
            self._asked, self._answers, self._done = state.asked, state.answers, state.done
        loop = self._loop = asyncio.get_running_loop()
        task = self._task = task_of(loop)
        assert task is not None
        self._uses_before = getattr(loop, "uses", -1)
        try:
            result = await self._handler(exchange)
        except BaseException as error:
            if not self._over:
                raise
            result = {}
            if not isinstance(error, asyncio.CancelledError):
                log.debug("= a run that was ended to ask failed on its way out", exc_info=error)
        finally:
            self._close()
        if not self._over:
            return result  # a question nobody waits for any more is not asked
        if (task.uncancel() if self._cancelled else task.cancelling()) > self._cancelled_before:
            raise asyncio.CancelledError  # somebody else has ended it meanwhile
        return self._ask_client()

    def _close(self) -> None:
        """Threads and tasks that outlive the run are told: nobody answers them any more."""
        self._closed = True
        if self._known is not None:
            self._known.close()
            for waiting in self._waiting:
                waiting.cancel()
        self._task = None  # which knows this run: without the circles it is freed at once

    def _ask_client(self) -> Result:
        asking, questions = self._round, self._known or self._questions()
        single = asking.rules.single_use(asking.method, self._params)
        state = asking.state_of(urandom(12).hex() if single else "")
        state.asked, state.answers, state.done = self._asked | questions.digests, self._answers, self._done
        return asking.input_required(questions.open, state)

    def _end(self) -> None:
        """The round is over: so is this run, by ordinary cancellation."""
        task = self._task
        if task is None or all(map(_is_done, self._waiting)):
            return  # it is closed, or all who asked are being cancelled by others, and no longer want to know
        if self._over:
            for waiting in self._waiting:
                waiting.cancel()
            return
        self._over = self._cancelled = True
        self._cancelled_before = task.cancelling()  # a TaskGroup may have left some behind (3.11)
        task.cancel()
        if not all(map(_is_done, self._waiting)):  # beside the run itself, whose wait is over by this
            self._questions().look_again()  # at a run that swallowed this: it must not wait for answers of this round

    async def ask(self, exchange: Served, question: Question) -> Result:
        """The answer, if it is there already; else the end of this run. After that nothing is asked."""
        if self._over or self._closed:
            raise asyncio.CancelledError(ENDED)
        questions = self._known or self._questions()
        key, digest = questions.key_of(question)
        before = self._asked.get(key)
        if before != digest:  # what was asked already may be answered by a request that no longer says it can
            check_can_ask(exchange.revision, exchange.peer, question)
        elif (kept := self._answers.get(key)) is not None:
            questions.digests[key] = digest
            return read_members(kept)  # it was judged when it came, as an answer to this very question
        given = self._round.given.pop(key, None)  # a malformed one counts once: who asks again is asked again
        if given is not None and (before is None or before == digest):
            members = check_answer(question, given)  # without a state, which is an empty one, they match by key alone
            questions.digests[key] = digest
            self._answers[key] = bytes(given)
            return members
        if before == digest:  # unanswered: this very request must say that it can be asked (patterns/mrtr)
            check_can_ask(exchange.revision, exchange.peer, question)
        self._answers.pop(key, None)  # it was given to another question
        loop = self._loop or asyncio.get_running_loop()
        task = task_of(loop)
        if questions.quiet and self._is_alone(loop, task):
            self._over = True
            questions.digests[key], questions.open[key] = digest, question
            raise asyncio.CancelledError(ENDED)
        if questions.acting and is_part_of_an_act():  # which the round waits for, as it would for the answer
            raise LocalError("what is done once() cannot ask: ask before it, and give it the answer")
        questions.add(key, digest, question, alone=task is self._task)
        waiting: asyncio.Future[Result] = loop.create_future()
        self._waiting.append(waiting)
        try:
            return await waiting  # only a cancellation wakes it
        except asyncio.CancelledError:
            if not self._over or self._takes_back():
                questions.withdraw(key)
            raise

    def _is_alone(self, loop: Any, task: asyncio.Task[Any] | None) -> bool:
        """Does the run itself ask, and is it known that no task was made and no timeout begun since it began? Then none
        of them can ask, too, fail or be over, and it is unwound where it asks, without waiting for that."""
        if task is None or task is not self._task or self._uses_before < 0 or loop.uses != self._uses_before:
            return False
        return not task.cancelling()

    def _takes_back(self) -> bool:
        """Did somebody else cancel the run in the very turn in which it was ended to ask? Then it is theirs: a timeout
        is over, or what failed beside the question makes it needless."""
        task = self._task
        if task is None or self._closed or task.cancelling() <= self._cancelled_before + 1:
            return False
        self._over = self._cancelled = False
        task.uncancel()
        return True

    def begin_once(self, key: str) -> bytes | None:
        """What an earlier round did under this key; None: do it now."""
        found = self._done.get(key)
        if found is None:
            if self._over or self._closed:
                raise asyncio.CancelledError(ENDED)  # it would be cut off: the next round does it
            self._questions().acts(key)
        return found

    def end_once(self, key: str, result: bytes | None) -> None:
        if result is not None:
            self._done[key] = result
        self._questions().acted(key)
