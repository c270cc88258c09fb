"""`interlock cost TARGET`: what a server costs a model before it has said a word, tool by tool.

A host that offers all tools of a server sends their names, descriptions and input schemas with every request to a
model. The numbers are the estimate of `host/catalogue/token_estimate.py`: the same for every model, rather too much
than too little."""

from __future__ import annotations

from typing import Any

from ...client.client import Client
from ...host.catalogue.token_estimate import of_tool, tokens
from ..connect import OPTIONS, OPTIONS_HELP, talk
from ..errors import FAILED, OK, USAGE, Failure
from ..options import Kind, Number, Words, read_words
from ..terminal.output import as_json, note, one_line, quote_name, say, say_lines
from ..terminal.progress import Progress

__all__ = ["HELP", "command", "cost_of", "cost_text"]

HELP = f"""\
examples:
  interlock cost server.py                       tokens for each of its tools, the dearest first
  interlock cost https://example.com/mcp --json  for a program
  interlock cost server.py --most 2000           fail when all of them cost more, in a test say

usage: interlock cost TARGET
           --most TOKENS   end with 1 if tools and instructions together cost more than this

{OPTIONS_HELP}"""
_OWN: dict[str, Kind] = {**OPTIONS, "most": Number(0, 10_000_000, whole=True)}


def command(words: list[str]) -> int:
    given = read_words(words, _OWN)
    own = list(given.own)
    if len(own) > (0 if given.command is not None else 1):
        raise Failure("this takes one TARGET", code=USAGE, hint="interlock help cost")

    async def act(client: Client, progress: Progress) -> int:
        found = await cost_of(client)
        if given.flag("json"):
            say(as_json(found))
        else:
            say_lines(cost_text(found))
        return _judged(found["total"], given)

    return talk(given, own, act)


def _judged(total: int, given: Words) -> int:
    most: int | None = given.options.get("most")
    if most is None or total <= most:
        return OK
    note(f"interlock cost: {total:,} tokens are more than {most:,}")
    return FAILED


async def cost_of(client: Client) -> dict[str, Any]:
    """Tokens of each tool, of the instructions, and of both together."""
    tools = await client.list_tools() if client.capabilities.can("tools") else []
    costs = sorted(((tool.name, of_tool(tool.name, tool)) for tool in tools), key=lambda cost: (-cost[1], cost[0]))
    spoken = tokens(client.instructions) if client.instructions else 0
    return {
        "server": client.server_info.name,
        "revision": client.revision,
        "tools": [{"name": name, "tokens": cost} for name, cost in costs],
        "instructions": spoken,
        "total": spoken + sum(cost for _, cost in costs),
    }


def cost_text(found: dict[str, Any]) -> str:
    """The same for people: the dearest first, with its share."""
    rows = [(one_line(each["name"], 60), each["tokens"]) for each in found["tools"]]
    if found["instructions"]:
        rows.append(("(instructions)", found["instructions"]))
    width = max([len(name) for name, _ in rows] + [len("in all")])
    total: int = found["total"]
    lines = [f"  {name:{width}}  {cost:>9,}  {cost / total:>4.0%}" for name, cost in rows]
    about = f"{quote_name(found['server'], 80)} · {found['revision']}"
    head = f"{about} · {len(found['tools'])} tools, in tokens (estimated)"
    return "\n".join([head, "", *lines, f"  {'in all':{width}}  {total:>9,}"])
