"""Arguments that were refused: mended where their meaning is beyond doubt, else told so that a model can mend them.

Nothing here runs for a call that fits. What is unknown to the tool is dropped, as some clients add members of their own
to every call, unless it looks like a misspelt parameter: a safeguard such as `dry_run` must not be lost in `dryRun`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Raw

from ...wire.escaping import display
from ...wire.json.lenient import members_of
from ...wire.json.reader import JsonReader, read_json
from ...wire.json.schema import Check, Mismatch, Problem
from ..schema.models import decode_custom
from ..schema.signature import Signature
from .coercion import coerced, resolved
from .describe import NO_EXAMPLE, example_of, shown, words_of
from .error_location import NOWHERE, Decoder, exact, has_there, place_of, schema_at, value_at
from .errors import Unmendable

__all__ = ["Mender", "mend_given", "told_within"]

LONGEST_NAME = 64
MOST_UNKNOWN = 20
LONGEST_REASON = 300
MAX_REPAIR_BYTES = 64 * 1024
"""Of the arguments of one call that are converted, all together: some 50 ms. 1.9 MB took 1.2 s on the event loop."""
_PARTS = msgspec.json.Decoder(dict[str, Raw])


class Mender:
    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._definitions: dict[str, Any] = signature.schema.get("$defs", {})
        self._properties: dict[str, Any] = signature.schema.get("properties", {})
        fields = msgspec.structs.fields(signature.decoder.type)
        self._decoders = {each.name: JsonReader(each.type, dec_hook=decode_custom) for each in fields}
        self._required = [each.name for each in fields if each.required]

    def mend(self, raw: Raw) -> dict[str, Any]:
        """The arguments of the function, or `Unmendable`. Raises `msgspec.ValidationError` if they are no object."""
        parts = _PARTS.decode(raw)
        kept: dict[str, Raw] = {}
        lines: list[str] = [*self._misspelt(parts)]
        left = MAX_REPAIR_BYTES
        for name, decoder in self._decoders.items():
            if name in parts:
                part, line = self._part(name, parts[name], decoder, left)
                if line is not None or part is not parts[name]:
                    left -= len(parts[name])  # it did not fit
                kept[name] = part
                lines += [line] if line else []
            elif name in self._required:
                lines.append(_line(name, "missing", self._properties[name], self._definitions))
        if lines:
            raise Unmendable(lines)
        return self._signature.decode(msgspec.json.encode(kept))

    def _part(self, name: str, raw: Raw, decoder: JsonReader[Any], limit: int) -> tuple[Raw, str | None]:
        """One argument as it is if it fits, in the wanted type if that is beyond doubt, else what is wrong with it.
        One of more than `limit` bytes is not converted."""
        try:
            decoder.decode(raw)
            return raw, None
        except msgspec.ValidationError as error:
            first = str(error)
        if len(raw) > limit:
            first += f" (not converted: over {MAX_REPAIR_BYTES} bytes of arguments do not fit)"
            return raw, _line(name, first.replace("`", "'"), self._properties[name], self._definitions)
        try:
            value = self._coerced(name, read_json(raw), decoder)
        except msgspec.DecodeError:  # such as a number beyond all bounds
            return raw, _line(name, first.replace("`", "'"), self._properties[name], self._definitions)
        mended = Raw(msgspec.json.encode(value))
        try:
            decoder.decode(mended)
            return mended, None
        except msgspec.ValidationError as error:
            return raw, _told(name, value, str(error), self._properties[name], self._definitions, decoder)

    def _coerced(self, name: str, value: Any, decoder: JsonReader[Any]) -> Any:
        if isinstance(value, str) and value.strip() == "null":  # where null may stand, and no text: it was refused
            try:
                return decoder.decode(b"null")
            except msgspec.ValidationError:
                return value
        return coerced(value, self._properties[name], self._definitions)

    def _misspelt(self, parts: dict[str, Raw]) -> Iterator[str]:
        unknown = [name for name in parts if name not in self._decoders][:MOST_UNKNOWN]
        absent = [name for name in self._decoders if name not in parts]
        for name in unknown:
            if near := next((each for each in absent if _alike(name, each)), None):
                yield f"{display(name, LONGEST_NAME)}: no such argument; did you mean '{near}'?"


def mend_given(
    raw: Raw, value: dict[str, Any], check: Check, schema: dict[str, Any], first: Mismatch
) -> dict[str, Any]:
    """For a tool whose author wrote the schema: the arguments in the types it asks for, or `Unmendable`.

    `value` is what `raw` says. Its first members are converted, as long as they are short enough together.
    """
    definitions, left = cast("dict[str, Any]", schema.get("$defs", {})), MAX_REPAIR_BYTES
    short: dict[str, Any] = {}
    for name, part in _PARTS.decode(raw).items():
        if len(part) <= left:
            short[name] = value[name]
            left -= len(part)
    mended: dict[str, Any] = coerced(short, schema, definitions)
    try:
        if msgspec.json.encode(mended) == msgspec.json.encode(short):
            raise first  # a second check would find the same
        check(whole := {**value, **mended})
        return whole
    except Mismatch:
        lines = [_given_line(problem, schema, definitions) for problem in first.problems]
        raise Unmendable(lines) from None


# --- lines ----------------------------------------------------------------------------------------------


def _line(place: str, wrong: str, schema: Any, definitions: dict[str, Any], example: Any = NOWHERE) -> str:
    wanted = words_of(schema, definitions)
    example = example_of(schema, definitions) if example is NOWHERE else example
    told = f"{display(place, LONGEST_NAME * 2)}: {display(wrong, LONGEST_REASON)}"  # it may repeat what the peer sent
    told += f"; expected {wanted}" if wanted != "a value" else ""
    return f"{told}; for example {shown(example)}" if example is not NO_EXAMPLE else told


def told_within(message: str, value: Any, signature: Signature) -> str:
    """What msgspec says of a whole record, such as the arguments of a prompt, in the same words."""
    if not place_of(message).said:
        return display(message.replace("`", "'"), LONGEST_REASON)
    schema = signature.schema
    return _told("", value, message, schema, schema.get("$defs", {}), signature.decoder).removeprefix(".")


def _told(name: str, value: Any, message: str, schema: Any, definitions: dict[str, Any], decoder: Decoder) -> str:
    """msgspec's one line (`Expected `int`, got `str` - at `$[0].x``) with the place, the value and the shape."""
    place = exact(place_of(message), value, decoder)
    inside = value
    for step in place.steps[:-1] if place.is_name else place.steps:
        schema = schema_at(schema, step, inside, definitions)
        inside = value_at(inside, [step])
    where, wrong = f"{name}{place}", place.wrong.replace("`", "'")
    if place.is_name:
        return _name_line(where, place.steps[-1], wrong, schema, definitions)
    if place.wrong.startswith("Expected `") and inside is not NOWHERE:
        wrong = f"{shown(inside)} does not fit"
    example = example_of(schema, definitions)
    if example is not NO_EXAMPLE and not has_there(place, example, value, decoder):
        example = NO_EXAMPLE  # the schema does not say all that a class of the author's looks at
    return _line(where, wrong, schema, definitions, example)


