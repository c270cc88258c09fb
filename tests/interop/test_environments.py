"""The rule of the peers' environments: made once for the same pins, and honest about a registry that is away."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.environments import STAMP, UNREACHABLE, RegistryUnreachable, made_for, python_of, unavailable


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
