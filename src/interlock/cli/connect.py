"""One conversation with one server, for every command that has a TARGET: the options, the client, and how it ends.

Whatever goes wrong is one sentence, its cause and a hint in words of the command line, and an exit code; `--debug`
shows the rest.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..auth.client.providers import OAuth
from ..client.client import Client
from ..client.era_cache import EraCache
from ..protocol.client.base import NotOffered
from ..wire.channel import Patience
from ..wire.errors import (
    AuthorizationFailed,
    AuthRequired,
    CallTimeout,
    CannotAsk,
    ConnectionEnded,
    HandshakeFailed,
    HttpStatus,
    InterlockError,
    LocalError,
    LoginRequired,
    NoCommonRevision,
    Refused,
    RemoteError,
    SpawnFailed,
)
from .errors import BROKEN, REFUSED, TIMEOUT, UNAUTHORIZED, UNREACHABLE, USAGE, Failure
from .options import Kind, Number, Words, read_words
from .state_folder import state_folder, tokens_folder
from .target import Aim, aim_of, headers_of
from .terminal.elicitation import Answerer
from .terminal.output import note, one_line, plain
from .terminal.output_buffer import hold_logs
from .terminal.progress import Progress
from .terminal.prompt import Terminal, terminal_or_none
from .terminal.wait_status import WaitStatus

__all__ = [
    "OPTIONS",
    "OPTIONS_HELP",
    "Act",
    "can_log_in",
    "client_of",
    "client_options",
    "failure_of",
    "open_client",
    "talk",
    "use_one",
]

Act = Callable[[Client, Progress], Awaitable[int]]
Verb = Callable[[Client, Progress, list[str], Words], Awaitable[int]]
OPTIONS: dict[str, Kind] = {
    "json": "flag",
    "debug": "flag",
    "timeout": Number(0.1, 86_400),
    "revision": "text",
    "log": "text",
    "header": "texts",
    "bearer": "text",
    "auth": "text",
    "allow-host": "texts",
    "allow-folder": "texts",
    "env": "texts",
    "cwd": "text",
}
OPTIONS_HELP = """\
TARGET:
  https://example.com/mcp      a URL
  server.py[:OBJECT]           a file with a Server, started as `interlock run` would
  mcp.json[:NAME]              the one server of a configuration, or the one of that name
  NAME                         a name from the configurations of hosts on this machine, or of this folder (asks first)
  … -- COMMAND ARGUMENT…       instead of a TARGET: a command, behind everything else

options of the connection:
  --timeout SECONDS            how long the server may be silent (60)
  --revision REVISION          speak this revision of the protocol and no other
  --header 'NAME: VALUE'       send it with every request to a URL; once for each
  --bearer VARIABLE            send the token that is in this environment variable
  --auth browser|paste         log in where the server wants it; tokens are kept and used again
  --allow-host HOST            a host that may be spoken to without TLS; once for each
  --allow-folder FOLDER        a configuration may read files below it (${file:…}, envFile); once for each
  --env NAME[=VALUE]           give the server's process this variable; once for each
  --cwd FOLDER                 start the server's process there
  --log LEVEL                  show what the server logs, from this level on, on stderr
  --json                       one JSON document on stdout, and nothing else
  --debug                      all that is known about a failure, and what is said on the way
