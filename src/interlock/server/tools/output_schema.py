"""What a tool declares about what it gives: the output schema, from the return annotation or from the author's hand.

Text, blocks and `Any` declare nothing: what they hold shows when it comes. Every other annotation is data, and data has
a schema. Decided once, at registration; a type that has no schema declares none.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from ...wire.errors import LocalError
from ...wire.json.reader import JsonReader, read_own_json
from ...wire.messages import encode
from ..schema.annotations import readable
from ..schema.builder import TypeWriter
from ..schema.dataclass_defaults import Fill, filler_of
from ..schema.models import decode_custom
from ..schema.signature import hints_of
from .results import Check, ToolResult

__all__ = ["Output", "OutputSchema", "read_output"]

OutputSchema = Mapping[str, Any] | type[Any] | Literal[False]
"""A JSON Schema to be kept word for word, a type to be described, or False for none."""

_MANY = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_STREAMS = (
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.Generator,
    collections.abc.Iterator,
)
_UNIONS = (typing.Union, types.UnionType)
_BINARY = (bytes, bytearray, memoryview)
_BARE = (Any, object, None, type(None), typing.NoReturn, typing.Never, list, tuple)


class Output(msgspec.Struct, frozen=True):
    """What is declared about the result of one tool."""

    schema: dict[str, Any] | None = None
    check: Check | None = None
    fill: Fill | None = None
    """What completes a value before it is written, where something of it would be left out."""
    embeds: bool = False
    """May results hold embedded resources? Then `resources` is declared (server/tools#embedded-resources)."""


def read_output(function: Callable[..., Any], given: OutputSchema | None, *, streams: bool = False) -> Output:
    """What `function` declares; `given` is the author's own word about it. `streams`: it is a generator."""
    hint = _result_of(hints_of(function).get("return", Any), streams)
    if hint in _BINARY:
        raise LocalError(f"{_name(function)} returns bytes: wrap them in Image, Audio or File")
    embeds = hint is not str and _embeds(hint)
    if isinstance(given, Mapping):
        schema = _kept(given)
        return Output(schema, _by_schema(schema), embeds=embeds)
    if given is not None and given is not False:
        return _described(given, embeds, _name(function))
    return _described(hint, embeds, None) if given is None and _is_data(hint) else Output(embeds=embeds)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


# --- annotations ---


def _bare(hint: Any) -> Any:
    """The type itself, without what `Annotated` says about it."""
    while typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    return hint


def _result_of(hint: Any, streams: bool) -> Any:
    """What comes out in the end: of a generator what it yields, or returns where it says so."""
    if not streams or typing.get_origin(_bare(hint)) not in _STREAMS:
        return Any if streams else hint
    arguments = typing.get_args(_bare(hint))
    returned = arguments[2] if len(arguments) == 3 else None
    return arguments[0] if returned in (None, type(None), Any) else returned


def _parts(hint: Any) -> list[Any]:
    """All types an annotation is made of, itself included."""
    return [_bare(hint)] + [part for each in typing.get_args(_bare(hint)) for part in _parts(each)]


def _is_data(hint: Any) -> bool:
    """Is it described by a schema? A text is the answer itself, and blocks describe themselves."""
    hint = _bare(hint)
    if hint is str or hint in _BARE or _is_content(hint):
        return False
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in _UNIONS:
        return all(_is_data(each) or _bare(each) is type(None) for each in arguments)
    if typing.get_origin(hint) in _MANY:
        return not any(_bare(part) in (Any, object) or _is_content(part) for each in arguments for part in _parts(each))
    return True


def _embeds(hint: Any) -> bool:
    from ...wire.types.content import EmbeddedResource  # a server whose tools give texts starts without blocks
    from ..content import File

    return any(part in (EmbeddedResource, File) for part in _parts(hint))


def _is_content(hint: Any) -> bool:
    from ..content import BLOCK_TYPES

    return isinstance(hint, type) and issubclass(hint, (*BLOCK_TYPES, ToolResult))


# --- schemas ---


def _kept(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it goes out: a copy nobody else holds."""
    try:
        return cast("dict[str, Any]", msgspec.json.decode(encode(schema)))
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"output_schema is no JSON: {error}") from None


def _described(hint: Any, embeds: bool, asked_by: str | None) -> Output:
    """The schema of a type. Of an annotation that has none, none; of a type that was asked for, a clear word."""
    try:
        hint = _readable(hint)
        decoder = JsonReader(hint, dec_hook=decode_custom, bounded=False)
        schema, loose = _schema_of(hint)
        fill = filler_of([hint], made_here=True)
    except Exception as error:
        if asked_by is None:
            return Output(embeds=embeds)
        raise LocalError(f"{asked_by}: there is no schema of {hint!r:.200} ({error})") from None
    return Output(schema, _by_type(decoder, schema, loose), fill, embeds)


def _readable(hint: Any) -> Any:
    """With what is said about it; a check that cannot be kept is of what comes in, and costs no schema here."""
    try:
        return readable(hint)
    except (LocalError, TypeError):
        return hint


def _by_schema(schema: dict[str, Any]) -> Check:
    from ...wire.json.schema import validator_of  # most authors write no schema, and their servers start without it

    validate = validator_of(schema, "output_schema")
    return lambda data: validate(read_own_json(data))


def _by_type(decoder: JsonReader[Any], schema: dict[str, Any], loose: bool) -> Check:
    """The decoder of the type says yes quickly. What it refuses is judged by the schema, which is what was declared.

    A loose one takes more than that, as a model takes "5" for 5: there the schema judges everything.
    """
    slow: list[Check] = []

    def judge(data: bytes) -> None:
        if not slow:
            slow.append(_judge(decoder, schema))
        slow[0](data)

    def check(data: bytes) -> None:
        try:
            decoder.decode(data)
        except Exception:
            judge(data)

    return judge if loose else check


def _judge(decoder: JsonReader[Any], schema: dict[str, Any]) -> Check:
    """By now a tool has run, so a schema that is too much to check must not lose what it gave."""
    from ...wire.json.schema import validator_of

    try:
        validate = validator_of(schema)
    except LocalError:
        return lambda data: _read_back(decoder, data)
    return lambda data: validate(read_own_json(data))


def _read_back(decoder: JsonReader[Any], data: bytes) -> None:
    try:
        decoder.decode(data)
    except Exception:
        raise ValueError("it cannot be read back as the type it is declared to be") from None


def _schema_of(hint: Any) -> tuple[dict[str, Any], bool]:
    """As for arguments, but of what goes out, and whether its decoder takes more than that.

    A type that holds itself is the root too, with its own keywords there.
    """
    writer = TypeWriter([hint], gives=True)
    (found,) = writer.schemas()
    if not (definitions := writer.definitions):
        return found, writer.loose
    if "$ref" in found:
        found = definitions[found["$ref"].rpartition("/")[2]]
    return {**found, "$defs": definitions}, writer.loose
