"""`interlock chat`: talk with a model that uses any servers, and stay in charge of what it does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...client.config.entries import ConfigError
from ...host.chat.conversation import Conversation
from ...host.chat.host_tools import HostTools
from ...host.chat.transcript import Transcript, read_transcript
from ...host.gate.audit import FileAudit
from ...host.host import Host
from ...host.models.anthropic import AnthropicModel
from ...host.models.model import Model
from ...host.models.offline import PlainModel
from ...host.models.openai import OpenAIModel
from ...wire.errors import LocalError
from ..errors import OK, USAGE, Failure
from ..options import Kind, Number, Words, read_words
from ..state_folder import host_folder
from ..target import Aim, aim_of, config_in
from ..terminal.line_editor import LineReader
from ..terminal.output import one_line
from ..terminal.output_buffer import hold_logs
from ..terminal.prompt import terminal_or_none
from .input_lock import Floor
from .loop import ChatRoom, Watched
from .screen import Screen
from .user import TerminalUser

__all__ = ["HELP", "command", "model_of"]

HELP = """\
examples:
  interlock chat server.py                                  one server, and a model that needs no network
  interlock chat --config mcp.json --model anthropic:claude-sonnet-4-5
  interlock chat notes files                                servers by their names in your hosts' configurations
  interlock chat --config mcp.json --model openai:qwen3 --base-url http://127.0.0.1:11434/v1
  interlock chat --resume talk.jsonl --config mcp.json      go on with an earlier talk

usage: interlock chat [TARGET …] [options] [-- COMMAND …]

Nothing is started, called, read or answered without your leave, or a rule of yours. In the chat: /help.

options:
  --config FILE          servers of a configuration (mcpServers or servers); once for each
  --model KIND:NAME      anthropic:NAME (ANTHROPIC_API_KEY), openai:NAME (OPENAI_API_KEY), or plain
  --base-url URL         where the model is, if not at its maker's; a model server on this machine needs no key
  --policy FILE          rules that allow, ask or deny (docs/host_policy.md)
  --home FOLDER          where approvals, leaves and the audit are kept (~/.local/state/interlock/host)
  --root FOLDER          a folder that servers may be told of, when you agree; once for each
  --budget TOKENS        that tools may take in a turn; the rest is found by searching
  --system TEXT          what the model is told first
  --transcript FILE      keep the talk there
  --resume FILE          go on with the talk there, and keep it there
  --log LEVEL            show what servers log, from this level on (warning)
  --allow-folder FOLDER  a configuration may read files below it (${file:…}, envFile); once for each
  --env NAME[=VALUE]     for the process of a file or command; once for each
  --cwd FOLDER           where the process of a file or command starts
