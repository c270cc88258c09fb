"""host/catalogue/token_estimate.py: an estimate that grows with the text, knows other scripts, and is the same every
time."""

import pytest
from hypothesis import given

from interlock.host.catalogue.token_estimate import of_tool, tokens
from interlock.wire.types.tools import Tool
from support.properties import JSON, TEXT, many

PROSE = "Find all notes that hold a word, newest first, and give at most twenty of them with their titles. " * 20


def test_nothing_costs_nothing():
    assert tokens("") == 0


def test_prose_is_between_three_and_four_and_a_half_bytes_per_token():
    assert len(PROSE) / 4.5 < tokens(PROSE) < len(PROSE) / 3


@pytest.mark.parametrize(("text", "least", "most"), [("日本語の文章", 6, 12), ("привет", 3, 7), ("🙂🙂🙂", 3, 9)])
def test_other_scripts_cost_more_per_character(text, least, most):
    assert least <= tokens(text) <= most


def test_values_are_counted_as_compact_json():
    assert tokens({"a": [1, "b"]}) == tokens('{"a":[1,"b"]}')


def test_a_lone_surrogate_is_counted_and_harms_nobody():
    assert tokens("\ud800") >= 1


@given(TEXT, TEXT)
@many(100)
def test_more_text_never_costs_less(one, other):
    assert max(tokens(one), tokens(other)) <= tokens(one + other) <= tokens(one) + tokens(other)


@given(JSON)
@many(60)
def test_every_value_has_a_cost(value):
    assert tokens(value) >= 1 or value == ""


def test_a_tool_costs_its_name_description_and_input_schema():
    plain = Tool(name="find", input_schema={"type": "object"})
    told = Tool(name="find", input_schema={"type": "object"}, description=PROSE)
    hidden = Tool(name="find", input_schema={"type": "object"}, title=PROSE, output_schema={"description": PROSE})
    assert of_tool("a__find", told) == of_tool("a__find", plain) + tokens(PROSE)
    assert of_tool("a__find", hidden) == of_tool("a__find", plain)
