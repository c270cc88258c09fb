"""No server at all: an empty ASGI application on Interlock's own runner, with its settings.

It reads the body and answers with fixed bytes, as many as Interlock's answer has. What the driver counts here is what
HTTP alone costs: no server on this runner can be faster.
"""

import sys

from interlock.transport.runner import run_http

BODY = (
    b'{"jsonrpc":"2.0","id":10000,"result":{"resultType":"complete","content":[{"type":"text","text":"10001"}],'
    b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1.0"}}}}'
)
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


class Empty:
    """An application with just what the runner asks of one."""

    path = "/mcp"
    allowed_hosts = ()

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

    def stop(self):
        pass

    async def settle(self, seconds):
        pass


if __name__ == "__main__":
    run_http(Empty(), port=int(sys.argv[1]))
