"""Rules that decide what may be done: allowed, asked about, or denied.

Of all rules that apply to a deed the strictest counts, in whatever order they stand: deny before ask before allow.
Where none applies, the default of the deed's kind does. So adding a rule that denies or asks can only tighten, and
there is no rule that a later one could undo.

Three things never loosen by themselves:

- Hints are the server's own words about its tools (server/tools#tool: untrusted unless the server is trusted). A rule
  that allows because of them must say `trust_hints` and name its server.
- Data of other servers: a rule that allows covers them only if its `sources` say so, and neither do the defaults.
- A person who is asked and is not there: then nothing is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import UNSET

from ...client.config.parser import ConfigError
from ...wire.escaping import display
from ...wire.exchange import LOCAL, Principal
from ...wire.types.tools import ToolAnnotations
from .action import KINDS, Decision, Deed, Kind, Matter, Scope, Verdict, canonical, keep
from .conditions import Condition

__all__ = ["DEFAULTS", "Hint", "Policy", "Rule", "principal_text"]

Hint = Literal["read_only", "destructive", "idempotent", "open_world"]
_UNSAID: dict[Hint, bool] = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
_STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}
_MOST_KNOWN = 4096  # kinds of deeds whose rules are remembered; with more, all are looked up anew
_WILD = frozenset("*?[")

DEFAULTS: dict[Kind, Decision] = {
    "launch": "ask",
    "definitions": "ask",
    "tool": "ask",
    "resource": "ask",
    "prompt": "allow",  # prompts are chosen by the user and completions typed (server/prompts#user-interaction-model)
    "completion": "allow",
    "sampling": "ask",
    "sampling_answer": "ask",
    "elicitation": "ask",
    "open_url": "ask",
    "roots": "ask",
}
_SCOPES: dict[Kind, tuple[Scope, ...]] = {
    "sampling": ("once", "session"),
    "sampling_answer": ("once",),
    "elicitation": ("once",),  # to answer is to consent: neither lasts
    "open_url": ("once",),
    "definitions": ("once", "always"),  # until this program ends, or pinned until they change
}
_ALL_SCOPES: tuple[Scope, ...] = ("once", "session", "always")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Applies where everything that it says is true; what it leaves out does not matter to it.

    `server`, `name`, `sources` and `principal` are patterns with `*` and `?`; of several, one has to fit.
    """

    decision: Decision
    id: str = ""
    """For the audit, and what remembered leaves are bound to."""
    kind: tuple[Kind, ...] = ()
    server: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    """Of the tool or prompt, or the URI of the resource."""
    arguments: tuple[Condition, ...] = ()
    hints: dict[Hint, bool] = {}
    trust_hints: bool = False
    """Believe the hints of this server. Without it no rule allows because of hints."""
    sources: tuple[str, ...] | None = None
    """Other servers whose data may be in the arguments. Of a rule that allows: those it allows; of others: any."""
    principal: tuple[str, ...] = ()
    """Of `principal_text`: "interlock local" is whoever runs the process."""
    scopes: tuple[Scope, ...] = _ALL_SCOPES
    """Of a rule that asks: for how long leave may be given."""
    because: str = ""

    def __post_init__(self) -> None:
        called = f"rule {display(self.id, 60)!r}"
        if self.decision == "allow" and self.hints:
            if not self.trust_hints:
                raise ConfigError(
                    f"{called}: hints are the server's own words: to allow by them, say trust_hints = true"
                )
            if not self.server or any(_WILD & set(name) for name in self.server):
                raise ConfigError(f"{called}: trust_hints needs the names of the trusted servers")
        if not self.scopes:
            raise ConfigError(f"{called}: scopes must name one of once, session and always")

    def concerns(self, deed: Deed) -> bool:
        """Does everything but the arguments fit?"""
        return (
            (not self.kind or deed.kind in self.kind)
            and _fits(self.server, deed.server)
            and _fits(self.name, deed.name)
            and (not self.principal or _fits(self.principal, principal_text(deed.principal or LOCAL)))
            and all(hinted(deed.hints, hint) is wanted for hint, wanted in self.hints.items())
            and self._takes(deed.foreign)
        )

    def _takes(self, foreign: frozenset[str]) -> bool:
        if self.decision == "allow":
            return not foreign or (self.sources is not None and all(_fits(self.sources, name) for name in foreign))
        return self.sources is None or any(_fits(self.sources, name) for name in foreign)

    def applies(self, arguments: object) -> bool:
        if self.decision == "allow":
            return all(condition.surely(arguments) for condition in self.arguments)
        return all(condition.perhaps(arguments) for condition in self.arguments)


