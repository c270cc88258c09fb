"""JSON Schema of Python types, written for models and for clients that know little of JSON Schema.

Dialect 2020-12. Everything is written in place; only a type that contains itself is a `$ref` into `$defs`, as there is
no other way. No titles. Choices stand in the author's order. Where None is the default of an argument, absence says it,
so null is not offered: it is accepted all the same. Of a result it is, as it goes out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect as mi

from ...wire.errors import LocalError
from .annotations import said_in_class
from .models import decode_custom, is_model, is_path, is_set_by_class, model_schema

__all__ = ["DECIMAL", "INTEGER_KEY", "Schema", "TypeWriter", "check_default", "with_default", "without_null"]

Schema = dict[str, Any]
_RECORDS = (mi.StructType, mi.DataclassType, mi.TypedDictType, mi.NamedTupleType)
_NO_KEYS = (mi.BoolType, mi.NoneType, mi.CollectionType, mi.TupleType, mi.DictType, *_RECORDS)
INTEGER_KEY = "^(0|-?[1-9][0-9]*)$"
_JSON_TYPES = (str, int, float, bool, bytes, list, dict, set, bytearray)  # of values that are compared as JSON
DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class TypeWriter:
    """Writes the schemas of the types it was made for, and collects the definitions they share."""

    def __init__(self, hints: Iterable[Any], *, gives: bool = False) -> None:
        """`gives`: the types are of what goes out, not of what comes in."""
        hints = list(hints)
        self.gives = gives
        self.loose = False
        """Does msgspec read, somewhere in them, more than the schema allows? Known when they are written."""
        self.nodes = mi.multi_type_info(hints)
        self.definitions: Schema = {}
        self._names: dict[int, str] = {}
        self._order = {_literal_key(found): found for hint in hints for found in _literals(hint, set())}
        self._recursive = _recursive(self.nodes)

    def schemas(self) -> list[Schema]:
        """One for each hint."""
        return [self.write(node) for node in self.nodes]

    def write(self, node: mi.Type) -> Schema:
        if isinstance(node, mi.Metadata):
            return {**self.write(node.type), **_said(node)}
        if id(node) in self._recursive:
            return {"$ref": f"#/$defs/{self._define(node)}"}
        return self._write(node)

    def _define(self, node: Any) -> str:
        if id(node) not in self._names:
            name = self._names[id(node)] = self._free_name(node.cls)
            self.definitions[name] = {}  # its place, in the order of the fields
            self.definitions[name] = self._write(node)
        return self._names[id(node)]

    def _free_name(self, kind: Any) -> str:
        plain = getattr(get_origin(kind) or kind, "__name__", "Part")
        taken = {*self._names.values(), *self.definitions}
        return next(name for name in (plain, *(f"{plain}{number}" for number in range(2, 999))) if name not in taken)

    def _write(self, node: mi.Type) -> Schema:
        for kinds, write in _WRITERS:
            if isinstance(node, kinds):
                return write(self, node)
        raise LocalError(f"JSON has nothing for {node!r}")

    # --- containers -----------------------------------------------------------------------------------

    def array(self, node: Any) -> Schema:
        items = self.write(node.item_type)
        unique = {"uniqueItems": True} if isinstance(node, mi.SetType | mi.FrozenSetType) else {}
        self.loose = self.loose or bool(unique)
        return {"type": "array", **({"items": items} if items else {}), **_sizes(node, "Items"), **unique}

    def tuple(self, node: Any) -> Schema:
        return _fixed([self.write(item) for item in node.item_types], len(node.item_types))

    def mapping(self, node: Any) -> Schema:
        keys, values = self._key(node.key_type), self.write(node.value_type)
        return {
            "type": "object",
            **({"propertyNames": keys} if keys else {}),
            **({"additionalProperties": values} if values else {}),
            **_sizes(node, "Properties"),
        }

    def _key(self, node: mi.Type) -> Schema:
        """What a member may be called. Names are texts, also those that mean a number."""
        if isinstance(_bare(node), _NO_KEYS):
            raise LocalError("the members of an object are named by texts: JSON has no other keys")
        written = self.write(node)
        found = {word: value for word, value in written.items() if word != "type"}
        if "enum" in found:
            return {**found, "enum": [str(each) for each in found["enum"]]}
        return {"pattern": INTEGER_KEY} if written.get("type") == "integer" else found

    def union(self, node: Any) -> Schema:
        return _one_of([self.write(member) for member in node.types])

    # --- choices --------------------------------------------------------------------------------------

    def literal(self, node: Any) -> Schema:
        return _choice(list(self._order.get(_literal_key(node.values)) or node.values))

    def enum(self, node: Any) -> Schema:
        if hasattr(node.cls, "_flag_mask_"):  # any of its members together is one, too
            return {"type": "integer", **_documented(node.cls)}
        return {**_choice([member.value for member in node.cls]), **_documented(node.cls)}

    # --- records --------------------------------------------------------------------------------------

    def record(self, node: Any) -> Schema:
        if isinstance(node, mi.NamedTupleType) or getattr(node, "array_like", False):
            return self._row(node)
        if hasattr(node.cls, "__pydantic_fields__") and not self.gives:
            raise LocalError(
                f"{node.cls.__name__}: a dataclass of pydantic is not checked as it would: make it a model"
            )
        properties: Schema = {}
        if getattr(node, "tag_field", None) is not None:
            properties[node.tag_field] = _tag(node)
        fields = [field for field in node.fields if self._is_told(get_origin(node.cls) or node.cls, field)]
        required = [*properties, *(field.encode_name for field in fields if field.required)]
        hints = _hints(node.cls)
        properties |= {field.encode_name: self.field(field, hints.get(field.name)) for field in fields}
        closed = {"additionalProperties": False} if getattr(node, "forbid_unknown_fields", False) else {}
        told: Schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
        return {**told, **closed, **_documented(node.cls)}

    def _is_told(self, kind: Any, field: mi.Field) -> bool:
        """What a class sets itself is nobody's to give; and what attrs calls private is never written."""
        if self.gives:
            return not (field.name.startswith("_") and hasattr(kind, "__attrs_attrs__"))
        if not is_set_by_class(kind, field.name):
            return True
        if field.required:
            raise LocalError(
                f"{kind.__name__}.{field.name} is set by the class itself (init=False), and msgspec, which reads "
                "arguments, wants it from the caller: give it a default"
            )
        return False

    def _row(self, node: Any) -> Schema:
        """Fields by position; their names are worth telling all the same."""
        tag = [_tag(node)] if getattr(node, "tag_field", None) is not None else []
        hints = _hints(node.cls)
        fields = [{"description": field.name, **self.field(field, hints.get(field.name))} for field in node.fields]
        needed = len(tag) + max((at + 1 for at, field in enumerate(node.fields) if field.required), default=0)
        closed = not hasattr(node, "forbid_unknown_fields") or node.forbid_unknown_fields
        row = _fixed([*tag, *fields], needed)
        return {**(row if closed else {key: row[key] for key in row if key not in ("items", "maxItems")})}

    def field(self, field: mi.Field, hint: Any) -> Schema:
        said = said_in_class(hint, checks=not self.gives)
        written = {**({"description": said} if said else {}), **self.write(field.type)}
        if field.default is None and self.gives:
            return written
        if not self.gives and hint is not None and field.default is not msgspec.NODEFAULT:
            _check_field(field, hint)
        if field.default is not msgspec.NODEFAULT:
            return with_default(written, field.default)
        if field.default_factory in (list, dict, set):
            return with_default(written, cast("Callable[[], Any]", field.default_factory)())
        return written

    def decimal(self, node: Any) -> Schema:
        """It goes out as a text, which may also say that it is no number."""
        self.loose = True
        return {"type": "string"} if self.gives else {"type": ["number", "string"], "pattern": DECIMAL}

    def custom(self, node: Any) -> Schema:
        if is_path(node.cls):
            return {"type": "string"}
        if is_model(node.cls):
            from .inline_refs import inlined  # only models of other libraries write their own

            self.loose = True
            return inlined(model_schema(node.cls, gives=self.gives), self.definitions, gives=self.gives)
        if node.cls is object:
            return {}
        raise LocalError(f"JSON has nothing for the type {node.cls!r}: use one that can be written as JSON")


