"""A run as Markdown tables: the same text goes to the terminal and, with --write, into docs/benchmarks.md."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from driver import CORES, IN_FLIGHT
from goals import GOALS, Verdict, judge
from http_driver import CONNECTIONS
from http_rounds import MANY, PACED_CONNECTIONS
from measures import MEASURES, Measure
from open_loop import LAST_TRIES, STANDSTILL_SECONDS
from peers import Contestant
from plans import Plan
from samples import Key, Samples, Spread


@dataclass(frozen=True)
class Run:
    plan: Plan
    wanted: list[str]
    contestants: list[Contestant]
    absent: dict[str, str]
    samples: Samples
    cores: int


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)]


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _times(value: float) -> str:
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:.{digits}f} ×"


def _range(seen: Spread, digits: int) -> str:
    return f"{_number(seen.low, digits)} - {_number(seen.high, digits)}"


# ---- sections ----


def goals_section(run: Run) -> list[str]:
    header = ("goal", "measure", "peer", "era", "ours", "theirs", "ratio", "spread", "worst", "verdict")
    wanted = [goal for goal in GOALS if goal.measure in run.wanted]
    rows = [_goal_row(judge(goal, run.samples, run.contestants)) for goal in wanted]
    return [
        "## Goals",
        "",
        "`ratio` says how many times better Interlock is, in the era in which the peer is at its best;",
        "`worst` is the smallest such ratio over every era both speak and both launches of Interlock,",
        "and decides.",
        "",
        *_table(header, rows),
    ]


def _goal_row(verdict: Verdict) -> tuple[str, ...]:
    measure = MEASURES[verdict.goal.measure]

    def middle(seen: Spread | None) -> str:
        return f"{_number(seen.middle, measure.digits)} {measure.unit}" if seen else "-"

    headline = verdict.headline
    relative = bool(verdict.goal.against)
    return (
        verdict.goal.text,
        measure.name,
        verdict.goal.against or "-",
        verdict.era or "-",
        middle(verdict.ours),
        middle(verdict.peer),
        _times(headline.middle) if headline else "-",
        f"{_times(headline.low)} - {_times(headline.high)}" if headline else "-",
        _times(verdict.worst) if relative and verdict.worst is not None else "-",
        verdict.text,
    )


def results_section(run: Run) -> list[str]:
    rows = []
    for measure in MEASURES.values():
        for key in run.samples.keys_of(measure.name):
            rows.append(_result_row(run.samples, measure, key))
    header = ("measure", "contestant", "era", "median", "unit", "spread", "samples", "ours is better by")
    return ["## Results", "", *_table(header, rows)]


def _result_row(samples: Samples, measure: Measure, key: Key) -> tuple[str, ...]:
    seen = samples.spread_of(key)
    if seen is None:
        return (
            measure.name,
            key.contestant,
            key.era or "-",
            f"failed: {samples.failures[key]}",
            "",
            "",
            "0",
            "",
        )
    advantage = samples.advantage(Key(measure.name, "interlock", key.era), key, measure.higher_is_better)
    # The null servers are no peers, and Interlock's plain launch is what the others are compared with.
    comparable = advantage is not None and key.contestant not in ("interlock", "null", "empty-asgi", "empty-own")
    return (
        measure.name,
        key.contestant,
        key.era or "-",
        _number(seen.middle, measure.digits),
        measure.unit,
        _range(seen, measure.digits),
        str(seen.count) + (" (then failed)" if key in samples.failures else ""),
        _times(advantage.middle) if comparable and advantage else "",
    )


def contestants_section(run: Run) -> list[str]:
    rows = [(each.name, each.title, each.version) for each in run.contestants]
    rows += [(name, f"absent: {reason}", "-") for name, reason in run.absent.items()]
    return ["## Contestants", "", *_table(("name", "what", "version"), rows)]


def measures_section(run: Run) -> list[str]:
    shown = [measure for measure in MEASURES.values() if run.samples.keys_of(measure.name)]
    rows = [(measure.name, _measure_title(measure, run.plan), measure.unit) for measure in shown]
    return ["## Measures", "", *_table(("measure", "what", "unit"), rows)]


def _measure_title(measure: Measure, plan: Plan) -> str:
    after = f", after {plan.memory_calls:,} calls" if measure.name.startswith("memory") else ""
    return measure.title + after


def facts_section(run: Run) -> list[str]:
    lines: list[str] = []
    for title, facts in run.samples.facts.items():
        lines += [f"{title[0].upper()}{title[1:]}:", ""]
        lines += [f"- {name}: {fact}" for name, fact in facts.items()]
        lines += [""]
    return ["## Facts noted on the way", "", *lines[:-1]] if lines else []


def machine_line(run: Run) -> str:
    pinned = "server and driver on a core each" if CORES else "nothing pinned to a core"
    return f"{run.cores} cores, Python {platform.python_version()}, {pinned}, plan `{run.plan.name}`."


def tables(run: Run) -> list[str]:
    sections = [contestants_section, measures_section, results_section, facts_section, goals_section]
    lines: list[str] = []
    for section in sections:
        if made := section(run):
            lines += [*made, ""]
    return lines[:-1]


def failures(run: Run) -> list[str]:
    """A line for each row that failed, also after some samples. A page with such rows is not written."""
    return [
        f"failed: {' '.join(filter(None, (key.measure, key.contestant, key.era)))}: {reason}"
        for key, reason in run.samples.failures.items()
    ]


def document(run: Run) -> str:
    """docs/benchmarks.md: no word of it is written by hand."""
    head = [
        "# Benchmarks",
        "",
        "Written by `python bench/run.py --write`; do not edit by hand.",
        "",
        f"Measured on {date.today().isoformat()}: {machine_line(run)}",
        "",
        "How to repeat: `.venv/bin/python bench/run.py`. The first run sets up the peers in `.cache/bench`.",
        "",
        "How it is measured: one raw driver that uses no SDK speaks newline-delimited JSON to every server",
        f"with prepared bytes, {IN_FLIGHT} calls in flight in the pipelined measure, once the server is warm",
        "(its rate no longer grows). Every answer is checked after the clock has stopped: each call answered",
        "once, without error, with the right sum. In a round all servers are up and take turns in short windows:",
        "what disturbs a shared machine comes and goes within seconds, and so hits all of them; of the windows of each",
        "the middle one counts. Ratios are taken within a round; figures are medians, the spread is the smallest and",
        "the largest. Absolute figures of a shared machine vary by 40 %, ratios less. The null server answers",
        "without reading: it shows what the driver itself can count.",
        "",
        f"Over HTTP the driver keeps {CONNECTIONS} connections open, then {MANY}, with one POST under way on each;",
        "the empty application, on uvicorn as it comes and on our runner, shows what HTTP alone costs. Peers run over",
        "HTTP as their own `run` does it, stateless and with JSON answers, without a log line per request; in",
        "`http-session` they keep sessions, and all connections of a set share one. `asking` compares the median of",
        "a call with two questions, all three rounds of it, with that of a plain call, turn by turn.",
        "",
        "`p99` is an open loop: calls are due at even times, at half of what Interlock reached just before over as",
        f"many connections ({PACED_CONNECTIONS}; the median of its last {LAST_TRIES} tries), for the empty",
        "application at that rate too; the time of a call begins when it was due, not when it was sent. Only these two",
        f"are up and take turns in windows of {run.plan.paced_seconds:g} s, each behind a moment that leads in; the",
        "middle of the p99 of the windows counts. That of all calls of a round is told below: it also shows how often",
        "a machine loses half of its speed or more, where half of what a server reaches is all there is.",
        f"When the driver itself stands still for more than {STANDSTILL_SECONDS * 1e6:.0f} µs, what becomes due",
        "meanwhile is due as much later: nobody could send it. Where the system lets us (Linux, for the first as",
        "root), both servers have real-time priority in these windows and tries, so that other processes do not take",
        "their core, and that core is kept from resting, since a virtual machine that rests waits for its host: by",
        "the kernel, which then waits at work (as root), or by a program that gives way to everything; each round",
        "says how. Whatever else holds up a server is charged to it.",
        "`idle-session` and `idle-listen` are what the server's memory grew by, divided by what it holds more. The",
        "clients of `client` all call the same server, ours, from the driver's core; in `host` the host is on that",
        "core too, and its servers on the other.",
        "",
    ]
    return "\n".join([*head, *tables(run)]) + "\n"
