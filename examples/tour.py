"""Starts the notes server as a process and uses it, in every revision of the protocol. What `make run` runs."""

import asyncio
import sys
from pathlib import Path

from interlock import Client
from interlock.revisions.table import REVISIONS

NOTES = Path(__file__).with_name("notes.py")


async def tour(revision: str | None) -> None:
    steps: list[str] = []
    async with Client([sys.executable, "-m", "interlock", "run", str(NOTES)], revision=revision) as client:
        print(f"\n{client.revision}  {client.server_info.name} {client.server_info.version}")
        print("  tools      ", ", ".join(tool.name for tool in await client.list_tools()))
        await client.call_tool("write_note", {"title": "shopping", "text": "Tea, milk, and more tea."})
        found = await client.call_tool(
            "find_notes",
            {"words": ["tea", "milk"]},
            on_progress=lambda done, of, message: steps.append(message or f"{done:g} of {of:g}"),
        )
        print("  find_notes ", found.text, "| progress:", "; ".join(steps))
        missing = await client.call_tool("read_note", {"title": "taxes"})
        print("  read_note  ", missing.text, "(is_error)" if missing.is_error else "")
        print("  resource   ", [contents.text for contents in await client.read_resource("notes://index")])
        prompt = await client.get_prompt("summarise", {"title": "shopping"})
        print("  prompt     ", prompt.messages[0].content.text.splitlines()[0])


async def main() -> None:
    print("One server, one client, five revisions of MCP over stdio.")
    for revision in [*REVISIONS]:
        await tour(revision)
    print("\nNext: put your own functions into a copy of examples/notes.py and serve it with `interlock run FILE`.")


if __name__ == "__main__":
    asyncio.run(main())
