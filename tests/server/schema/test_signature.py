"""server/schema/signature.py: a signature becomes a decoder and a JSON Schema, or a sentence that says why not."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import make_dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import jsonschema_rs
import msgspec
import pytest

from interlock.server.context import BlockingContext, Context
from interlock.server.schema.signature import docs_of, plain_name, read_signature
from interlock.wire.errors import LocalError


def read(function):
    return read_signature(function, Context)


def decode(function, text):
    return msgspec.structs.asdict(read(function).decoder.decode(text))


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Named:
    name: str


class Typed(TypedDict):
    key: str


def everything(
    text: str,
    number: int,
    point: Point,
    named: Named,
    typed: Typed,
    anything,
    choice: Literal["a", "b"] = "a",
    maybe: float | None = None,
    many: list[int] = [],  # noqa: B006 - it must not be shared, see below
    bounded: Annotated[int, msgspec.Meta(ge=1, le=5, description="how many")] = 3,
): ...


def test_the_schema_of_a_function_is_a_schema_of_an_object():
    schema = read(everything).schema
    assert schema["type"] == "object"
    assert set(schema["required"]) == {"text", "number", "point", "named", "typed", "anything"}
    assert list(schema["properties"])[:2] == ["text", "number"]
    assert schema["properties"]["choice"]["enum"] == ["a", "b"]
    assert schema["properties"]["bounded"]["maximum"] == 5
    assert "title" not in schema
    assert "$defs" not in schema
    assert schema["properties"]["point"]["required"] and "title" not in schema["properties"]["point"]
    jsonschema_rs.validator_for(schema)  # every reference inside of it can be followed


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        (
            {
                "text": "a",
                "number": 1,
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": [],
            },
            True,
        ),
        (
            {
                "text": "a",
                "number": "1",
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": 1,
            },
            False,
        ),
        ({"text": "a", "number": 1, "point": {}, "named": {"name": "n"}, "typed": {"key": "k"}, "anything": 1}, False),
        ({"text": "a"}, False),
        (
            {
                "text": "a",
                "number": 1,
                "point": {"x": 1},
                "named": {"name": "n"},
                "typed": {"key": "k"},
                "anything": None,
                "bounded": 6,
            },
            False,
        ),
    ],
)
def test_schema_and_decoder_agree(arguments, fits):
    signature = read(everything)
    assert jsonschema_rs.validator_for(signature.schema).is_valid(arguments) is fits
    if fits:
        signature.decoder.decode(msgspec.json.encode(arguments))
    else:
        with pytest.raises(msgspec.ValidationError):
            signature.decoder.decode(msgspec.json.encode(arguments))


def test_the_arguments_are_decoded_as_their_types():
    def function(point: Point, named: Named, count: int = 2): ...

    found = decode(function, b'{"point":{"x":1},"named":{"name":"n"}}')
    assert found == {"point": Point(1, 0), "named": Named("n"), "count": 2}


def test_a_mutable_default_is_never_shared():
    def function(many: list[int] = []): ...  # noqa: B006

    first = decode(function, b"{}")["many"]
    first.append(1)
    assert decode(function, b"{}")["many"] == []


def test_a_function_without_parameters_takes_nothing():
    def function(): ...

    signature = read(function)
    # what 2025-11-25 recommends for no parameters, and `properties`, which hosts want of every object
    assert signature.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert (signature.names, signature.context) == ((), None)


def test_no_required_member_is_no_empty_list():
    def function(a: int = 1): ...

    assert "required" not in read(function).schema


@pytest.mark.parametrize("kind", [Context, BlockingContext])
def test_the_context_is_no_argument(kind):
    def function(a: int, ctx): ...

    function.__annotations__["ctx"] = kind
    signature = read(function)
    assert (signature.context, signature.names) == ("ctx", ("a",))
    assert "ctx" not in signature.schema["properties"]


def test_names_of_parameters_are_the_names_on_the_wire():
    def function(snake_case: int, camelCase: int): ...

    assert set(read(function).schema["properties"]) == {"snake_case", "camelCase"}


def test_methods_and_callables_have_signatures_too():
    class Tools:
        def method(self, a: int): ...

        def __call__(self, b: int): ...

    assert read(Tools().method).names == ("a",)
    assert read(Tools()).names == ("b",)


def test_a_partial_and_a_wrapped_function_are_read():
    def function(a: int, b: int): ...

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any): ...

    assert read(wrapped).names == ("a", "b")


def function_of_args(*args: int): ...
def function_of_kwargs(**kwargs: int): ...
def function_of_positional(a: int, /): ...
def function_of_the_unknown(a: NoSuchType): ...  # noqa: F821
def function_of_no_json(a: type): ...
def function_of_two_structs(a: Point | Named): ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (function_of_args, "args"),
        (function_of_kwargs, "kwargs"),
        (function_of_positional, "name every parameter"),
        (function_of_the_unknown, "NoSuchType"),
        (function_of_two_structs, "function_of_two_structs"),
        (lambda ctx: 1, "write ctx: Context"),
    ],
)
def test_a_signature_that_cannot_come_from_json_is_refused_at_registration(function, told):
    with pytest.raises(LocalError, match=told):
        read(function)


def test_keyword_only_parameters_are_fine():
    def function(*, a: int): ...

    assert decode(function, b'{"a":1}') == {"a": 1}


def test_wrong_values_are_told_where_they_stand():
    def function(point: Point): ...

    with pytest.raises(msgspec.ValidationError, match=r"point\.x"):
        decode(function, b'{"point":{"x":"1"}}')


# --- every kind of callable ---


def book(flight: str, seats: int = 1, *, ctx: Context | None = None):
    """Book a flight.

    Args:
        flight: Its number.
        seats: How many.
    """


class Desk:
    """A place to book at."""

    def method(self, flight: str): ...

    @classmethod
    def by_class(cls, flight: str): ...

    @staticmethod
    def static(flight: str): ...

    def __call__(self, flight: str):
        """Call it."""


@dataclasses.dataclass
class Ticket:
    flight: str
    seats: int = 1


def test_docstrings_describe_parameters_and_explicit_words_win():
    def mixed(a: int, b: Annotated[int, msgspec.Meta(description="explicit")]):
        """Do.

        Args:
            a: from the docstring
            b: not this
            c: nobody
        """

    properties = read(mixed).schema["properties"]
    assert properties == {
        "a": {"type": "integer", "description": "from the docstring"},
        "b": {"type": "integer", "description": "explicit"},
    }


@pytest.mark.parametrize("function", [book, functools.partial(book), functools.partial(functools.partial(book))])
def test_a_partial_is_the_function_it_calls(function):
    signature = read(function)
    assert (signature.names, signature.context) == (("flight", "seats"), "ctx")
    assert docs_of(function).text == "Book a flight." and plain_name(function) == "book"


def test_what_a_partial_has_filled_is_nobody_else_s_to_choose():
    assert read(functools.partial(book, seats=2)).names == ("flight",)
    assert read(functools.partial(book, "OS 1")).names == ("seats",)


@pytest.mark.parametrize("function", [Desk().method, Desk.by_class, Desk.static, Desk()])
def test_methods_and_objects_can_be_called(function):
    assert read(function).schema["required"] == ["flight"]


def test_a_class_is_called_by_what_its_init_takes():
    assert read(Ticket).schema["properties"] == {
        "flight": {"type": "string"},
        "seats": {"type": "integer", "default": 1},
    }


def test_a_wrapped_function_shows_what_it_wraps():
    @functools.wraps(book)
    def wrapper(*args, **kwargs): ...

    assert read(wrapper).names == ("flight", "seats") and plain_name(wrapper) == "book"


def test_a_function_of_a_class_is_no_method():
    with pytest.raises(LocalError, match="method of an object"):
        read(Desk.method)


def test_an_object_without_a_name_wants_one():
    with pytest.raises(LocalError, match="name="):
        plain_name(Desk())


def test_what_has_no_signature_is_refused():
    with pytest.raises(LocalError, match="signature"):
        read(type)


def test_local_types_are_found_although_annotations_are_texts():
    class Local(msgspec.Struct):
        a: int

    Alias = Literal["b", "a"]

    def inner(x: Local, y: Alias = "b"): ...

    properties = read(inner).schema["properties"]
    assert properties["x"]["required"] == ["a"] and properties["y"]["enum"] == ["b", "a"]


def test_one_context_is_enough():
    def twice(a: Context, b: Context): ...

    with pytest.raises(LocalError, match="one parameter"):
        read(twice)


@pytest.mark.parametrize("hint", [Context, Context | None, Annotated[Context, "the context"], BlockingContext])
def test_the_context_is_known_in_every_form(hint):
    def function(x): ...

    function.__annotations__["x"] = hint
    assert read(function).context == "x"


# --- defaults ---


def test_a_sentinel_stays_the_same_one():
    missing = object()

    def function(x: Any = missing): ...

    assert decode(function, b"{}")["x"] is missing


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (int, "3"),
        (int, True),
        (bool, 0),
        (str, 3),
        (list[int], ["a"]),
        (Literal["a", "b"], "c"),
        (Annotated[int, msgspec.Meta(ge=1)], 0),
        (date, "yesterday"),
        (Point, {"y": 1}),
    ],
)
def test_a_default_that_does_not_fit_its_annotation_is_refused(hint, default):
    def function(x: hint = default): ...

    with pytest.raises(LocalError, match=r"default of x, .* does not fit its annotation: .*change the default"):
        read(function)


class Unset(msgspec.Struct):
    x: int | msgspec.UnsetType = msgspec.UNSET


@pytest.mark.parametrize("made", [make_dataclass, lambda name, fields: msgspec.defstruct(name, fields)])
def test_so_is_one_of_a_field(made):
    def wrong(x: made("Wrong", [("count", int, "zz")])): ...

    with pytest.raises(LocalError, match=r"default of count, 'zz', does not fit its annotation: .*change the default"):
        read(wrong)

    def right(
        x: made("Right", [("count", int, 1), ("ratio", float, 1), ("day", date, date(2026, 7, 28))]), y: Unset
    ): ...

    assert read(right).schema["properties"]["x"]["properties"]["count"]["default"] == 1


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (float, 1),
        (int, None),
        (date, date(2026, 7, 28)),
        (Literal["a", "b"], "b"),
        (set[int], {1}),
        (Point, Point(1)),
        (Path, Path("/tmp")),
        (float, float("inf")),
        (str, object()),
    ],
)
def test_a_default_that_fits_or_that_json_cannot_express_is_kept(hint, default):
    def function(x: hint = default): ...

    assert decode(function, b"{}")["x"] == default


def test_records_and_containers_are_made_anew_for_every_call():
    def function(a: Named = Named("n"), b: dict = {}, c: Point = Point(1)): ...  # noqa: B006, B008

    signature = read(function)
    one, other = (msgspec.structs.asdict(signature.decoder.decode(b"{}")) for _ in range(2))
    assert one == other and all(one[name] is not other[name] for name in "abc")


def test_what_cannot_be_copied_is_shared():
    import threading

    held = {"lock": threading.Lock()}

    def function(x: Any = held): ...

    assert decode(function, b"{}")["x"] is held


# --- closed or not ---


def test_closed_arguments_say_so_and_open_ones_do_not():
    closed = read_signature(book, Context, closed=True)
    assert closed.schema["additionalProperties"] is False
    with pytest.raises(msgspec.ValidationError, match="unknown"):
        closed.decoder.decode(b'{"flight": "a", "more": 1}')
    assert "additionalProperties" not in read(book).schema
    assert decode(book, b'{"flight": "a", "more": 1}')["seats"] == 1


def test_values_that_are_all_text_become_what_is_meant():
    import pathlib

    def function(count: int, where: pathlib.Path, on: bool = False): ...

    assert read(function).from_text({"count": "5", "where": "a", "on": "true"}) == {
        "count": 5,
        "where": pathlib.Path("a"),
        "on": True,
    }
    with pytest.raises(msgspec.ValidationError):
        read(function).from_text({"count": "x", "where": "a"})


def test_a_name_that_a_class_cannot_find_is_told_with_the_way_out():
    @dataclasses.dataclass
    class Local:
        other: Local | None = None

    def function(a): ...

    function.__annotations__["a"] = Local
    with pytest.raises(LocalError, match=r"'Local' is not defined.*looked for in its module"):
        read_signature(function, Context)


def test_a_method_may_call_its_own_parameter_as_it_likes():
    class Tools:
        def method(self, cls): ...

    assert list(read_signature(Tools().method, Context).schema["properties"]) == ["cls"]
    with pytest.raises(LocalError, match="register the method of an object"):
        read_signature(Tools.method, Context)
