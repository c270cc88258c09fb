"""Checking values against a JSON Schema that somebody wrote: the author of a server, or the server a client talks to.

The dialect is the one that `$schema` names, 2020-12 where it names none. Nothing is fetched: a reference that leads out
of the schema is refused when the check is made, so that no schema passes as permissive because a part of it is missing
(basic/index#ref-resolution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

import msgspec

from ..errors import LocalError
from .lenient import parts_of
from .schema_cost import MOST_STEPS, Effort, effort_of
from .unique_items import UniqueItems

__all__ = ["DIALECTS", "Check", "Mismatch", "Problem", "check_and_effort", "validator_of"]

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "http://json-schema.org/draft-07/schema": "draft-07",
    "http://json-schema.org/draft-06/schema": "draft-06",
    "http://json-schema.org/draft-04/schema": "draft-04",
}
MOST_PROBLEMS = 5  # told at once
LONGEST_MESSAGE = 300
MOST_EXPLAINED = 500  # steps
MOST_LISTED = 2_000  # parts of a value of which several problems are looked for
MOST_BACKTRACKING = 10_000  # of a pattern on one text; what takes more does not fit
MAX_COMPARED = 100_000  # parts of a value of which items are compared with each other: some 50 ms
_KEYWORDS = {"uniqueItems": UniqueItems}  # in place of the library's own
LARGEST_PATTERN = 1024 * 1024  # bytes of a compiled pattern; a schema with a larger one is not used

Check = Callable[[Any], None]
"""Takes plain JSON data (dicts, lists, str, int, float, bool, None) and raises `Mismatch` if it does not fit."""


class Problem(msgspec.Struct, frozen=True):
    """One place of a value that does not fit."""

    path: tuple[str | int, ...]
    message: str
    where: tuple[str | int, ...] = ()
    """The place in the schema, down to the keyword."""


class Mismatch(ValueError):
    """The value does not fit its schema."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{_pointer(problem.path)}: {problem.message}" for problem in problems))
        self.problems = problems


def validator_of(schema: Mapping[str, Any] | bool, what: str = "schema") -> Check:
    """A check against `schema`, built once. A schema that cannot be used raises `LocalError`, which names `what`."""
    return check_and_effort(schema, what)[0]


def check_and_effort(schema: Mapping[str, Any] | bool, what: str = "schema") -> tuple[Check, Effort]:
    """The same, and what it takes, for whoever has to bound the values too."""
    _check_dialect(schema, what)
    try:
        effort = effort_of(schema)
    except LocalError as error:
        raise LocalError(f"{what}: {error}") from None
    validator = _validator(schema, what)
    is_valid: Callable[[Any], bool] = validator.is_valid
    compares = any(each.get("uniqueItems") is True for each in _objects_in(schema))

    def check(value: Any) -> None:
        if compares and parts_of(value, MAX_COMPARED) > MAX_COMPARED:
            told = f"too large to be compared item by item (uniqueItems): more than {MAX_COMPARED:,} values"
            raise Mismatch([Problem((), told)])
        if effort.growth > 1 and effort.of(value) > MOST_STEPS:
            raise Mismatch([Problem((), "nested too deep to be checked")])
        try:
            if is_valid(value):
                return
            problems = _problems(validator, value, effort)
        except ValueError as error:  # not JSON: keys that are not strings, half characters, objects of other types
            problems = [Problem((), str(error)[:LONGEST_MESSAGE])]
        raise Mismatch(problems)

    return check, effort


def _check_dialect(schema: Any, what: str) -> None:
    """basic/index#implementation-requirements: say clearly what is not supported, inside too."""
    for part in _objects_in(schema):
        if "$schema" in part and (part is schema or "$id" in part):
            _check_named(part["$schema"], what)


def _objects_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema, and every object inside of it."""
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += cast("list[Any]", part)
        elif isinstance(part, Mapping):
            members = cast("Mapping[str, Any]", part)
            yield members
            pending += members.values()


def _check_named(dialect: Any, what: str) -> None:
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in DIALECTS:
        known = ", ".join(DIALECTS.values())
        raise LocalError(f"{what}: the dialect {str(dialect)[:200]!r} is not supported (supported: {known})")


def _validator(schema: Mapping[str, Any] | bool, what: str) -> Any:
    import jsonschema_rs  # only who writes schemas himself pays for loading it

    library = cast(Any, jsonschema_rs)
    plain = schema if isinstance(schema, bool) else dict(schema)
    patterns = library.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING, size_limit=LARGEST_PATTERN)
    try:
        return library.validator_for(plain, retriever=_refuse_remote, pattern_options=patterns, keywords=_KEYWORDS)
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0]
        path = _pointer(getattr(error, "instance_path", ()) or ())
        raise LocalError(f"{what} is no usable JSON Schema: {reason[:LONGEST_MESSAGE]} (at {path})") from None


def _refuse_remote(uri: str) -> Any:
    raise ValueError("a schema must not lead to another address; put the part into $defs")


def _problems(validator: Any, value: Any, effort: Effort) -> list[Problem]:
    """Telling why takes far longer than telling that, as the library looks for all reasons before it tells the first:
    what takes many steps is told without the reasons, what is large with one."""
    if effort.of(value) > MOST_EXPLAINED:
        return [Problem((), "does not fit the schema")]
    errors: Iterable[Any] = validator.iter_errors(value) if parts_of(value, MOST_LISTED) <= MOST_LISTED else ()
    found = [_problem(error) for error in islice(errors, MOST_PROBLEMS)]
    return found or [_first(validator, value)]


def _first(validator: Any, value: Any) -> Problem:
    try:
        validator.validate(value)
    except ValueError as error:
        return _problem(error)
    return Problem((), "does not fit the schema")


def _problem(error: Any) -> Problem:
    return Problem(tuple(error.instance_path), str(error.message)[:LONGEST_MESSAGE], tuple(error.schema_path))


def _pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{part}" for part in path) or "the root"
