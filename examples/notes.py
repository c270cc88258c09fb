"""A small server: notes that a model can write, read and look for.

interlock run examples/notes.py
"""

import asyncio

from interlock import Context, Server, ToolError

server = Server("notes", version="1.0", instructions="Write down what should not be forgotten.")
notes: dict[str, str] = {}


@server.tool
async def write_note(title: str, text: str) -> str:
    """Keep a note under a title."""
    notes[title] = text
    server.resource_changed("notes://index")
    return f"Kept {title!r}."


@server.tool
async def read_note(title: str) -> str:
    """Give the text of a note."""
    if title not in notes:
        raise ToolError(f"There is no note called {title!r}. There are: {', '.join(notes) or 'none'}.")
    return notes[title]


@server.tool
async def find_notes(words: list[str], ctx: Context) -> dict[str, int]:
    """Count how often each word occurs in all notes."""
    counts: dict[str, int] = {}
    for number, word in enumerate(words, start=1):
        counts[word] = sum(text.lower().count(word.lower()) for text in notes.values())
        await ctx.progress(number, len(words), f"looked for {word!r}")
        await asyncio.sleep(0)
    return counts


@server.resource("notes://index", mime_type="text/plain")
async def index() -> str:
    """The titles of all notes."""
    return "\n".join(notes)


@server.prompt
async def summarise(title: str, style: str = "short") -> str:
    """Ask for a summary of a note."""
    return f"Summarise this note in a {style} way:\n\n{notes.get(title, '(no such note)')}"


if __name__ == "__main__":
    server.run()
