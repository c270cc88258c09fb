"""The goals, and whether the samples of a run meet them.

A relative goal is met only if the worst of all comparisons meets it: every era both sides speak, and both
ways to launch Interlock. The headline is the fairest single comparison: the era in which the peer is best.
"""

from dataclasses import dataclass

from measures import MEASURES, Measure
from peers import Contestant
from samples import Key, Samples, Spread


@dataclass(frozen=True)
class Goal:
    measure: str
    against: str  # a contestant, or "" for a goal in the measure's own unit
    bound: float | None  # so many times better than the peer, or at most so much; None: only told
    text: str


GOALS = (
    Goal("pipelined", "mcp", 50, "≥ 50 × mcp"),
    Goal("pipelined", "ts", 3, "≥ 3 × TypeScript"),
    Goal("pipelined", "ts2", 3, "≥ 3 × TypeScript"),
    Goal("sequential", "mcp", 6, "≥ 6 × faster than mcp"),
    Goal("cold", "mcp", 6, "≤ 1/6 of mcp"),
    Goal("cold", "ts", 1, "≤ TypeScript"),
    Goal("cold", "ts2", 1, "≤ TypeScript"),
    Goal("memory", "mcp", 2, "≤ 1/2 of mcp"),
    Goal("import", "mcp", 6, "≤ 1/6 of mcp"),
    Goal("in-memory", "mcp", 10, "≥ 10 × mcp"),
    Goal("killed", "", 200, "≤ 200 ms"),
    Goal("http", "empty-asgi", 0.6, "≥ 60 % of empty ASGI"),
    Goal("http", "mcp", 4, "≥ 4 × mcp"),
    Goal("http", "ts2", None, "multiple of TypeScript"),
    Goal("http-session", "empty-asgi", 0.5, "≥ 50 % of empty ASGI"),
    Goal("http-session", "mcp", 4, "≥ 4 × mcp"),
    Goal("http-session", "ts", None, "multiple of TypeScript"),
    Goal("http-session", "ts2", None, "multiple of TypeScript"),
    Goal("p99", "empty-asgi", 1 / 3, "≤ 3 × empty ASGI"),
    Goal("progress", "mcp", 6, "≥ 6 × mcp"),
    Goal("idle-session", "", 10, "≤ 10 kB"),
    Goal("idle-listen", "", 30, "≤ 30 kB"),
    Goal("client", "mcp", 3, "≥ 3 × mcp"),
    Goal("client-16", "mcp", 3, "≥ 3 × mcp"),
    Goal("asking", "", 4, "≤ 4 plain calls"),
    Goal("sync", "", 3, "≤ 3 × an async one"),
    Goal("host", "", 1.3, "≤ 1.3 plain calls"),
    Goal("merge", "", 1, "≤ the listing"),
    Goal("list", "mcp", 10, "≥ 10 × mcp"),
)


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    era: str = ""  # of the headline
    ours: Spread | None = None
    peer: Spread | None = None
    headline: Spread | None = None
    worst: float | None = None
    ours_failed: bool = False

    @property
    def text(self) -> str:
        if self.ours_failed:
            return "NOT MET (ours failed)"
        if self.worst is None:
            return "not measured"
        if self.goal.bound is None:
            return "told"
        met = self.worst >= self.goal.bound if self.goal.against else self.worst <= self.goal.bound
        return "met" if met else "NOT MET"


def judge(goal: Goal, samples: Samples, contestants: list[Contestant]) -> Verdict:
    ours = [contestant.name for contestant in contestants if contestant.is_ours]
    if not goal.against:
        return _judge_absolute(goal, samples, ours)
    measure = MEASURES[goal.measure]
    peers = [key for key in samples.keys_of(goal.measure) if key.contestant == goal.against]
    return _judge_relative(goal, samples, measure, [(name, peer) for peer in peers for name in ours])


def _judge_absolute(goal: Goal, samples: Samples, ours: list[str]) -> Verdict:
    for name in ours:
        seen = samples.spread_of(Key(goal.measure, name, ""))
        if seen is not None:
            return Verdict(goal, ours=seen, worst=seen.middle)
    return Verdict(goal, ours_failed=any(Key(goal.measure, name, "") in samples.failures for name in ours))


def _judge_relative(goal: Goal, samples: Samples, measure: Measure, pairs: list[tuple[str, Key]]) -> Verdict:
    compared: list[tuple[Key, Key, Spread]] = []
    # A comparison that is missing because we failed must not improve the worst of the others.
    ours_failed = any(Key(goal.measure, name, peer.era) in samples.failures for name, peer in pairs)
    for name, peer in pairs:
        mine = Key(goal.measure, name, peer.era)
        advantage = samples.advantage(mine, peer, measure.higher_is_better)
        if advantage is not None:
            compared.append((mine, peer, advantage))
    if not compared:
        return Verdict(goal, ours_failed=ours_failed)

    def peer_is_good(pair: tuple[Key, Key, Spread]) -> float:
        seen = samples.spread_of(pair[1])
        assert seen is not None
        return seen.middle if measure.higher_is_better else -seen.middle

    # max() keeps the first of equals, so the plain launch stands for Interlock in the headline.
    mine, peer, headline = max(compared, key=peer_is_good)
    return Verdict(
        goal=goal,
        era=peer.era,
        ours=samples.spread_of(mine),
        peer=samples.spread_of(peer),
        headline=headline,
        worst=min(advantage.middle for _, _, advantage in compared),
        ours_failed=ours_failed,
    )
