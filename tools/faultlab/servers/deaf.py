"""A foreign server (no Interlock in it) that introduces itself and then reads nothing any more."""

import json
import sys
import time

for line in sys.stdin:
    frame = json.loads(line)
    if frame["method"] == "initialize":
        info = {"name": "deaf", "version": "1"}
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": found}), flush=True)
        time.sleep(60)  # ends by itself, should everything else fail
        break
    print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "?"}}), flush=True)