# --- plain values ---------------------------------------------------------------------------------------


def _number(_: TypeWriter, node: Any) -> Schema:
    words = {"minimum": node.ge, "exclusiveMinimum": node.gt, "maximum": node.le, "exclusiveMaximum": node.lt}
    kind = "integer" if isinstance(node, mi.IntType) else "number"
    return {"type": kind, **_given({**words, "multipleOf": node.multiple_of})}


def _text(_: TypeWriter, node: Any) -> Schema:
    words = {"minLength": node.min_length, "maxLength": node.max_length, "pattern": node.pattern}
    return {"type": "string", **_given(words)}


def _bytes(_: TypeWriter, node: Any) -> Schema:
    lengths = {"minLength": node.min_length, "maxLength": node.max_length}
    encoded = {word: 4 * ((length + 2) // 3) for word, length in _given(lengths).items()}
    return {"type": "string", "contentEncoding": "base64", **encoded}


def _format(name: str) -> Callable[[TypeWriter, Any], Schema]:
    return lambda _, node: {"type": "string", "format": name}


def _moment(name: str) -> Callable[[TypeWriter, Any], Schema]:
    """JSON Schema's `date-time` and `time` have an offset: advice where both are accepted, wrong where none is.

    Of a result it is a promise, and there are clients that check formats: it is made where an offset is asked for.
    """

    def write(writer: TypeWriter, node: Any) -> Schema:
        said = node.tz is True if writer.gives else node.tz is not False
        return {"type": "string", **({"format": name} if said else {})}

    return write


def _duration(writer: TypeWriter, node: Any) -> Schema:
    """RFC 3339's durations, which the format means, have no fractions and no sign: ours may."""
    return {"type": "string", **({} if writer.gives else {"format": "duration"})}


def _plain(schema: Schema) -> Callable[[TypeWriter, Any], Schema]:
    return lambda _, node: dict(schema)


_WRITERS: tuple[tuple[Any, Callable[[TypeWriter, Any], Schema]], ...] = (
    (mi.StrType, _text),
    (mi.IntType | mi.FloatType, _number),
    (mi.BoolType, _plain({"type": "boolean"})),
    (mi.NoneType, _plain({"type": "null"})),
    (mi.AnyType | mi.RawType, _plain({})),
    (mi.CollectionType, TypeWriter.array),
    (mi.TupleType, TypeWriter.tuple),
    (mi.DictType, TypeWriter.mapping),
    (mi.UnionType, TypeWriter.union),
    (mi.LiteralType, TypeWriter.literal),
    (mi.EnumType, TypeWriter.enum),
    (_RECORDS, TypeWriter.record),
    (mi.BytesType | mi.ByteArrayType | mi.MemoryViewType, _bytes),
    (mi.DateTimeType, _moment("date-time")),
    (mi.DateType, _format("date")),
    (mi.TimeType, _moment("time")),
    (mi.TimeDeltaType, _duration),
    (mi.UUIDType, _format("uuid")),
    (mi.DecimalType, TypeWriter.decimal),
    (mi.CustomType, TypeWriter.custom),
)


# --- defaults -------------------------------------------------------------------------------------------


def _check_field(field: mi.Field, hint: Any) -> None:
    try:
        check_default(field.default, hint)
    except TypeError:  # an annotation that msgspec reads within its class alone
        return
    except (msgspec.ValidationError, ValueError) as error:
        told = f"the default of {field.name}, {field.default!r:.60}, does not fit its annotation: {error}"
        raise LocalError(f"{told}: change the default or the annotation") from None


def check_default(value: Any, hint: Any) -> None:
    """The schema shows a default to callers, so sending it must be allowed: raises what `msgspec.convert` does.

    A default that JSON cannot express is not shown: a sentinel of the author's own stays possible.
    """
    if value is None or hint is Any:
        return
    if type(value) not in _JSON_TYPES and isinstance(hint, type) and isinstance(value, hint):
        return
    if (shown := json_default(value)) is not None and shown[0] is not None:
        msgspec.convert(shown[0], hint, dec_hook=decode_custom)


def with_default(schema: Schema, value: Any) -> Schema:
    """None goes without saying; what JSON cannot say is left out."""
    if value is None:
        return without_null(schema)
    told = json_default(value)
    return {**schema, "default": told[0]} if told and told[0] is not None else schema  # infinity has no word either


def json_default(value: Any) -> tuple[Any] | None:
    """The default as JSON data, in a tuple; None if JSON has no word for it."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_told)
        return (msgspec.json.decode(msgspec.json.encode(plain)),)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError):
        return None


def _told(value: Any) -> Any:
    if is_path(cast("type[Any]", type(value))):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise NotImplementedError


def without_null(schema: Schema) -> Schema:
    """The same without null among its choices, where there are others."""
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        rest = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        choices = {"enum": [each for each in schema["enum"] if each is not None]} if "enum" in schema else {}
        return {**schema, "type": rest[0] if len(rest) == 1 else rest, **choices}
    ways = cast("list[Schema]", schema.get("anyOf", []))
    rest = [way for way in ways if way != {"type": "null"}]
    if not rest or len(rest) == len(ways):
        return schema
    others = {word: value for word, value in schema.items() if word != "anyOf"}
    return {**rest[0], **others} if len(rest) == 1 else {"anyOf": rest, **others}


# --- small parts ----------------------------------------------------------------------------------------


def _said(node: mi.Metadata) -> Schema:
    return cast(Schema, cast(Any, node).extra_json_schema or {})


def _given(words: Schema) -> Schema:
    return {word: value for word, value in words.items() if value is not None}


def _sizes(node: Any, noun: str) -> Schema:
    return _given({f"min{noun}": node.min_length, f"max{noun}": node.max_length})


def _fixed(items: list[Schema], needed: int) -> Schema:
    if not items:
        return {"type": "array", "maxItems": 0}
    return {"type": "array", "prefixItems": items, "items": False, "minItems": needed, "maxItems": len(items)}


def _bare(node: mi.Type) -> mi.Type:
    while isinstance(node, mi.Metadata):
        node = node.type
    return node


def _choice(values: list[Any]) -> Schema:
    kinds = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
    found = list(dict.fromkeys(kinds[type(value)] for value in values if type(value) in kinds))
    return {"type": found[0] if len(found) == 1 else found, "enum": values}


def _tag(node: Any) -> Schema:
    return {"type": "string" if isinstance(node.tag, str) else "integer", "const": node.tag}


def _one_of(ways: list[Schema]) -> Schema:
    """`{"type": ["integer", "null"]}` where that says it all, `anyOf` where it does not."""
    ways = [way for at, way in enumerate(ways) if way not in ways[:at]]
    if {} in ways:
        return {}
    kinds = [way.get("type") for way in ways]
    plain = [way for way in ways if way != {"type": way.get("type")}]
    if len(plain) <= 1 and all(isinstance(kind, str) for kind in kinds) and len(set(kinds)) == len(kinds):
        told = plain[0] if plain else {}
        if "enum" not in told and "const" not in told and "description" not in told:
            return {**told, "type": kinds}
        if set(kinds) == {told["type"], "null"} and "enum" in told:
            return {**told, "type": [told["type"], "null"], "enum": [*told["enum"], None]}
    return {"anyOf": ways}


def _documented(kind: Any) -> Schema:
    """What the author wrote about a class. The text of a dataclass without one, its signature, is not of use to a
    model: Python 3.15 makes it when it is first read, and before that something else than a text stands there."""
    kind = get_origin(kind) or kind
    text: Any = kind.__dict__.get("__doc__")
    if not text or not isinstance(text, str) or text.startswith(f"{kind.__name__}("):
        return {}
    return {"description": inspect.cleandoc(text).partition("\n\n")[0].replace("\n", " ")}


def _recursive(nodes: Iterable[mi.Type]) -> set[int]:
    """The records that contain themselves."""
    found: set[int] = set()
    open: list[int] = []
    done: set[int] = set()

    def visit(node: mi.Type) -> None:
        if id(node) in open:
            found.add(id(node))
        elif id(node) not in done:
            open.append(id(node))
            for inner in _inside(node):
                visit(inner)
            done.add(open.pop())

    for node in nodes:
        visit(node)
    return found


def _inside(node: Any) -> Iterator[mi.Type]:
    if isinstance(node, _RECORDS):
        yield from (field.type for field in node.fields)
    elif isinstance(node, mi.Metadata):
        yield node.type
    elif isinstance(node, mi.DictType):
        yield from (node.key_type, node.value_type)
    else:
        yield from getattr(node, "types", ()) or getattr(node, "item_types", ())
        if hasattr(node, "item_type"):
            yield node.item_type


def _literal_key(values: Iterable[Any]) -> frozenset[Any]:
    return frozenset((type(value), value) for value in values)


def _literals(hint: Any, seen: set[Any]) -> Iterator[tuple[Any, ...]]:
    """All `Literal`s in a type, with their values as the author ordered them: msgspec sorts."""
    if get_origin(hint) is Literal:
        yield get_args(hint)
    for inner in (*get_args(hint), getattr(hint, "__origin__", None), getattr(hint, "__value__", None)):
        if inner is not None and not isinstance(inner, str | int) and id(inner) not in seen:
            seen.add(id(inner))
            yield from _literals(inner, seen)
    if isinstance(hint, type) and ("fields", id(hint)) not in seen:
        seen.add(("fields", id(hint)))
        yield from (found for inner in _hints(hint).values() for found in _literals(inner, seen))


def _hints(kind: Any) -> dict[str, Any]:
    """Of the fields of a class, its bases' included, as far as they can be found from outside."""
    try:
        return get_type_hints(get_origin(kind) or kind, include_extras=True)
    except Exception:  # annotations are code of the author's, which Python 3.14 runs when they are read
        return {}
