"""testing/transcript.py: every frame, and a form of it that people can read."""

import json

import pytest

from interlock.testing import Line, Transcript

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "x",
    "io.modelcontextprotocol/clientInfo": {},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def line(sender, frame):
    return Line(sender, frame if isinstance(frame, bytes) else json.dumps(frame).encode())


@pytest.mark.parametrize(
    ("sender", "frame", "text"),
    [
        ("client", {"id": 1, "method": "tools/call", "params": {"name": "é"}}, '> tools/call #1 {"name": "é"}'),
        ("client", {"id": "a", "method": "ping"}, "> ping #a"),
        ("client", {"id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}, "> tools/list #1"),
        (
            "client",
            {"id": 1, "method": "m", "params": {"a": 1, "_meta": {**ENVELOPE, "progressToken": 5}}},
            '> m #1 {"a": 1, "_meta": {"progressToken": 5}}',
        ),
        (
            "server",
            {"method": "notifications/progress", "params": {"progress": 1}},
            '< notifications/progress {"progress": 1}',
        ),
        ("server", {"id": 1, "result": {"content": []}}, '< #1 result {"content": []}'),
        ("server", {"id": 1, "result": {"_meta": {"io.modelcontextprotocol/serverInfo": {}}}}, "< #1 result"),
        (
            "server",
            {"id": 1, "error": {"code": -32602, "message": "No", "data": {"a": 1}}},
            '< #1 error -32602: No {"a": 1}',
        ),
        ("server", {"error": {"code": -32700, "message": "No"}}, "< error -32700: No"),
        ("client", [{"id": 1, "method": "ping"}], '> [{"id": 1, "method": "ping"}]'),
        ("server", b"no json \xff\x1b[2J", "< no json \\xff\\x1b[2J"),
    ],
)
def test_a_line_is_readable(sender, frame, text):
    assert line(sender, frame).text() == text


def test_long_lines_are_cut():
    text = line("client", {"id": 1, "method": "m", "params": {"a": "x" * 1000}}).text(50)
    assert text.startswith('> m #1 {"a": "xxx') and len(text) < 80


def test_frames_can_be_looked_up():
    transcript = Transcript()
    transcript.add("client", b'{"id":1,"method":"ping"}')
    transcript.add("server", b'{"id":1,"result":{}}')
    transcript.add("client", b"[]")
    assert transcript.frames() == [{"id": 1, "method": "ping"}, {"id": 1, "result": {}}, []]
    assert transcript.frames("server") == [{"id": 1, "result": {}}]
    assert transcript.frames(method="ping") == transcript.frames("client", "ping") == [{"id": 1, "method": "ping"}]
    assert transcript.frames("server", "ping") == []
    assert str(transcript) == "> ping #1\n< #1 result\n> []"
    assert transcript.lines[0].data == b'{"id":1,"method":"ping"}'
