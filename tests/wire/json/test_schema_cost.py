"""wire/json/schema_cost.py: what a schema can cost is known before it is used."""

import pytest

from interlock.wire.errors import LocalError
from interlock.wire.json.schema_cost import DEEPEST, MOST_STEPS, MOST_SUBSCHEMAS, depth_of, effort_of


def doubling(levels: int) -> dict:
    """Two ways to the level below, on every level: 2 ** levels steps in a few lines."""
    parts: dict = {"a0": {"type": "string"}}
    for level in range(1, levels + 1):
        parts[f"a{level}"] = {"anyOf": [{"$ref": f"#/$defs/a{level - 1}"}, {"$ref": f"#/$defs/a{level - 1}"}]}
    return {"$defs": parts, "$ref": f"#/$defs/a{levels}"}


def branching(*keys: str) -> dict:
    """A node with a recursive member for each key, each in an alternative of its own."""
    ways = [{"properties": {key: {"$ref": "#/$defs/n"}}} for key in keys]
    return {"$defs": {"n": {"anyOf": ways}}, "$ref": "#/$defs/n"}


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"c": [value]}
    return value


def test_a_plain_schema_takes_few_steps_and_never_grows():
    effort = effort_of({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}})
    assert (effort.steps, effort.growth) == (3, 1)
    assert effort.of(nested(50)) == 3


def test_sharing_by_reference_is_counted_as_often_as_it_is_tried():
    assert effort_of(doubling(8)).steps > 2**8
    with pytest.raises(LocalError, match=f"{MOST_STEPS:,} steps"):
        effort_of(doubling(40))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"type": "string"}, {"not": {"$ref": "#"}}]},
        {"$defs": {"a": {"$ref": "#b"}, "b": {"$anchor": "b", "$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$id": "urn:x", "if": {"$ref": "urn:x"}},
    ],
)
def test_a_schema_that_meets_itself_at_the_same_place_is_refused(schema):
    with pytest.raises(LocalError, match="never ends"):
        effort_of(schema)


def test_recursion_that_looks_once_at_each_part_does_not_grow():
    value = {"anyOf": [{"items": {"$ref": "#/$defs/v"}}, {"additionalProperties": {"$ref": "#/$defs/v"}}]}
    assert effort_of({"$defs": {"v": value}, "$ref": "#/$defs/v"}).growth == 1
    assert effort_of(branching("left", "right")).growth == 1


def test_recursion_that_looks_twice_at_a_part_doubles_with_every_level():
    effort = effort_of(branching("c", "c"))
    assert effort.growth == 2
    assert effort.of({"c": {"c": {}}}) == 2 * effort.of({"c": {}}) == 4 * effort.of({})
    assert effort.of(nested(20)) > MOST_STEPS


def test_what_applies_to_any_part_meets_what_applies_to_one():
    here = {"$ref": "#/$defs/n"}
    node = {"properties": {"c": here}, "patternProperties": {"^c": here}, "additionalProperties": here}
    assert effort_of({"$defs": {"n": node}, "$ref": "#/$defs/n"}).growth == 3
    node = {"prefixItems": [here], "contains": here}
    assert effort_of({"$defs": {"n": node}, "$ref": "#/$defs/n"}).growth == 2


def test_depth_and_number_of_parts_are_bounded():
    deep: dict = {}
    for _ in range(DEEPEST + 1):
        deep = {"properties": deep}
    with pytest.raises(LocalError, match=f"{DEEPEST} levels"):
        effort_of(deep)
    with pytest.raises(LocalError, match="parts"):
        effort_of({"properties": {str(number): {} for number in range(MOST_SUBSCHEMAS + 1)}})


def test_a_long_chain_of_references_is_refused_and_not_followed_to_the_end_of_the_stack():
    chain: dict = {f"a{number}": {"$ref": f"#/$defs/a{number + 1}"} for number in range(3000)}
    with pytest.raises(LocalError, match="chain"):
        effort_of({"$defs": {**chain, "a3000": {}}, "$ref": "#/$defs/a0"})


def test_references_are_found_by_pointer_anchor_and_id():
    odd = {"$defs": {"a/b~": {"allOf": [{}, {}]}}, "$ref": "#/$defs/a~1b~0"}
    assert effort_of(odd).steps == 4
    assert effort_of({"$defs": {"x": {"$anchor": "here", "not": {}}}, "$ref": "#here"}).steps == 3
    assert effort_of({"$defs": {"x": {"$id": "urn:y", "not": {}}}, "$ref": "urn:y"}).steps == 3
    assert effort_of({"allOf": [{}, {"not": {}}], "$ref": "#/allOf/1"}).steps == 6
    assert effort_of({"$ref": "#/nothing/5"}).steps == 1
    assert effort_of(True).steps == 1


def test_the_depth_of_a_value_counts_arrays_and_objects():
    assert [depth_of(value) for value in (1, [], [1], {"a": [1]}, [[], [[]]])] == [0, 0, 1, 2, 2]


def test_many_references_are_looked_at_once_each():
    # A ring: looked at from each of its parts it would take thousands of times as long.
    parts = 3000
    ring = {str(n): {"properties": {"a": {"$ref": f"#/$defs/{(n + 1) % parts}"}}} for n in range(parts)}
    assert effort_of({"$ref": "#/$defs/0", "$defs": ring}).growth == 1
