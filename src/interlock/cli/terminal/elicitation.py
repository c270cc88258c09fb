"""Questions of a server, answered by a person: a form field by field, a page by agreeing to its whole address.

The server's words are shown as an indented block, and only lines of ours begin at the left margin. A person can always
decline (no) or cancel (no answer at all), and nothing is opened or sent without agreement. One question is asked at a
time, and all other output waits until it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ...host.callbacks.url_check import Opener, open_in_browser, page_at
from ...protocol.input.form_schema import check_content
from ...wire.errors import InvalidParams
from ...wire.escaping import cut_columns, display_block
from ...wire.json.lenient import items_of, members_of
from .output import one_line
from .output_buffer import OUTPUT
from .prompt import Person

__all__ = ["Answerer", "choices_of", "read_field"]

_MOST_FIELDS = 100  # of one form; nobody fills in more, and a longer one is declined
_MAX_DESCRIPTION_LINES = 6  # of one field
_MAX_CHOICE_LINES = 100  # those beyond it can be named, or chosen by their number
_MAX_PROPOSAL = 10  # characters of a default that surely stand in the prompt; a longer one has a line of its own
_MOST_TRIES = 5  # at one field; then the form is cancelled
_ENDINGS = str.maketrans('"[]', "'()")
_YES, _NO = ("y", "yes", "true", "1", "on"), ("n", "no", "false", "0", "off")


class Answerer:
    """The callbacks `elicit` and `elicit_url` of a client, with a person behind them."""

    def __init__(
        self,
        person: Person,
        browse: Opener = open_in_browser,
        before: Callable[[], None] = lambda: None,
        server: str = "",
    ) -> None:
        """`before` is called before anything is said: whatever is drawn on the terminal must make room. `server` is the
        name under which the user knows it."""
        self._person, self._browse, self._before = person, browse, before
        self._who = f"The server {one_line(server, 60)!r}" if server else "The server"
        self._turns = asyncio.Lock()

    async def form(self, params: dict[str, Any]) -> dict[str, Any]:
        async with self._question(params):
            self._person.say("Do not type passwords, keys or other secrets into a form: the server gets them as text.")
            return await self._form(params)

    @asynccontextmanager
    async def _question(self, params: Mapping[str, Any]) -> AsyncGenerator[None]:
        async with self._turns:
            self._before()
            with OUTPUT.hold():
                self._person.say("")
                self._person.say(f"{self._who} asks you:")
                self._person.say(display_block(str(params.get("message", ""))))
                try:
                    yield
                except asyncio.CancelledError:
                    self._person.say("\n(this question was withdrawn: no answer counts)")
                    raise

    async def _form(self, params: Mapping[str, Any]) -> dict[str, Any]:
        schema = members_of(params.get("requestedSchema"))
        fields, required = members_of(schema.get("properties")), items_of(schema.get("required"))
        if len(fields) > _MOST_FIELDS:
            self._person.say(f"declined: a form of {len(fields)} fields is nothing for a terminal")
            return {"action": "decline"}
        if not fields:
            return await self._agreed("Accept?")
        self._person.say("(Enter takes what stands in [ ]; /decline refuses, /cancel or Ctrl-D gives no answer)")
        content: dict[str, Any] = {}
        for name, field in fields.items():
            given = await self._field(name, field, name in required)
            if isinstance(given, str):
                return {"action": given}
            content |= given
        return {"action": "accept", "content": content}

    async def _field(self, name: str, field: Any, required: bool) -> str | dict[str, Any]:
        """What to add to the content, or how the whole form ends."""
        about = members_of(field)
        if isinstance(about.get("description"), str):
            self._person.say(display_block(about["description"], lines=_MAX_DESCRIPTION_LINES))
        if len(str(about.get("default", ""))) > _MAX_PROPOSAL:
            self._person.say(f"    proposed: {one_line(str(about['default']), 1000)}")
        choices = choices_of(about)
        if choices:
            listed = "\n".join(f"{number}. {one_line(label, 60)}" for number, (_, label) in enumerate(choices, 1))
            self._person.say(display_block(listed, lines=_MAX_CHOICE_LINES))
        for _ in range(_MOST_TRIES):
            line = await self._person.ask(f"{_shown(name, about, required)}: ")
            if line is None or line.strip() == "/cancel":
                return "cancel"
            if line.strip() == "/decline":
                return "decline"
            if not line.strip() and ("default" in about or not required):
                return {}  # the form's own proposal holds
            try:
                value = read_field(about, line)
                check_content({"properties": {name: about}}, {name: value})
                return {name: value}
            except (ValueError, InvalidParams) as error:
                self._person.say(f"  ! {one_line(str(error), 300)}")
        self._person.say("cancelled: no answer that fits")
        return "cancel"

    async def _agreed(self, shown: str) -> dict[str, Any]:
        for _ in range(_MOST_TRIES):
            line = await self._person.ask(f"{shown} [y/n, Enter gives no answer] ")
            word = (line or "").strip().lower()
            if not word:
                break
            if word in (*_YES, *_NO):
                return {"action": "accept" if word in _YES else "decline"}
        return {"action": "cancel"}

    async def page(self, params: dict[str, Any]) -> dict[str, Any]:
        """A page to open. The whole address is shown, and its host by itself: that is what has to be trusted."""
        async with self._question(params):
            return await self._page(params)

    async def _page(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self._person.say("It wants you to open this page:")
        self._person.say(display_block(str(params.get("url", "")), lines=None))
        try:
            page = page_at(params.get("url"))
        except InvalidParams as error:
            self._person.say(f"declined: {one_line(error.message)}")
            return {"action": "decline"}
        self._person.say(f"  at the host: {page.host}")
        for warning in page.warnings:
            self._person.say(f"  careful: {warning}")
        agreed = await self._agreed("Open it in a browser?")
        if agreed["action"] == "accept" and not await self._browse(page.url):
            self._person.say("No browser could be started: open the address above yourself.")
        return agreed


def _shown(name: str, field: Mapping[str, Any], required: bool) -> str:
    """The prompt, of fewer than 80 columns. The line is ours: of the server's words only the title and the default
    stand in it, quoted and cut."""
    title = field.get("title")
    shown = f'answer for "{_part(title if isinstance(title, str) else name, 30)}"'
    if field.get("type") == "boolean":
        shown += " (y or n)"
    if "default" in field:
        return f"{shown} [{_part(str(field['default']), 16)}]"
    return shown if required else f"{shown} (may be left out)"


def _part(text: str, columns: int) -> str:
    """A server's text within a line of ours: it cannot end the quotes or brackets in which it stands."""
    return cut_columns(one_line(text, 80).translate(_ENDINGS), columns)


