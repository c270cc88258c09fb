"""URI templates in both directions: from values to a URI (RFC 6570), and from a URI back to its values.

What can be read back without guessing is accepted, the rest is refused when the template is registered:

    {name} {a,b} {list*}    segments of a path: no `/` in any of them, neither raw nor encoded
    {+name}                 the rest of a path, with its slashes
    {/a,b} {/path*}         whole segments, each behind its slash; `path` is a list of them
    {.a,b} {.list*}         labels, each behind its dot
    {;a,b} {?a,b} {&a,b}    named values in any order, each may be absent; `list*` may come several times
    {#name}                 the fragment

Matching never goes back: literals are looked for once, from the left up to the one expression that takes slashes and
from the right down to it, so the cost grows with the length of the URI and nothing else. Of two neighbours the first
takes as little as it can. Values that lead somewhere else make no match: see uri_values.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ...wire.errors import LocalError
from ...wire.limits import LONGEST_URI
from ...wire.uri import has_uri_characters, is_uri
from ...wire.uri_expansion import OPERATORS, Expression, Variable, expanded
from .uri_matcher import Shape, Slot
from .uri_values import free_text, pairs

__all__ = ["UriTemplate", "Values"]

Values = dict[str, str | list[str]]

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANK = {"": 0, "+": 0, ".": 0, "/": 0, ";": 1, "?": 2, "&": 2, "#": 3}  # the order in which a URI has them


class _Tail(msgspec.Struct, frozen=True):
    """Parameters, a query or a fragment: what a URI may have behind its path, and may lack."""

    operator: str
    names: frozenset[str]
    many: frozenset[str]
    skipped: int
    """How many `&` the template itself has before `{&…}`; no value has one."""

    def cut(self, uri: str) -> tuple[str, str, str]:
        """What is before it, its mark (empty: it is absent), and what is in it."""
        if self.operator != "&":
            return uri.partition(self.operator)
        pieces = uri.split("&", self.skipped + 1)
        return "&".join(pieces[: self.skipped + 1]), "&" * (len(pieces) > self.skipped + 1), pieces[-1]

    def read(self, raw: str) -> Values | None:
        if self.operator != "#":
            return pairs(raw, ";" if self.operator == ";" else "&", self.names, self.many)
        value = free_text(raw)
        return dict.fromkeys(self.names, value) if value is not None else None


class UriTemplate:
    """One template, read once. `names` are all its variables, `many` those that are lists, `named` those of a query,
    of parameters or of a fragment, which a URI may leave out."""

    def __init__(self, text: str, unchecked: Collection[str] = ()) -> None:
        self.text = text
        self._unchecked = frozenset(unchecked)
        self._parts: list[tuple[str, Expression | None]] = []
        self._read()
        expressions = [expression for _, expression in self._parts if expression is not None]
        variables = [variable for expression in expressions for variable in expression.variables]
        self.names = tuple(variable.name for variable in variables)
        self.many = frozenset(variable.name for variable in variables if variable.many)
        self._tails = {_RANK[each.operator]: each for each in expressions if _RANK[each.operator]}
        self.named = tuple(each.name for tail in self._tails.values() for each in tail.variables)
        self._check(expressions)
        self._beginning = self.text.partition("{")[0]
        self._ends = [self._tail(self._tails[rank]) for rank in (3, 2, 1) if rank in self._tails]  # the last one first
        self._shapes = self._all_shapes()
        self.wide = frozenset(slot.name for slot in self._shapes[0].slots if slot.wide)
        """The variables that hold slashes."""

    # --- reading the template -------------------------------------------------------------------

    def _read(self) -> None:
        at = 0
        for found in _EXPRESSION.finditer(self.text):
            self._parts.append((self.text[at : found.start()], self._expression(found[0], found[1])))
            at = found.end()
        self._parts.append((self.text[at:], None))
        if any(brace in text for text, _ in self._parts for brace in "{}"):
            raise self._refusal("a brace is open, or closed without having been opened")

    def _expression(self, text: str, inner: str) -> Expression:
        operator = inner[0] if inner and inner[0] in OPERATORS else ""
        variables = tuple(self._variable(text, each) for each in inner[len(operator) :].split(","))
        if operator in ("+", "#") and (len(variables) > 1 or any(each.many for each in variables)):
            raise self._refusal(f"{text} cannot be read back, as its values may hold commas: use {{{operator}name}}")
        if operator in ("", ".") and any(variable.many for variable in variables[:-1]):
            raise self._refusal(f"{text} cannot be read back: only its last variable can take several values")
        return Expression(text, operator, variables)

    def _variable(self, text: str, written: str) -> Variable:
        name, many = written.removesuffix("*"), written.endswith("*")
        if ":" in name:
            raise self._refusal(f"{text} cannot be read back: it keeps the beginning of a value only")
        if not _NAME.fullmatch(name):
            raise self._refusal(f"{text}: {name!r} is no name of a parameter")
        return Variable(name, many)

    def _refusal(self, what: str) -> LocalError:
        return LocalError(f"{self.text!r}: {what}")

    # --- what can be read back ------------------------------------------------------------------

    def _check(self, expressions: list[Expression]) -> None:
        if not expressions:
            raise self._refusal("there is no variable in it")
        if len(set(self.names)) != len(self.names):
            raise self._refusal("it names a variable twice")
        if odd := self._unchecked - set(self.names):
            raise self._refusal(f"it has no variable {', '.join(sorted(odd))} to leave unchecked")
        self._check_order()
        self._check_literals()
        self._check_query()

    def _check_order(self) -> None:
        before = -1
        for literal, expression in self._parts:
            rank = _RANK[expression.operator] if expression is not None else 4
            if before > 0 and (literal or rank <= before):
                raise self._refusal("parameters, a query and a fragment stand at the end, in this order, one of each")
            before = rank

    def _check_literals(self) -> None:
        literals = self._literals()
        scheme, colon, _ = literals[0].partition(":")
        written = all(has_uri_characters("x:" + literal) for literal in literals)
        if not colon or not scheme or not written or not is_uri(self.expand(dict.fromkeys(self.names, "1"))):
            raise self._refusal("this is no URI: write scheme:rest, with reserved characters %-encoded (RFC 3986)")
        whole = "".join(literals)
        for rank, mark in ((1, ";"), (2, "?"), (3, "#")):
            tail = self._tails.get(rank)
            if tail is not None and tail.operator == mark and mark in whole:
                raise self._refusal(f"there is a {mark!r} before {tail.text} already")

    def _check_query(self) -> None:
        tail = self._tails.get(2)
        if tail is not None and tail.operator == "&" and "?" not in "".join(self._literals()):
            raise self._refusal(f"{tail.text} goes on with a query that nothing began: use {{?…}}")

    def _literals(self) -> list[str]:
        return [literal for literal, _ in self._parts]

    # --- its shapes -----------------------------------------------------------------------------

    def _all_shapes(self) -> list[Shape]:
        """The path with all its variables, then without those that may be absent: the last ones of `{/a,b}`, `{.a}`."""
        steps, end, optional = self._steps()
        shapes = [Shape(self.text, steps, end)]
        for _ in range(optional):
            (literal, _), steps = steps[-1], steps[:-1]
            shapes.append(Shape(self.text, steps, literal[:-1]))  # without the slash or dot that began it
        return shapes

    def _steps(self) -> tuple[list[tuple[str, Slot]], str, int]:
        """The path as literals and slots in turn, what stands behind the last, how many at the end may be absent."""
        steps: list[tuple[str, Slot]] = []
        waiting, optional = "", 0
        for literal, expression in self._parts:
            waiting += literal
            if literal:
                optional = 0
            if expression is None or _RANK[expression.operator]:
                continue
            for number, variable in enumerate(expression.variables):
                mark = expression.operator if expression.operator in ("/", ".") else "," if number else ""
                steps.append((waiting + mark, self._slot(expression, variable)))
                waiting = ""
            optional = len(expression.variables) if expression.operator in ("/", ".") else 0
        return steps, waiting, optional

    def _slot(self, expression: Expression, variable: Variable) -> Slot:
        operator, several = expression.operator, len(expression.variables) > 1
        mark = operator if operator in ("/", ".") else ","
        banned = mark if several and mark != "/" else ""
        return Slot(
            name=variable.name,
            wide=operator == "+" or (operator == "/" and variable.many),
            many=mark if variable.many else "",
            banned=banned + (";" if 1 in self._tails else ""),
            unchecked=variable.name in self._unchecked,
        )

    def _tail(self, tail: Expression) -> _Tail:
        names = frozenset(variable.name for variable in tail.variables)
        return _Tail(tail.operator, names, names & self.many, "".join(self._literals()).count("&"))

    # --- reading a URI --------------------------------------------------------------------------

    def match(self, uri: str) -> Values | None:
        """The values that make this template `uri`, decoded; None when there are none that are safe."""
        if not uri.startswith(self._beginning) or len(uri) > LONGEST_URI:
            return None
        found: Values = {}
        path = uri
        for tail in self._ends:
            path, mark, raw = tail.cut(path)
            if mark:
                values = tail.read(raw)
                if values is None:
                    return None
                found |= values
        for shape in self._shapes:
            if (values := shape.match(path)) is not None:
                return values | found if found else values
        return None

    # --- writing one ----------------------------------------------------------------------------

    def expand(self, values: Mapping[str, Any]) -> str:
        """The URI of these values, by the rules of RFC 6570; what is absent or None is left out."""
        return "".join(
            literal + (expanded(expression, values, exact=True) if expression is not None else "")
            for literal, expression in self._parts
        )