class _Known(msgspec.Struct, frozen=True):
    """What is the same for all deeds that differ in their arguments only."""

    fixed: tuple[Rule, ...]
    by_arguments: tuple[Rule, ...]
    verdict: Verdict


class Policy:
    """`Policy()` asks about everything that acts; `rules` and `defaults` say what else."""

    def __init__(self, rules: Iterable[Rule] = (), defaults: Mapping[Kind, Decision] | None = None) -> None:
        self.rules = tuple(_named(rules))
        self.defaults: dict[Kind, Decision] = {**DEFAULTS, **(defaults or {})}
        for kind, decision in self.defaults.items():
            if kind not in KINDS or decision not in _STRICTNESS:
                raise ConfigError(f"defaults: {display(str(kind), 40)} = {display(str(decision), 40)} means nothing")
        self._known: dict[Matter, _Known] = {}

    def __repr__(self) -> str:
        return f"Policy({len(self.rules)} rules)"

    def decide(self, deed: Deed) -> Verdict:
        known = self._known.get(deed.matter) or self._learned(deed)
        if not known.by_arguments:
            return known.verdict
        arguments = deed.arguments
        applying = [rule for rule in known.by_arguments if rule.applies(arguments)]
        return self._verdict(deed, (*known.fixed, *applying)) if applying else known.verdict

    def _learned(self, deed: Deed) -> _Known:
        """What the rules say of all deeds about the same, of which only the arguments differ."""
        concerned = [rule for rule in self.rules if rule.concerns(deed)]
        fixed = tuple(rule for rule in concerned if not rule.arguments)
        by_arguments = tuple(rule for rule in concerned if rule.arguments)
        known = _Known(fixed, by_arguments, self._verdict(deed, fixed))
        keep(self._known, deed.matter, deed.matter, known, _MOST_KNOWN)
        return known

    def _verdict(self, deed: Deed, rules: tuple[Rule, ...]) -> Verdict:
        if not rules:
            return self._default(deed)
        rule = max(rules, key=lambda each: _STRICTNESS[each.decision])
        because = display(rule.because, 500) or f"the rule {display(rule.id, 60)!r} says {rule.decision}"
        return Verdict(rule.decision, because, rule.id, _offered(rule, deed.kind))

    def _default(self, deed: Deed) -> Verdict:
        decision, scopes = self.defaults[deed.kind], _SCOPES.get(deed.kind, _ALL_SCOPES)
        if deed.foreign and decision == "allow":
            names = ", ".join(display(name, 60) for name in sorted(deed.foreign)[:10])
            because = f"data of {names} may be in it, and no rule lets them go to {display(deed.server, 60)}"
            return Verdict("ask", because, "foreign data", scopes)
        return Verdict(decision, f"no rule says otherwise: {deed.kind} is {decision} by default", "default", scopes)


def hinted(hints: ToolAnnotations | None, hint: Hint) -> bool:
    """What a tool is said to be; what is not said is the worse of both (schema#toolannotations)."""
    said = UNSET if hints is None else getattr(hints, f"{hint}_hint")
    return said if isinstance(said, bool) else _UNSAID[hint]


def principal_text(principal: Principal) -> str:
    """For patterns and the audit: issuer and subject."""
    return f"{principal.issuer} {principal.subject}"


def _offered(rule: Rule, kind: Kind) -> tuple[Scope, ...]:
    possible = _SCOPES.get(kind, _ALL_SCOPES)
    return tuple(scope for scope in possible if scope in rule.scopes) or possible[:1]


def _fits(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)


def _named(rules: Iterable[Rule]) -> Iterable[Rule]:
    """Every rule by a name of its own, since leaves are bound to it: one without gets its name from what it says, and
    so another when it says something else."""
    seen = {"default", "foreign data"}
    for rule in rules:
        named = rule if rule.id else msgspec.structs.replace(rule, id=f"rule {_digest(rule)}")
        if named.id in seen:
            raise ConfigError(f"two rules are called {display(named.id, 60)!r}, or one like a default")
        seen.add(named.id)
        yield named


def _digest(rule: Rule) -> str:
    return sha256(canonical(rule)).hexdigest()[:8]
