"""cli/terminal/output.py: whatever a server says, a terminal prints it and does nothing else."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.terminal.output import (
    as_json,
    block_text,
    builtins_of,
    contents_text,
    is_colourful,
    note,
    one_line,
    plain,
    quote_name,
    say,
    say_lines,
    size_of_base64,
    table,
)
from interlock.wire.types.content import TextContent
from support.properties import many

HOSTILE = "\x1b]0;title\x07 \x9b31m \u202eback \u2066iso \x7f \u2028 \U000e0041"


@many(200)
@given(st.text())
def test_nothing_that_is_printed_moves_a_cursor(text):
    for shown in (plain(text), one_line(text), as_json({"a": [text]})):
        assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert json.loads(as_json({text: text})) == {text: text}


def test_json_may_be_one_line():
    assert as_json({"a": ["\x1b"]}, indent=None) == '{"a": ["\\u001b"]}'


def test_lines_and_tabs_stay_in_text():
    assert plain("a\r\nb\tc\rd") == "a\nb\tc\\rd"
    assert plain("ünïcode ✓") == "ünïcode ✓"


def test_hostile_text_is_escaped_everywhere():
    for shown in (plain(HOSTILE), as_json(HOSTILE), block_text({"type": "text", "text": HOSTILE})):
        assert shown.isprintable() and "title" in shown
    assert json.loads(as_json(HOSTILE)) == HOSTILE


def test_one_line_is_one_line_of_a_bounded_length():
    assert one_line("a\n b\t c") == "a b c"
    assert one_line("x" * 300) == "x" * 199 + "…"
    assert len(one_line("\x00" * 300, 50)) == 50


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "text", "text": "hi"}, "hi"),
        (TextContent(text="hi"), "hi"),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, "(image: image/png, 3 bytes)"),
        ({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}, "(audio: audio/wav, 1 bytes)"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "in"}}, "in"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}, "(a:b: bytes, 3 bytes)"),
        ({"type": "resource_link", "uri": "a:b", "name": "n"}, "(resource: a:b n)"),
        ({"type": "new"}, '(a block of a type that is not known here) {\n  "type": "new"\n}'),
    ],
)
def test_a_block_is_shown_or_named_never_dumped(block, shown):
    assert block_text(block) == shown


@many(50)
@given(st.binary(max_size=50))
def test_the_size_of_bytes_is_counted(data):
    from base64 import b64encode

    assert size_of_base64(b64encode(data).decode()) == len(data)


def test_contents_are_text_or_a_size():
    assert contents_text({"uri": "a:b", "text": ""}) == ""
    assert contents_text({"uri": "a:\x1b", "blob": "AAAA", "mimeType": "x/y"}) == "(a:\\x1b: x/y, 3 bytes)"


def test_a_table_has_two_columns_and_long_ones_their_own_line():
    assert table([]) == []
    assert table([("a", "b"), ("ccc", "")]) == ["  a    b", "  ccc"]
    assert table([("x" * 40, "b"), ("y" * 40, "")]) == ["  " + "x" * 40, " " * 40 + "b", "  " + "y" * 40]


def test_results_and_notes_go_their_own_ways(capsys):
    say("out")
    note("beside")
    assert capsys.readouterr() == ("out\n", "beside\n")


def test_letters_that_a_terminal_does_not_have_are_escaped(monkeypatch):
    bytes_ = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(bytes_, encoding="ascii"))
    say("a · b")
    assert bytes_.getvalue() == b"a \\xb7 b\n"


class Tty(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("name", ["notes", "notes-2.0+x", "a_b.c"])
def test_a_plain_name_is_shown_as_it_is(name):
    assert quote_name(name, 60) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[y] yes", '"[y] yes"'),
        ("you> ", '"you>"'),
        ('done" May this be done?\n[y] yes', '"done\' May this be done? [y] yes"'),
        ("\x1b[2J", '"\\x1b[2J"'),
        ("", '""'),
        ("ж", '"ж"'),
        ("x" * 61, f'"{"x" * 61}"'),
    ],
)
def test_any_other_name_is_quoted(name, shown):
    assert quote_name(name, 100) == shown


def test_a_long_line_goes_on_indented_where_a_terminal_would_break_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = f"{'x' * 39} May this be done? [y] yes, once, [n] no:"
    monkeypatch.setattr(sys, "stdout", terminal := Tty())
    say_lines(text)
    first, *rest = terminal.getvalue().splitlines()
    assert len(first) < 40 and rest and all(line.startswith("    ") and len(line) < 40 for line in rest)
    monkeypatch.setattr(sys, "stdout", pipe := io.StringIO())
    say_lines(text)
    assert pipe.getvalue() == f"{text}\n"


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_colourful(Tty()) and not is_colourful(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not is_colourful(Tty())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_colourful(Tty())


def test_nouns_have_the_names_of_the_specification():
    assert builtins_of(TextContent(text="a")) == {"type": "text", "text": "a"}
