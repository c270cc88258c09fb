"""`interlock call TARGET TOOL`: run a tool and show what it gives."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ...client.client import Client
from ...client.results import CallResult
from ...wire.types.tools import Tool
from ..connect import OPTIONS_HELP, use_one
from ..errors import FAILED, OK, REFUSED, Failure
from ..options import Words
from ..terminal.output import as_json, block_text, builtins_of, note, one_line, say, say_data
from ..terminal.progress import Progress
from ..tool_arguments import read_arguments

__all__ = ["HELP", "command", "call", "result_text", "tool_called"]

_REFERENCE = "failed unexpectedly (reference "  # as server/failures.py tells a bug

HELP = f"""\
examples:
  interlock call server.py add a=1 b=2                    typed by the tool's own schema
  interlock call server.py add '{{"a": 1, "b": 2}}'         all arguments as JSON
  interlock call server.py write text=@letter.txt         the text of a file
  interlock call server.py write @arguments.json          all of them from a file; @- is stdin
  interlock call add a=1 b=2 -- npx some-server           a server that is started by a command
  interlock call https://example.com/mcp add a=1 b=2 --json | jq .structuredContent

usage: interlock call TARGET TOOL [KEY=VALUE | KEY:=JSON | KEY=@FILE | JSON | @FILE …]

A tool that says it failed is exit code 1. What the server asks meanwhile is asked on the terminal; without one the
server is told that nobody can be asked.

{OPTIONS_HELP}"""


def command(words: list[str]) -> int:
    return use_one(words, "TOOL", _called)


async def _called(client: Client, progress: Progress, own: list[str], given: Words) -> int:
    return await call(client, progress, own[0], own[1:], json=given.flag("json"))


async def call(client: Client, progress: Progress, name: str, words: list[str], *, json: bool = False) -> int:
    """The exit code; what the tool gave is printed."""
    tool = tool_called(await client.list_tools(), name)
    arguments = read_arguments(words, tool.input_schema)
    result = await client.call_tool(name, arguments, on_progress=progress if progress.shows else None)
    progress.clear()
    if json:
        say(as_json(result_json(result)))
    else:
        say_data(result_text(result))
    if result.mismatch is not None:
        note(f"! what it gave does not fit the tool's own schema: {one_line(result.mismatch, 500)}")
    if result.is_error and _REFERENCE in result.text:
        note("  hint: the server's log has the traceback under this reference; --debug shows it if it was started here")
    return FAILED if result.is_error else OK


def tool_called(tools: list[Tool], name: str) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    near = get_close_matches(name, [tool.name for tool in tools], 1)
    hint = f"did you mean {one_line(near[0], 128)}?" if near else "interlock list shows the tools"
    raise Failure(f"the server has no tool {one_line(name, 128)!r}", code=REFUSED, hint=hint)


def result_json(result: CallResult) -> dict[str, Any]:
    """In the specification's own words."""
    found: dict[str, Any] = {"content": [builtins_of(block) for block in result.content]}
    if result.structured is not None:
        found["structuredContent"] = result.structured
    return found | {"isError": result.is_error} | ({"_meta": result.meta} if result.meta else {})


def result_text(result: CallResult) -> str:
    """The blocks; what is only structured is shown as JSON."""
    if not result.content and result.structured is not None:
        return as_json(result.structured)
    return "\n".join(block_text(block) for block in result.content)
