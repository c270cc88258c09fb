"""`interlock listen TARGET`: what changes at a server, as it happens."""

from __future__ import annotations

import asyncio
from typing import Any

from ...client.client import Client
from ...client.subscriptions import Change
from ...wire.types.notifications import CHANGING_LISTS
from ..connect import OPTIONS, OPTIONS_HELP, talk
from ..errors import OK, REFUSED, Failure
from ..options import Number, read_words
from ..terminal.output import as_json, note, one_line, say
from ..terminal.progress import Progress

__all__ = ["HELP", "command", "listen"]

HELP = f"""\
examples:
  interlock listen server.py                       every list that changes, until Ctrl-C
  interlock listen server.py tools note://1        the list of tools, and one resource
  interlock listen server.py note://1 --count 1    wait for one change, then end
  interlock listen server.py --json | jq .         one JSON document per line

usage: interlock listen TARGET [tools|prompts|resources|URI …] [--count N] [--for SECONDS]

  --count N                    end after so many changes
  --for SECONDS                end after so long

{OPTIONS_HELP}"""
_MORE = {"count": Number(1, 1_000_000, whole=True), "for": Number(0.1, 31_536_000)}


def command(words: list[str]) -> int:
    given = read_words(words, {**OPTIONS, **_MORE})
    first = 0 if given.command is not None else 1
    wanted = given.own[first:]

    async def act(client: Client, progress: Progress) -> int:
        deadline = asyncio.timeout(given.options.get("for"))
        try:
            async with deadline:
                await listen(client, wanted, given.options.get("count"), as_lines=given.flag("json"))
        except TimeoutError:
            if not deadline.expired():
                raise
        return OK

    return talk(given, given.own[:first], act)


async def listen(client: Client, wanted: list[str], most: int | None, *, as_lines: bool) -> None:
    lists: dict[str, Any] = {kind: kind in wanted for kind in CHANGING_LISTS}
    if not wanted:
        lists = {kind: client.capabilities.can(f"{kind}.listChanged") for kind in CHANGING_LISTS}
        if not any(lists.values()):
            raise Failure("the server does not tell of changes of any list", code=REFUSED, hint="name a resource")
    async with client.listen(**lists, uris=[each for each in wanted if each not in CHANGING_LISTS]) as changes:
        missing = changes.missing
        if missing:
            note(
                f"! the server does not tell of: {one_line(', '.join([*missing.lists(), *sorted(missing.uris)]), 500)}"
            )
        heard = 0
        async for change in changes:
            say(_line(change) if as_lines else _text(change))
            heard += 1
            if heard == most:
                return
        note("the server ended the stream: it tells of no more changes")


def _line(change: Change) -> str:
    members = {"kind": change.kind} | ({} if change.uri is None else {"uri": change.uri})
    return as_json(members, indent=None)


def _text(change: Change) -> str:
    if change.kind != "resource":
        return f"the list of {change.kind} changed"
    return "a resource changed" if change.uri is None else f"changed: {one_line(change.uri, 1000)}"
