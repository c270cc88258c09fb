"""cli/commands/read.py: resources on the screen, as JSON and in files."""

import json

import pytest

from interlock.cli.commands.read import _bytes_of
from interlock.cli.errors import Failure
from interlock.wire.types.content import ResourceContents
from support.command_line import aimed, code_of, demo


@pytest.fixture(autouse=True)
def at_demo(monkeypatch):
    aimed(monkeypatch, demo())


def test_a_text_is_printed_without_its_control_bytes(capsys):
    assert code_of("read", "x", "note://monday") == 0
    assert capsys.readouterr() == ("note of monday\\x07\n", "")


def test_a_template_is_filled_in(capsys):
    assert code_of("read", "x", "note://{day}", "day=a b") == 0
    assert capsys.readouterr().out.startswith("note of a")


def test_bytes_are_named_and_not_printed(capsys):
    assert code_of("read", "x", "logo://big") == 0
    assert capsys.readouterr().out == "(logo://big: image/png, 16 bytes)\n"


def test_json_has_all_contents(capsys):
    assert code_of("read", "x", "pair://both", "--json") == 0
    assert [each["text"] for each in json.loads(capsys.readouterr().out)["contents"]] == ["one", "two"]


def test_bytes_and_texts_go_into_a_file_that_is_new(tmp_path, capsys):
    logo, text = tmp_path / "logo.png", tmp_path / "text"
    assert code_of("read", "x", "logo://big", "--output", str(logo)) == 0
    assert logo.read_bytes() == b"\x00\xff" * 8
    assert code_of("read", "x", "note://a", "--output", str(text)) == 0
    assert text.read_text() == "note of a\x07" and capsys.readouterr() == ("", "")
    assert code_of("read", "x", "note://b", "--output", str(text)) == 1
    assert "File exists" in capsys.readouterr().err and text.read_text() == "note of a\x07"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["x"], 2, "a TARGET and a URI"),
        (["x", "nothing://here"], 4, "interlock list shows"),
        (["x", "pair://both", "--output", "/tmp/x"], 2, "2 contents, a file holds one"),
        (["x", "note://{day}", "day"], 2, "is no argument"),
    ],
)
def test_mistakes_are_said(words, code, told, capsys):
    assert code_of("read", *words) == code
    assert told in capsys.readouterr().err


def test_bytes_that_are_no_base64_are_the_servers_mistake():
    with pytest.raises(Failure) as caught:
        _bytes_of(ResourceContents(uri="a:b", blob="$$$$"))
    assert caught.value.code == 7
