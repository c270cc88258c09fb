"""The one place through which everything goes that a host does in its user's name.

    result = await gate.through(deed, send)

In this order: is what it uses approved and unchanged (pins)? What do the rules say (policy)? Does the person agree
(consent)? Only then `send` is called, with exactly the arguments that were decided on, and with a deadline. What comes
back is cut where it is too long, and all of it is in the audit: the decision before anything is sent, the outcome
after. Starting a server (`launch`) and taking over what it offers (`admit`) are decided in the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from ...client.results import CallResult
from ...wire.errors import CallTimeout, LocalError, StoreError
from ...wire.escaping import display
from ...wire.exchange import LOCAL, Principal
from ..launch.launch import Launch
from ..launch.warnings import dangers
from ..user import Absent, User
from .action import KINDS, Deed, Kind, ServerGone
from .audit import Audit, MemoryAudit
from .audit_writer import Ledger
from .consent_queue import Consent, How
from .deadlines import Deadline, Deadlines
from .decisions import Judge, Question, Ruling
from .diffs import compared
from .permissions import Leaves
from .pins import Comparison, Definition, Item, Pins, Quarantined
from .policy import Policy
from .quarantine import Admission, Cost
from .result_cap import Cap

__all__ = ["Gate"]

T = TypeVar("T")
_FROM_SERVERS = ("tool", "resource", "prompt", "completion")  # what comes back is a server's, and capped
_TAKEN_BACK = "taken back", "the user took back what was said before"
_REMOVED = "removed", "the server was removed from this host"


class Gate:
    """Without a `user` nobody is there, without a `policy` everything that acts is asked about: so a gate made of
    nothing lets nothing through but what its policy allows.

    `deadline` is for sending, in seconds, and can be given for each call; `consent_seconds` for an answer of the
    person, `most_waiting` for the number of questions that wait for one. `hide` are texts that are never written down.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        user: User | None = None,
        pins: Pins | None = None,
        audit: Audit | None = None,
        cap: Cap | None = None,
        principal: Principal = LOCAL,
        *,
        leaves: Leaves | None = None,
        hide: Iterable[str] = (),
        deadline: float = 3600.0,
        consent_seconds: float = 600.0,
        most_waiting: int = 64,
    ) -> None:
        self.policy = policy if policy is not None else Policy()
        self.user: User = user if user is not None else Absent()
        self.audit: Audit = audit if audit is not None else MemoryAudit()
        self.cap = cap if cap is not None else Cap()
        self.leaves = leaves if leaves is not None else Leaves()
        self.principal, self._deadline = principal, deadline
        self._deadlines = Deadlines()
        self._ledger = Ledger(self.audit, hide, self._unwritten)
        self._consent = Consent(self.user, seconds=consent_seconds, waiting=most_waiting)
        self._judge = Judge(self.policy, self.leaves, self._consent, self._ledger, self.user)
        self._admission = Admission(pins if pins is not None else Pins(), self.policy, self._judge, principal)

    def hide(self, values: Iterable[str]) -> None:
        """More texts that are never written down, such as the secrets of a server that is about to start."""
        self._ledger.hide(values)

    def close(self) -> None:
        self._deadlines.close()
        self._ledger.flush()
        self.audit.close()

    # --- doing things -----------------------------------------------------------------------------

    async def through(
        self,
        deed: Deed,
        send: Callable[[Any], Awaitable[T]],
        *,
        deadline: float | None = None,
        consent: How | None = None,
    ) -> T:
        """Do it, if it may be done: `send` gets the arguments that were decided on, which the person may have edited.

        Raises `Denied` when it may not, `AuditFailed` when that cannot be written down, and what `send` raises.
        `consent` shows the question in a way of its own, where it has to be asked: a page, or a request to be edited.
        """
        matter = deed.matter
        if matter.principal is None:
            deed = deed.by(self.principal)
        look = self._admission.question if consent is None else partial(self._look, how=consent)
        if matter.kind == "roots":
            look = partial(self._look, how=consent)
        ruling = self._judge.at_once(deed, look) or await self._judge.ask(deed, look)
        deed, began, seconds = ruling.deed, time.perf_counter(), self._deadline if deadline is None else deadline
        if watched := self._judge.is_watched():
            self._judge.tell("calling", deed)
        limit = self._deadlines.begin(seconds, matter.server)
        try:
            result = await send(deed.arguments)
        except BaseException as error:
            told = self._failed(ruling, began, error, limit, seconds)
            if told is error:
                raise
            raise told from error
        finally:
            self._deadlines.end(limit)
        if limit.expired:
            limit.caused()  # it was answered at the last moment, and is not cancelled any more
        return self._received(ruling, began, result, watched)

    def _look(self, deed: Deed, how: How | None = None) -> Question:
        if deed.kind == "roots":
            return Question(pin=deed.digest, how=how)  # leave is for these folders, not for whatever is added later
        found = self._admission.question(deed)
        return found if how is None else found._replace(how=how)

    def _failed(
        self, ruling: Ruling, began: float, error: BaseException, limit: Deadline, seconds: float
    ) -> BaseException:
        """Tell it and write it down; what is raised is the error itself, or that our own deadline ended it."""
        deed = ruling.deed
        if limit.caused() and isinstance(error, asyncio.CancelledError):
            error = ServerGone(deed.server, limit.cut) if limit.cut else CallTimeout(deed.kind, seconds, "total")
        if isinstance(error, TimeoutError):
            self._judge.tell("cancelled", deed, f"{deed} took too long: the server was asked to stop")
            self._ledger.ended(deed, ruling.call, began, "timeout", str(error))
        elif isinstance(error, asyncio.CancelledError):
            self._judge.tell("cancelled", deed, f"{deed} was cancelled: the server was asked to stop")
            self._ledger.ended(deed, ruling.call, began, "cancelled")
        else:
            self._judge.tell("done", deed, f"{deed} failed")
            self._ledger.ended(deed, ruling.call, began, "failed", f"{type(error).__name__}: {error}")
        return error

    def _received(self, ruling: Ruling, began: float, result: Any, watched: bool) -> Any:
        deed, matter = ruling.deed, ruling.deed.matter
        if matter.kind not in _FROM_SERVERS:
            self._ledger.ended(deed, ruling.call, began, "done")
            return result
        capped = self.cap.apply(matter.server, result)
        if capped.cut:
            self._judge.tell("cut", deed, f"{deed}: a part of the result is left out and kept here")
        failed = isinstance(result, CallResult) and result.is_error
        if watched:
            self._judge.tell("done", deed)
        outcome = "tool_error" if failed else "done"
        self._ledger.ended(deed, ruling.call, began, outcome, size=capped.size, cut=capped.cut)
        return capped.result

    def _unwritten(self, deed: Deed, failed: StoreError) -> None:
        """It is done, and its decision is in the book: a result is not thrown away because its line cannot be written,
        but the next deed will not be done."""
        self._judge.tell("audit", deed, f"how it ended was not written down: {display(str(failed), 300)}")

    # --- servers ----------------------------------------------------------------------------------

    async def launch(self, launch: Launch) -> None:
        """May this be started or connected to? Returns when it may and raises `Denied` when not. Leave is bound to the
        digest: whatever changes is shown again, beside what was approved before."""
        deed = Deed("launch", launch.server, launch.server, launch.arguments, principal=self.principal)
        before = self._last_shown(deed)
        question = Question(
            pin=launch.digest,
            shown=launch.text,
            diff=compared(before, launch.text) if before and before != launch.text else "",
            warnings=dangers(launch.arguments),
        )
        await self._judge.rule(deed, lambda _: question)

    def _last_shown(self, deed: Deed) -> str:
        try:
            return self.leaves.last_shown(deed)
        except StoreError:
            return ""  # it is asked about all the same, without what it was

    async def admit(
        self, server: str, definitions: Iterable[Definition], *, identity: str = "", cost: Cost | None = None
    ) -> Comparison:
        """Take over what a server offers (`pins.Definitions`), whenever it may have changed; only what is `admitted` in
        the answer can be used. `identity` is where it is or how it is started, `cost` tells the tokens of one thing."""
        return await self._admission.admit(server, definitions, identity=identity, cost=cost)

    async def review(self, server: str, item: Item) -> bool:
        """Ask the person about one thing in quarantine; True when it may be used from now on."""
        return await self._admission.review(server, item)

    def ask_again(self, server: str) -> None:
        """The person wants this server: what it offers is asked about the next time, even after a no."""
        self._admission.ask_again(server)

    def admitted(self, server: str) -> frozenset[Item]:
        return self._admission.admitted(server)

    def quarantined(self, server: str) -> tuple[Quarantined, ...]:
        return self._admission.quarantined(server)

    def forget(self, server: str) -> None:
        """It is gone: nothing of it can be used, and nothing that it gave is kept. Its pins and leaves stay."""
        self._admission.forget(server)
        self.cap.forget(server)

    # --- servers that come and go -----------------------------------------------------------------

    def added(self, server: str) -> None:
        """Into the book, or it is not added. Whether it may be started is decided by itself."""
        deed = Deed("launch", server, server, principal=self.principal)
        self._ledger.decided(deed, "ask", "added", "it was added while the host runs; its start is decided on next")

    def removed(self, server: str) -> None:
        self._refused(Deed("launch", server, server, principal=self.principal), *_REMOVED)

    def withdraw(self, server: str) -> None:
        """Whatever is being asked about it, or waits to be asked, ends with no."""
        self._consent.withdraw(server)

    def calls_at(self, server: str) -> list[Deadline]:
        """Whatever is being done there now."""
        return self._deadlines.at(server)

    def end_calls(self, calls: list[Deadline], how: str) -> None:
        """Those that are still being done end: their server is gone (`how`), and an answer cannot come."""
        self._deadlines.cut(calls, how)

    async def end_leaves(self, server: str, *, but: Kind | None = None) -> None:
        """Those that it has left behind; `but` those of one kind."""
        kinds = self._answered(server, None) - {but}
        await self.leaves.forget(server, but=but, principal=self.principal)
        for each in sorted(kinds, key=KINDS.index):
            self._refused(Deed(each, server, "*", principal=self.principal), *_REMOVED)

    async def forget_for_good(self, server: str) -> None:
        """As if there had never been one of that name."""
        await self.leaves.forget(server, principal=self.principal)
        await self._admission.take_back(server)

    # --- what is taken back -----------------------------------------------------------------------

    async def forget_leaves(self, server: str, *, kind: Kind | None = None, name: str | None = None) -> None:
        """No answer counts any more that was to last: about one kind of deed, about one thing, or about all."""
        if kind is not None and (kind not in KINDS or kind == "definitions"):
            told = f"there is no leave for {display(str(kind), 40)!r} that lasts"
            raise LocalError(f"{told}: what a server offers is taken back with all of it, by neither kind nor name")
        kinds: set[Kind] = self._answered(server, name) if kind is None else {kind}
        await self.leaves.forget(server, kind=kind, name=name, principal=self.principal)
        for each in sorted(kinds, key=KINDS.index):
            self._refused(Deed(each, server, "*" if name is None else name, principal=self.principal), *_TAKEN_BACK)

    def _answered(self, server: str, name: str | None) -> set[Kind]:
        try:
            kept = self.leaves.all(server, self.principal)
        except StoreError:
            return set()  # those of the session go all the same, and who takes them back is told of the rest
        return {each.kind for each in kept if name in (None, each.name)}

    async def take_back(self, server: str) -> None:
        """As if it had never offered anything: no approved definition of it counts any more, however it was started."""
        self.forget(server)
        await self._admission.take_back(server)
        self._refused(Deed("definitions", server, "*", principal=self.principal), *_TAKEN_BACK)

    def _refused(self, deed: Deed, rule: str, because: str) -> None:
        """Into the book. It is so already: a book that cannot be written keeps nobody from saying no."""
        try:
            self._ledger.decided(deed, "deny", rule, because)
        except StoreError as failed:
            self._judge.tell("audit", deed, f"not written down that it was {rule}: {display(str(failed), 300)}")
