"""The rule of the peers' environments: made once for the same pins, and honest about a registry that is away."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from interop.environments import (
    PEERS,
    STAMP,
    UNREACHABLE,
    RegistryUnreachable,
    install,
    made_for,
    node_project,
    python_of,
    script_in,
    unavailable,
)


def test_an_environment_is_kept_while_its_pins_stay_and_not_longer(tmp_path: Path, monkeypatch):
    pins = tmp_path / "pins.txt"
    pins.write_text("# nothing\n")
    made = tmp_path / "peer"
    made.mkdir()
    (made / STAMP).write_text(made_for(pins))
    (made / "mark").touch()
    assert python_of("peer", pins, tmp_path) == str(made / "bin" / "python")
    assert (made / "mark").exists(), "it was made again for the same pins"

    pins.write_text("mcp==2.3.0\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(RegistryUnreachable, match=r"mcp==2\.3\.0"):
        python_of("peer", pins, tmp_path)
    assert not (made / "mark").exists(), "it was kept for other pins"
    assert not (made / STAMP).exists(), "half made, it would be taken for whole the next time"


def test_without_a_registry_tests_are_skipped_with_that_reason():
    with pytest.raises(pytest.skip.Exception, match=f"^{UNREACHABLE}: no route$"):
        unavailable(RegistryUnreachable("no route"), {})


def test_without_a_registry_continuous_integration_fails():
    with pytest.raises(pytest.fail.Exception, match=f"^{UNREACHABLE}: no route$"):
        unavailable(RegistryUnreachable("no route"), {"CI": "true"})


# --- the TypeScript peers ---


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """A copy of the pins, to change."""
    folder = tmp_path / "pinned"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PEERS / name, folder)
    return folder


@pytest.fixture
def no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def test_a_project_is_kept_while_its_lock_stays_and_not_longer(tmp_path: Path, pinned: Path, no_node):
    home = tmp_path / "typescript"
    home.mkdir()
    (home / STAMP).write_text(f"{install.NODE}\n{(pinned / 'package-lock.json').read_text()}")
    assert node_project(tmp_path, pinned) == (str(install.Node(home).node), home / "project")

    with (pinned / "package-lock.json").open("a") as lock:
        lock.write("\n")
    with pytest.raises(RegistryUnreachable, match="could not get Node"):
        node_project(tmp_path, pinned)
    assert not (home / STAMP).exists(), "half made, it would be taken for whole the next time"


def test_pins_that_are_wrong_are_no_reason_to_skip(tmp_path: Path, pinned: Path, monkeypatch):
    """npm's words for a lock file that does not belong to its package.json, and for a package that was changed."""
    monkeypatch.setattr(install, "get_node", install.Node)
    for mistake in ("npm error code EUSAGE", "npm error code EINTEGRITY"):

        def fail(*words: object, told: str = mistake) -> None:
            raise install.Unavailable(told)

        monkeypatch.setattr(install, "get_packages", fail)
        with pytest.raises(install.Unavailable, match=mistake):
            node_project(tmp_path, pinned)


def test_the_lock_holds_digests_and_no_addresses():
    text = (PEERS / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert packages[""]["dependencies"] == json.loads((PEERS / "package.json").read_text())["dependencies"]
    assert all(part["integrity"] for name, part in packages.items() if name)
    assert "://" not in text


def test_a_script_lies_where_its_packages_are(tmp_path: Path):
    script = Path(script_in(tmp_path, "ts2_asking_client.mjs"))
    assert script.read_bytes() == (PEERS / script.name).read_bytes()
    assert list(tmp_path.iterdir()) == [script]
