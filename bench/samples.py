"""What was measured, kept by round, so that two contestants are compared within the same round."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Key:
    measure: str
    contestant: str
    era: str  # "" where the measure has no era


@dataclass(frozen=True)
class Spread:
    middle: float
    low: float
    high: float
    count: int


def spread(values: list[float]) -> Spread:
    return Spread(median(values), min(values), max(values), len(values))


@dataclass
class Samples:
    values: dict[Key, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[Key, str] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, key: Key, round_number: int, value: float) -> None:
        self.values[key][round_number] = value

    def fail(self, key: Key, reason: str) -> None:
        self.failures[key] = reason

    def keys_of(self, measure: str) -> list[Key]:
        known = [*self.values, *(key for key in self.failures if key not in self.values)]
        return [key for key in known if key.measure == measure]

    def spread_of(self, key: Key) -> Spread | None:
        rounds = self.values.get(key)
        return spread(list(rounds.values())) if rounds else None

    def advantage(self, ours: Key, peer: Key, higher_is_better: bool) -> Spread | None:
        """How many times better ours is, round by round: noise that hits a whole round cancels out."""
        mine, theirs = self.values.get(ours, {}), self.values.get(peer, {})
        pairs = [(mine[number], theirs[number]) for number in mine if number in theirs]
        ratios = [(a / b if higher_is_better else b / a) for a, b in pairs if a > 0 and b > 0]
        return spread(ratios) if ratios else None
