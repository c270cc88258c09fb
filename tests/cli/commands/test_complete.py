"""cli/commands/complete.py: what the server suggests."""

import json

import pytest

from support.command_line import aimed, code_of, demo


@pytest.fixture(autouse=True)
def at_demo(monkeypatch):
    aimed(monkeypatch, demo())


def test_values_come_one_in_a_line_and_more_is_noted(capsys):
    assert code_of("complete", "x", "review", "language=p") == 0
    assert capsys.readouterr() == ("python\nperl\n", "… and more\n")


def test_json_says_all_that_is_known(capsys):
    assert code_of("complete", "x", "review", "language=py", "version=3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["values"] == ["python"] and found["hasMore"] is True


def test_a_template_is_completed_too(capsys):
    assert code_of("complete", "x", "note://{day}", "day=") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [(["x"], 2, "PROMPT or TEMPLATE"), (["x", "review"], 2, "which argument?"), (["x", "review", "l"], 2, "argument")],
)
def test_mistakes_are_said(words, code, told, capsys):
    assert code_of("complete", *words) == code
    assert told in capsys.readouterr().err
