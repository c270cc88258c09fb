"""cli/commands/new.py: a project that passes its own tests, and what is not overwritten."""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from interlock.cli.commands import new
from interlock.cli.commands.new_templates import FILES
from interlock.cli.errors import Failure
from interlock.cli.main import main
from interlock.version import __version__

SOURCE = str(Path(new.__file__).parents[3])


def test_a_new_project_passes_its_own_tests(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["new", "word-count"])
    assert "next: cd word-count" in capsys.readouterr().out
    folder = tmp_path / "word-count"
    assert {each.name for each in folder.iterdir()} == set(FILES)
    assert not any(
        "@" + "NAME" in each.read_text() or "@" + "INTERLOCK" in each.read_text() for each in folder.iterdir()
    )
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == ("word-count", [new._requirement()])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    env = {"PATH": "", "PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, f"interlock>={__version__}"),
        ('{"url": "file:///src/interlock", "dir_info": {"editable": true}}', "interlock @ file:///src/interlock"),
        (
            '{"url": "https://example.com/i.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "interlock @ git+https://example.com/i.git@abc",
        ),
        ('{"url": "file:///a\\"b"}', f"interlock>={__version__}"),
    ],
)
def test_it_depends_on_what_it_was_made_with(origin, requirement, monkeypatch):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr(new, "distribution", lambda name: Installed())
    assert new._requirement() == requirement


def test_what_was_never_installed_depends_on_the_version(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(new, "distribution", missing)
    assert new._requirement() == f"interlock>={__version__}"


def test_without_pytest_it_is_installed_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new, "find_spec", lambda name: None)
    assert new.command(["words"]) == 0
    assert "cd words\n      pip install pytest\n      python -m pytest\n" in capsys.readouterr().out


def test_it_may_be_made_in_another_folder_and_in_an_empty_one(tmp_path):
    (tmp_path / "b").mkdir()
    assert new.make(tmp_path / "a" / "x") == new.make(tmp_path / "b") == [*FILES]
    assert 'Server("x"' in (tmp_path / "a" / "x" / "server.py").read_text()


@pytest.mark.parametrize("name", ["1a", "a b", "..", ".", "a" * 65, "ü", "-a", "a\x1b", "/"])
def test_names_are_checked(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure, match="no name for a project") as caught:
        new.make(Path(name))
    assert caught.value.code == 2 and "\x1b" not in caught.value.message
    assert not any(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("mine")
    with pytest.raises(Failure, match="is not empty"):
        new.make(tmp_path / "a")
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["mine"]
    with pytest.raises(Failure, match="cannot be written"):
        new.make(tmp_path / "a" / "mine" / "b")


def test_a_project_is_whole_or_not_there(tmp_path, monkeypatch):
    def full(folder, file, text, name, write=new._write):
        if file == "README.md":
            raise OSError(28, "No space left on device")
        return write(folder, file, text, name)

    monkeypatch.setattr(new, "_write", full)
    (tmp_path / "empty").mkdir()
    for name in ("a", "empty"):
        with pytest.raises(Failure, match="No space left"):
            new.make(tmp_path / name)
    assert not (tmp_path / "a").exists() and not any((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("words", [[], ["a", "b"], ["a", "--", "b"]])
def test_wrong_words_are_code_2(words):
    with pytest.raises(Failure, match="one NAME") as caught:
        new.command(words)
    assert caught.value.code == 2
