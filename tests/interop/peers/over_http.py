"""A server of a Python SDK over HTTP: its own application on a port that is free.

    python over_http.py mcp1_server|mcp2_server|fastmcp_server streamable|json|stateless|sse

The streams of `streamable` can be resumed. The address is said on stderr.
"""

import importlib
import socket
import sys

import uvicorn
from kept_events import KeptEvents

name, form = sys.argv[1:]
server = importlib.import_module(name).server
# These SDKs lose what is said between the replay of a resumed stream and its live part: nobody is told to come so soon.
kept = {"event_store": KeptEvents(), "retry_interval": 1000} if form == "streamable" else {}
options = {"json_response": form == "json", "stateless_http": form == "stateless", **kept}


def first_sdk():
    server.settings.json_response = form == "json"
    server.settings.stateless_http = form == "stateless"
    server._event_store, server._retry_interval = kept.get("event_store"), kept.get("retry_interval")
    return server.sse_app() if form == "sse" else server.streamable_http_app()


def second_sdk():
    return server.sse_app() if form == "sse" else server.streamable_http_app(**options)


def fastmcp():
    return server.http_app(transport="sse") if form == "sse" else server.http_app(**options)


app = {"mcp1_server": first_sdk, "mcp2_server": second_sdk, "fastmcp_server": fastmcp}[name]()
listening = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}/{'sse' if form == 'sse' else 'mcp'}", file=sys.stderr, flush=True)
settings = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
uvicorn.Server(settings).run(sockets=[listening])
