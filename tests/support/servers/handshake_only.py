"""A server that its author keeps to the revisions with a handshake."""

from interlock import Server

server = Server("handshake-only", version="1", revisions=("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))


@server.tool
async def first() -> str:
    return "1"


if __name__ == "__main__":
    server.run()
