"""From a URI template and values to a URI: the expressions of RFC 6570, all four levels.

A client expands whatever template a server lists; a server reads URIs back as well (server/resources/uri_template.py)
and so accepts less, but writes by the same rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import msgspec

from .errors import LocalError
from .limits import LONGEST_URI

__all__ = ["Expression", "Variable", "expand", "expanded", "expressions_in"]

OPERATORS = "+#./;?&"
_RESERVED = ":/?#[]@!$&'()*+,;="
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(
    r"((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*)(\*|:[1-9][0-9]{0,3})?"
)
_Encoded = Callable[[str], str]
_TRIPLE = re.compile(r"%25([0-9A-Fa-f]{2})")


class Variable(msgspec.Struct, frozen=True):
    name: str
    many: bool
    """Written with `*`: each value of a list stands for itself."""
    most: int | None = None
    """Only so many characters of the value."""


class Expression(msgspec.Struct, frozen=True):
    text: str
    operator: str
    variables: tuple[Variable, ...]

    @property
    def named(self) -> bool:
        return self.operator in (";", "?", "&")


def expand(template: str, values: Mapping[str, Any]) -> str:
    """The URI of these values; what is absent or None is left out. What is no template is a `LocalError`."""
    if len(template) > LONGEST_URI:
        raise LocalError(f"a URI template of {len(template)} characters is not used (at most {LONGEST_URI})")
    parts = list(expressions_in(template))
    try:
        return "".join(_literal(literal) + (expanded(found, values) if found else "") for literal, found in parts)
    except UnicodeEncodeError:
        raise LocalError("a URI holds no half of a character (a lone surrogate)") from None


def expressions_in(template: str) -> Iterator[tuple[str, Expression | None]]:
    """Literals, each with the expression behind it; the last has none."""
    at = 0
    for found in _EXPRESSION.finditer(template):
        yield template[at : found.start()], _expression(found[0], found[1])
        at = found.end()
    yield template[at:], None


def _expression(text: str, inner: str) -> Expression:
    operator = inner[0] if inner and inner[0] in OPERATORS else ""
    return Expression(text, operator, tuple(_variable(text, each) for each in inner[len(operator) :].split(",")))


def _variable(text: str, written: str) -> Variable:
    found = _VARIABLE.fullmatch(written)
    if found is None:
        raise LocalError(f"{text!r:.100} is no expression of a URI template (RFC 6570)")
    modifier = found[2] or ""
    return Variable(found[1], modifier == "*", int(modifier[1:]) if modifier.startswith(":") else None)


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise LocalError(f"{text!r:.100}: a brace without its other half is no part of a URI template")
    return _TRIPLE.sub(r"%\1", quote(text, safe=_RESERVED + "~"))  # what is encoded already stays as it is


def expanded(expression: Expression, values: Mapping[str, Any], *, exact: bool = False) -> str:
    """One expression with its values (RFC 6570 §3.2). `exact`: a `%` in a value is always one, never the beginning of
    what is encoded already, so that every value can be read back."""
    operator = expression.operator
    safe = _RESERVED if operator in ("+", "#") else ""

    def encoded(text: str) -> str:
        written = quote(text, safe=safe)
        return _TRIPLE.sub(r"%\1", written) if safe and not exact else written  # triplets pass there (§1.5)

    pieces = [piece for variable in expression.variables for piece in _pieces(expression, variable, values, encoded)]
    mark = {"?": "&", "+": ",", "#": ",", "": ","}.get(operator, operator)
    return (operator if operator != "+" and pieces else "") + mark.join(pieces)


def _pieces(expression: Expression, variable: Variable, values: Mapping[str, Any], encoded: _Encoded) -> list[str]:
    value = values.get(variable.name)
    if value is None:
        return []
    if isinstance(value, Mapping):
        return _of_pairs(expression, variable, cast("Mapping[str, Any]", value), encoded)
    held = cast("Sequence[Any]", value if isinstance(value, list | tuple) else (value,))
    written = [encoded(str(each)[: variable.most]) for each in held]
    if not variable.many:
        written = [",".join(written)] if written else []
    if not expression.named:
        return written
    return [_pair(expression, variable.name, each) for each in written]


def _of_pairs(expression: Expression, variable: Variable, value: Mapping[str, Any], encoded: _Encoded) -> list[str]:
    pairs = [(encoded(str(key)), encoded(str(each))) for key, each in value.items()]
    if variable.many:
        return [_pair(expression, key, each) if expression.named else f"{key}={each}" for key, each in pairs]
    joined = ",".join(f"{key},{each}" for key, each in pairs)
    return [] if not pairs else [_pair(expression, variable.name, joined) if expression.named else joined]


def _pair(expression: Expression, name: str, value: str) -> str:
    bare = expression.operator == ";"  # an empty value has no `=` there (RFC 6570 §3.2.7)
    return name if bare and not value else f"{name}={value}"
