"""`interlock prompt TARGET NAME`: what a prompt says, with its arguments."""

from __future__ import annotations

from ...client.client import Client
from ..connect import OPTIONS_HELP, use_one
from ..errors import OK
from ..options import Words
from ..terminal.output import as_json, block_text, builtins_of, say, say_data
from ..terminal.progress import Progress
from ..tool_arguments import read_texts

__all__ = ["HELP", "command", "get"]

HELP = f"""\
examples:
  interlock prompt server.py review file=main.py          the messages, one after the other
  interlock prompt server.py review file=@main.py --json  an argument from a file; JSON for a program
  interlock prompt review file=main.py -- npx some-server a server that is started by a command

usage: interlock prompt TARGET NAME [KEY=VALUE | KEY=@FILE | JSON | @FILE …]

{OPTIONS_HELP}"""


def command(words: list[str]) -> int:
    return use_one(words, "NAME", _got)


async def _got(client: Client, progress: Progress, own: list[str], given: Words) -> int:
    return await get(client, progress, own[0], own[1:], json=given.flag("json"))


async def get(client: Client, progress: Progress, name: str, words: list[str], *, json: bool = False) -> int:
    found = await client.get_prompt(name, read_texts(words), on_progress=progress if progress.shows else None)
    progress.clear()
    if json:
        about = {} if found.description is None else {"description": found.description}
        messages = [{"role": each.role, "content": builtins_of(each.content)} for each in found.messages]
        say(as_json({**about, "messages": messages}))
    else:
        say_data("\n\n".join(f"{each.role}: {block_text(each.content)}" for each in found.messages))
    return OK
