"""The commands of a chat: lines that begin with `/`. A prompt of a server is one, too: `/server__prompt key=value`."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...host.catalogue.catalogue import Entry
from ...host.chat.content_blocks import contents_blocks, prompt_blocks
from ...host.gate.pins import Item
from ...host.gate.policy import Rule
from ...wire.errors import InterlockError, LocalError
from ...wire.escaping import is_visible
from ...wire.types.prompts import Prompt
from ..errors import Failure
from ..options import read_words
from ..target import aim_of
from ..terminal.output import one_line, plain, table

if TYPE_CHECKING:
    from .loop import ChatRoom

__all__ = ["COMMANDS", "attach", "candidates", "obey"]

_MOST = 40  # lines of a list
Command = Callable[["ChatRoom", list[str]], Awaitable[None]]


async def obey(room: ChatRoom, line: str) -> bool:
    """Do what the line says; False: it is to be said to the model now."""
    try:
        name, *words = shlex.split(line[1:])
    except ValueError as error:
        room.screen.failed(f"this cannot be read: {error}")
        return True
    if name in COMMANDS:
        await COMMANDS[name][0](room, words)
        return True
    if name in room.host.catalogue.prompts:
        return await _prompt(room, name, words)
    room.screen.failed(f"there is no command or prompt {one_line(name, 60)!r}: /help shows all")
    return True


# --- what there is --------------------------------------------------------------------------------


async def _help(room: ChatRoom, words: list[str]) -> None:
    rows = [(f"/{name} {follows}".strip(), does) for name, (_, follows, does) in COMMANDS.items()]
    rows += [
        ("/PROMPT key=value …", "use a prompt of a server"),
        ("… @server:uri …", "attach a resource to what you say"),
    ]
    rows += [("Ctrl-C", "stop what is under way"), ("Ctrl-D", "leave")]
    _lines(room, table(rows))


async def _tools(room: ChatRoom, words: list[str]) -> None:
    entries = room.host.catalogue.tools.values()
    wanted = " ".join(words).lower()
    found = [each for each in entries if wanted in f"{each.exposed} {each.description}".lower()]
    _lines(room, table((each.exposed, one_line(each.description, 90)) for each in found[:_MOST]), len(found))
    for server, each in _quarantined(room):
        room.screen.warn(
            f"  in quarantine: {each} of {one_line(server, 60)} (/pins {one_line(server, 60)} looks at it)"
        )


def _quarantined(room: ChatRoom) -> Iterable[tuple[str, str]]:
    for server in room.host.members:
        for each in room.host.gate.quarantined(server):
            if each.change != "vanished":
                yield server, f"{one_line(each.item.name, 60)} ({each.change})"


async def _servers(room: ChatRoom, words: list[str]) -> None:
    costs = room.host.catalogue.costs()
    for name, member in room.host.members.items():
        because = f": {one_line(member.cause.summarize(), 400)}" if member.cause is not None else ""
        tools = sum(entry.server == name for entry in room.host.catalogue.tools.values())
        about = f"{tools} tools, about {costs.get(name, 0)} tokens" if member.state == "ready" else ""
        room.screen.line(f"  {one_line(name, 40)}  {member.state}{because}  {about}".rstrip())


async def _restart(room: ChatRoom, words: list[str]) -> None:
    await room.host.restart(_one(words, "SERVER"))
    await _servers(room, [])


async def _add(room: ChatRoom, words: list[str]) -> None:
    """It is asked about as those that were there from the beginning."""
    if len(words) < 2:
        raise LocalError("/add NAME TARGET, or /add NAME -- COMMAND …")
    name, *rest = words
    try:
        given = read_words(rest, {})
        if len(given.own) != (given.command is None):
            raise LocalError("this takes one TARGET, or -- and a command")
        aim = aim_of(given, [*given.own], asks=False)
    except Failure as failure:
        raise LocalError(failure.told()) from failure
    await room.host.add(name, aim.target)
    await _servers(room, [])


async def _remove(room: ChatRoom, words: list[str]) -> None:
    await room.host.remove(_one(words, "SERVER"))
    await _servers(room, [])


async def _cost(room: ChatRoom, words: list[str]) -> None:
    catalogue = room.host.catalogue
    rows = [(one_line(name, 60), f"{tokens} tokens") for name, tokens in catalogue.costs().items()]
    tools = sorted(catalogue.tools.values(), key=catalogue.cost, reverse=True)[:10]
    _lines(room, ["by server:", *table(rows), "the dearest tools:"])
    _lines(room, table((each.exposed, f"{catalogue.cost(each)} tokens") for each in tools))
    used = room.conversation.usage
    room.screen.line(f"this talk: {used.sent} tokens sent, {used.written} written")


async def _prompts(room: ChatRoom, words: list[str]) -> None:
    entries = [*room.host.catalogue.prompts.values()]
    rows = [(" ".join([f"/{each.exposed}", *_arguments(each)]), one_line(each.description, 80)) for each in entries]
    _lines(room, table(rows[:_MOST]), len(rows))


def _arguments(entry: Entry[Prompt]) -> list[str]:
    """`name=` for each."""
    return [f"{one_line(each.name, 60)}=" for each in entry.item.arguments or ()]


async def _resources(room: ChatRoom, words: list[str]) -> None:
    wanted = " ".join(words).lower()
    found = [(f"@{server}:{each.uri}", each.name) for server, each in room.host.catalogue.resources]
    found = [row for row in found if wanted in " ".join(row).lower()]
    _lines(room, table((one_line(left, 120), one_line(right, 60)) for left, right in found[:_MOST]), len(found))


# --- who may what ---------------------------------------------------------------------------------


async def _policy(room: ChatRoom, words: list[str]) -> None:
    for rule in room.host.gate.policy.rules:
        room.screen.line(f"  {rule.decision}: {plain(_rule(rule))}")
    for decision in ("allow", "ask", "deny"):
        kinds = [kind for kind, default in room.host.gate.policy.defaults.items() if default == decision]
        if kinds:
            room.screen.dim(f"  where no rule applies, {decision}: {', '.join(kinds)}")


def _rule(rule: Rule) -> str:
    names = ("kind", "server", "name", "hints", "sources", "principal")
    parts = [f"{name} {getattr(rule, name)}" for name in names if getattr(rule, name)]
    parts += [f"argument {'/'.join(each.path)} {each.test} {each.given}" for each in rule.arguments]
    return ", ".join(parts) or "everything"


async def _pins(room: ChatRoom, words: list[str]) -> None:
    if words:
        await room.host.review(words[0])
        return
    for server in room.host.members:
        admitted = room.host.gate.admitted(server)
        room.screen.line(f"  {one_line(server, 60)}: {len(admitted)} approved and unchanged")
        for each in room.host.gate.quarantined(server):
            room.screen.warn(f"    {each.change}: {_item(each.item)}")
    room.screen.dim("  /pins SERVER asks about what is in quarantine there")


def _item(item: Item) -> str:
    return f"{item.kind} {one_line(item.name, 100)}"


async def _audit(room: ChatRoom, words: list[str]) -> None:
    number = int(words[0]) if words and words[0].isdecimal() and len(words[0]) < 10 else 10
    for line in room.audit_lines(number):
        room.screen.line(f"  {plain(line)}")


async def _roots(room: ChatRoom, words: list[str]) -> None:
    roots = room.host.questions.roots
    match words:
        case ["add", path]:
            await roots.set([*roots.of(""), _folder(path)])
        case ["remove", path]:
            gone = _folder(path)
            await roots.set([each for each in roots.of("") if each.path != gone])
        case []:
            pass
        case _:
            raise LocalError("/roots, /roots add PATH or /roots remove PATH")
    for root in roots.of(""):
        room.screen.line(f"  {plain(str(root.path))}{'' if root.is_there() else '  (not there)'}")


def _folder(path: str) -> Path:
    return Path(path).expanduser().resolve()


async def _quit(room: ChatRoom, words: list[str]) -> None:
    room.over = True


# --- what is put before what is said --------------------------------------------------------------


async def _prompt(room: ChatRoom, name: str, words: list[str]) -> bool:
    """True where it ends with words of the assistant: then it is the user's turn, and a model would refuse to go on."""
    pairs = [word.partition("=") for word in words]
    if any(not equals for _, equals, _ in pairs):
        raise LocalError("the arguments of a prompt are key=value")
    entry = room.host.catalogue.prompts[name]
    found = await room.host.get_prompt(name, {key: value for key, _, value in pairs})
    for message in found.messages:
        room.conversation.add({"role": message.role, "content": prompt_blocks(message.content)}, entry.server)
    if found.messages and found.messages[-1].role == "user":
        return False
    for block in prompt_blocks(found.messages[-1].content) if found.messages else ():
        room.screen.block(block.get("text") or f"({block['type']})")
    room.screen.dim("  (it is your turn)")
    return True


