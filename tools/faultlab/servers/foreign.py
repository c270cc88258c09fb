"""A foreign server (no Interlock in it) that writes a line of junk before every answer to a tool call."""

import json
import random
import sys

chosen = random.Random(int(sys.argv[1]))
out = sys.stdout.buffer
junk = 0
JUNK = (
    b"Listening on stdio ...",
    b"\x1b[32mINFO\x1b[0m ready",
    b'{"level":"info","msg":"a log line in JSON"}',
    b"[INFO] 2026-01-01 starting",
    b"[1, 2, 3]",
    b"[]",
    b'"a string"',
    b"null",
    b"42",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    b"\xff\xfe\x00\x01 binary",
    b"{" * 200,
    b"[" * 20000,
    b"x" * 100_000,
)


def write(frame: dict) -> None:
    out.write(json.dumps(frame).encode() + b"\n")


def answer(frame: dict) -> dict:
    global junk
    if frame["method"] == "initialize":
        info = {"name": "foreign", "version": "1"}
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        return {"jsonrpc": "2.0", "id": frame["id"], "result": found}
    if frame["method"] != "tools/call":
        return {"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "Unknown method"}}
    if frame["params"]["name"] == "count":
        text = str(junk)
    else:
        text = frame["params"]["arguments"]["number"]
        out.write(chosen.choice(JUNK) + b"\n" + b"\n" * chosen.randrange(2))
        junk += 1
    return {"jsonrpc": "2.0", "id": frame["id"], "result": {"content": [{"type": "text", "text": str(text)}]}}


for line in sys.stdin.buffer:
    read = json.loads(line)
    if "id" in read:
        write(answer(read))
        out.flush()
