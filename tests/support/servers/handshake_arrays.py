"""A tool whose structured output is an array, which only the newest revision allows.

Authors cannot register an output schema yet; a filter says it for them, in the newest words.
"""

from typing import Any

import msgspec

from interlock import Server

server = Server("arrays")


@server.tool
async def listed() -> str:
    return "[1,2]"


def with_arrays(inner: Any) -> Any:
    async def handler(exchange: Any) -> dict[str, Any]:
        result = await inner(exchange)
        if exchange.method == "tools/call":
            return {**result, "structuredContent": [1, 2]}
        if exchange.method == "tools/list":
            result = msgspec.json.decode(msgspec.json.encode(result))
            result["tools"][0]["outputSchema"] = {"type": "array", "items": {"type": "integer"}}
        return result

    return handler


server.use(with_arrays)

if __name__ == "__main__":
    server.run()