def _name_line(where: str, name: Any, wrong: str, schema: Any, definitions: dict[str, Any]) -> str:
    """About the name of a member, which is always a text."""
    schema = resolved(schema, definitions)
    ways = [resolved(way, definitions) for way in (schema, *schema.get("anyOf", []))]
    names = next((members_of(way["propertyNames"]) for way in ways if "propertyNames" in way), members_of(None))
    told = f"{shown(name)} is no name of a member" if name is not None else f"the name of a member: {wrong}"
    return _line(where, told, {"type": "string", **names}, definitions)


def _given_line(problem: Problem, schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.path).lstrip(".")
    part: Any = schema
    for step in problem.where[:-1]:
        part = cast(Any, part)[step] if isinstance(part, dict | list) else {}
    return _line(place or "arguments", problem.message, part, definitions)


# --- names ----------------------------------------------------------------------------------------------


def _alike(given: str, known: str) -> bool:
    """The same but for case and dashes, or one slip of the pen in a name of some length."""
    if len(given) > LONGEST_NAME:
        return False
    one, other = (re.sub(r"[\W_]", "", name).casefold() for name in (given, known))
    return one == other or (min(len(one), len(other)) >= 4 and _one_slip(one, other))


def _one_slip(one: str, other: str) -> bool:
    """One letter more, less or other, or two that changed places."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
