"""The person at the terminal, as a host asks them: what exactly would be done, and may it?

One question at a time, and all other output waits until it is answered. Enter alone is never a yes. What a server wrote
is escaped and indented, comes before the question, and the line above the answer is ours; what would be sent is shown
whole.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from ...host.callbacks.url_check import page_at
from ...host.user import Ask, Leave, Notice
from ...protocol.input.form_schema import proposed_in
from ...wire.errors import InvalidParams
from ...wire.json.lenient import one_or_more
from ..terminal.elicitation import Answerer
from ..terminal.output import as_json, block_text, one_line
from ..terminal.prompt import Person
from .input_lock import Floor
from .screen import WARNING, Screen

__all__ = ["TerminalUser"]

_SCOPES = {"once": "y", "session": "s", "always": "a"}
_PINNED_MEANING = {"y": "yes, until this program ends", "a": "yes, until it changes"}  # of what a server offers
_NO_TERMINAL = "it needs your consent, and there is no terminal to ask you on"
_MEANING = {"y": "yes, once", "s": "yes, until this program ends", "a": "yes, always", "n": "no", "e": "edit first"}
_TRIES = 5
_CAN_EDIT = ("tool", "prompt")
_ALSO_SENT = ("toolChoice", "temperature", "stopSequences")  # of a sampling request, beside what stands in it


class TerminalUser:
    """The `User` of a host. Without a `person` nobody can be asked, and everything is refused. `forget` drops what was
    typed so far: it was typed before the question was there, and is no answer to it."""

    def __init__(
        self,
        screen: Screen,
        person: Person | None,
        floor: Floor | None = None,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self._screen, self._person = screen, person
        self._forget = forget
        self._floor = floor if floor is not None else Floor(lambda: None)

    def tell(self, notice: Notice) -> None:
        if notice.kind != "page_warning":  # the question itself shows them, directly above the answer
            self._screen.tell(notice)

    # --- deeds ------------------------------------------------------------------------------------

    async def allow(self, ask: Ask) -> Leave:
        if self._person is None:
            return Leave(granted=False, because=_NO_TERMINAL)
        async with self._question() as screen:
            self._show(screen, ask)
            letters = [_SCOPES[scope] for scope in ask.scopes] or ["y"]
            if ask.deed.kind in _CAN_EDIT:
                letters.append("e")
            return await self._leave(screen, ask, [*letters, "n"])

    @asynccontextmanager
    async def _question(self) -> AsyncGenerator[Screen]:
        async with self._floor.for_question():
            with self._screen.question() as screen:
                yield screen

    def _show(self, screen: Screen, ask: Ask) -> None:
        *lines, question = ask.text.split("\n")
        for line in lines:
            screen.line(line, WARNING if line.startswith("careful: ") else "")
        screen.bold(question)

    async def _leave(self, screen: Screen, ask: Ask, letters: list[str]) -> Leave:
        letter = await self._letter(letters, _PINNED_MEANING if ask.deed.kind == "definitions" else {})
        if letter == "e":
            edited = await self._edited(screen, ask.deed.arguments)
            if edited is None:
                return Leave(granted=False)
            again = await self._letter(["y", "n"])
            return Leave(granted=again == "y", arguments=edited)
        scope: Any = {letter: scope for scope, letter in _SCOPES.items()}.get(letter)
        return Leave(granted=scope is not None, scope=scope or "once")

    async def _letter(self, letters: list[str], meaning: Mapping[str, str] = _MEANING) -> str:
        """One of them; no answer is a no. `meaning` is what they stand for, where that is not the usual."""
        if self._person is None:
            return "n"
        shown = ", ".join(f"[{each}] {meaning.get(each, _MEANING[each])}" for each in letters)
        self._forget()
        for _ in range(_TRIES):
            line = await self._person.ask(f"{shown}: ")
            if line is None:
                return "n"
            word = line.strip().lower()
            if word[:1] in letters and word in (word[:1], _word(word[:1])):
                return word[:1]
        return "n"

    # --- questions of servers ---------------------------------------------------------------------

    async def review_sampling(self, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        async with self._question() as screen:
            screen.bold(f"The server {one_line(server, 60)!r} asks a model of yours:")
            self._show_request(screen, request)
            return await self._reviewed(screen, request, f"Send it to the model? (for {one_line(server, 60)!r})")

    async def review_answer(
        self, server: str, request: dict[str, Any], answer: dict[str, Any]
    ) -> dict[str, Any] | None:
        async with self._question() as screen:
            screen.bold(f"The model {one_line(str(answer.get('model')), 60)!r} answered:")
            screen.block(_content(answer.get("content")))
            return await self._reviewed(screen, answer, f"Give it to the server {one_line(server, 60)!r}?")

    def _show_request(self, screen: Screen, request: dict[str, Any]) -> None:
        if request.get("systemPrompt"):
            screen.block(f"system: {request['systemPrompt']}")
        for message in request["messages"]:
            screen.block(f"{one_line(str(message['role']), 20)}: {_content(message['content'])}")
        for tool in request.get("tools") or ():
            screen.block(f"tool: {as_json(tool)}")  # all of it: a model reads the descriptions as well
        for name in _ALSO_SENT:
            if request.get(name) is not None:
                screen.block(f"{name}: {as_json(request[name])}")
        screen.dim(f"at most {request['maxTokens']} tokens")

    async def _reviewed(self, screen: Screen, what: dict[str, Any], question: str) -> dict[str, Any] | None:
        screen.bold(question)
        letter = await self._letter(["y", "e", "n"])
        if letter == "e":
            what = await self._edited(screen, what) or {}
            letter = await self._letter(["y", "n"]) if what else "n"
        return what if letter == "y" and what else None

    async def fill(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        if self._person is None:
            return {"action": "decline"}
        async with self._question() as screen:
            form = {"message": message, "requestedSchema": schema}
            self._forget()
            for _ in range(_TRIES):
                answer = await Answerer(self._person, server=server).form(form)
                if answer["action"] != "accept":
                    return answer
                answer["content"] = proposed_in(schema) | answer.get("content", {})  # what was left alone is sent, too
                screen.block(as_json(answer["content"]))
                screen.bold(f"Send this to the server {one_line(server, 60)!r}?")
                self._forget()
                said = await self._person.ask("[y] send it, [c] change it, [n] send nothing: ")
                word = (said or "n").strip().lower()
                if word in ("y", "yes"):
                    return answer
                if word not in ("c", "change"):
                    return {"action": "decline"}
            return {"action": "cancel"}

    async def open_page(self, server: str, url: str, message: str) -> bool:
        async with self._question() as screen:
            screen.bold(f"The server {one_line(server, 60)!r} wants you to open a page:")
            screen.block(message)
            screen.block(url)
            host, warnings = _judge_page(url)
            for warning in warnings:
                screen.warn(f"careful: {warning}")
            screen.bold(f"Open this page, at the host {host}?")
            return await self._letter(["y", "n"]) == "y"

    # --- editing ----------------------------------------------------------------------------------

    async def _edited(self, screen: Screen, value: Any) -> dict[str, Any] | None:
        """As JSON, in the user's own editor, and shown once more; None when nothing usable comes back."""
        with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
            path = Path(folder) / "edit.json"
            path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")
            try:
                words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
                process = await asyncio.create_subprocess_exec(*words, str(path))
                code = await process.wait()
                found = json.loads(path.read_text(encoding="utf-8")) if code == 0 else None
            except (OSError, ValueError) as error:
                screen.failed(f"It could not be edited: {one_line(str(error))}")
                return None
        if not isinstance(found, dict):
            screen.failed("What came back is not a JSON object: nothing is sent.")
            return None
        screen.block(as_json(found))
        screen.bold("Send this instead?")
        return cast("dict[str, Any]", found)


def _word(letter: str) -> str:
    return {"y": "yes", "n": "no", "s": "session", "a": "always", "e": "edit"}.get(letter, letter)


def _content(content: Any) -> str:
    return "\n".join(block_text(block) for block in one_or_more(content))


def _judge_page(url: str) -> tuple[str, tuple[str, ...]]:
    """The host of a page, and what to warn of."""
    try:
        page = page_at(url)
    except InvalidParams:
        return "(none that can be trusted)", ()
    return page.host, page.warnings
