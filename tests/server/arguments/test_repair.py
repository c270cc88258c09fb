"""server/arguments/repair.py: refused arguments are mended where that is beyond doubt, else explained."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Raw

from interlock.server.arguments.decode import fitting
from interlock.server.arguments.errors import Unmendable
from interlock.server.arguments.repair import LONGEST_NAME, MAX_REPAIR_BYTES
from interlock.server.context import Context
from interlock.server.schema.signature import read_signature


@dataclass
class Passenger:
    name: str
    age: Annotated[int, Meta(ge=0)]


def book(
    flight: str,
    seats: Annotated[int, Meta(ge=1, le=9)] = 1,
    dry_run: bool = False,
    passengers: list[Passenger] = [],  # noqa: B006 - never shared
    tier: Literal["first", "economy"] = "economy",
    limit: float | None = None,
    extra: dict[str, int] | None = None,
): ...


BOOK = fitting(read_signature(book, Context, closed=True))


def call(**arguments):
    return BOOK(Raw(json.dumps(arguments).encode()))


def lines(**arguments):
    with pytest.raises(Unmendable) as caught:
        call(**arguments)
    return caught.value.lines


def test_what_fits_is_decoded_once_and_nothing_else_is_made(monkeypatch):
    from interlock.server.arguments import repair

    monkeypatch.setattr(repair, "Mender", None)
    arguments = fitting(read_signature(book, Context, closed=True))
    assert arguments(Raw(b'{"flight": "OS 1"}'))["seats"] == 1


def test_what_is_meant_is_taken():
    found = call(flight="OS 1", seats="2", dry_run="true", passengers='[{"name": "A", "age": "5"}]', limit=" null ")
    assert (found["seats"], found["dry_run"], found["limit"]) == (2, True, None)
    assert found["passengers"] == [Passenger("A", 5)]


def test_a_text_is_never_taken_for_anything_else():
    assert call(flight="5", seats="2")["flight"] == "5"
    assert lines(flight=5) == ['flight: 5 does not fit; expected a string; for example "text"']


def test_every_argument_that_is_wrong_is_told_with_place_shape_and_example():
    assert lines(seats=10, tier="third", passengers=[{"name": "A", "age": 1}, {"name": "B", "age": -1}]) == [
        'flight: missing; expected a string; for example "text"',
        "seats: 10 does not fit; expected an integer at least 1, at most 9; for example 1",
        "passengers[1].age: -1 does not fit; expected an integer at least 0; for example 0",
        'tier: Invalid enum value \'third\'; expected one of "first", "economy"; for example "first"',
    ]


def test_members_that_are_missing_inside_are_named():
    (line,) = lines(flight="OS 1", passengers=[{"name": "A"}])
    assert line == (
        "passengers[0]: Object missing required field 'age'; expected an object with 'name', 'age'; "
        'for example {"name":"text","age":0}'
    )


def test_the_member_of_a_mapping_is_named():
    (line,) = lines(flight="OS 1", extra={"a": 1, "b c": "x"})
    assert line == 'extra["b c"]: "x" does not fit; expected an integer; for example 1'


def lines_about(hint, value):
    def take(it): ...

    take.__annotations__ = {"it": hint}
    with pytest.raises(Unmendable) as caught:
        fitting(read_signature(take, Context, closed=True))(Raw(msgspec.json.encode({"it": value})))
    return caught.value.lines


def test_a_name_that_no_member_may_have_is_told():
    expected = 'it: "3" is no name of a member; expected one of "open", "shut"; for example "open"'
    assert lines_about(dict[Literal["open", "shut"], int], {"open": 1, "3": 2}) == [expected]
    (line,) = lines_about(dict[int, int], {"1": 1, "one": 2})
    assert line.startswith('it: "one" is no name of a member; expected a string matching ')


def test_a_mapping_is_shown_with_what_its_members_are():
    expected = 'it: [] does not fit; expected an object, each member an integer; for example {"1":1}'
    assert lines_about(dict[int, int], []) == [expected]


def test_no_example_is_given_that_a_class_would_refuse_itself():
    @dataclass
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError(f"{self.number} is odd")

    assert lines_about(Even, {"number": 3}) == ["it: 3 is odd; expected an object with 'number'"]
    assert lines_about(list[Even], [{"number": 2}, {"number": 3}]) == [
        "it[1]: 3 is odd; expected an object with 'number'"
    ]


@pytest.mark.parametrize("name", ["dryRun", "dry-run", "DRY_RUN", "dryrun", "dry_rum", "dr_yrun"])
def test_a_misspelt_argument_is_not_lost(name):
    assert lines(flight="OS 1", **{name: True}) == [f"{name}: no such argument; did you mean 'dry_run'?"]


@pytest.mark.parametrize("name", ["toolCallId", "explanation", "", "x" * 100, "flights"])
def test_what_others_add_to_every_call_is_dropped(name):
    assert call(flight="OS 1", **{name: "anything"})["flight"] == "OS 1"


def test_a_tool_without_parameters_drops_it_too():
    def nothing(): ...

    arguments = fitting(read_signature(nothing, Context, closed=True))
    assert arguments(Raw(b'{"toolCallId": 1}')) == {}


def test_a_value_that_has_no_bounds_is_told_and_no_crash():
    (line,) = lines_of(b'{"flight": "a", "seats": 1e999}')
    assert line.startswith("seats: ")
    (line,) = lines_of(b'{"flight": "a", "seats": %s}' % (b"9" * 5000))
    assert line.startswith("seats: ")


def lines_of(raw):
    with pytest.raises(Unmendable) as caught:
        BOOK(Raw(raw))
    return caught.value.lines


def test_what_a_peer_wrote_is_shown_short_and_printable():
    (line,) = lines(flight="a", seats="\u202e\x1b[31m" + "9" * 1000)
    assert line.isprintable() and len(line) < 400
    assert all(len(line) < 4 * LONGEST_NAME for line in lines(**{"fligh\x1b": 1, "passengers": [{"name" * 50: 1}]}))


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"a"', b"null"])
def test_what_is_no_object_is_not_mended(raw):
    with pytest.raises(msgspec.ValidationError):
        BOOK(Raw(raw))


def test_digits_of_numbers_that_fit_are_kept_while_others_are_mended():
    from decimal import Decimal

    def pay(amount: Decimal, count: int): ...

    arguments = fitting(read_signature(pay, Context, closed=True))
    found = arguments(Raw(b'{"amount": 0.1000000000000000000000000001, "count": "2"}'))
    assert found == {"amount": Decimal("0.1000000000000000000000000001"), "count": 2}


def test_a_refusal_does_not_repeat_all_that_was_sent():
    (line,) = lines(flight="OS1", tier="\x1b[2J" + "x" * 100_000)
    assert len(line) < 500 and "\x1b" not in line and line.startswith("tier: Invalid enum value")


def test_words_in_a_value_are_not_taken_for_its_place():
    (line,) = lines(flight="OS1", tier="x - at `$.flight`")
    assert line.startswith("tier: Invalid enum value 'x - at '$.flight''; expected one of")


class Cat(msgspec.Struct, tag="cat"):
    size: int


class Dog(msgspec.Struct, tag="dog"):
    size: Literal["small", "large"]


def feed(pet: Cat | Dog): ...


@pytest.mark.parametrize(
    ("pet", "told"),
    [
        ({"type": "cow"}, 'pet.type: Invalid value \'cow\'; expected "cat" or "dog"; for example "cat"'),
        ({"type": "cat", "size": "x"}, 'pet.size: "x" does not fit; expected an integer; for example 1'),
        (
            {"type": "dog", "size": "x"},
            'pet.size: Invalid enum value \'x\'; expected one of "small", "large"; for example "small"',
        ),
    ],
)
def test_of_several_kinds_of_records_the_one_that_is_meant_is_explained(pet, told):
    with pytest.raises(Unmendable) as caught:
        fitting(read_signature(feed, Context))(Raw(json.dumps({"pet": pet}).encode()))
    assert caught.value.lines == [told]


# --- what is too large to be converted -------------------------------------------------------------------


def sums(values: list[int], more: list[int] | None = None, note: str = "", factor: int = 1): ...


SUMS = fitting(read_signature(sums, Context, closed=True))


def raw(**arguments):
    return Raw(json.dumps(arguments).encode())


def test_large_arguments_that_do_not_fit_are_explained_and_not_converted(monkeypatch):
    """1.9 MB of numbers in quotes took more than a second on the event loop."""
    from interlock.server.arguments import repair

    def converts(value, *_):
        raise AssertionError(f"converted: {len(json.dumps(value))} characters")

    monkeypatch.setattr(repair, "coerced", converts)
    with pytest.raises(Unmendable) as caught:
        SUMS(raw(values=["1"] * (MAX_REPAIR_BYTES // 4)))
    [line] = caught.value.lines
    assert line.startswith("values: Expected 'int', got 'str' - at '$[0]' (not converted: over 65536 bytes")


def test_the_bound_is_of_all_arguments_together_and_what_fits_does_not_count():
    third = ["1"] * (MAX_REPAIR_BYTES // 15)  # "1", and a space
    found = SUMS(raw(values=third, more=third, note="n" * 10 * MAX_REPAIR_BYTES, factor="2"))
    assert found["values"] == found["more"] == [1] * len(third) and found["factor"] == 2
    with pytest.raises(Unmendable) as caught:
        SUMS(raw(values=third * 2, more=third * 2))
    [line] = caught.value.lines
    assert line.startswith("more: ")
