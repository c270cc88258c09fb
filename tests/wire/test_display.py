"""Text of a peer on its way to a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.display import display, display_lines
from interlock.wire.errors import Refused
from support.properties import many


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é text", "plain é text"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("right\u202eleft", "right\\u202eleft"),
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
