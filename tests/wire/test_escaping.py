"""Text of a peer on its way to a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.errors import Refused
from interlock.wire.escaping import (
    IndentedText,
    break_lines,
    cut_columns,
    display,
    display_block,
    display_lines,
    is_visible,
)
from support.properties import many


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é text", "plain é text"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("right\u202eleft", "right\\u202eleft"),
        ("a\u3164b\uffa0", "a\\u3164b\\uffa0"),
    ],
)
def test_what_cannot_be_printed_is_escaped(text, shown):
    assert display(text) == shown


def test_what_nobody_reads_is_cut():
    assert display("x" * 10, limit=4) == "xxxx… (10 characters)"


@many(100)
@given(st.text(max_size=200))
def test_lines_and_tabs_stay_and_nothing_else_that_cannot_be_printed(text):
    shown = display_lines(f"{text}\n\t\x1b")
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert (shown.count("\n"), shown.count("\t")) == (text.count("\n") + 1, text.count("\t") + 1)


@many(100)
@given(st.text(max_size=200))
def test_nothing_unprintable_ever_gets_through(text):
    assert display(text).isprintable()


def test_a_refusal_is_shown_safely_and_kept_as_it_came():
    refused = Refused("\x1b[31m" + "x" * 5000)
    assert str(refused).isprintable() and len(str(refused)) < 2100
    assert refused.message.startswith("\x1b")


BLANKS = [
    *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u2800\u3164\U00013441\U00013442\U0001d159\uffa0\xad\u061c\u200b\u200d\u200e\u2028\u2060\ufeff\xa0\u3000",
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
    "\U000e0001", "\U000e0041", "\U000e0100", "\U000e01ef",
]  # fmt: skip


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
def test_what_looks_like_nothing_is_shown(blank):
    assert not is_visible(f"a{blank}")
    for show in (display, display_lines, display_block):
        assert blank not in show(f"a{blank}b") and ascii(blank)[1:-1] in show(f"a{blank}b")


@pytest.mark.parametrize("text", ["plain", "für", "日本語", "e\u0301", "👍", "a b"])
def test_what_is_seen_stays(text):
    assert is_visible(text) and display(text) == text


def test_a_block_is_indented_escaped_and_bounded():
    assert display_block("one\r\n\ttwo\x1b\n\nthree\n\n") == "  | one\n  |     two\\x1b\n  |\n  | three"
    assert display_block("\n".join("abcdef"), lines=2) == "  | a\n  | b\n  | … (4 more lines)"
    assert display_block("x" * 30, columns=20) == f"  | {'x' * 15}\n  | {'x' * 15}"
    assert display_block("木" * 9, columns=20) == f"  | {'木' * 7}\n  | 木木"
    assert display_block("x" * 300, columns=None) == "  | " + "x" * 300


@given(st.text(max_size=300), st.integers(1, 60))
def test_no_line_of_a_block_reaches_the_margin(text, columns):
    for line in display_block(text, columns=columns, lines=None).split("\n"):
        assert line.startswith("  |") and sum(1 if char.isascii() else 2 for char in line) < max(columns, 20)


@given(st.lists(st.text(alphabet="ab\n木 ", max_size=40), max_size=5))
def test_pieces_are_laid_out_like_the_whole(pieces):
    whole, parts = IndentedText("  ", 20), IndentedText("  ", 20)
    assert "".join(parts.feed(piece) for piece in pieces) == whole.feed("".join(pieces))


def test_long_lines_of_ours_go_on_indented():
    assert break_lines("a" * 30 + "\nb", 24) == "a" * 23 + "\n    " + "a" * 7 + "\nb"
    assert break_lines("may this be done by the server?", 24) == "may this be done by \n    the server?"
    assert break_lines("木" * 14, 24) == "木" * 11 + "\n    木木木"
    assert break_lines("a" * 30, None) == "a" * 30
    assert (cut_columns("a" * 30, 20), cut_columns("short", 20)) == ("a" * 19, "short")
