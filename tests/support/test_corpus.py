"""The corpus is sane: enough of it, unique, and agreeing with two JSON readers about what JSON is."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest

from support.corpus import ACCEPT, CASES, MISSING, OK, REJECT, Case, cases
from support.schema_source import HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS
from support.schemas import Oracle

PARSE = -32700


def read(line: bytes) -> Any:
    """What Python's reader finds at its most tolerant; ``...`` if it gives up."""
    try:
        return json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return ...


def test_there_are_enough():
    outcomes = Counter(case.code for case in CASES)
    per_revision = {revision: len(cases(revision)) for revision in REVISIONS}
    print(f"cases: {len(CASES)} {per_revision} {dict(outcomes)}; accept {len(ACCEPT)}, reject {len(REJECT)}")
    assert len(CASES) >= 150 and min(per_revision.values()) >= 150
    assert len(ACCEPT) + len(REJECT) >= 120


def test_labels_lines_and_ids_are_unique():
    assert len({case.label for case in CASES}) == len(CASES)
    for revision in REVISIONS:
        found = cases(revision)
        assert len({case.line for case in found}) == len(found)
        ids = [(type(case.id), case.id) for case in found if case.id != MISSING]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_case(case: Case):
    assert b"\n" not in case.line
    assert case.codes and case.revisions
    value = read(case.line)
    if PARSE not in case.codes and case.line.strip():
        assert value is not ..., "claims to be JSON"
        msgspec.json.decode(case.line)
    if case.codes == (PARSE,) and not deep(case):
        with pytest.raises((ValueError, RecursionError)):
            msgspec.json.decode(case.line)
    if case.id != MISSING and isinstance(value, dict):
        assert case.stdlib_reads_id
    if case.codes == (PARSE,) and case.id == MISSING and isinstance(value, dict):
        assert type(value.get("id")) not in (int, str), "the id could be echoed"


def deep(case: Case) -> bool:
    """Deeper than this project reads, though not deeper than a reader can."""
    return b'[{"a":' * 100 in case.line or b"[" * 129 in case.line or b'{"a":' * 129 in case.line


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_fine_is_a_valid_request(revision: str):
    oracle = Oracle.load(revision)
    for case in cases(revision):
        if case.codes == (OK,):
            oracle.check_frame(json.loads(case.line), sender="client")


def test_every_rule_is_there():
    labels = {case.label for case in cases(MODERN_REVISION)}
    assert {"id null", "an empty array", "an empty line", "NaN, in params", "id of 400 digits"} <= labels
    by_label = {case.label: case for case in CASES}
    assert by_label["id null"].codes == (-32600,) and by_label["id null"].id == MISSING
    assert by_label["id of 400 digits"].id == int("9" * 400)
    assert by_label["half a surrogate pair, in params"].id_recoverable
    assert by_label["half a surrogate pair, in params"].stdlib_reads_id
    assert not by_label["invalid UTF-8, in params"].stdlib_reads_id
    assert by_label["an array with a request"].revisions == tuple(r for r in REVISIONS if r != "2025-03-26")
    assert by_label["ping with params null"].codes == (-32600, -32602)
    assert by_label["a plain request"].revisions == HANDSHAKE_REVISIONS
