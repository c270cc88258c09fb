"""`interlock complete TARGET WHAT ARGUMENT=TYPED`: what the server suggests for an argument."""

from __future__ import annotations

from ...client.client import Client
from ..connect import OPTIONS_HELP, use_one
from ..errors import OK, USAGE, Failure
from ..options import Words
from ..terminal.output import as_json, note, one_line, say, say_data
from ..terminal.progress import Progress
from ..tool_arguments import read_texts

__all__ = ["HELP", "command", "complete"]

HELP = f"""\
examples:
  interlock complete server.py review language=py         values of an argument of a prompt
  interlock complete server.py 'note://{{day}}' day=mon     of a variable in a template
  interlock complete server.py review version=3 language=python
                                                          when the other arguments are known
usage: interlock complete TARGET PROMPT|TEMPLATE ARGUMENT=TYPED [OTHER=VALUE …]

{OPTIONS_HELP}"""


def command(words: list[str]) -> int:
    return use_one(words, "PROMPT or TEMPLATE", _completed)


async def _completed(client: Client, progress: Progress, own: list[str], given: Words) -> int:
    return await complete(client, own[0], own[1:], json=given.flag("json"))


async def complete(client: Client, what: str, words: list[str], *, json: bool = False) -> int:
    known = read_texts(words)
    if not known:
        raise Failure("which argument?", code=USAGE, hint="ARGUMENT=TYPED; ARGUMENT= for all values")
    argument = next(iter(known))
    typed = known.pop(argument)
    prompt, template = (None, what) if "{" in what or "://" in what else (what, None)
    found = await client.complete(argument, typed, prompt=prompt, template=template, known=known)
    if json:
        total = {} if found.total is None else {"total": found.total}
        say(as_json({"values": found.values, **total, "hasMore": found.has_more}))
        return OK
    for value in found.values:
        say_data(one_line(value, 1000))
    if found.has_more:
        note("… and more")
    return OK