async def attach(room: ChatRoom, line: str) -> None:
    """Resources that the line names as `@server:uri`, each through the gate."""
    for word in line.split():
        server, colon, uri = word.removeprefix("@").partition(":")
        if word.startswith("@") and colon and uri and server in room.host.members:
            contents = await room.host.read_resource(server, uri)
            whose = room.host.gate.cap.server_of(uri) or server  # a result that is kept here stays its server's
            room.conversation.attach(contents_blocks(whose, contents), whose)
            room.screen.dim(f"  attached: {one_line(word, 200)}")


# --- completion -----------------------------------------------------------------------------------


def candidates(room: ChatRoom, line: str, word: str) -> list[str]:
    """What the word at the end of the line may become; arguments of prompts are the server's to complete."""
    catalogue = room.host.catalogue
    if word.startswith("@"):
        known = [f"@{server}:{each.uri}" for server, each in catalogue.resources]
        return [each for each in known if word[1:].lower() in each.lower() and _is_word(each)][:_MOST]
    if line.startswith("/") and " " not in line:
        known = [f"/{name}" for name in (*COMMANDS, *catalogue.prompts)]
        return [f"{each} " for each in known if each.startswith(word)]
    name = line[1:].partition(" ")[0]
    if line.startswith("/") and name in catalogue.prompts:
        return _of_prompt(room, name, word)
    return [f"{each} " for each in catalogue.tools if each.startswith(word)] if word else []


