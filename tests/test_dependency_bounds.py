"""pyproject.toml, requirements/dev.txt: what is installed for the tests is what the project says that it works with."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = [text for extra in PROJECT["optional-dependencies"].values() for text in extra]
DEPENDENCIES = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS]]
each_dependency = pytest.mark.parametrize("dependency", DEPENDENCIES, ids=lambda dependency: dependency.name)


@each_dependency
def test_a_dependency_has_a_lower_bound_and_the_tests_use_an_allowed_version(dependency):
    assert [each.operator for each in dependency.specifier].count(">=") == 1
    pins = dict(
        re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"), re.M)
    )
    assert dependency.specifier.contains(pins[dependency.name])


def test_what_is_subclassed_beyond_its_public_api_has_an_upper_bound():
    [uvicorn] = [each for each in DEPENDENCIES if each.name == "uvicorn"]
    assert not uvicorn.specifier.contains("0.52.4") and not uvicorn.specifier.contains("0.55.0")


@pytest.mark.parametrize("bound", ["lowest", "newest"])
def test_the_environment_of_a_bound_runs_the_tests_that_are_named(bound, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import dependency_bounds

    monkeypatch.setattr(dependency_bounds, "make_environment", lambda asked: {bound: sys.executable}[asked])
    monkeypatch.setattr(dependency_bounds, "find_versions", lambda python: [f"of {python}"])
    monkeypatch.setattr(sys, "argv", ["dependency_bounds.py", bound, "--collect-only", "tests/wire/test_limits.py"])
    assert dependency_bounds.main() == 0
    told = capfd.readouterr().out
    assert f"=== {bound} dependencies: of {sys.executable}" in told and "tests/wire/test_limits.py::" in told
    assert "tests/server" not in told
