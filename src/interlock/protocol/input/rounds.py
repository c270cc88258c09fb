"""What both ways of asking a stateless client share: the sealed state, the keys, and when a round is over.

A round ends when nothing more is asked within a few turns of the loop (or a grace, if one is set), so questions asked
together travel together (2026-07-28 basic/patterns/mrtr).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from ...wire.errors import InternalError, InvalidParams, LocalError
from ...wire.exchange import Principal, Question, Result
from ...wire.json.decoder import decoder
from ...wire.json.reader import read_json, read_members
from ..request import Served
from .form_schema import check_content
from .settings import AskingRules
from .validation import check_answer

__all__ = ["Open", "State", "Round", "Questions", "STATE_REFUSED", "read_state"]

STATE_REFUSED = "requestState is not valid for this request: start again without it"
"""The one text for every state that is not ours, not theirs, not of this request or not of this time."""
_TURNS = 4  # enough for a task that was just made to ask too, and for a failure beside it to withdraw a question
_DIGEST = 16  # bytes
_WORDS = {"elicitation/create": "elicit", "sampling/createMessage": "sample", "roots/list": "roots"}


def _nobody() -> None: ...


class Open(msgspec.Struct, frozen=True):
    """A question as far as an answer to it can be judged without running the function that asks it."""

    method: str
    form: dict[str, Any] | None = None

    @classmethod
    def of(cls, question: Question) -> Open:
        return cls(question.method, question.params.get("requestedSchema"))

    def check(self, answer: Raw) -> None:
        members = check_answer(Question(self.method, {}), answer)
        if self.form is not None and members.get("action") == "accept":
            check_content(self.form, members.get("content"))


class State(msgspec.Struct, array_like=True):
    """What travels in `requestState`: short, since it travels out and back with every round."""

    request: bytes
    """Whose it is and what it asks for, as a digest."""
    began: float
    until: float
    nonce: str = ""
    """Of a state that counts once."""
    ticket: str = ""
    """Of a parked run; replays carry the rest instead."""
    asked: dict[str, bytes] = {}
    """Every question so far by key, as a digest: an answer counts only for the question it was given to."""
    open: dict[str, Open] = {}
    """What is asked now, where the state counts once: a malformed answer is refused before it is used up."""
    answers: dict[str, bytes] = {}
    """As JSON; all of them were judged in the round they came in."""
    done: dict[str, bytes] = {}


_states = msgspec.msgpack.Decoder(State)
_write_state = msgspec.msgpack.Encoder().encode


class Round(msgspec.Struct, eq=False):
    """One request that may ask: what came with it, and the state that it gives back."""

    rules: AskingRules
    method: str
    sealed: str | None
    given: dict[str, Raw]
    # not the exchange itself, which knows its rounds: a circle would outlive its request
    _principal: Principal
    _raw: Raw | None
    _request: bytes | None = None
    _began: float | None = None

    @classmethod
    def of(cls, rules: AskingRules, exchange: Served) -> Round:
        params: Any = exchange.params
        return cls(
            rules,
            exchange.method,
            None if params.request_state is UNSET else params.request_state,
            dict(params.input_responses or ()),
            exchange.peer.principal,
            exchange.raw,
        )

    @property
    def request(self) -> bytes:
        """Whose it is and what it asks for, as a digest; made only when somebody asks or brings a state."""
        if self._request is None:
            who = self._principal
            said = (self.rules.audience, who.issuer, who.subject, who.client, self.method, _asked_for(self._raw))
            self._request = _digest(_sorted(said))
        return self._request

    def state(self, sealed: str) -> State:
        """The state that came, everything about it verified; every failure is told in the same words.

        One with a nonce counts only after `use_up`.
        """
        state = read_state(self.rules, sealed)
        if state is None or state.request != self.request or self.rules.clock() >= state.until:
            raise InvalidParams(STATE_REFUSED)
        self._began = state.began
        return state

    async def use_up(self, state: State) -> None:
        """Once. Nothing has run yet, so who sent a malformed answer may send a right one with the same state."""
        for key, question in state.open.items():
            if key in self.given:
                question.check(self.given[key])
        if not await self.rules.sealer.consume(state.nonce, state.until):
            raise InvalidParams(STATE_REFUSED)

    def state_of(self, nonce: str = "", ticket: str = "") -> State:
        """One for the next round, to be filled."""
        rules = self.rules
        now = rules.clock()
        began = self._began or now
        return State(self.request, began, min(now + rules.seconds, began + rules.total_seconds), nonce, ticket)

    def input_required(self, questions: Mapping[str, Question], state: State) -> Result:
        """The result that asks them, its state sealed."""
        if state.nonce:
            state.open = {key: Open.of(question) for key, question in questions.items()}
        sealed = self.rules.sealer.seal(_write_state(state))
        if len(sealed) > self.rules.state_bytes:
            told = f"The answers and acts so far take {len(sealed)} bytes, more than the {self.rules.state_bytes}"
            raise InternalError(told + " that may travel between rounds")
        asked: dict[str, Any] = {}
        for key, each in questions.items():
            asked[key] = {"method": each.method, "params": each.params}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": sealed}


def read_state(rules: AskingRules, sealed: str) -> State | None:
    """What we sealed, whoever shows it; None for anything else."""
    payload = rules.sealer.open(sealed) if len(sealed) <= rules.state_bytes else None
    try:
        return None if payload is None else _states.decode(payload)
    except msgspec.DecodeError:
        return None  # of an older version of ours


class Questions(msgspec.Struct, eq=False):
    """What one run asks: keys, digests, and the moment at which nothing more is asked."""

    _grace: float
    _on_quiet: Callable[[], None]
    loop: asyncio.AbstractEventLoop | None = None
    digests: dict[str, bytes] = {}
    open: dict[str, Question] = {}
    _repeats: dict[str, int] = {}
    _acting: set[str] = set()
    _check: asyncio.Handle | None = None

    def key_of(self, question: Question) -> tuple[str, bytes]:
        """The key of a question, and its digest."""
        said = question.identity or _sorted([question.method, question.params])
        digest = _digest(said)  # made anew: a question may hold what is nobody else's, and is kept for no other run
        key = question.key or f"{_WORDS.get(question.method, 'ask')}-{digest.hex()[:12]}"  # whatever else is asked
        if self.digests.get(key, digest) != digest:
            raise LocalError(f"the key {key!r} stands for two different questions: give each its own")
        return self._numbered(key), digest

    def _numbered(self, key: str) -> str:
        """What is asked once more is a question of its own, as it is to a client that is called back: who asks until
        an answer will do would else be given the first one for ever."""
        if key not in self.digests:
            return key
        count = self._repeats.get(key, 2)  # not from the first one on: a client may send answers ahead, and many
        while (own := f"{key}#{count}") in self.digests:
            count += 1
        self._repeats[key] = count
        return own

    @property
    def quiet(self) -> bool:
        """Is nothing asked, nothing under way, and nobody to be waited for?"""
        return not self.open and not self._acting and self._grace <= 0

    def add(self, key: str, digest: bytes, question: Question, *, alone: bool = False) -> None:
        """`alone`: the run itself asks, none of its tasks, so that it asks nothing else meanwhile."""
        self.digests[key], self.open[key] = digest, question
        if alone and self._check is None and self._grace <= 0 and len(self.open) == 1 and self.loop is not None:
            self._check = self.loop.call_soon(self._quiet)  # as almost always
        else:
            self.look_again(0 if alone and len(self.open) == 1 else _TURNS)

    def withdraw(self, key: str) -> None:
        """The part of the run that asked was cancelled by another: it is not asked any more."""
        self.open.pop(key, None)
        if not self.open:
            self.stop()

    def look_again(self, turns: int = _TURNS) -> None:
        """A few turns of the loop after the last question, or the grace, the round is over.

        Tasks that the run made before get their first turn in any case.
        """
        self.stop()
        loop = self.loop = self.loop or asyncio.get_running_loop()
        if self._grace > 0:
            self._check = loop.call_later(self._grace, self._quiet)
        elif turns:
            self._check = loop.call_soon(self.look_again, turns - 1)
        else:
            self._check = loop.call_soon(self._quiet)

    def _quiet(self) -> None:
        self._check = None
        if not self._acting:  # what was begun is finished first: its result must not be lost
            self._on_quiet()

    def stop(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def close(self) -> None:
        """The run is over: whoever it was does not want to know any more."""
        if self._check is not None:
            self.stop()
        self._on_quiet = _nobody

    @property
    def acting(self) -> bool:
        """Is an act under way?"""
        return bool(self._acting)

    def acts(self, key: str) -> None:
        """An act that must be done once is under way: no round ends meanwhile."""
        if key in self._acting:
            raise LocalError(f"once({key!r}) is under way already: give each act its own key")
        self._acting.add(key)

    def acted(self, key: str) -> None:
        self._acting.discard(key)
        if self.open and not self._acting:
            self.look_again()


_sorted = msgspec.json.Encoder(order="sorted").encode  # the same bytes however its members came


def _digest(said: bytes) -> bytes:
    return blake2b(said, digest_size=_DIGEST).digest()


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    """The params that almost all requests have; what differs between rounds is not even read."""

    name: str = ""
    uri: str = ""
    arguments: Raw = Raw(b"{}")  # absent ones are none
    _meta: Raw = Raw(b"")
    inputResponses: Raw = Raw(b"")
    requestState: Raw = Raw(b"")


_known = decoder(_Known)


def _asked_for(raw: Raw | None) -> tuple[str, str, Any, dict[str, Any]]:
    """All params but those that differ between rounds; absent arguments are none."""
    try:
        try:
            found = _known.decode(raw or b"{}")
            return found.name, found.uri, read_json(found.arguments), {}
        except msgspec.ValidationError:  # with more members, all of which count
            members = read_members(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidParams(f"Invalid params: {error}") from None
    for name in ("_meta", "inputResponses", "requestState"):
        members.pop(name, None)
    return "", "", members.pop("arguments", {}), members
