"""Tools that take no arguments, declared in both ways, beside one that takes some."""

from interlock import Server

server = Server("no-arguments", version="1.0")


@server.tool
async def count() -> dict[str, int]:
    """Count what there is."""
    return {"count": 3}


@server.tool(input_schema={"type": "object"})
async def describe(raw: dict) -> str:
    """Describe the arguments, whatever they are."""
    return f"{len(raw)} arguments"


@server.tool
async def echo(text: str) -> str:
    """Give back the text."""
    return text
