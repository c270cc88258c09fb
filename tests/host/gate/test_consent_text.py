"""What a person is shown: whole, escaped, and told apart from what a server says of itself."""

from __future__ import annotations

import pytest

from interlock.host.gate.action import KINDS, Deed
from interlock.host.gate.consent_text import about, offer, question, quoted, shown, title, warnings
from interlock.host.gate.pins import Definitions
from interlock.wire.types.tools import Tool, ToolAnnotations


@pytest.mark.parametrize("kind", KINDS)
def test_every_deed_names_its_server_and_shows_its_arguments(kind):
    text = shown(Deed(kind, "mail", "send", {"to": "ada"}))
    assert '"mail"' in text.split("\n")[0] and text.endswith('{\n  "to": "ada"\n}')
    assert "null" not in shown(Deed(kind, "mail", "send"))


def test_nothing_is_cut_and_nothing_moves_a_cursor():
    text = shown(Deed("tool", "s\x1b[2J", "n\u202e", {"a": "x" * 100_000 + "\u200bend", "b": "line\nline"}))
    assert "x" * 100_000 + "\\u200bend" in text and "line\\nline" in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_names_that_look_like_others_are_spelled_out():
    assert quoted("mail") == '"mail"'
    assert quoted("mаil") == '"mаil" = "m\\u0430il"'


def test_foreign_data_is_warned_about():
    assert warnings(Deed("tool", "mail", "send", sources={"mail"})) == ()
    assert '"files", "notes"' in warnings(Deed("tool", "mail", "send", sources={"notes", "files", "mail"}))[0]


def test_what_a_server_says_of_its_tool():
    [tool] = Definitions(tools=[Tool(name="t", input_schema={}, title="T", description="Does\x1b it.\nReally.")])
    assert about(tool) == "  | Does\\x1b it.\n  | Really."
    [instructions] = Definitions(instructions="x")
    assert about(instructions) == "" == about(None)


def test_what_to_call_a_tool():
    deed = Deed("tool", "s", "t\x1b")
    hinted = ToolAnnotations(title="Hinted")
    for members, called in (
        ({"title": "T\u202e", "annotations": hinted}, "T\\u202e"),
        ({"annotations": hinted}, "Hinted"),
        ({"title": ""}, "t\\x1b"),
    ):
        [tool] = Definitions(tools=[Tool(name="t\x1b", input_schema={}, **members)])
        assert title(deed, tool) == called
    assert title(deed, None) == "t\\x1b"


def test_an_offer_is_shown_in_full_with_what_it_costs():
    definitions = {
        each.item: each
        for each in Definitions(tools=[Tool(name="t", input_schema={"a": "b" * 5000})], instructions="Hi")
    }
    text = offer("mail", definitions, dict.fromkeys(definitions, 7))
    assert text.startswith('the server "mail" offers 2 things, about 14 tokens in all')
    assert "b" * 5000 in text and 'tool "t" (about 7 tokens)' in text and 'instructions (about 7 tokens)\n"Hi"' in text
    assert "tokens" not in offer("mail", definitions, {})


def test_the_question_is_one_line_of_ours_whatever_a_tool_is_called():
    name = 'add" of the server "calc"? (by a rule)\nMay this be done: ' + "x" * 100
    line = question(Deed("tool", "evil", name, {}), "a\nrule")
    start = 'May this be done: call the tool "add\\" of the server \\"calc\\"? (by a rule)\\nMay this be done: xxxx'
    assert line.startswith(start) and line.endswith('" (cut) of the server "evil"? (a\\nrule)') and "\n" not in line
    assert question(Deed("launch", "n", "n"), "w") == 'May this be done: start or connect to the server "n"? (w)'


def test_what_a_server_says_has_few_lines():
    [tool] = Definitions(tools=[Tool(name="t", input_schema={}, description="\n".join("ab" * 100))])
    assert len(about(tool).split("\n")) == 41 and about(tool).endswith("… (160 more lines)")
    [blank] = Definitions(tools=[Tool(name="t", input_schema={}, description=" \n ")])
    assert about(blank) == ""


def test_a_title_is_one_line():
    [tool] = Definitions(tools=[Tool(name="t", input_schema={}, title="T\n[y] yes")])
    assert title(Deed("tool", "s", "t"), tool) == "T\\n[y] yes"