"""
_OPTIONS: dict[str, Kind] = {
    "config": "texts",
    "model": "text",
    "base-url": "text",
    "policy": "text",
    "home": "text",
    "root": "texts",
    "budget": Number(100, 10_000_000, whole=True),
    "system": "text",
    "transcript": "text",
    "resume": "text",
    "log": "text",
    "allow-folder": "texts",
    "env": "texts",
    "cwd": "text",
}
_NEW_WORD = (".openai.com", ".openai.azure.com")
_START_WAIT = 3_600.0  # seconds: a person may think about what is to be started; servers have bounds of their own


def command(words: list[str]) -> int:
    given = read_words(words, _OPTIONS)
    hold_logs()
    try:
        return asyncio.run(_chat(given))
    except (LocalError, ConfigError) as error:
        raise Failure(str(error), code=USAGE, hint=error.hint or "") from error


async def _chat(words: Words) -> int:
    screen, home = Screen(), _home(words)
    floor = Floor(partial(_announce_question, screen))
    book = Watched(FileAudit(home / "audit.jsonl"))
    model = model_of(words.options.get("model", "plain"), words.options.get("base-url"))
    host = _host(words, model, _user(screen, floor), book, home)
    if not host.members:
        raise Failure("which servers?", code=USAGE, hint="interlock chat server.py, or --config mcp.json")
    async with host:
        conversation = _conversation(words, host, model, screen)
        reader = LineReader(home / "history")
        room = ChatRoom(host, conversation, screen, reader.read, book, floor)
        reader.completes(room.complete)
        _welcome(screen, host, model)
        try:
            await room.run()
        finally:
            reader.close()
    return OK


def _announce_question(screen: Screen) -> None:
    screen.line()
    screen.warn("(a question waits: press Enter to see it)")


def _user(screen: Screen, floor: Floor) -> TerminalUser:
    person = terminal_or_none() if sys.stdout.isatty() else None  # a question that is not seen is not answered
    if person is None:
        screen.warn("there is no terminal here, so nobody can be asked: what no rule allows is refused (--policy FILE)")
    return TerminalUser(screen, person, floor, person.forget_typed if person is not None else lambda: None)


def _host(words: Words, model: Model, user: TerminalUser, book: Watched, home: Path) -> Host:
    return Host(
        _servers(words),
        config=[config_in(each, words.texts("allow-folder")) for each in words.texts("config")] or None,
        policy=words.options.get("policy"),
        user=user,
        home=home,
        audit=book,
        budget=words.options.get("budget"),
        models=[model],
        roots=_roots(words),
        log_level=words.options.get("log", "warning"),
        start_wait=_START_WAIT,
    )


def _conversation(words: Words, host: Host, model: Model, screen: Screen) -> Conversation:
    resumed = words.options.get("resume")
    path = resumed or words.options.get("transcript")
    conversation = Conversation(
        HostTools(host),
        model,
        system=words.options.get("system"),
        transcript=Transcript(path) if path else None,
        on_event=screen.happened,
    )
    if resumed:
        conversation.resume(*read_transcript(resumed))
        screen.dim(f"going on with {len(conversation.messages)} messages")
    return conversation


def _welcome(screen: Screen, host: Host, model: Model) -> None:
    ready = [name for name, member in host.members.items() if member.state == "ready"]
    tools = len(host.catalogue.tools)
    screen.dim(f"{one_line(model.facts.name, 60)} with {len(ready)} of {len(host.members)} servers and {tools} tools.")
    for name, state in host.missing.items():
        screen.warn(f"  {one_line(name, 60)} is {state}")
    screen.dim("/help shows what can be done; Ctrl-C stops a step, Ctrl-D leaves.")


def _home(words: Words) -> Path:
    if "home" in words.options:
        return Path(words.options["home"]).expanduser()
    return host_folder()


def _roots(words: Words) -> list[Path]:
    return [Path(root).expanduser().absolute() for root in words.texts("root")]


def _servers(words: Words) -> dict[str, Any]:
    aims: list[Aim] = [aim_of(words, [], asks=False)] if words.command is not None else []
    own = [*words.own]
    while own:
        aims.append(aim_of(Words([], words.options), own, asks=False))
    found: dict[str, Any] = {}
    for aim in aims:
        found[_name(aim, found)] = aim.target
    return found


def _name(aim: Aim, taken: Iterable[str]) -> str:
    """What the user sees of it: its own name in a configuration, or what the file or command is called."""
    if aim.kind == "config":
        name = aim.target.name
    elif aim.kind == "url":
        name = _host_name(aim.target)
    else:
        words = aim.target.args
        name = Path(words[-1].rpartition(":")[0] or words[-1] if aim.kind == "file" else words[0]).stem
    if name in taken:
        raise Failure(f"two servers are called {one_line(name, 60)!r}", code=USAGE, hint="name them in a configuration")
    return name


def _host_name(url: str) -> str:
    """Its host with `-` for dots and colons, so that its tools are `host__tool` and need no digest
    (host/catalogue/names.py)."""
    host = urlsplit(url).hostname or "server"
    return host.replace(".", "-").replace(":", "-").strip("-")


def model_of(text: str, base_url: str | None) -> Model:
    """`anthropic:NAME`, `openai:NAME` or `plain`."""
    kind, _, name = text.partition(":")
    if kind == "plain":
        return PlainModel()
    if not name or kind not in ("anthropic", "openai"):
        raise Failure(f"--model {one_line(text, 60)!r}: this is anthropic:NAME, openai:NAME or plain", code=USAGE)
    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    if kind == "anthropic":
        return AnthropicModel(name, **options)
    if base_url and not os.environ.get("OPENAI_API_KEY"):
        options["key"] = ""  # as servers on this machine have it
    if base_url and not _host_of(base_url).endswith(_NEW_WORD):
        options["limit_word"] = "max_tokens"  # the old word, which others know; the newer one is ignored or refused
    return OpenAIModel(name, **options)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # whoever dials it says what is wrong
        return ""
