"""cli/terminal/progress.py: a line on a terminal, nothing in a pipe."""

import io

import pytest

from interlock.cli.terminal import progress as module
from interlock.cli.terminal.output_buffer import OUTPUT
from interlock.cli.terminal.progress import Progress, bar


class Tty(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_is_told_nothing():
    stream = io.StringIO()
    progress = Progress(stream)
    progress(1, 2, "x")
    progress.clear()
    assert stream.getvalue() == "" and not progress.shows


def test_a_terminal_sees_one_line_that_is_taken_away_once():
    stream = Tty()
    progress = Progress(stream)
    progress(1, 2, "half")
    progress.clear()
    progress.clear()
    assert stream.getvalue() == "\r\x1b[K[############............] 1/2 half\r\x1b[K"


def test_a_server_does_not_decide_how_often_is_drawn(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    stream = Tty()
    progress = Progress(stream)
    for step in range(1000):
        now[0] = step / 1000
        progress(step, 1000, None)
    assert stream.getvalue().count("\r") == 20


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ((1, None, None), "1"),
        ((1.5, 0, "a\x1b[2Jb"), "1.5 a\\x1b[2Jb"),
        ((3, 2, None), "3"),
        ((-1, 2, None), "-1"),
        ((2, 2, "m" * 100), f"[{'#' * 24}] 2/2 {'m' * 59}…"),
        ((0, 2, ""), f"[{'.' * 24}] 0/2"),
        ((float("nan"), 2, None), "nan"),
    ],
)
def test_nonsense_gets_no_bar(told, shown):
    assert bar(*told) == shown


def test_no_line_is_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Tty()
    Progress(stream)(1, 2, "m" * 60)
    assert len(stream.getvalue()) == len("\r\x1b[K") + 19


def test_what_a_terminal_has_no_letter_for_is_escaped():
    class Old(io.TextIOWrapper):
        def isatty(self):
            return True

    stream = Old(io.BytesIO(), encoding="ascii")
    Progress(stream)(1, None, "木")
    assert stream.buffer.getvalue().endswith(b"1 \\u6728")


def test_nothing_is_drawn_over_an_open_question():
    stream = Tty()
    progress = Progress(stream)
    with OUTPUT.hold():
        progress(1, 2, "busy")
    assert stream.getvalue() == ""
