"""tools/docs.py and tools/api_reference.py: what is said about the API is all of it, and what has no place is found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import interlock

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

import api_reference  # noqa: E402 - it lives among the tools
import docs  # noqa: E402


@pytest.fixture(scope="module")
def page():
    return api_reference.page()


def test_every_public_name_is_there_once(page):
    own, _, further = page.partition("\n## From interlock.")
    found = re.findall(r"^### (\w+)$", own, re.M)
    assert sorted(found) == sorted(name for name in interlock.__all__ if not name.startswith("_"))
    assert {"### SQLiteStore", "### MemoryClient", "### serve_channel"} <= {*further.splitlines()}


def test_a_function_has_its_signature_and_its_docstring(page):
    part = page.partition("### hash_password\n")[2].partition("\n### ")[0]
    assert "hash_password(" in part
    assert (interlock.hash_password.__doc__ or "?").splitlines()[0] in part


def test_a_class_has_its_public_members_with_defaults_as_they_are_written(page):
    part = page.partition("### Client\n")[2].partition("\n### ")[0]
    for name in ("call_tool", "list_tools", "revision", "close"):
        assert f"#### Client.{name}\n" in part
    assert "#### Client._" not in part and "timeout" in part
    assert 'uri: str = "files:///"' in page.replace("'", '"')


def test_a_record_has_the_texts_below_its_fields(page):
    part = page.partition("### Keepalive\n")[2].partition("\n### ")[0]
    assert "class Keepalive(" in part and "interval" in part


def test_nothing_of_this_machine_is_told(page):
    assert str(ROOT) not in page and " at 0x" not in page


def test_every_place_in_the_menu_has_its_page():
    own = {"api.md"}  # written by the tool
    assert not [fault for fault in docs.places_without_a_page() if not own & {*re.split(r"[/ ]", fault)}]


def test_what_has_no_place_or_no_test_is_found(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs" / "lost.md").write_text("```python\nx = 1\n```\n")
    (tmp_path / "docs" / "kept.md").write_text("plain\n")
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - Kept: kept.md\n  - Gone: gone.md\n")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    assert docs.pages_without_a_place() == ["docs/lost.md is not in the nav of mkdocs.yml"]
    assert docs.places_without_a_page() == ["docs/gone.md is in the nav of mkdocs.yml and not there"]
    assert docs.pages_without_a_test() == ["docs/lost.md has code that no test runs"]
    (tmp_path / "tests" / "test_lost_page.py").write_text('PAGE = "lost.md"\n')
    assert docs.pages_without_a_test() == []


def test_the_site_is_built_apart_and_nothing_else_is_cleared(tmp_path, monkeypatch):
    builder = tmp_path / "builder"
    page = '<script src="https://scripts.example/iframe-worker/shim"></script>'
    builder.write_text(
        f"#!/bin/sh\necho \"$@\" > said\nls > seen\nmkdir -p site/deep\necho '{page}' > site/deep/a.html\n"
    )
    builder.chmod(0o755)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Here\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    (tmp_path / ".cache" / "interop").mkdir(parents=True)
    (tmp_path / ".cache" / "docs" / "old").mkdir(parents=True)
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "BUILDER", builder)
    assert docs.build(tmp_path / ".cache" / "docs") == 0
    assert (tmp_path / ".cache" / "docs" / "said").read_text() == "build --strict\n"
    assert {"docs", "mkdocs.yml"} <= {*(tmp_path / ".cache" / "docs" / "seen").read_text().split()}
    found = (tmp_path / ".cache" / "docs" / "site" / "deep" / "a.html").read_text()
    assert found == '<script src="../scripts/file_worker.js"></script>\n', "the search works in a site opened as a file"
    assert (tmp_path / ".cache" / "interop").is_dir() and not (tmp_path / ".cache" / "docs" / "old").exists()


def test_a_builder_without_the_worker_that_is_replaced_is_an_error(tmp_path, monkeypatch, capsys):
    builder = tmp_path / "builder"
    builder.write_text("#!/bin/sh\nmkdir site\necho '<p>' > site/index.html\n")
    builder.chmod(0o755)
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "BUILDER", builder)
    assert docs.build(tmp_path / ".cache" / "docs") == 1
    assert "the search fails" in capsys.readouterr().out
