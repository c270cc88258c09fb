"""`interlock list TARGET`: what a server offers, with the words to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...client.client import Client
from ...client.list_cache import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Listing
from ...wire.errors import InterlockError
from ...wire.json.lenient import items_of, members_of
from ..connect import OPTIONS, OPTIONS_HELP, failure_of, talk
from ..errors import OK, USAGE, Failure
from ..options import read_words
from ..terminal.output import as_json, builtins_of, one_line, plain, quote_name, say, say_lines, table
from ..terminal.progress import Progress
from ..tool_arguments import signature_of

__all__ = ["HELP", "command", "LISTS", "Offered", "list_one", "offered", "offered_text"]

HELP = f"""\
examples:
  interlock list server.py                        everything that server.py offers
  interlock list https://example.com/mcp tools    only the tools of a remote server
  interlock list notes --json                     for a program; schemas and all
  interlock list -- npx some-server               a server that is started by a command

usage: interlock list TARGET [tools|resources|templates|prompts …]

A list that fails is named, the others are shown, and the exit code is that of the failure.

{OPTIONS_HELP}"""
LISTS: dict[str, Listing] = {"tools": TOOLS, "resources": RESOURCES, "templates": TEMPLATES, "prompts": PROMPTS}


def command(words: list[str]) -> int:
    given = read_words(words, OPTIONS)
    own = list(given.own)

    async def act(client: Client, progress: Progress) -> int:
        found = await offered(client, kinds)
        if given.flag("json"):
            say(as_json(found.lists))
        else:
            say_lines(offered_text(found.lists))
        return found.code

    first = 0 if given.command is not None else 1
    kinds = own[first:]
    for kind in kinds:
        if kind not in LISTS:
            raise Failure(f"there is no list {kind[:40]!r}", code=USAGE, hint=f"the lists are {', '.join(LISTS)}")
    return talk(given, own[:first], act)


class Offered(msgspec.Struct, frozen=True):
    """What a server answered. `code` is not 0 where one of its lists failed: the exit code of that failure."""

    lists: dict[str, Any]
    code: int = OK


async def offered(client: Client, kinds: list[str] | None = None) -> Offered:
    """Who the server is and its lists, in the specification's own words. A list that fails is named under `errors` and
    does not keep the others from being shown; where all of them fail, the first failure is raised."""
    found: dict[str, Any] = {
        "server": builtins_of(client.server_info),
        "revision": client.revision,
        "capabilities": builtins_of(client.capabilities),
    }
    if client.instructions is not None and not kinds:  # who wants one list wants that
        found["instructions"] = client.instructions
    failed: dict[str, InterlockError] = {}
    for kind in kinds or LISTS:
        try:
            found[LISTS[kind].member] = await list_one(client, kind)
        except InterlockError as error:
            failed[LISTS[kind].member] = error
    if not failed:
        return Offered(found)
    first = next(iter(failed.values()))
    if not any(listing.member in found for listing in LISTS.values()):
        raise first
    found["errors"] = {member: one_line(str(error).partition("\n")[0], 400) for member, error in failed.items()}
    return Offered(found, failure_of(first, opened=True).code)


async def list_one(client: Client, kind: str) -> list[Any]:
    """What a server does not offer is an empty list."""
    capability = "resources" if kind == "templates" else kind
    if not client.capabilities.can(capability):
        return []
    lists = {
        "tools": client.list_tools,
        "resources": client.list_resources,
        "templates": client.list_resource_templates,
        "prompts": client.list_prompts,
    }
    return [builtins_of(each) for each in await lists[kind]()]


# --- for people -----------------------------------------------------------------------------------


def offered_text(found: Mapping[str, Any]) -> str:
    info: dict[str, Any] = found["server"]
    name, version = quote_name(str(info.get("name")), 80), quote_name(str(info.get("version")), 40)
    lines = [f"{name} {version} · {found['revision']}"]
    if "instructions" in found:
        lines += ["", *(f"  {line}" for line in plain(found["instructions"]).splitlines())]
    for kind, listing in LISTS.items():
        items: list[dict[str, Any]] | None = found.get(listing.member)
        if (failed := members_of(found.get("errors")).get(listing.member)) is not None:
            lines += ["", f"{kind}: could not be listed: {failed}"]
        elif items is not None:
            lines += ["", f"{kind}: {len(items) or 'none'}", *table(_row(kind, item) for item in items)]
    return "\n".join(lines)


def _row(kind: str, item: Mapping[str, Any]) -> tuple[str, str]:
    about = one_line(str(item.get("description") or item.get("title") or ""), 120)
    if kind == "tools":
        return f"{one_line(item['name'], 128)}({signature_of(item['inputSchema'])})", about
    if kind == "prompts":
        told = [f"{each['name']}{'' if each.get('required') else '?'}" for each in items_of(item.get("arguments"))]
        return one_line(f"{item['name']}({', '.join(told)})", 128), about
    where = item["uri"] if kind == "resources" else item["uriTemplate"]
    name = one_line(item["name"], 60)
    return one_line(where, 200), f"{name}: {about}" if about and about != name else name
