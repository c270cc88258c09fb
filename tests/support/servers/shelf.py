"""A small server whose lists fit on a page of two, for transcripts that show lists in full."""

from interlock import Server
from interlock.wire.types.tools import ToolAnnotations

server = Server("shelf", version="1", page_size=2)


@server.tool(title="Borrow", annotations=ToolAnnotations(read_only_hint=False), meta={"com.example/shelf": "A"})
async def borrow(book: str, days: int = 14) -> str:
    """Take a book home."""
    return f"{book} for {days} days"


@server.prompt(title="Recommend")
async def recommend(reader: str, mood: str = "curious") -> str:
    """Ask for a recommendation."""
    return f"What should {reader} read, who is {mood}?"


@server.resource("book://one", mime_type="text/plain", title="The first book")
async def one() -> str:
    """Where it begins."""
    return "Once upon a time"


@server.resource("book://two")
async def two() -> str:
    return "and then"


@server.resource("book://three")
async def three() -> str:
    return "the end"
