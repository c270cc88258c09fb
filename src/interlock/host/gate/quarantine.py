"""What of a server may be used now: all that was approved and is still as it was.

The first time a server shows what it offers, the person approves all of it as one; from then on, what is new or has
changed waits in quarantine until somebody looks at it (`review`). A rule of the policy can decide instead, about deeds
of the kind `definitions`: named "first" for the whole, and "tool: name" or the like for one thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from hashlib import sha256

import msgspec

from ...wire.errors import LocalError
from ...wire.escaping import display
from ...wire.exchange import Principal
from .action import Deed, Denied, Matter, keep
from .consent_text import offer, shown
from .decisions import Judge, Question, Ruling
from .pins import Comparison, Definition, Item, Pins, Quarantined
from .policy import Policy

__all__ = ["Admission", "Cost"]

Cost = Callable[[Definition], int]
_MOST_TOLD = 20  # notices about one listing; of the others the number is told
_MOST_KEPT = 4096  # questions of one offer; with more, all are made anew
_LONGEST_TOLD = 4_000  # characters of a difference in a notice; whoever approves it sees all of it
_REVIEW = "look at what it is now and approve it (review), or do not use it"
_PLAIN = Question()


class _Offer(msgspec.Struct, kw_only=True):
    identity: str
    listed: list[Definition]
    comparison: Comparison
    definitions: dict[Item, Definition]
    quarantined: dict[Item, Quarantined]
    questions: dict[Matter, Question] = {}
    """Of what was used. They are gone with the offer: what changed is looked at anew."""


class Admission:
    """Of all servers of a host, for one person."""

    def __init__(self, pins: Pins, policy: Policy, judge: Judge, principal: Principal) -> None:
        self._pins, self._policy, self._judge, self._principal = pins, policy, judge, principal
        self._offers: dict[str, _Offer] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._told: dict[str, set[Quarantined]] = {}
        self._refused: set[str] = set()

    # --- what is offered --------------------------------------------------------------------------

    async def admit(
        self, server: str, definitions: Iterable[Definition], *, identity: str = "", cost: Cost | None = None
    ) -> Comparison:
        """Take over what a server offers now; to be called whenever that may have changed. From the moment of the
        call on, nothing is used that is not as it was approved, whatever comes of the questions."""
        self._compare(server, list(definitions), identity)
        async with self._turns.setdefault(server, asyncio.Lock()):
            now = self._offers[server]  # somebody may have come with a newer one meanwhile
            approved, lasting = await self._approved(server, now, cost)
            await self._approve(server, now, approved, lasting)
            if server in self._offers:  # and was not removed meanwhile
                self._tell(server)
            return self._offers.get(server, now).comparison

    async def _approved(self, server: str, now: _Offer, cost: Cost | None) -> tuple[list[Definition], bool]:
        """What may be used from now on, and whether that outlasts this program."""
        fresh = [now.definitions[each.item] for each in now.quarantined.values() if each.change not in _STUCK]
        if now.comparison.first:
            return await self._whole(server, fresh, cost)
        return [definition for definition in fresh if await self._by_rule(server, definition)], True

    async def _whole(self, server: str, fresh: list[Definition], cost: Cost | None) -> tuple[list[Definition], bool]:
        """After a no it is not asked about again until the user wants that: a server must not be able to ask by
        changing, nor by coming back."""
        if not fresh or server in self._refused:
            return [], False
        ruling = await self._first(server, fresh, cost)
        if ruling is not None:
            return fresh, _lasts(ruling)
        self._refused.add(server)
        return [], False

    async def _first(self, server: str, fresh: list[Definition], cost: Cost | None) -> Ruling | None:
        digest = sha256("".join(sorted(definition.digest for definition in fresh)).encode()).hexdigest()
        deed = self._deed(server, "first", {"digest": digest, "items": len(fresh)})
        by_item = {definition.item: definition for definition in fresh}
        costs = {definition.item: cost(definition) for definition in fresh} if cost is not None else {}
        return await self._rule(deed, Question(pin=digest, shown=offer(server, by_item, costs)))

    async def _by_rule(self, server: str, definition: Definition) -> bool:
        """One changed thing is not asked about at once: a server must not be able to ask by changing."""
        deed = self._of_item(server, definition)
        return self._policy.decide(deed).decision == "allow" and await self._rule(deed, _PLAIN) is not None

    async def _rule(self, deed: Deed, question: Question) -> Ruling | None:
        try:
            return await self._judge.rule(deed, lambda _: question)
        except Denied:
            return None

    async def review(self, server: str, item: Item) -> bool:
        """Ask the person about one thing in quarantine, with what changed; True when it may be used from now on."""
        now = self._offers.get(server)
        found = now.quarantined.get(item) if now is not None else None
        if now is None or found is None or found.change in _STUCK:
            raise LocalError(f"{display(server, 100)}: {_name(item)} is not there to be approved")
        definition = now.definitions[item]
        deed = self._of_item(server, definition)
        text = f"{shown(deed)}\n{offer(server, {item: definition}, {})}"
        ruling = await self._rule(deed, Question(pin=definition.digest, shown=text, diff=found.diff))
        if ruling is None:
            return False
        if server not in self._offers:
            return False  # all of it was taken back while it was being looked at
        await self._approve(server, now, [definition], _lasts(ruling))
        return item in self.admitted(server)

    async def _approve(self, server: str, now: _Offer, approved: list[Definition], lasting: bool) -> None:
        if approved:
            await self._pins.approve(server, approved, identity=now.identity, lasting=lasting)
        if (latest := self._offers.get(server)) is not None:  # nothing comes back of one that was forgotten meanwhile
            self._compare(server, latest.listed, latest.identity)

    def _compare(self, server: str, listed: list[Definition], identity: str) -> None:
        comparison = self._pins.compare(server, listed, identity=identity)
        self._offers[server] = _Offer(
            identity=identity,
            listed=listed,
            comparison=comparison,
            definitions={definition.item: definition for definition in listed},
            quarantined={each.item: each for each in comparison.quarantined},
        )

    def ask_again(self, server: str) -> None:
        """The next time it shows what it offers, the person is asked even after a no."""
        self._refused.discard(server)

    def forget(self, server: str) -> None:
        """It is gone: nothing of it can be used, and what was refused is asked about when it comes again. Its pins
        stay."""
        self._offers.pop(server, None)
        self._told.pop(server, None)
        self.ask_again(server)
        if server in self._turns and not self._turns[server].locked():
            del self._turns[server]

    async def take_back(self, server: str) -> None:
        """Nothing of it is approved any more; the next time it comes, all of it is asked about."""
        now = self._offers.get(server)
        self.forget(server)
        await self._pins.forget(server, now.identity if now is not None else "")

    # --- what may be used -------------------------------------------------------------------------

    def admitted(self, server: str) -> frozenset[Item]:
        now = self._offers.get(server)
        return frozenset(now.comparison.admitted) if now is not None else frozenset()

    def quarantined(self, server: str) -> tuple[Quarantined, ...]:
        now = self._offers.get(server)
        return now.comparison.quarantined if now is not None else ()

    def question(self, deed: Deed) -> Question:
        """What belongs to a deed; raises `Denied` as `check` does."""
        matter = deed.matter
        now = self._offers.get(matter.server)
        kept = now.questions.get(matter) if now is not None else None
        if kept is not None:
            return kept
        used = self.check(deed)
        if used is None or now is None:
            return _PLAIN
        found = Question(pin=used[0], definition=used[1])
        keep(now.questions, matter, matter, found, _MOST_KEPT)
        return found

    def check(self, deed: Deed) -> tuple[str, Definition] | None:
        """The approved definition of what a deed uses and its pin, None where it uses none; raises `Denied` if what it
        uses is not as it was approved."""
        if deed.kind == "completion":
            self._check_completion(deed)
        if deed.kind not in ("tool", "prompt"):
            return None
        now = self._offers.get(deed.server)
        if now is None:
            raise Denied(deed, "nothing of this server was approved", rule="pins", hint="approve what it offers first")
        item = Item(deed.kind, deed.name)
        pin = now.comparison.admitted.get(item)
        if pin is None:
            raise self._quarantine(deed, now.quarantined.get(item))
        return pin, now.definitions[item]

    def _check_completion(self, deed: Deed) -> None:
        """Its name is the one of a prompt or the address of a template."""
        now = self._offers.get(deed.server)
        for item in (Item("prompt", deed.name), Item("template", deed.name)):
            found = now.quarantined.get(item) if now is not None else None
            if found is not None and found.change != "vanished":
                raise self._quarantine(deed, found)

    def _quarantine(self, deed: Deed, found: Quarantined | None) -> Denied:
        if found is None:
            return Denied(deed, "the server does not offer it", rule="pins", hint="look at what it offers now")
        return Denied(deed, f"its definition is in quarantine: {_CHANGES[found.change]}", rule="pins", hint=_REVIEW)

    # --- words ------------------------------------------------------------------------------------

    def _deed(self, server: str, name: str, arguments: object) -> Deed:
        return Deed("definitions", server, name, arguments, principal=self._principal)

    def _of_item(self, server: str, definition: Definition) -> Deed:
        return self._deed(server, _name(definition.item), {"digest": definition.digest})

    def _tell(self, server: str) -> None:
        """What was not told before, so that a server that changes all the time does not fill a screen."""
        now = self._offers[server]
        before, current = self._told.get(server, set()), set(now.comparison.quarantined)
        self._told[server] = current
        news = [each for each in now.comparison.quarantined if each not in before and each.change != "unapproved"]
        for each in news[:_MOST_TOLD]:
            text = f"{_name(each.item)} of {display(server, 100)!r}: {_CHANGES[each.change]}"
            told = f"{text}\n{_cut(each.diff)}".rstrip()
            self._judge.tell("quarantined", self._deed(server, each.item.name, None), told)
        if len(news) > _MOST_TOLD:
            text = f"and {len(news) - _MOST_TOLD} more things of {display(server, 100)!r} that are not as approved"
            self._judge.tell("quarantined", self._deed(server, "", None), text)


_STUCK = ("doubled", "vanished")  # there is nothing that could be approved
_CHANGES = {
    "unapproved": "it was never approved",
    "new": "it is new since the server was approved",
    "changed": "it changed since it was approved",
    "renamed": "it had another name when it was approved",
    "doubled": "its name stands for different things at once",
    "vanished": "it is not offered any more",
}


def _lasts(ruling: Ruling) -> bool:
    """Approved by a rule, or by the user for longer than this program runs."""
    return ruling.scope in ("", "always")


def _cut(diff: str) -> str:
    if len(diff) <= _LONGEST_TOLD:
        return diff
    return f"{diff[:_LONGEST_TOLD]}\n… and {len(diff) - _LONGEST_TOLD} more characters, which a review shows"


def _name(item: Item) -> str:
    return f"{item.kind}: {display(item.name, 200)}" if item.name else item.kind
