"""Forms out of Python types: what `ctx.elicit` asks with, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec

from ..protocol.input.form_schema import check_content, check_form
from ..wire.errors import InvalidParams, LocalError
from ..wire.escaping import display
from ..wire.exchange import Result
from .schema.builder import TypeWriter, without_null
from .schema.dataclass_defaults import filler_of
from .schema.models import decode_custom

__all__ = ["Form", "form_of", "check_accepted"]

_VALUE = "value"
_PLAIN = (str, int, float, bool)
_sorted = msgspec.json.Encoder(order="sorted").encode
_LONGEST_REASON = 300  # characters; it may repeat what the user typed


class Form(msgspec.Struct, frozen=True):
    """A schema to ask with, and how the content of an accepted answer is read."""

    schema: dict[str, Any]
    read: Callable[[dict[str, Any]], Any]
    identity: bytes = b""
    """What stands for the schema, where it was made once for a type."""
    plain: type | None = None
    """The type of its one value, where the schema asks for nothing but that."""

    def check(self, answer: Result) -> None:
        """Raise `InvalidParams` for an accepted answer that does not fit."""
        if answer["action"] != "accept":
            return
        content = answer.get("content")
        if self.plain is None or not _is_just(self.plain, content):
            check_accepted(self, content)


_YES = Form({"type": "object", "properties": {}}, lambda content: None)
"""Nothing to fill in: that the user accepts is all that is wanted to be known."""


def form_of(wanted: Any) -> Form:
    """A JSON Schema gives a dict, a record type its record, a plain type or choices one value, None nothing."""
    if isinstance(wanted, type):
        return _form_of_type(wanted, "")
    if isinstance(wanted, Mapping):
        schema = dict(cast("Mapping[str, Any]", wanted))
        check_form(schema)
        return Form(schema, dict)
    if wanted is None:
        return _YES
    if isinstance(wanted, list | tuple):
        return _form_of_choices(cast("list[Any] | tuple[Any, ...]", wanted))
    return _form_of_type(wanted, repr(wanted))


def _form_of_choices(choices: list[Any] | tuple[Any, ...]) -> Form:
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise LocalError(f"no form can be made of {choices!r:.200}: choices are texts, and there is at least one")
    wanted = Literal[tuple(choices)]
    return _form_of_type(wanted, repr(wanted))


@lru_cache(256)
def _form_of_type(wanted: Any, written: str) -> Form:
    """As it was written: two `Literal`s of the same choices are equal, whatever their order."""
    try:
        writer = TypeWriter([wanted])
        schema = writer.schemas()[0]
    except (TypeError, ValueError, LocalError) as error:
        raise LocalError(f"no form can be made of {wanted!r}: {error}") from None
    if writer.definitions:
        raise LocalError(f"no form can be made of {wanted!r}: it contains itself, and forms are flat")
    if schema.get("type") == "object" and "properties" in schema:
        return _record(wanted, schema)
    # without `| None`: an optional field may stay empty
    single = {"type": "object", "properties": {_VALUE: without_null(schema)}, "required": [_VALUE]}
    check_form(single)
    read = _reader(wanted)
    plain = wanted if wanted in _PLAIN and schema.keys() == {"type"} else None
    return Form(single, lambda content: read(content.get(_VALUE)), _identity(single), plain)


def _record(wanted: Any, described: dict[str, Any]) -> Form:
    fields = {name: without_null(field) for name, field in described["properties"].items()}
    schema = {"type": "object", "properties": fields, "required": list(described.get("required", []))}
    check_form(schema)
    return Form(schema, _reader(wanted), _identity(schema))


def _identity(schema: dict[str, Any]) -> bytes:
    """The same however its members came. A question about it says its message behind this."""
    return b"form" + _sorted(schema)


def _reader(wanted: Any) -> Callable[[Any], Any]:
    """What is to be filled in is found out once for a type: looking through it takes longer than all of a question."""
    fill = filler_of([wanted])
    plain = wanted if wanted in _PLAIN else None

    def read(content: Any) -> Any:
        if type(content) is plain:
            return content
        try:
            found = msgspec.convert(content, wanted, dec_hook=decode_custom)
        except msgspec.ValidationError as error:
            told = display(str(error).replace("`", "'"), _LONGEST_REASON)
            raise InvalidParams(f"The answer does not fit what was asked for: {told}") from None
        if fill is not None:
            fill(found)
        return found

    return read


def _is_just(plain: type, content: Any) -> bool:
    """Is it that one value and nothing else, as nearly all answers are? Then there is nothing more to look at."""
    if type(content) is not dict:
        return False
    members: dict[str, Any] = content  # pyright: ignore[reportUnknownVariableType] - what was decoded has names
    return len(members) == 1 and type(members.get(_VALUE)) is plain


def check_accepted(form: Form, content: Any) -> None:
    """Raise `InvalidParams` for content that does not fit; what fits can be read."""
    check_content(form.schema, content)
    form.read(content or {})
