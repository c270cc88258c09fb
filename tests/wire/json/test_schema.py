"""wire/json/schema.py: a check made of a schema that its author wrote."""

import socket
import subprocess
import sys

import pytest

from interlock.wire.errors import LocalError
from interlock.wire.json.schema import DIALECTS, MOST_PROBLEMS, Mismatch, validator_of


def problems(schema, value):
    try:
        validator_of(schema)(value)
    except Mismatch as mismatch:
        return [(problem.path, problem.where) for problem in mismatch.problems]
    return []


def test_it_names_every_place_that_does_not_fit_and_the_keyword():
    schema = {"type": "object", "properties": {"a": {"items": {"minimum": 3}}}, "required": ["b"]}
    assert problems(schema, {"a": [3], "b": 1}) == []
    found = problems(schema, {"a": [5, 1]})
    assert (("a", 1), ("properties", "a", "items", "minimum")) in found
    assert ((), ("required",)) in found


def test_the_message_reads_as_one_line_with_places():
    with pytest.raises(Mismatch, match=r'^/a: "x" is not of type "integer"$'):
        validator_of({"properties": {"a": {"type": "integer"}}})({"a": "x"})


def test_a_flood_of_problems_is_cut():
    assert len(problems({"items": {"type": "string"}}, [1] * 100)) == MOST_PROBLEMS


def test_without_a_dialect_it_is_2020_12():
    schema = {"prefixItems": [{"type": "string"}], "items": False}
    assert problems(schema, ["a"]) == []
    assert problems(schema, [1]) and problems(schema, ["a", "b"])


def test_the_declared_dialect_is_followed():
    tuples = {"items": [{"type": "string"}], "additionalItems": False}
    assert problems({"$schema": "http://json-schema.org/draft-07/schema#", **tuples}, ["a", 1])
    with pytest.raises(LocalError, match="no usable JSON Schema"):
        validator_of(tuples)
    assert problems({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [False]}, [1]) == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", ["", "#"])
def test_every_documented_dialect_is_there(dialect, end):
    assert problems({"$schema": dialect + end, "type": "string"}, 1)


@pytest.mark.parametrize(
    "schema", [{"$schema": "urn:x"}, {"$schema": 5}, {"allOf": [{"$id": "urn:y", "$schema": "urn:x"}]}]
)
def test_another_dialect_is_refused_in_words(schema):
    with pytest.raises(LocalError, match=r"output_schema: the dialect .* is not supported .*2020-12"):
        validator_of(schema, "output_schema")


def test_a_member_named_like_the_dialect_keyword_is_just_a_member():
    assert problems({"properties": {"$schema": {"const": "urn:x"}}}, {"$schema": "urn:x"}) == []


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"$ref": "#/$defs/gone"}, {"pattern": "("}, {"minimum": "3"}])
def test_a_schema_that_is_none_is_refused_when_the_check_is_made(schema):
    with pytest.raises(LocalError, match="no usable JSON Schema"):
        validator_of(schema)


def test_nothing_is_fetched():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        for schema in ({"$ref": address}, {"$defs": {"a": {"$ref": address}}}, {"$dynamicRef": address}):
            with pytest.raises(LocalError):
                validator_of(schema)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_what_is_no_json_does_not_fit():
    for value in ({1: 2}, object(), {"a": {1, 2}}):
        with pytest.raises(Mismatch):
            validator_of({"properties": {"a": {"items": {}, "type": "array"}}, "type": "object"})(value)


def test_a_value_too_deep_for_a_schema_that_looks_twice_is_refused_at_once():
    ways = [{"properties": {"c": {"$ref": "#/$defs/n"}}, "required": [key]} for key in ("x", "y")]
    check = validator_of({"$defs": {"n": {"anyOf": ways}}, "$ref": "#/$defs/n"})
    value: dict = {"x": 1}
    for _ in range(60):
        value = {"x": 1, "c": value}
    with pytest.raises(Mismatch, match="too deep"):
        check(value)
    check({"x": 1, "c": {"y": 1}})
    middle: dict = {}
    for _ in range(8):
        middle = {"x": 1, "c": middle}
    with pytest.raises(Mismatch, match="does not fit the schema"):
        check(middle)


def test_a_hopeless_schema_names_what_it_was_for():
    with pytest.raises(LocalError, match=r"^input_schema: .*never ends"):
        validator_of({"$ref": "#"}, "input_schema")


def test_booleans_are_schemas_too():
    validator_of(True)({"a": 1})
    with pytest.raises(Mismatch):
        validator_of(False)(1)


def test_the_validator_is_not_loaded_before_it_is_needed():
    code = "import sys, interlock.server.server, interlock.wire.json.schema; print('jsonschema_rs' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == "False"


def test_a_large_value_that_fits_nowhere_is_told_once():
    # The library finds all problems before it gives the first: a hundred thousand take seconds.
    with pytest.raises(Mismatch) as caught:
        validator_of({"items": {"type": "integer"}})(["x"] * 100_000)
    [problem] = caught.value.problems
    assert problem.path == (0,) and problem.where[-1] == "type"


def test_a_pattern_that_goes_back_without_end_does_not_fit():
    with pytest.raises(Mismatch, match="backtracking"):
        validator_of({"pattern": r"^(a|a)*(?!x)[bc]$"})("a" * 60)
