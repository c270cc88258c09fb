"""A server in strict mode: no courtesies for peers that were written from a wrong summary."""

from interlock import Context, Server

server = Server("strict", strict=True)


@server.tool
async def echo(ctx: Context, text: str = "") -> str:
    return text


if __name__ == "__main__":
    server.run()