def _of_prompt(room: ChatRoom, name: str, word: str) -> list[str]:
    entry = room.host.catalogue.prompts[name]
    key, equals, typed = word.partition("=")
    if not equals:
        return [each for each in _arguments(entry) if each.startswith(word)]
    try:
        found = room.wait_for(room.host.complete(entry.server, key, typed, prompt=entry.name))
    except (InterlockError, TimeoutError):
        return []
    return [f"{key}={shlex.quote(value)} " for value in found.values if is_visible(value)]


def _is_word(text: str) -> bool:
    """One word as the line is read: with a space in it, an address would be two, and the second could be another's."""
    return is_visible(text) and " " not in text


def _one(words: list[str], what: str) -> str:
    if len(words) != 1:
        raise LocalError(f"this takes one {what}")
    return words[0]


def _lines(room: ChatRoom, lines: Iterable[str], of: int = 0) -> None:
    shown = [*lines]
    for line in shown:
        room.screen.line(line)
    if of > _MOST:
        room.screen.dim(f"  … {of} altogether: say a part of the name")
    if not shown:
        room.screen.dim("  none")


COMMANDS: dict[str, tuple[Command, str, str]] = {
    "help": (_help, "", "this list"),
    "tools": (_tools, "[TEXT]", "what the model may call, and what is in quarantine"),
    "servers": (_servers, "", "how each server stands"),
    "restart": (_restart, "SERVER", "start a server anew"),
    "add": (_add, "NAME TARGET", "another server: a URL, a file, a name of your configurations, or -- and a command"),
    "remove": (_remove, "SERVER", "a server goes, and what you allowed it with it"),
    "prompts": (_prompts, "", "prompts of servers"),
    "resources": (_resources, "[TEXT]", "what can be attached, searched"),
    "policy": (_policy, "", "the rules"),
    "pins": (_pins, "[SERVER]", "what was approved and what changed; with SERVER: look at it"),
    "audit": (_audit, "[NUMBER]", "the last decisions and calls"),
    "cost": (_cost, "", "tokens of servers and tools"),
    "roots": (_roots, "[add|remove PATH]", "folders that servers may be told of"),
    "quit": (_quit, "", "leave"),
}
