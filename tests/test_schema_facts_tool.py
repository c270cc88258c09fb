"""tools/schema_facts.py: the facts in tests/schemas are those of the official files, and a difference is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.schema_source import EXAMPLES_FILE, MODERN_REVISION, OFFICIAL_FOLDER, REVISIONS

TOOL = Path(__file__).resolve().parents[1] / "tools" / "schema_facts.py"


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), str(folder), *options], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """A folder like the official one, with one definition in each revision and one example."""
    schema = {"description": "A person.", "type": "object", "properties": {"name": {"type": "string"}}}
    for revision in REVISIONS:
        folder = tmp_path / "official" / revision
        folder.mkdir(parents=True)
        (folder / "schema.json").write_text(json.dumps({"$schema": "https://a", "$defs": {"Person": schema}}))
    examples = tmp_path / "official" / MODERN_REVISION / "examples" / "Person"
    examples.mkdir(parents=True)
    (examples / "ada.json").write_text(json.dumps({"name": "Ada", "about": ["Two words", 1, {"of": "\n"}]}))
    return tmp_path / "official"


def test_facts_are_written_without_sentences(official: Path, tmp_path: Path):
    made = tmp_path / "facts"
    assert run(official, "--into", str(made)).returncode == 0
    assert {path.name for path in made.iterdir()} == {EXAMPLES_FILE, *(f"{revision}.txt" for revision in REVISIONS)}
    for revision in REVISIONS:
        heading, *lines = (made / f"{revision}.txt").read_text().splitlines()
        assert revision in heading
        assert lines == ["$schema https://a", "", "Person object", "  name? string"]
    example = (made / EXAMPLES_FILE).read_text().splitlines()[1]
    assert example == 'Person/ada {"name":"Ada","about":["text",1,{"of":"\\n"}]}'


def test_a_difference_is_shown_and_fails(official: Path, tmp_path: Path):
    made = tmp_path / "facts"
    run(official, "--into", str(made))
    same = run(official, "--check", "--into", str(made))
    assert (same.returncode, same.stdout) == (0, "")
    path = made / f"{MODERN_REVISION}.txt"
    path.write_text(path.read_text().replace("name? string", "name! string"))
    other = run(official, "--check", "--into", str(made))
    assert other.returncode == 1
    assert "-  name! string\n+  name? string" in other.stdout
    assert "name! string" in path.read_text(), "a check writes nothing"
    path.unlink()
    assert run(official, "--check", "--into", str(made)).returncode == 1


def test_an_unknown_keyword_stops_the_tool(official: Path, tmp_path: Path):
    schema = official / REVISIONS[0] / "schema.json"
    schema.write_text(schema.read_text().replace('"description"', '"not"'))
    refused = run(official, "--into", str(tmp_path / "facts"))
    assert refused.returncode == 1 and "Person: unknown keyword 'not'" in refused.stderr
    assert not (tmp_path / "facts").exists()


def test_the_facts_are_those_of_the_official_files():
    if not OFFICIAL_FOLDER.is_dir():
        pytest.skip("the official schemas are not beside the repository; the facts made from them are")
    compared = run(OFFICIAL_FOLDER, "--check")
    assert compared.returncode == 0, compared.stdout + compared.stderr
