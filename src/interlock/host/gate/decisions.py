"""From a deed to a decision that is written down: policy, leaves given before, and the person, in this order.

Whoever gets a ruling may do what it says, with the arguments it says; everybody else gets `Denied`. Both are in the
audit by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ...wire.errors import LocalError, StoreError
from ...wire.escaping import display
from ..user import UNTOLD, Absent, Ask, Leave, Notice, NoticeKind, User
from .action import Deed, Denied, Verdict
from .audit_writer import Ledger
from .consent_queue import Consent, How
from .consent_text import about, shown, title, warnings
from .consent_text import question as summary
from .permissions import Kept, Leaves
from .pins import Definition
from .policy import Policy

__all__ = ["Judge", "Question", "Ruling"]

log = logging.getLogger("interlock.host")
_SAID_NO = "the user said no"


class Question(NamedTuple):
    """What is shown beside the deed itself, if it comes to that."""

    pin: str = ""
    """Leave is bound to it."""
    shown: str = ""
    """In the place of what is made of the deed."""
    definition: Definition | None = None
    """What the server says of it, where it is a tool or a prompt."""
    diff: str = ""
    warnings: tuple[str, ...] = ()
    how: How | None = None
    """How it is shown, other than by `User.allow`."""


class Ruling(msgspec.Struct, frozen=True):
    """It may be done: with these arguments, under this number. `scope` is how long the user's answer counts; empty
    where a rule decided."""

    deed: Deed
    call: str
    scope: str = ""


Look = Callable[[Deed], Question]


class Judge:
    """`look` says what belongs to a deed, and raises `Denied` where its definition is not approved. It is called again
    after every wait, since everything may have changed meanwhile."""

    def __init__(self, policy: Policy, leaves: Leaves, consent: Consent, ledger: Ledger, user: User) -> None:
        self._policy, self._leaves, self._consent = policy, leaves, consent
        self._ledger, self._user = ledger, user
        self._nobody_looks = type(user) is Absent

    async def rule(self, deed: Deed, look: Look) -> Ruling:
        return self.at_once(deed, look) or await self.ask(deed, look)

    def at_once(self, deed: Deed, look: Look) -> Ruling | None:
        """By rules, and by leave given before; None where a person has to be asked."""
        try:
            question = look(deed)
            verdict = self._policy.decide(deed)
            if verdict.decision == "allow":
                return Ruling(deed, self._ledger.decided(deed, "allow", verdict.rule, verdict.because))
            if verdict.decision == "deny":
                raise self._denied(deed, verdict)
            kept = self._kept(deed, verdict, question)
            return self._allowed(deed, verdict, "remembered") if kept else None
        except Denied as denied:
            self._refused(denied)
            raise

    async def ask(self, deed: Deed, look: Look) -> Ruling:
        try:
            return await self._ask(deed, look)
        except Denied as denied:
            self._refused(denied)
            raise

    async def _ask(self, deed: Deed, look: Look) -> Ruling:
        async with self._consent.turn(deed):
            question = look(deed)
            verdict = self._policy.decide(deed)
            if verdict.decision == "deny":
                raise self._denied(deed, verdict)
            if verdict.decision == "allow" or self._kept(deed, verdict, question):
                return self._allowed(deed, verdict, "remembered" if verdict.decision == "ask" else "")
            ask = self._question(deed, verdict, question)
            leave = await self._consent.answer(ask, question.how)
            if leave.granted:
                self._check_same(deed, look, question)  # leave for what is not there any more is not kept either
            await self._remember(deed, verdict, question, leave, ask.shown)
        if not leave.granted:
            raise Denied(deed, leave.because or _SAID_NO, rule=verdict.rule)
        self._check_same(deed, look, question)
        return self._given(deed, verdict, leave)

    def _check_same(self, deed: Deed, look: Look, question: Question) -> None:
        if look(deed).pin != question.pin:
            raise Denied(deed, "it changed while it was being asked about", rule="pins", hint="ask again")

    def _given(self, deed: Deed, verdict: Verdict, leave: Leave) -> Ruling:
        """With what the person made of it; a person cannot edit it past a rule that denies."""
        if leave.arguments is not None:
            deed = self._edited(deed, leave.arguments)
            anew = self._policy.decide(deed)
            if anew.decision == "deny":
                raise self._denied(deed, anew)
        return self._allowed(deed, verdict, leave.scope)

    def _edited(self, deed: Deed, arguments: Any) -> Deed:
        try:
            return deed.edited(arguments)
        except LocalError as error:
            raise Denied(deed, f"what it was edited to cannot be sent: {error}") from error

    def _question(self, deed: Deed, verdict: Verdict, question: Question) -> Ask:
        return Ask(
            deed=deed,
            shown=question.shown or shown(deed),
            why=verdict.because,
            title=title(deed, question.definition),
            about=about(question.definition),
            scopes=verdict.scopes,
            warnings=(*question.warnings, *warnings(deed)),
            diff=question.diff,
            question=summary(deed, verdict.because),
        )

    def _kept(self, deed: Deed, verdict: Verdict, question: Question) -> Kept | None:
        """Leave given before. A refusal that was to last is one still; what cannot be read is asked about again."""
        try:
            kept = self._leaves.find(deed, verdict.rule, question.pin)
        except StoreError as error:
            self.tell("audit", deed, f"leaves cannot be read: {display(str(error), 200)}")
            return None
        if kept is not None and not kept.granted:
            raise Denied(deed, f"{_SAID_NO} before, and for longer", rule=verdict.rule)
        return kept

    async def _remember(self, deed: Deed, verdict: Verdict, question: Question, leave: Leave, text: str) -> None:
        if deed.kind == "definitions":
            return  # what was approved is pinned instead
        try:
            await self._leaves.remember(deed, verdict.rule, question.pin, leave, text if deed.kind == "launch" else "")
        except StoreError as error:
            self.tell("audit", deed, f"the answer counts for this session only: {display(str(error), 200)}")

    # --- the end of it ----------------------------------------------------------------------------

    def _allowed(self, deed: Deed, verdict: Verdict, scope: str = "") -> Ruling:
        return Ruling(deed, self._ledger.decided(deed, "allow", verdict.rule, verdict.because, scope), scope)

    def _denied(self, deed: Deed, verdict: Verdict) -> Denied:
        return Denied(deed, verdict.because, rule=verdict.rule, hint="change the rule of the policy that denies it")

    def _refused(self, denied: Denied) -> None:
        """If it cannot be written down, that is said instead: nothing was done in either case."""
        self._ledger.decided(denied.deed, "deny", denied.rule, denied.because)
        self.tell("denied", denied.deed, str(denied))

    def is_watched(self) -> bool:
        """Does anybody look at every call, or the log for debugging?"""
        return not self._nobody_looks or log.isEnabledFor(logging.DEBUG)

    def tell(self, kind: NoticeKind, deed: Deed, text: str = "") -> None:
        """A user whose screen fails must not fail what is done."""
        if kind in UNTOLD and not self.is_watched():
            return
        try:
            self._user.tell(Notice(kind=kind, text=text or str(deed), server=deed.server, name=deed.name))
        except Exception:
            log.exception("! a notice could not be shown")
