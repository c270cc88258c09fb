"""A foreign server (no Interlock in it): at a tool call it closes its stdout and stays.

It hears neither the end of its stdin nor SIGTERM.
"""

import json
import os
import signal
import sys
import time

for line in sys.stdin:
    frame = json.loads(line)
    if frame["method"] == "tools/call":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(1)
        time.sleep(60)  # ends by itself, should everything else fail
        os._exit(0)
    if frame["method"] == "initialize":
        info = {"name": "lingering", "version": "1"}
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": found}), flush=True)
    elif "id" in frame:
        told = {"code": -32601, "message": "Unknown method"}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "error": told}), flush=True)
