"""Both directions of the manifest: no claim without a row, no binding row without a test or a reason."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.manifest import TESTS, Listener, Manifest, Shown, read_reasons, read_rows, spec_differences

TOOL = TESTS.parent / "tools" / "coverage_spec.py"
CHOICES = ("keyword", "markexpr", "ignore", "ignore_glob", "deselect")  # options by which a run leaves something out


@pytest.fixture(scope="module")
def manifest(request: pytest.FixtureRequest) -> Manifest:
    shown = Listener.of(request.config).shown() if is_whole(request.config) else collected_elsewhere()
    return Manifest(read_rows(), shown, read_reasons())


def is_whole(config: pytest.Config) -> bool:
    """Has this run collected all tests? Then nobody needs to do so again."""
    everything = [(config.rootpath / argument).resolve() for argument in config.args] == [TESTS]
    return everything and config.getoption("every") == 1 and not any(map(config.getoption, CHOICES))


def collected_elsewhere() -> Shown:
    """In a process of its own: pytest inside pytest would share its modules."""
    told = subprocess.run([sys.executable, str(TOOL), "--json"], capture_output=True, text=True, timeout=280)
    assert told.returncode == 0, told.stderr
    return Shown(**json.loads(told.stdout))


def test_every_test_file_can_be_collected(manifest: Manifest):
    assert manifest.shown.broken == []


def test_no_test_names_an_unknown_row(manifest: Manifest):
    assert manifest.unknown_in_tests() == {}


def test_every_binding_row_has_a_test_or_a_reason(manifest: Manifest):
    still_open = [f"{row.id} {row.level}: {row.text}" for row in manifest.open()]
    assert not still_open, "\n".join([f"{len(still_open)} open rows", *still_open])


def test_every_reason_is_a_sentence_about_a_row(manifest: Manifest):
    assert manifest.bad_reasons() == []


def test_the_table_is_the_one_of_the_specification():
    differences = spec_differences(read_rows())
    if differences is None:
        pytest.skip("no specification beside the repository")
    assert differences == []
