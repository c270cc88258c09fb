"""Does what a tool gave fit the output schema that its server listed? (server/tools#output-schema)

Both come from the server, so both are data: a schema is used only when its cost is known to be small, nothing is
fetched for it, and a value that would take too long is not checked. Whatever does not fit is reported beside the
content, which is never touched. Nothing is built before the first result of a tool that has a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from msgspec import UNSET

from ..wire.errors import LocalError
from ..wire.escaping import display
from ..wire.json.lenient import parts_of
from ..wire.types.tools import Tool

__all__ = ["Outputs"]

MOST_SCHEMA_PARTS = 3_000  # members and items of a schema; a larger one is not used
MOST_WORK = 1_000_000  # parts of a value times what is looked at for each; more is not checked
DEAR_PATTERN = 1000  # steps for each part of a value, if a pattern of the schema cannot be matched in one go
LONGEST_REPORT = 1000
MOST_CHECKS = 1024  # built and kept; beyond it the oldest is built again when it is needed

Check = Callable[[Any], str | None]
"""What is wrong with a value, or None."""


class Outputs:
    """The output schemas of one server, and a check for each that was needed."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        """By the name of the tool; empty as long as no tool with one was listed, so that a call sees it at a glance."""
        self._checks: dict[str, Check] = {}

    def learn(self, tools: Iterable[Tool]) -> None:
        """A new list: every schema of the old one is forgotten."""
        self.known = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not UNSET}
        self._checks.clear()

    def forget(self) -> None:
        self.learn(())

    def mismatch(self, name: str, given: bool, value: Any) -> str | None:
        """Why the structured content of a result does not fit, if it does not; `given` says whether there is any."""
        schema = self.known.get(name)
        if schema is None:
            return None
        if not given:
            return "the tool lists an output schema, and gave no structured content"
        check = self._checks.get(name)
        if check is None:
            check = self._checks[name] = _check_of(schema)
            if len(self._checks) > MOST_CHECKS:
                del self._checks[next(iter(self._checks))]
        wrong = check(value)
        return None if wrong is None else display(wrong, LONGEST_REPORT)


def _check_of(schema: dict[str, Any]) -> Check:
    """A schema that cannot be used makes every value suspect: none passes because its schema was odd."""
    from ..wire.json.schema import Mismatch, check_and_effort  # who lists no tool with a schema starts without it

    if parts_of(schema, MOST_SCHEMA_PARTS) > MOST_SCHEMA_PARTS:
        return _always(f"not checked: the output schema has more than {MOST_SCHEMA_PARTS} parts")
    try:
        fits, effort = check_and_effort(schema, "the output schema")
    except LocalError as error:
        return _always(f"not checked: {error}")
    most = MOST_WORK // (effort.steps + _dearest(schema))

    def check(value: Any) -> str | None:
        if parts_of(value, most) > most:
            return f"not checked: more than {most} parts of structured content are too much for this schema"
        try:
            fits(value)
        except Mismatch as wrong:
            return str(wrong)
        return None

    return check


def _always(told: str) -> Check:
    return lambda _: told


def _dearest(schema: Any) -> int:
    """What a single step may take: choices and required members are looked at one by one, and a pattern that looks
    around or back is tried again and again."""
    dearest, pending = 0, [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            dearest = max(dearest, len(cast("list[Any]", each)))
            pending += cast("list[Any]", each)
        elif isinstance(each, dict):
            members = cast("dict[str, Any]", each)
            if any(map(_goes_back, (members.get("pattern"), *members))):  # the names in `patternProperties`, too
                dearest = max(dearest, DEAR_PATTERN)
            pending += members.values()
    return dearest


def _goes_back(pattern: Any) -> bool:
    return isinstance(pattern, str) and re.search(r"\(\?(?!:)|\\[1-9k]", pattern) is not None
