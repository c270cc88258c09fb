"""server/arguments/error_location.py: where something is wrong, by name."""

import msgspec
import pytest

from interlock.server.arguments import error_location
from interlock.server.arguments.error_location import NOWHERE, exact, has_there, place_of, schema_at, value_at


class Row(msgspec.Struct):
    prices: dict[str, list[int]]


DECODER = msgspec.json.Decoder(dict[str, Row])


def refused(value, decoder=DECODER):
    with pytest.raises(msgspec.ValidationError) as caught:
        decoder.decode(msgspec.json.encode(value))
    return place_of(str(caught.value))


def test_a_place_is_read_off_the_end_of_a_message():
    found = place_of("Expected `int`, got `str` - at `$.rows[3].price`")
    assert (found.wrong, found.steps, str(found)) == (
        "Expected `int`, got `str`",
        ("rows", 3, "price"),
        ".rows[3].price",
    )
    assert str(place_of("Invalid value - at `$.a` it said")) == ""


def test_members_of_mappings_are_found_by_name():
    rows = {f"row {number}": {"prices": {"a": [1], "b": [2]}} for number in range(50)}
    rows["row 31"]["prices"]["b"] = [1, 2, "x"]
    rows["row 40"]["prices"] = {"later": ["x"]}
    told = refused(rows)
    assert str(told) == "[...].prices[...][2]"
    assert exact(told, rows, DECODER).steps == ("row 31", "prices", "b", 2)
    assert str(exact(told, rows, DECODER)) == '["row 31"].prices.b[2]'


def test_the_name_itself_may_be_what_is_wrong():
    decoder = msgspec.json.Decoder(dict[str, dict[int, int]])
    value = {"a": {"1": 1}, "b": {"1": 1, "two": 2}}
    found = exact(refused(value, decoder), value, decoder)
    assert (found.is_name, found.steps, str(found)) == (True, ("b", "two"), ".b")


def test_a_large_argument_is_not_decoded_again(monkeypatch):
    monkeypatch.setattr(error_location, "MOST_BYTES", 10)
    value = {"a": {"prices": {"b": ["x"]}}}
    assert str(exact(refused(value), value, DECODER)) == "[...].prices[...][0]"


def test_what_is_tried_in_a_place_fits_there_or_not():
    value = {"a": {"prices": {"b": ["x"], "c": ["y"]}}}
    place = exact(refused(value), value, DECODER)
    assert has_there(place, 1, value, DECODER)  # what is wrong in "c" is another matter
    assert not has_there(place, "z", value, DECODER)


def test_what_stands_at_a_place():
    assert value_at({"a": [1, {"b": 2}]}, ("a", 1, "b")) == 2
    assert value_at({"a": []}, ("a", 0)) is NOWHERE
    schema = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}
    assert schema_at(schema_at(schema, "x", {}, {}), 0, [], {}) == {"type": "integer"}
