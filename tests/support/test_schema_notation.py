"""The notation of schema facts: nothing is lost there and back, no sentence survives, the unknown is refused."""

from __future__ import annotations

from typing import Any

import pytest

from support.schema_notation import read_schema, reduce_schema, write_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TOOL = {
    "description": "A sentence.",
    "type": "object",
    "properties": {
        "title": {"title": "A title", "type": "string", "default": "none"},
        "kind": {"type": "string", "const": "two words"},
        "size": {"type": ["integer", "null"], "minimum": 0, "maximum": 1.5},
        "level": {"type": "string", "enum": ["low", "very high"]},
        "a.b/c": {"$ref": "#/definitions/Other", "description": "Another sentence."},
        "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/definitions/Other"}, {"type": "string"}]}},
        "open": {"type": "object", "additionalProperties": {}, "properties": {}},
        "any": {},
        "?": {"oneOf": [{"format": "uri"}, {"allOf": [{"type": "number"}]}]},
        "[]": {"type": "object", "additionalProperties": True},
    },
    "required": ["title", "kind", "[]"],
}
TEXT = f"""\
# heading
$schema {DIALECT}

Tool object
  title! string
  kind! string const="two\\u0020words"
  size? integer,null maximum=1.5 minimum=0
  level? string enum=["low","very\\u0020high"]
  a.b/c? Other
  list? array
    []
      | Other
      | string
  open? object
    {{}} any
  any? any
  ??
    ^ format="uri"
    ^
      & number
  []! object

Other string
"""


def document(**definitions: Any) -> dict[str, Any]:
    return {"$schema": DIALECT, "definitions": definitions}


def test_the_text_has_all_facts_and_no_sentence():
    assert write_schema(document(Tool=TOOL, Other={"type": "string"}), "heading") == TEXT


def test_nothing_is_lost_there_and_back():
    found = read_schema(TEXT)
    assert found["$schema"] == DIALECT and list(found["$defs"]) == ["Tool", "Other"]
    assert reduce_schema(found) == reduce_schema(document(Tool=TOOL, Other={"type": "string"}))
    assert write_schema(found, "heading") == TEXT


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"if": {}}}}, r"A\.a: unknown keyword 'if'"),
        ({"required": ["a"]}, r"A: required but not described: \['a'\]"),
        ({"additionalProperties": False}, r"A\.additionalProperties: expected an object, not False"),
        ({"items": [{}]}, r"A\.items: expected an object"),
    ],
)
def test_what_the_notation_cannot_say_is_refused(schema: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        reduce_schema(document(A=schema))


def test_a_line_too_far_to_the_right_is_refused():
    with pytest.raises(ValueError, match="line 2: indented by 2 steps below a line at 0"):
        read_schema("A object\n    name! string\n")
