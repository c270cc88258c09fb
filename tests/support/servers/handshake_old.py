"""A server of two older revisions only."""

from interlock import Server

server = Server("old", revisions=("2024-11-05", "2025-03-26"))


@server.tool
async def echo(text: str = "") -> str:
    return text


if __name__ == "__main__":
    server.run()