"""
_DEFAULT_SECONDS = 60.0


def use_one(words: list[str], what: str, verb: Verb, more: dict[str, Kind] | None = None) -> int:
    """One thing of a server: `TARGET WHAT …`, or `WHAT … -- COMMAND`. `verb` gets the words from WHAT on."""
    given = read_words(words, {**OPTIONS, **(more or {})})
    first = 0 if given.command is not None else 1
    target, own = given.own[:first], given.own[first:]
    if not own:
        hint = "--help" if first else f"it comes before the command: {what} … -- COMMAND"
        raise Failure(f"this takes {'a TARGET and ' if first else ''}a {what}", code=USAGE, hint=hint)

    async def act(client: Client, progress: Progress) -> int:
        return await verb(client, progress, own, given)

    return talk(given, target, act)


def talk(words: Words, own: list[str], act: Act) -> int:
    """Open what the words name, act, close. The exit code."""
    aim = aim_of(words, own)
    hold_logs(words.flag("debug"))
    progress = Progress()
    options = client_options(words, aim, progress)
    try:
        return asyncio.run(_talk(aim, options, act, progress))
    except Failure as failure:
        if words.flag("debug") and failure.__cause__ is not None:
            traceback.print_exception(failure.__cause__)
        raise


async def _talk(aim: Aim, options: dict[str, Any], act: Act, progress: Progress) -> int:
    client = client_of(aim, options)
    opened = False
    try:
        await open_client(client, aim, options)
        opened = True
        return await act(client, progress)
    except InterlockError as error:
        raise failure_of(error, opened=opened) from error
    finally:
        progress.clear()
        await client.close()


async def open_client(client: Client, aim: Aim, options: dict[str, Any]) -> None:
    """Open it; on a terminal, what takes long is named. A login has the terminal to itself."""
    if not sys.stderr.isatty() or can_log_in(options):
        await client.open()
        return
    what = "the server to answer" if aim.is_remote else "the server to start and answer"
    async with WaitStatus().waiting_for(what, options["connect_timeout"]):
        await client.open()


def can_log_in(options: dict[str, Any]) -> bool:
    """May the user be asked to log in while a client with these options opens?"""
    return getattr(options.get("auth"), "login", None) is not None


def client_of(aim: Aim, options: dict[str, Any]) -> Client:
    """Not open yet. What is wrong with an option shows here."""
    try:
        return Client(aim.target, **options)
    except LocalError as error:
        raise Failure(str(error), code=USAGE) from error


def client_options(words: Words, aim: Aim, progress: Progress) -> dict[str, Any]:
    """What a `Client` is told beside its target."""
    seconds: float = words.options.get("timeout", _DEFAULT_SECONDS)
    found: dict[str, Any] = {
        "name": "interlock-cli",
        "revision": words.options.get("revision"),
        "timeout": Patience(idle=seconds),
        "connect_timeout": seconds,
        "probe_timeout": min(3.0, seconds / 2),
        **_of_url(words, aim),
    }
    if not aim.is_remote:
        found["verdicts"] = EraCache(state_folder() / "eras")
    if "log" in words.options:
        found |= {"log_level": words.options["log"], "on_log": _shown_log(progress)}
    terminal = terminal_or_none()
    if terminal is not None:
        answerer = Answerer(terminal, before=partial(_make_room, progress, terminal))
        found |= {"elicit": answerer.form, "elicit_url": answerer.page}
    return found


def _make_room(progress: Progress, terminal: Terminal) -> None:
    """For a question: what was typed before it was there does not answer it."""
    progress.clear()
    terminal.forget_typed()


def _shown_log(progress: Progress) -> Callable[[str, Any, str | None], None]:
    def show(level: str, data: Any, logger: str | None) -> None:
        progress.clear()
        told = data if isinstance(data, str) else str(data)
        note(f"  {one_line(f'{logger} ' if logger else '', 60)}{one_line(level, 20)}: {one_line(told, 2000)}")

    return show


def _of_url(words: Words, aim: Aim) -> dict[str, Any]:
    """Headers, tokens and hosts, which belong to a URL alone."""
    headers, how = headers_of(words), words.options.get("auth")
    if not aim.is_remote:
        for option in ("header", "bearer", "auth", "allow-host"):
            if option in words.options:
                raise Failure(f"--{option} belongs to a URL, and {aim.name} is none", code=USAGE)
        return {}
    if how not in (None, "browser", "paste"):
        raise Failure(f"--auth {how[:40]!r}: this is browser or paste", code=USAGE)
    found: dict[str, Any] = {"headers": headers, "allowed_hosts": tuple(words.texts("allow-host"))}
    folder = tokens_folder()
    if how is not None or (folder.is_dir() and not {"authorization"} & {name.lower() for name in headers or {}}):
        found["auth"] = OAuth(login=how, tokens=folder)  # without --auth nobody is asked; what is kept is used
    return found


# --- what went wrong ------------------------------------------------------------------------------

_LOOK = "; interlock doctor looks for the cause"
_SERVES = "is this the command of a server? A Python file without server.run() is served by interlock run FILE"
_ANSWERABLE = "run it in a terminal, where you can answer what the server asks"


def failure_of(error: InterlockError, *, opened: bool) -> Failure:
    """The same for a person, and as a code for a program."""
    code, hint = _code_and_hint(error, opened)
    message, tail = plain(str(error).partition("\n")[0]), error.stderr.strip()
    cause, withheld = _cause(error.__cause__, message, hint), error.describe_withheld("with --env NAME")
    if tail:
        last = "\n".join(f"    {plain(line)}" for line in tail.splitlines())
        cause = f"{cause + '; ' if cause else ''}the server's process said last:\n{last}"
    return Failure(message, code=code, cause=cause, hint="; ".join(filter(None, (hint, withheld))))


def _cause(behind: BaseException | None, message: str, hint: str) -> str:
    """What message and hint do not tell already; the last lines of a process are shown by themselves."""
    said = str(behind).partition("\n")[0] if isinstance(behind, InterlockError) and behind.stderr else str(behind)
    told = "" if behind is None else one_line(getattr(behind, "strerror", None) or said or repr(behind), 300)
    answer = told.partition(": ")[2][:200]  # without the method that was tried
    return "" if told in message or (answer and answer in hint) else told


def _code_and_hint(error: InterlockError, opened: bool) -> tuple[int, str]:
    match error:
        case AuthRequired() | LoginRequired():
            return UNAUTHORIZED, "log in with --auth browser, or give a token with --bearer VARIABLE"
        case AuthorizationFailed():
            return UNAUTHORIZED, "interlock doctor shows how far the way to a token goes"
        case CallTimeout():
            return TIMEOUT, "--timeout SECONDS waits longer" + ("" if opened else _LOOK)
        case SpawnFailed():
            return UNREACHABLE, "run the same command by itself: it must start without a shell"
        case NoCommonRevision():
            return UNREACHABLE, "leave --revision out" + _LOOK
        case CannotAsk():
            return REFUSED, _ANSWERABLE
        case Refused() | NotOffered():
            return REFUSED, "interlock list shows what the server offers"
        case ConnectionEnded() if error.exit_code is not None and not opened:
            return UNREACHABLE, f"mend what its process said{_LOOK}" if error.stderr.strip() else _SERVES
        case ConnectionEnded():
            return UNREACHABLE, f"try again{_LOOK}"
        case HandshakeFailed() | HttpStatus() | RemoteError() if not opened:
            own = vars(error).get("hint", "")  # what else was tried, which its class does not know
            tried = f"{own.replace('revision=', '--revision')}; " if own else ""
            return UNREACHABLE, f"{tried}is this an MCP server?{_LOOK}"
        case RemoteError():
            return BROKEN, f"this is a mistake of the server{_LOOK}"
        case _:
            return USAGE, error.hint or ""
