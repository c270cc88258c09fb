"""`interlock shell TARGET`: one conversation with a server, line by line, with history and completion.

The client lives on a loop in a thread of its own and goes on while a line is typed: pings are answered, changes heard.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Coroutine
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from ...client.client import Client
from ...client.sync.loop_thread import LoopThread
from ...wire.errors import InterlockError
from ..connect import OPTIONS, OPTIONS_HELP, client_of, client_options, failure_of, open_client
from ..errors import INTERRUPTED, OK, USAGE, Failure
from ..options import read_words
from ..state_folder import state_folder
from ..target import aim_of
from ..terminal.command_questions import CommandQuestions
from ..terminal.line_editor import editor_or_none, keep_history, prepare
from ..terminal.output import is_plain_word, note, one_line, plain, quote_name, say, say_data, say_lines
from ..terminal.output_buffer import hold_logs
from ..terminal.progress import Progress
from .call import call
from .complete import complete
from .list import LISTS, offered, offered_text
from .prompt import get
from .read import read
from .shell_completion import WORDS, candidates

__all__ = ["HELP", "Shell", "command", "history_file"]

HELP = f"""\
examples:
  interlock shell server.py                       then: list, call add a=1 b=2, quit
  interlock shell https://example.com/mcp         Tab completes names, arguments and their values
  interlock shell -- npx some-server              a server that is started by a command
  echo 'call add a=1 b=2' | interlock shell server.py

usage: interlock shell TARGET [--no-history]

  --no-history                 neither read nor write the lines that were typed before

{OPTIONS_HELP}"""
_MAX_PROMPT_NAME = 30  # characters
_SUGGEST_SECONDS = 3.0  # that a key press waits for the server


def history_file() -> Path:
    """Beside the tokens, and as private: what is typed may be a secret."""
    return state_folder() / "history"


def command(words: list[str]) -> int:
    given = read_words(words, {**OPTIONS, "no-history": "flag"})
    if given.flag("json"):
        raise Failure("a shell has no --json", code=USAGE, hint="use interlock call --json")
    own = list(given.own)
    aim, progress = aim_of(given, own), Progress()
    if own:
        raise Failure(f"one TARGET at a time, and {own[0][:60]!r} is more", code=USAGE)
    hold_logs(given.flag("debug"))
    options, questions = client_options(given, aim, progress), CommandQuestions()
    options |= {name: questions.wrap(options[name]) for name in ("elicit", "elicit_url") if name in options}
    client = client_of(aim, options)
    thread = LoopThread()
    thread.join(id(client), client.close)
    try:
        shell = Shell(client, progress, thread.run, questions)
        shell.open(open_client(client, aim, options))
        with_history = sys.stdin.isatty() and not given.flag("no-history")
        return _typed(shell, history_file() if with_history else None)
    finally:
        with suppress(InterlockError):
            thread.run(client.close())
        thread.leave(id(client))


class Shell:
    """What each line does. `run` runs a coroutine where the client lives, and waits. The server may ask `questions`
    while a line is executed."""

    def __init__(
        self,
        client: Client,
        progress: Progress,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
        questions: CommandQuestions | None = None,
    ) -> None:
        self._client, self._progress, self._run, self._questions = client, progress, run, questions
        self.over = False

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        try:
            self._run(opening)
        except InterlockError as error:
            raise failure_of(error, opened=False) from error

    @property
    def about(self) -> str:
        """Who the server says that it is."""
        info = self._client.server_info
        return f"{quote_name(info.name, 60)} {quote_name(info.version, 40)} · {self._client.revision}"

    @property
    def greeting(self) -> str:
        return f"{self.about}\nhelp shows what can be said; Tab completes; Ctrl-D ends."

    @property
    def prompt(self) -> str:
        """With the server's name, if that is a plain word; any other could look like a question of ours."""
        name = self._client.server_info.name
        return f"{name}> " if is_plain_word(name) and len(name) <= _MAX_PROMPT_NAME else "server> "

    def do(self, line: str) -> int:
        """One line; the exit code it would have had as a command."""
        try:
            words = shlex.split(line)
            return self._run(self._execute(words)) if words else OK
        except ValueError as error:
            note(f"! {error}")
            return USAGE
        except Failure as failure:
            note(f"! {failure.told()}")
            return failure.code
        except InterlockError as error:
            failure = failure_of(error, opened=True)
            note(f"! {failure.told()}")
            return failure.code
        except KeyboardInterrupt:
            note("(given up)")
            return INTERRUPTED
        finally:
            self._progress.clear()

    async def _execute(self, words: list[str]) -> int:
        async with nullcontext() if self._questions is None else self._questions.command():
            return await self._act(words)

    async def _act(self, words: list[str]) -> int:
        client, progress = self._client, self._progress
        match words:
            case ["quit" | "exit"]:
                self.over = True
            case ["help" | "?"]:
                say("\n".join(f"  {word:9}{about}" for word, about in WORDS.items()))
            case ["info"]:
                say_lines(self.about)
                say_data(plain(client.instructions or "(no instructions)"))
            case ["list", *kinds] if all(kind in LISTS for kind in kinds):
                found = await offered(client, kinds)
                say_lines(offered_text(found.lists))
                return found.code
            case ["call", name, *arguments]:
                return await call(client, progress, name, arguments)
            case ["read", uri, *arguments]:
                return await read(client, progress, uri, arguments)
            case ["prompt", name, *arguments]:
                return await get(client, progress, name, arguments)
            case ["complete", what, *arguments] if arguments:
                return await complete(client, what, arguments)
            case [word, *_]:
                told = f"{word} {WORDS[word]}" if word in WORDS else f"there is no {one_line(word, 40)!r} here"
                raise Failure(" ".join(told.split()), code=USAGE, hint="help")
            case _:
                pass
        return OK

    def suggestions(self, line: str) -> list[str]:
        """What may stand at its end; a server that fails, or takes long, suggests nothing."""
        try:
            return self._run(_within(_SUGGEST_SECONDS, candidates(self._client, line)))
        except (InterlockError, TimeoutError, ValueError):
            return []


async def _within(seconds: float, work: Coroutine[Any, Any, list[str]]) -> list[str]:
    async with asyncio.timeout(seconds):
        return await work


# --- the line editor ------------------------------------------------------------------------------


def _typed(shell: Shell, history: Path | None) -> int:
    """Until the end. Without a terminal it is a script: its code is that of its last line."""
    interactive = sys.stdin.isatty()
    if interactive:
        note(shell.greeting)
    editor = _editor(shell, history) if interactive else None
    code = OK
    while not shell.over:
        try:
            line = input(shell.prompt if interactive else "")
        except EOFError:
            break
        except KeyboardInterrupt:  # the line is thrown away, the shell stays
            say()
            continue
        code = shell.do(line)
    if editor is not None and history is not None:
        keep_history(editor, history)
    return OK if interactive else code


def _editor(shell: Shell, history: Path | None) -> Any:
    editor = editor_or_none()
    if editor is None:
        return None
    found: list[str] = []

    def complete_word(text: str, state: int) -> str | None:
        if state == 0:
            fitting = shell.suggestions(editor.get_line_buffer()[: editor.get_endidx()])
            found[:] = [word if word.endswith("=") else f"{word} " for word in fitting]
        return found[state] if state < len(found) else None

    prepare(editor, complete_word, history)
    return editor
