"""A foreign server (no Interlock in it) whose tool answers with `size` bytes of one `number`."""

import json
import sys

out = sys.stdout.buffer


def answer(frame: dict) -> bytes:
    if frame["method"] == "initialize":
        info = {"name": "numbers", "version": "1"}
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        return json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": found}).encode()
    if frame["method"] != "tools/call":
        error = {"code": -32601, "message": "Unknown method"}
        return json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": error}).encode()
    asked = frame["params"]["arguments"]
    values = ",".join([asked["number"]] * (asked["size"] // (len(asked["number"]) + 1)))
    result = f'{{"content":[],"structuredContent":{{"values":[{values}]}}}}'
    return f'{{"jsonrpc":"2.0","id":{json.dumps(frame["id"])},"result":{result}}}'.encode()


for line in sys.stdin.buffer:
    read = json.loads(line)
    if "id" in read:
        out.write(answer(read) + b"\n")
        out.flush()
