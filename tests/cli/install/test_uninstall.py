"""cli/install/uninstall.py: one entry out of a program's list. That it undoes an installation is in test_install.py."""

import pytest

from interlock.cli.errors import Failure
from interlock.cli.install import uninstall
from interlock.cli.install.json_edit import set_member
from interlock.cli.main import main

TEXT = '{\n  "mcpServers": {\n    "a": {"env": {"TOKEN": "s3cret"}}, // mine\n    "b": {}\n  }\n}\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(TEXT)
    return path


def test_a_server_is_taken_out(file, capsys):
    main(["uninstall", "b", "--to", "cursor", "--config", str(file)])
    assert file.read_text() == TEXT.replace(", // mine\n", " // mine\n").replace('    "b": {}\n', "")
    assert capsys.readouterr().out == f"b is no longer in {file}\n"


def test_a_list_that_was_made_for_it_goes_with_it(file):
    settings = '// Zed\n{\n  "theme": "dark"\n}\n'
    file.write_text(set_member(settings, ("context_servers", "b"), {"command": "b"}, "x"))
    main(["uninstall", "b", "--to", "zed", "--config", str(file)])
    assert file.read_text() == settings


def test_a_dry_run_shows_no_value(file, capsys):
    main(["uninstall", "a", "--to", "cursor", "--config", str(file), "--dry-run"])
    shown = capsys.readouterr().out
    assert '-    "a": {"env": {"TOKEN": "…"}}, // mine' in shown and "s3cret" not in shown
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "one NAME"),
        (["a", "b", "--to", "cursor"], 2, "one NAME"),
        (["a"], 2, "which program?"),
        (["c\x1b", "--to", "cursor"], 1, "has no server 'c"),
        (["a", "--to", "vscode"], 1, "has no server 'a'"),
    ],
)
def test_what_cannot_be_taken_out_is_said(file, words, code, told):
    with pytest.raises(Failure) as caught:
        uninstall.command([*words, "--config", str(file)])
    assert (caught.value.code, file.read_text()) == (code, TEXT)
    assert told in caught.value.message and "\x1b" not in caught.value.message


def test_what_was_printed_is_taken_out_of_a_file_that_is_named(file):
    with pytest.raises(Failure, match="out of which file") as caught:
        uninstall.command(["a", "--to", "json"])
    assert (caught.value.code, "--config FILE" in caught.value.hint) == (2, True)
    uninstall.command(["b", "--to", "json", "--config", str(file)])
    assert '"b"' not in file.read_text()


def test_a_broken_file_is_left_alone(file):
    file.write_text('{"mcpServers": {"a": 1,, }}')
    with pytest.raises(Failure, match="no JSON"):
        uninstall.command(["a", "--to", "cursor", "--config", str(file)])
