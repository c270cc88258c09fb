"""Transcripts: pairing, judging, the text form, comparing with wildcards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.schemas import SchemaViolation
from support.transcripts import Transcript, differences, load_transcript, match_frame

REVISION = "2025-11-25"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
CALL = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "echo"}}
RESULT = {"jsonrpc": "2.0", "id": "a", "result": {"content": []}}
REFUSAL = {"jsonrpc": "2.0", "id": "a", "error": {"code": -32602, "message": "no"}}


def conversation(*entries: tuple[str, Any], revision: str = REVISION) -> Transcript:
    transcript = Transcript(revision)
    for mark, frame in entries:
        transcript.sent(frame, sender="client" if mark[0] == ">" else "server", judged="!" not in mark)
    return transcript


def test_a_good_conversation():
    transcript = conversation((">", PING), (">", CALL), ("<", RESULT), ("<", PONG), ("<", PING), (">", PONG))
    assert transcript.check() == 6
    assert transcript.frames("server") == [RESULT, PONG, PING]


def test_bytes_and_text_are_read():
    assert conversation((">", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')).entries[0].frame == PING
    with pytest.raises(SchemaViolation, match="not JSON"):
        conversation(("<", b"Starting server..."))
    assert conversation(("<!", b"Starting server...")).entries[0].frame == b"Starting server..."
    assert conversation((">!", "{")).entries[0].frame == b"{"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("<", PONG)], "nobody asked"),
        ([(">", PING), ("<", PONG), ("<", PONG)], "answered already"),
        ([(">", PING), (">", PONG)], "nobody asked"),
        ([(">", PING), ("<", PONG | {"id": "1"})], "nobody asked"),
        ([(">", PING), ("<", PONG | {"id": True})], "nobody asked"),
        ([(">", PING), (">", PING)], "still open"),
        ([(">", CALL), ("<", RESULT | {"result": {}})], "CallToolResult at /result"),
        ([(">", CALL), ("<", RESULT | {"id": None})], "nobody asked"),
        ([(">", CALL | {"params": {}})], "entry 1"),
    ],
)
def test_a_bad_conversation(entries: list[tuple[str, Any]], message: str):
    with pytest.raises(SchemaViolation, match=message):
        conversation(*entries).check()


def test_wrong_on_purpose_is_recorded_but_not_judged():
    broken = CALL | {"params": []}
    assert conversation((">!", broken), ("<", REFUSAL)).check() == 1
    parse_error = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}
    assert conversation((">!", b"{"), ("<", parse_error)).check() == 1
    # An id the server recovered from a line that nobody else could read.
    assert conversation((">!", b'{"id": "a", ...'), ("<", REFUSAL)).check() == 1
    with pytest.raises(SchemaViolation):
        conversation((">!", b'{"id": "a", ...'), ("<", RESULT)).check()


@pytest.mark.parametrize("entries", [[], [(">!", PING)], [(">!", b"{"), ("<!", PONG)]])
def test_a_check_that_judges_nothing_fails(entries: list[tuple[str, Any]]):
    with pytest.raises(AssertionError, match=f"no frame was judged: {len(entries)} recorded"):
        conversation(*entries).check()


def test_an_error_without_id_in_a_revision_that_demands_one():
    entries = [(">!", b"{"), ("<", {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}})]
    transcript = conversation(*entries, revision="2024-11-05")
    assert transcript.check() == 1
    with pytest.raises(SchemaViolation, match="id"):
        transcript.check(allow_missing_id=False)


def test_batches_are_paired_one_by_one():
    transcript = conversation((">", [PING, CALL]), ("<", [RESULT, PONG]), revision="2025-03-26")
    assert transcript.check() == 6
    wrong = conversation((">", [CALL]), ("<", [RESULT | {"result": {}}]), revision="2025-03-26")
    with pytest.raises(SchemaViolation, match="CallToolResult"):
        wrong.check()
    with pytest.raises(SchemaViolation, match="no batches"):
        conversation((">", [PING])).check()


def test_text_there_and_back(tmp_path: Path):
    path = tmp_path / "one.txt"
    transcript = conversation((">", PING), ("<", PONG), (">!", b"{ oh"), ("<!", {"é": "\u2028"}))
    text = transcript.dump(path)
    assert text.splitlines()[:2] == [
        f"# revision: {REVISION}",
        '> {"jsonrpc": "2.0", "id": 1, "method": "ping"}',
    ]
    assert load_transcript(path) == transcript
    assert load_transcript(path, revision="2026-07-28").revision == "2026-07-28"


def test_reading_comments_blank_lines_and_mistakes(tmp_path: Path):
    path = tmp_path / "one.txt"
    path.write_text('# hello: you\n\n# revision: 2025-06-18\n  > {"id": "*"}\n', encoding="utf-8")
    transcript = load_transcript(path)
    assert transcript.revision == "2025-06-18" and transcript.frames("client") == [{"id": "*"}]
    for text, message in (("? {}", "one.txt:1"), ("> {}", "no revision"), (">!! {}", "one.txt:1")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            load_transcript(path)


def test_wildcards_of_a_file_are_paired_but_not_judged(tmp_path: Path):
    path = tmp_path / "one.txt"
    recorded = conversation((">", PING), ("<", PONG | {"result": "*"}))
    recorded.dump(path)
    assert load_transcript(path).check() == 1
    with pytest.raises(SchemaViolation):
        recorded.check()


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, True),
        ({"a": "*"}, {"a": {"deep": [1]}}, True),
        ("*", None, True),
        ({"a": ["*", 2]}, {"a": [1, 2]}, True),
        ({"a": "*"}, {}, False),
        ({}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": [1]}, {"a": [2]}, False),
        ({"a": None}, {}, False),
    ],
)
def test_matching(expected: Any, actual: Any, same: bool):
    assert match_frame(expected, actual) is same


def test_differences_say_where():
    found = set(differences({"a": {"b": 1}, "c": 1, "e": [1]}, {"a": {"b": 2}, "d": 1, "e": []}))
    assert found == {
        "/a/b: expected 1, got 2",
        "/c: missing",
        "/d: unexpected 1",
        "/e: expected 1 items, got 0",
    }
