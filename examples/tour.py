"""Starts the notes server as a process and uses it, in every revision of the protocol. What `make run` runs."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from interlock import Client
from interlock.revisions.table import REVISIONS

NOTES = Path(__file__).with_name("notes.py")


async def tour(revision: str | None) -> None:
    steps: list[str] = []
    async with Client([sys.executable, "-m", "interlock", "run", str(NOTES)], revision=revision, elicit=yes) as client:
        print(f"\n{client.revision}  {client.server_info.name} {client.server_info.version}")
        print("  tools       ", ", ".join(tool.name for tool in await client.list_tools()))
        await client.call_tool("add_note", {"title": "shopping", "text": "Tea, milk, and more tea.", "tags": ["home"]})
        found = await client.call_tool("search_notes", {"words": "TEA"})
        print("  search_notes", found.structured or found.text)
        counted = await client.call_tool(
            "count_words",
            {"words": ["tea", "milk"]},
            on_progress=lambda done, of, message: steps.append(message or f"{done:g} of {of:g}"),
        )
        print("  count_words ", counted.text, "| progress:", "; ".join(steps))
        print("  resource    ", [contents.text for contents in await client.read_resource("notes://1")])
        prompt = await client.get_prompt("summarise", {"id": "1"})
        print("  prompt      ", prompt.messages[-1].content.text)
        deleted = await client.call_tool("delete_note", {"id": 1})
        print("  delete_note ", deleted.text, "(is_error)" if deleted.is_error else "(the user said yes)")


def yes(question: dict[str, Any]) -> dict[str, Any]:
    """The user, who agrees to everything."""
    return {"action": "accept", "content": {"sure": True}}


async def main() -> None:
    print("One server, one client, five revisions of MCP over stdio.")
    for revision in [*REVISIONS]:
        await tour(revision)
    print("\nNext: put your own functions into a copy of examples/notes.py, then .venv/bin/interlock run FILE")


if __name__ == "__main__":
    asyncio.run(main())
