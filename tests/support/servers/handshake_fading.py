"""A server whose one tool takes everything away, itself included."""

from interlock import Server

server = Server("fading")


@server.tool
async def vanish() -> str:
    server.remove_tool("vanish")
    server.remove_resource("note://one")
    server.remove_prompt("greet")
    return "gone"


@server.resource("note://one")
async def one() -> str:
    return "the first note"


@server.prompt
async def greet() -> str:
    return "Greet."


if __name__ == "__main__":
    server.run()
