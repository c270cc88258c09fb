"""cli/commands/prompt.py: the messages of a prompt."""

import json

import pytest

from support.command_line import aimed, code_of, demo


@pytest.fixture(autouse=True)
def at_demo(monkeypatch):
    aimed(monkeypatch, demo())


def test_messages_are_printed_with_their_roles(capsys):
    assert code_of("prompt", "x", "review", "language=py", "version=3") == 0
    assert capsys.readouterr() == ("user: Review py 3\n", "")


def test_json_has_the_messages_and_what_the_prompt_is_for(capsys):
    assert code_of("prompt", "x", "review", "language=py\x1b", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["messages"] == [{"role": "user", "content": {"type": "text", "text": "Review py\x1b"}}]
    assert found["description"] == "Asks for a review."


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [(["x"], 2, "a TARGET and a NAME"), (["x", "nothing"], 4, "hint"), (["x", "review"], 4, "hint")],
)
def test_mistakes_are_said(words, code, told, capsys):
    assert code_of("prompt", *words) == code
    assert told in capsys.readouterr().err
