"""A server of the newest revision only, which has no handshake."""

from interlock import Server

server = Server("modern", revisions=("2026-07-28",))


@server.tool
async def echo(text: str = "") -> str:
    return text


if __name__ == "__main__":
    server.run()
