"""Servers that ask the user for something (client/elicitation): shown under the name the user gave the server.

A form is filled in by the person, field by field or not at all; what is sent is what fits the form. A page is looked at
as text, agreed to by its whole address, and only then opened, where neither the host nor a model can look into it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from time import monotonic
from typing import Any, cast

from ...protocol.input.form_schema import check_content, proposed_in
from ...server.execution.rate_limits import Buckets, Rate
from ...wire.errors import InternalError, InvalidParams
from ...wire.escaping import display
from ..gate.action import Deed, Denied
from ..user import Ask, Leave, Notice, NoticeKind, User
from .sampling import Through
from .url_check import Opener, open_in_browser, page_at

__all__ = ["Asker"]

log = logging.getLogger("interlock.host")
_RATE = Rate(0.5, 20)  # questions of one server, and so many at once after a rest (ELIC-47)
_TRIES = 3  # for a form whose answer does not fit it
_MOST_OPENED = 256  # pages whose end is waited for; the oldest is forgotten


class Asker:
    """The `elicit` and `elicit_url` callbacks of one server's client."""

    def __init__(
        self, server: str, gate: Through, user: User, *, opener: Opener = open_in_browser, rate: Rate = _RATE
    ) -> None:
        self._server, self._gate, self._user, self._opener = server, gate, user, opener
        self._pace = Buckets(rate, 1)
        self._opened: OrderedDict[str, str] = OrderedDict()

    async def form(self, params: dict[str, Any]) -> dict[str, Any]:
        message, schema = params.get("message"), params.get("requestedSchema")
        if not isinstance(message, str) or not isinstance(schema, dict):
            raise InvalidParams("elicitation/create: there is no message, or no requestedSchema")
        self._check_pace()
        asked: dict[str, Any] = {"message": message, "requestedSchema": schema}
        answer: dict[str, Any] = {}

        async def fill(ask: Ask) -> Leave:
            """To fill in a form is to agree to it: nobody is asked whether to be asked."""
            answer.update(await self._filled(ask.deed.arguments))
            return Leave(granted=answer["action"] == "accept")

        async def give(asked: dict[str, Any]) -> dict[str, Any]:
            return answer or await self._filled(asked)

        try:
            deed = Deed("elicitation", self._server, "elicitation/create", asked)
            return await self._gate.through(deed, give, consent=fill)
        except Denied:
            return {"action": "cancel" if answer.get("action") == "cancel" else "decline"}

    async def _filled(self, asked: dict[str, Any]) -> dict[str, Any]:
        for _ in range(_TRIES):
            answer = await self._user.fill(self._server, asked["message"], asked["requestedSchema"])
            if answer.get("action") != "accept":
                return {"action": "cancel" if answer.get("action") == "cancel" else "decline"}
            content = proposed_in(asked["requestedSchema"]) | cast("dict[str, Any]", answer.get("content") or {})
            if (wrong := _wrong(asked["requestedSchema"], content)) is None:
                return {"action": "accept", "content": content}
            self._tell(f"that does not fit what was asked: {display(wrong, 500)}")
        return {"action": "cancel"}

    async def page(self, params: dict[str, Any]) -> dict[str, Any]:
        page, message = page_at(params.get("url")), str(params.get("message") or "")
        self._check_pace()
        asked = {"url": page.url, "message": message}

        deed, seen = Deed("open_url", self._server, page.host, asked), False

        async def agreed(ask: Ask) -> Leave:
            nonlocal seen
            seen = True
            for warning in page.warnings:
                self._tell(f"careful: {warning}", "page_warning")
            return Leave(granted=await self._user.open_page(self._server, page.url, message) is True)

        async def opened(asked: dict[str, Any]) -> bool:
            """No rule opens a page in the place of a person (ELIC-55): it can only let them be asked or not."""
            if not seen and not (await agreed(Ask(deed=deed, shown=page.shown, why=""))).granted:
                raise Denied(deed, "the user said no")
            return await self._opener(asked["url"])

        try:
            if not await self._gate.through(deed, opened, consent=agreed):
                self._tell(f"no browser could be opened: the page is {page.shown}")
        except Denied:
            return {"action": "decline"}
        self._remember(params.get("elicitationId"), page.shown)
        return {"action": "accept"}  # consent, not completion (client/elicitation#response-actions)

    def _remember(self, id: Any, shown: str) -> None:
        """The id means nothing to us but itself; only the end of what was opened is told (ELIC-29)."""
        if isinstance(id, str):
            self._opened[id] = shown
            while len(self._opened) > _MOST_OPENED:
                self._opened.popitem(last=False)

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """Notifications of the server: only one means something here."""
        if method == "notifications/elicitation/complete":
            shown = self._opened.pop(str(params.get("elicitationId")), None)
            if shown is not None:
                self._tell(f"the server says that this is done: {shown}")

    def _check_pace(self) -> None:
        if wait := self._pace.take(self._server, monotonic()):
            raise InternalError(f"Too many questions: try again in {wait:.0f} s")

    def _tell(self, text: str, kind: NoticeKind = "asked") -> None:
        """A screen that fails must not fail what the server is answered."""
        try:
            self._user.tell(Notice(kind=kind, text=text, server=self._server))
        except Exception:
            log.exception("! a notice could not be shown")


def _wrong(schema: dict[str, Any], content: dict[str, Any]) -> str | None:
    try:
        check_content(schema, content)
    except InvalidParams as error:
        return error.message
    return None
