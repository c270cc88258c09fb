"""A server of the official Python SDK, 1.x or 2.x, over HTTP: its own application on a port that is free.

    python over_http.py mcp1_server streamable|json|stateless|sse

The address is said on stderr.
"""

import importlib
import socket
import sys

import uvicorn

name, form = sys.argv[1:]
server = importlib.import_module(name).server
options = {}
if name.startswith("mcp1"):
    server.settings.json_response = form == "json"
    server.settings.stateless_http = form == "stateless"
elif form != "sse":
    options = {"json_response": form == "json", "stateless_http": form == "stateless"}
app = server.sse_app() if form == "sse" else server.streamable_http_app(**options)
listening = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}/{'sse' if form == 'sse' else 'mcp'}", file=sys.stderr, flush=True)
settings = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
uvicorn.Server(settings).run(sockets=[listening])
