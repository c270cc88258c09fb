"""A gate without rules, for what passes through one: what it decides is said by the test."""

from __future__ import annotations

from typing import Any

from interlock.host.gate.action import Denied
from interlock.host.user import Ask, Leave

__all__ = ["OpenGate"]


class OpenGate:
    """Each kind of deed is allowed, asked about or denied as `decisions` say; it is asked about by itself."""

    def __init__(self, **decisions: str) -> None:
        self.decisions = decisions
        self.deeds: list[Any] = []

    async def through(self, deed: Any, send: Any, *, consent: Any = None) -> Any:
        self.deeds.append(deed)
        decision = self.decisions.get(deed.kind, "ask")
        arguments = deed.arguments
        if decision == "ask":
            leave = await consent(Ask(deed=deed, shown="", why="")) if consent is not None else Leave(granted=True)
            if not leave.granted:
                raise Denied(deed, "the user said no")
            arguments = deed.arguments if leave.arguments is None else leave.arguments
        elif decision == "deny":
            raise Denied(deed, "a rule says no")
        return await send(arguments)
