"""The person in front of a host, as far as a host is concerned: who is asked, shown and told.

`User` is what a terminal, a window or a web page implements. `Absent` is nobody: whatever needs a person is denied.
`ScriptedUser` stands in for one in tests and remembers all that it was shown.

Texts that come from servers, models or files are escaped before they get here (`Ask.shown`, `Notice.text`): what
cannot be seen, or moves a cursor, is written out. What is inside of a sampling request, a form or an address is given
as it came, because it is to be edited or opened; a user that shows it escapes it (`wire.display.display_block`).

A question must not be forgeable by the server that it is about. `Ask.text` is the whole question in an order that
holds this: the server's own words come first, as an indented block of a few lines, and the last line is ours. A user
that prints the parts by itself keeps that order, and prints nothing else until the question is answered.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any, Literal, Protocol, cast

import msgspec

from .gate.action import Deed, Scope

__all__ = ["UNTOLD", "Absent", "Ask", "Leave", "Notice", "NoticeKind", "ScriptedUser", "User"]

log = logging.getLogger("interlock.host")
UNTOLD = ("calling", "done")  # notices that are in the log for debugging only, where nobody is there
NoticeKind = Literal[
    "calling", "done", "cancelled", "denied", "quarantined", "cut", "server", "audit", "asked", "page_warning", "log"
]
"""`page_warning` is about the page that `open_page` asks about next."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the person: may this be done?"""

    deed: Deed
    shown: str
    """Exactly what will be sent or started, and to whom: whole, never cut, escaped."""
    why: str
    """Why it is asked: the sentence of the rule."""
    title: str = ""
    """What to call the tool or prompt (title, else name; server/tools#tool): the server's choice, escaped."""
    about: str = ""
    """What the server says of it: claims, not facts. One escaped block, each line behind `  | `, at most 40 lines."""
    scopes: tuple[Scope, ...] = ("once",)
    """For how long leave may be given; anything longer counts as the longest of these."""
    warnings: tuple[str, ...] = ()
    """What should make one think twice: data of other servers, dangerous commands."""
    diff: str = ""
    """What changed since the last approval, where there was one."""
    question: str = "May this be done?"
    """The same in one line of ours: what stands directly above the answer."""

    @property
    def text(self) -> str:
        """The whole question: the server's words, what changed, what would be done, warnings, and the question itself
        as the last line. Only lines of ours begin at the left margin."""
        parts = [("What the server says of it:", self.about)] if self.about else []
        parts += [("What changed:", _indented(self.diff))] if self.diff else []
        parts.append(("What would be done:", _indented(self.shown)))
        lines = [line for part in parts for line in part]
        return "\n".join([*lines, *(f"careful: {_indented(each).strip()}" for each in self.warnings), self.question])


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. A refusal may last as well. With `arguments`, these are sent instead of those shown."""

    granted: bool = False
    scope: Scope = "once"
    arguments: dict[str, Any] | None = None
    because: str = ""
    """Why it is refused, where it is not the user who says no: there may be none to ask."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be shown, which nobody waits for."""

    kind: NoticeKind
    text: str
    server: str = ""
    name: str = ""
    """Of the item; of a log, its level."""


class User(Protocol):
    """What raises, does not answer in time, or answers with nonsense counts as a no."""

    async def allow(self, ask: Ask) -> Leave: ...

    async def review_sampling(self, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """A server wants a model to answer this. Return it, as it is or edited, or None to refuse."""
        ...

    async def review_answer(
        self, server: str, request: dict[str, Any], answer: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The model answered this. Return what the server may see, or None to refuse."""
        ...

    async def fill(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        """A server asks for this: `{"action": "accept" | "decline" | "cancel", "content": ...}`."""
        ...

    async def open_page(self, server: str, url: str, message: str) -> bool:
        """May this address be opened? Nothing was fetched from it."""
        ...

    def tell(self, notice: Notice) -> None:
        """Show it and come back at once."""
        ...


class Absent:
    """No user can be asked: nothing is allowed, reviewed, filled in or opened. Notices go to the log."""

    async def allow(self, ask: Ask) -> Leave:
        return Leave(granted=False, because="it needs the user's consent, and there is no user to ask")

    async def review_sampling(self, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return None

    async def review_answer(
        self, server: str, request: dict[str, Any], answer: dict[str, Any]
    ) -> dict[str, Any] | None:
        return None

    async def fill(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    async def open_page(self, server: str, url: str, message: str) -> bool:
        return False

    def tell(self, notice: Notice) -> None:
        level = logging.DEBUG if notice.kind in UNTOLD else logging.INFO
        log.log(level, "= %s: %s", notice.kind, notice.text)


class ScriptedUser:
    """Says what it was told to say: each answer is a value, or a function (async or not) of what is shown.

    Without an answer it refuses, like `Absent`. `asks` are the questions about deeds, `seen` everything else that was
    shown, with the name of the method, and `notices` what was told.
    """

    def __init__(
        self,
        allow: Any = None,
        *,
        review_sampling: Any = None,
        review_answer: Any = None,
        fill: Any = None,
        open_page: Any = None,
    ) -> None:
        self.answers: dict[str, Any] = {
            "allow": allow,
            "review_sampling": review_sampling,
            "review_answer": review_answer,
            "fill": fill,
            "open_page": open_page,
        }
        self.asks: list[Ask] = []
        self.seen: list[tuple[str, tuple[Any, ...]]] = []
        self.notices: list[Notice] = []

    async def allow(self, ask: Ask) -> Leave:
        self.asks.append(ask)
        said = await self._said("allow", ask)
        return said if isinstance(said, Leave) else Leave(granted=said is True)

    async def review_sampling(self, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        said = await self._show("review_sampling", server, request)
        return request if said is True else said

    async def review_answer(
        self, server: str, request: dict[str, Any], answer: dict[str, Any]
    ) -> dict[str, Any] | None:
        said = await self._show("review_answer", server, request, answer)
        return answer if said is True else said

    async def fill(self, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        said = await self._show("fill", server, message, schema)
        return cast("dict[str, Any]", said) if isinstance(said, dict) else {"action": "decline"}

    async def open_page(self, server: str, url: str, message: str) -> bool:
        return await self._show("open_page", server, url, message) is True

    def tell(self, notice: Notice) -> None:
        self.notices.append(notice)

    def told(self, kind: NoticeKind) -> list[str]:
        """The texts of the notices of one kind."""
        return [notice.text for notice in self.notices if notice.kind == kind]

    async def _show(self, method: str, *shown: Any) -> Any:
        self.seen.append((method, shown))
        return await self._said(method, *shown)

    async def _said(self, method: str, *shown: Any) -> Any:
        answer = self.answers[method]
        said = answer(*shown) if callable(answer) else answer
        return await said if inspect.isawaitable(said) else said
