"""tools/pythons.py and tools/debian.py: which interpreters are used, and where Debian's packages come from."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))  # before the standard library, which has a `test` too
try:
    import debian
    import pythons
    from pythons import Python
finally:
    sys.path.pop(0)


def install(folder, name, told):
    """A program that answers every question with its version, or fails."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {told}\n" if told else "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """One without any interpreter but those that a test puts there."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(debian, "FOLDERS", tmp_path / "debian")
    return tmp_path


def test_every_interpreter_that_works_is_found(machine):
    here = install(machine / "one", "python3.11", "3.11.2")
    other = install(machine / "two", "python3.12", "3.12.10")
    install(machine / "two", "python3.13", "")
    install(machine / "two", "python3.10", "3.10.1")
    (machine / "pyenv" / "versions" / "3.12.9").mkdir(parents=True)
    older = install(machine / "pyenv" / "versions" / "3.12.9" / "bin", "python3.12", "3.12.9")
    assert sorted(pythons.find_here()) == [Python("3.11.2", here), Python("3.12.10", other), Python("3.12.9", older)]


def test_the_oldest_of_each_version_is_used_but_not_the_running_one(machine):
    running = ".".join(map(str, sys.version_info[:3]))
    other = "3.12" if not running.startswith("3.12.") else "3.13"
    install(machine / "one", f"python{other}", f"{other}.10")
    oldest = install(machine / "two", f"python{other}", f"{other}.9")
    install(machine / "two", "python" + running.rpartition(".")[0], running)
    assert pythons.find_other_pythons() == [Python(f"{other}.9", oldest)]


def test_versions_are_compared_as_numbers():
    found = [Python("3.11.10", "a"), Python("3.11.9", "b"), Python("3.9.1", "c"), Python("3.11.9", "d")]
    assert pythons.choose_oldest(found) == [Python("3.9.1", "c"), Python("3.11.9", "b")]


def test_a_folder_that_cannot_be_entered_is_left_out_and_named(machine, monkeypatch, capsys):
    (machine / "debian" / "sid").mkdir(parents=True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert debian.find_pythons() == []
    assert "sid left out: chroot needs root" in capsys.readouterr().err


def test_the_mirror_is_that_of_debians_own_archive(monkeypatch):
    targets = "Other|Other|http://o/\nDebian|Debian-Security|http://s/\nDebian|Debian|http://d/\n"
    assert debian.choose_mirror(targets) == "http://d/"
    assert debian.choose_mirror("Ubuntu|Ubuntu|http://u/\n\n") is None
    monkeypatch.setenv("DEBIAN_MIRROR", "http://given/")
    assert debian.find_mirror() == "http://given/"


def test_what_is_missing_is_named_with_what_to_do(machine, monkeypatch):
    monkeypatch.setattr(debian, "check_machine", lambda: None)
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    with pytest.raises(debian.Unusable, match="apt-get install debootstrap"):
        debian.make_folder("sid")
    with pytest.raises(debian.Unusable, match="no apt: name a mirror"):
        debian.find_mirror()
    with pytest.raises(debian.Unusable, match="make debian-pythons SUITES=sid"):
        debian.run_inside("sid", ["true"])


def test_a_run_of_debootstrap_that_fails_leaves_no_folder_to_be_used(machine, monkeypatch):
    monkeypatch.setattr(debian, "check_machine", lambda: None)
    monkeypatch.setenv("DEBIAN_MIRROR", "http://given/")
    install(machine / "one", "debootstrap", "")
    with pytest.raises(debian.Unusable, match=r"debootstrap\.log"):
        debian.make_folder("sid")
    assert not (machine / "debian" / "sid").exists()


def test_the_usage_is_told():
    words = [sys.executable, str(ROOT / "tools" / "debian.py"), "enter", "nowhere", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "SUITE one of bookworm, sid" in done.stderr


def test_every_version_that_is_tested_is_declared():
    """In the classifiers of the package, and the oldest of them as the one it needs."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for version in pythons.VERSIONS:
        assert f'"Programming Language :: Python :: {version}"' in declared
    assert f'requires-python = ">={pythons.VERSIONS[0]}"' in declared
