"""Where schemas come from: the official files, then the package, then nowhere."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from support import schema_source
from support.schema_source import REVISIONS


@pytest.fixture
def without_official_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(schema_source, "SCHEMA_DIR", tmp_path)
    return schema_source.load_document.__wrapped__


def test_without_any_source_a_revision_is_unchecked(without_official_files, monkeypatch: pytest.MonkeyPatch):
    for name in ("mcp_types", *schema_source.PACKAGED.values()):
        monkeypatch.setitem(sys.modules, name, None)
    for revision in REVISIONS:
        assert without_official_files(revision) is None


def test_the_package_is_the_second_source(without_official_files):
    pytest.importorskip("mcp_types")
    for revision in REVISIONS:
        document = without_official_files(revision)
        if revision not in schema_source.PACKAGED:
            assert document is None
            continue
        assert document is not None and document.source == "mcp-types"
        assert "JSONRPCRequest" in document.definitions and "ClientRequest" in document.definitions
        cursor = document.definitions["PaginatedRequestParams"]["properties"]["cursor"]
        assert cursor["type"] == "string" and "anyOf" not in cursor


def test_absent_is_not_null():
    schema: dict[str, Any] = {
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "default": None},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "allOf": [{"properties": {"d": {"anyOf": [{}, {"type": "null"}], "default": None}}}],
    }
    schema_source.forbid_explicit_null(schema)
    assert schema["properties"]["a"] == {"type": "string"}
    assert schema["properties"]["b"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert schema["properties"]["c"]["anyOf"][1] == {"type": "null"}
    assert schema["allOf"][0]["properties"]["d"] == {}


def test_only_a_module_s_own_types_are_taken():
    module = types.ModuleType("wire")
    vars(module).update(Tool=int, Any=Any, helper=str, WireModel=dict)
    assert list(schema_source.wire_types(module)) == [("Tool", int)]
