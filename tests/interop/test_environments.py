"""The rule of the peers' environments: made once for the same pins, and honest about a registry that is away."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from interop.environments import (
    CACHE,
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


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("package.json", '"zod": "4.6.7"', '"zod": "4.6.6"'),  # not what the lock file was made for
        ("package-lock.json", '"integrity": "sha512-', '"integrity": "sha512-AAAA'),  # not the package that was meant
    ],
)
def test_pins_that_are_wrong_are_no_reason_to_skip(
    typescript, tmp_path: Path, pinned: Path, monkeypatch, name, right, wrong
):
    typescript("ts2_asking_client.mjs")  # whose Node is taken here
    monkeypatch.setattr(install, "get_node", lambda home: install.Node(CACHE / "typescript"))
    changed = (pinned / name).read_text().replace(right, wrong, 1)
    (pinned / name).write_text(changed)
    with pytest.raises(install.Unavailable, match="JavaScript packages"):
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
