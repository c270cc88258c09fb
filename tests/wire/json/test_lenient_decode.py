"""wire/json/lenient.py: nulls where a member is missing are read as such, and nothing else is forgiven."""

import msgspec
import pytest
from msgspec import UNSET

from interlock.wire.json.lenient import read_as
from interlock.wire.types.content import TextContent
from interlock.wire.types.tools import Tool

TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def test_what_a_server_writes_out_and_does_not_have():
    found = read_as([{**TOOL, "title": None, "annotations": {"title": None}, "outputSchema": None}], list[Tool])
    assert found[0].title is UNSET and found[0].output_schema is UNSET
    assert read_as({"type": "text", "text": "x", "annotations": None}, TextContent).text == "x"


def test_a_null_that_means_something_stays():
    schema = {"type": "object", "properties": {"a": {"default": None, "enum": [None, 1]}}}
    found = read_as({**TOOL, "title": None, "inputSchema": schema, "_meta": {"a": None}}, Tool)
    assert found.input_schema == schema and found.meta == {"a": None}


@pytest.mark.parametrize("odd", [{"name": None, "inputSchema": {}}, {**TOOL, "title": 7}, None, 7, [None]])
def test_the_rest_is_as_strict_as_ever(odd):
    with pytest.raises(msgspec.ValidationError):
        read_as(odd, Tool)