def choices_of(field: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What may be chosen, and what is shown for it, in any of the spellings of the revisions."""
    where = members_of(field.get("items")) if field.get("type") == "array" else field
    for word in ("oneOf", "anyOf"):
        if isinstance(where.get(word), list):
            options = [members_of(each) for each in items_of(where[word])]
            return [(str(each.get("const")), str(each.get("title", each.get("const")))) for each in options]
    values, names = items_of(where.get("enum")), items_of(where.get("enumNames"))
    return [(str(each), str(names[at]) if at < len(names) else str(each)) for at, each in enumerate(values)]


def read_field(field: Mapping[str, Any], line: str) -> Any:
    """What was typed, as the field wants it; `ValueError` says what is wrong with it."""
    choices, text = choices_of(field), line.strip()
    if field.get("type") == "array":
        return [_chosen(choices, each.strip()) for each in text.split(",") if each.strip()]
    if choices:
        return _chosen(choices, text)
    match field.get("type"):
        case "integer":
            return _whole(text)
        case "number":
            return _number(text)
        case "boolean":
            if text.lower() in (*_YES, *_NO):
                return text.lower() in _YES
            raise ValueError("answer y or n")
        case _:
            return line


def _whole(text: str) -> int:
    if len(text) > 30 or not text.removeprefix("-").isdecimal():
        raise ValueError("give a whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise ValueError("give a number") from None
    if found != found or found in (float("inf"), float("-inf")):
        raise ValueError("give a number")
    return found


def _chosen(choices: list[tuple[str, str]], text: str) -> str:
    """By its number, its value or what is shown for it."""
    for value, label in choices:
        if text in (value, label):
            return value
    if text.isdecimal() and len(text) < 6 and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1][0]
    raise ValueError("that is not among the choices")
