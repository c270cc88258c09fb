# The smallest server there is, for children of tests: the standard library only, so that it starts at once.
# A test puts its own lines below these (support.children.write_server); it is never imported.
import json
import os
import signal  # noqa: F401 - for the lines that follow
import subprocess  # noqa: F401
import sys
import time  # noqa: F401

TOOLS = {}
REVISION = "2025-11-25"


def tool(function):
    TOOLS[function.__name__] = function
    return function


def say(message):
    """One line on stdout, in one write."""
    os.write(1, json.dumps(message).encode() + b"\n")


def note(path, word):
    """Leave a word in a file that the test reads."""
    with open(path, "a") as file:
        file.write(word + "\n")


def result(request, value):
    say({"jsonrpc": "2.0", "id": request["id"], "result": value})


def error(request, code, message="no", **members):
    say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message, **members}})


def welcome(request):
    info = {"name": "mini", "version": "1"}
    result(request, {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info})


def answer(request):
    method = request.get("method")
    if "id" not in request or method is None:
        return
    if method == "initialize":
        welcome(request)
    elif method == "ping":
        result(request, {})
    elif method == "tools/call":
        said = TOOLS[request["params"]["name"]](**request["params"].get("arguments", {}))
        if said is not None:
            result(request, {"content": [{"type": "text", "text": str(said)}]})
    else:
        error(request, -32601)


def serve(on_request=answer):
    """Until stdin is closed. Read by hand: no line waits in a buffer that a fork could inherit."""
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            on_request(json.loads(line))


@tool
def pid():
    return os.getpid()


@tool
def echo(text=""):
    return text


@tool
def leave(code=0):
    sys.exit(code)
