"""server/schema/inline_refs.py: a model's own schema, in one piece and without decoration."""

from interlock.server.schema.inline_refs import inlined


def test_titles_go_and_members_of_that_name_stay():
    schema = {
        "title": "Book",
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}, "tags": {"items": {"title": "T"}, "title": "x"}},
        "examples": [{"title": "kept"}],
    }
    assert inlined(schema, {}) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "tags": {"items": {}}},
        "examples": [{"title": "kept"}],
    }


def test_references_are_put_in_their_place_with_what_stands_beside_them():
    schema = {
        "$defs": {"A": {"title": "A", "type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"const": 1}},
        "properties": {"a": {"$ref": "#/$defs/A", "description": "first"}, "c": {"$ref": "#/$defs/B"}},
    }
    assert inlined(schema, {}) == {
        "properties": {
            "a": {"type": "object", "properties": {"b": {"const": 1}}, "description": "first"},
            "c": {"const": 1},
        }
    }


def test_what_contains_itself_is_defined_under_a_free_name():
    node = {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None}}}
    definitions: dict = {"Node": {"type": "string"}}
    assert inlined({"$defs": {"Node": node}, "$ref": "#/$defs/Node"}, definitions) == {"$ref": "#/$defs/Node2"}
    assert definitions == {"Node": {"type": "string"}, "Node2": {"properties": {"next": {"$ref": "#/$defs/Node2"}}}}


def test_an_optional_that_is_absent_by_default_offers_no_null():
    two = [{"type": "string"}, {"type": "integer"}, {"type": "null"}]
    assert inlined({"anyOf": two, "default": None}, {}) == {"anyOf": two[:2]}
    assert inlined({"anyOf": two[1:], "default": None, "description": "x"}, {}) == {
        "type": "integer",
        "description": "x",
    }
    assert inlined({"anyOf": two[2:], "default": None}, {}) == {"anyOf": two[2:], "default": None}
    assert inlined({"anyOf": two[1:], "default": 5}, {}) == {"anyOf": two[1:], "default": 5}


def test_every_place_of_a_schema_is_tidied():
    titled = {"title": "x"}
    schema = {
        "allOf": [titled], "prefixItems": [titled], "not": titled, "additionalProperties": False,
        "patternProperties": {"^a": titled}, "discriminator": {"mapping": {}},
    }  # fmt: skip
    assert inlined(schema, {}) == {
        "allOf": [{}], "prefixItems": [{}], "not": {}, "additionalProperties": False, "patternProperties": {"^a": {}},
    }  # fmt: skip


def test_a_format_that_values_may_break_is_advice_for_arguments_and_no_promise_of_results():
    schema = {"properties": {name: {"type": "string", "format": name} for name in ("date-time", "time", "date")}}
    assert inlined(schema, {}) == schema
    assert inlined(schema, {}, gives=True) == {
        "properties": {
            "date-time": {"type": "string"},
            "time": {"type": "string"},
            "date": schema["properties"]["date"],
        }
    }
