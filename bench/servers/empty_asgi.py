"""No server at all: an empty ASGI application on uvicorn as it comes, with httptools and uvloop and our settings.

It reads the body and answers with fixed bytes, as many as Interlock's answer has. What the driver counts here is what
HTTP alone costs an ASGI application. With the word `--own` it runs on Interlock's runner, whose protocol writes less
often.
"""

import sys

import uvicorn

from interlock.transport.http.runner.serve import run_http

BODY = (
    b'{"jsonrpc":"2.0","id":10000,"result":{"resultType":"complete","content":[{"type":"text","text":"10001"}],'
    b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0"}}}}'
)
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


class Empty:
    """An application with just what the runner asks of one."""

    path = "/mcp"
    allowed_hosts = ()
    body_bytes = 4 * 1024 * 1024
    watcher = None
    handler = None

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": BODY})
        elif scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})

    def allow_host(self, host):
        pass

    def ignore_listener(self):
        pass

    def stop(self):
        pass

    async def settle(self, seconds):
        pass


def run_plainly(app, port):
    uvicorn.run(
        app,
        port=port,
        http="httptools",
        loop="uvloop",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=4096,
        timeout_keep_alive=60,
    )


if __name__ == "__main__":
    *own, port = sys.argv[1:]
    if own:
        run_http(Empty(), port=int(port))
    else:
        run_plainly(Empty(), int(port))
