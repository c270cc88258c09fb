"""Arguments as they are typed: `key=value` by the schema of what takes them, JSON, or a file.

add a=1 b=2                 numbers, because the schema says so
note tags=a tags=b          a list, bit by bit
note tags:='["a", "b"]'     any JSON
note text=@letter.txt       the text of a file
note text=@@ann             the text "@ann": the first @ is dropped, and no file is read
note '{"text": "…"}'        everything at once
note @arguments.json        the same from a file; @- reads stdin
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..wire.json.lenient import items_of, members_of
from .errors import USAGE, Failure
from .terminal.output import one_line

__all__ = ["literal", "read_arguments", "read_texts", "signature_of", "types_of"]

_FILE_BYTES = 16 * 1024 * 1024  # of a file that is an argument, or holds them
_TRUE, _FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")
_ORDER = ("null", "integer", "number", "boolean", "object", "array", "string")  # what is tried first, where several fit


def read_arguments(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Of a tool, by its input schema."""
    found: dict[str, Any] = {}
    known = members_of(schema.get("properties"))
    for word in words:
        if word.startswith(("{", "@")):
            found |= _object(_text(word[1:]) if word.startswith("@") else word, word)
            continue
        name, raw, text = _pair(word)
        if raw:
            found[name] = _json(text, name)
            continue
        value = _typed(name, _value(text), _schema_of(known.get(name), schema))
        if isinstance(value, list) and isinstance(found.get(name), list):
            found[name] += value
        elif name in found:
            raise Failure(f"{name} is given twice", code=USAGE)
        else:
            found[name] = value
    _check(found, known, schema)
    return found


def read_texts(words: Sequence[str]) -> dict[str, str]:
    """Of a prompt or a template: all values are texts."""
    found: dict[str, str] = {}
    for word in words:
        if word.startswith(("{", "@")):
            given = _object(_text(word[1:]) if word.startswith("@") else word, word)
            found |= {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
        else:
            name, _, text = _pair(word)
            found[name] = _value(text)
    return found


def _pair(word: str) -> tuple[str, bool, str]:
    name, equals, text = word.partition("=")
    if not equals or not name.removesuffix(":"):
        hint = "key=value, key:=JSON, key=@file, a JSON object, or @file"
        raise Failure(f"{word[:60]!r} is no argument", code=USAGE, hint=hint)
    return name.removesuffix(":"), name.endswith(":"), text


def _value(text: str) -> str:
    """What follows `key=`: `@path` is the content of that file, `@@…` a text that begins with one `@`. The content of a
    file is a text, whatever it begins with."""
    if text.startswith("@@"):
        return text[1:]
    return _text(text[1:]) if text.startswith("@") and len(text) > 1 else text


def literal(text: str) -> str:
    """A value as it is typed so that it is never taken for a file."""
    return f"@{text}" if text.startswith("@") and len(text) > 1 else text


def _text(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_FILE_BYTES + 1)
        else:
            with Path(path).expanduser().open("rb") as file:
                data = file.read(_FILE_BYTES + 1)
        if len(data) > _FILE_BYTES:
            raise Failure(f"{path}: more than {_FILE_BYTES // 2**20} MiB", code=USAGE)
        return data.decode("utf-8")
    except OSError as error:
        hint = f"a text that begins with @ is written with two of them: key=@@{path}"
        raise Failure(f"@{path}: {error.strerror}", code=USAGE, hint=hint) from error
    except UnicodeDecodeError as error:
        raise Failure(f"@{path}: this is no text in UTF-8", code=USAGE) from error


def _object(text: str, word: str) -> dict[str, Any]:
    found = _json(text, word[:40])
    if not isinstance(found, dict):
        raise Failure(f"{word[:40]}: arguments are a JSON object", code=USAGE)
    return members_of(found)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{where}: this is no JSON", code=USAGE, cause=str(error)[:200]) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


# --- by the schema --------------------------------------------------------------------------------


def _schema_of(field: Any, whole: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of one argument; a reference within the schema is followed once."""
    found = members_of(field)
    reference = found.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        place: Any = whole
        for step in reference[2:].split("/"):
            place = members_of(place).get(step.replace("~1", "/").replace("~0", "~"))
        return members_of(place) or found
    return found


def types_of(field: Mapping[str, Any]) -> list[str]:
    """The types that it may be, in the order in which a text is tried; none: the schema does not say."""
    said: set[str] = set()
    kind = field.get("type")
    said |= {kind} if isinstance(kind, str) else {str(each) for each in items_of(kind)}
    for word in ("anyOf", "oneOf"):
        for each in items_of(field.get(word)):
            said |= set(types_of(members_of(each)))
    if not said and isinstance(field.get("enum"), list):
        said |= {"string" if isinstance(each, str) else "" for each in field["enum"]}
    return [each for each in _ORDER if each in said]


def _typed(name: str, text: str, field: Mapping[str, Any]) -> Any:
    types = types_of(field)
    if not types:
        return _json_or_text(text)
    if set(types) - {"null"} == {"array"} and not text.lstrip().startswith("["):
        return [_item(text, field)]  # one of several: the same name may be given again
    for kind in types:
        found = _as(kind, text)
        if found is not _NOT:
            return found
    wanted = " or ".join(types)
    raise Failure(f"{name}={text[:60]!r}: this is no {wanted}", code=USAGE)


_NOT: Any = object()
_KINDS: dict[str, Any] = {"integer": int, "number": (int, float), "array": list, "object": dict}


def _as(kind: str, text: str) -> Any:
    """The text as that type, or `_NOT`."""
    if kind == "string":
        return text
    if kind == "boolean":
        low = text.lower()
        return low in _TRUE if low in (*_TRUE, *_FALSE) else _NOT
    if kind == "null":
        return None if text == "null" else _NOT
    try:
        found: Any = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _NOT
    fits = isinstance(found, _KINDS[kind]) and not isinstance(found, bool)
    return found if fits else _NOT  # pyright: ignore[reportUnknownVariableType] - it is whatever JSON says


def _item(text: str, field: Mapping[str, Any]) -> Any:
    return _typed("item", text, members_of(field.get("items")))


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _check(found: Mapping[str, Any], known: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """What is missing, or has a name that the schema excludes, is said before anything is sent."""
    required = items_of(schema.get("required"))
    missing = [each for each in required if isinstance(each, str) and each not in found]
    strange = [each for each in found if each not in known] if schema.get("additionalProperties") is False else []
    if missing or strange:
        told = f"{one_line(', '.join(missing))} must be given" if missing else f"there is no argument {strange[0]!r}"
        raise Failure(told, code=USAGE, hint=f"it takes: {signature_of(schema) or 'nothing'}")


def signature_of(schema: Mapping[str, Any]) -> str:
    """`a: integer, b: integer = 1, c?: string`, with nothing a terminal would act on."""
    required, parts = items_of(schema.get("required")), list[str]()
    for name, field in members_of(schema.get("properties")).items():
        about = _schema_of(field, schema)
        must = name in required
        kind = "|".join(types_of(about)) or "any"
        default = f" = {json.dumps(about['default'], ensure_ascii=False)}" if "default" in about else ""
        parts.append(one_line(f"{name}{'' if must or default else '?'}: {kind}{default}", 120))
    return ", ".join(parts)
