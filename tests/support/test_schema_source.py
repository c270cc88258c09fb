"""The schema facts: there for every revision, the same as in the official files, and never silently absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import schema_source
from support.schema_source import FACTS_FOLDER, REVISIONS, load_document, load_examples
from support.schemas import Oracle
from support.transcripts import Transcript


@pytest.fixture
def without_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(schema_source, "FACTS_FOLDER", tmp_path)
    load_document.cache_clear()
    Oracle.load.cache_clear()


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_has_its_facts(revision: str):
    document = load_document(revision)
    assert {"JSONRPCRequest", "ClientRequest", "CallToolResult", "Tool"} <= document.definitions.keys()
    assert "JSONRPCError" in document.definitions or "JSONRPCErrorResponse" in document.definitions


def test_the_facts_hold_no_prose():
    """A description that slipped through would be the only value with several words."""
    for path in FACTS_FOLDER.glob("*.txt"):
        heading, *lines = path.read_text(encoding="utf-8").splitlines()
        assert heading.startswith("# ")
        assert [line for line in lines if "\\u0020" in line] == []
        assert path.name == schema_source.EXAMPLES_FILE or all(len(line.split()) <= 5 for line in lines)
    assert all(
        line.count(" ") == 1 for line in (FACTS_FOLDER / schema_source.EXAMPLES_FILE).read_text().splitlines()[1:]
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_check_without_facts_fails(without_facts: None, revision: str):
    transcript = Transcript(revision).sent({"jsonrpc": "2.0", "id": 1, "method": "ping"}, sender="client")
    with pytest.raises(FileNotFoundError, match=rf"{revision}\.txt is missing, so nothing can be checked"):
        transcript.check()


def test_examples_without_their_file_fail(without_facts: None):
    with pytest.raises(FileNotFoundError, match="nothing can be checked"):
        load_examples()


def test_an_unknown_revision_is_refused():
    with pytest.raises(ValueError, match="unknown revision '2023-01-01'"):
        load_document("2023-01-01")
