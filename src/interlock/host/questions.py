"""Everything a server may ask its host, as the callbacks of its client: one set for each server, which sees nothing of
any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .deeds import Deed, Denied
from .eliciting import Asker, Opener, open_in_browser
from .models.model import Model
from .rooting import Root, Rooting
from .sampling import Context, Sampler, SamplingBounds, Through
from .user import User

__all__ = ["Questions"]


class Questions:
    """`changed(server)` tells the server that its roots are others now."""

    def __init__(
        self,
        gate: Through,
        user: User,
        *,
        models: Sequence[Model] = (),
        roots: Iterable[str | Path | Root] | Mapping[str, Iterable[str | Path | Root]] = (),
        changed: Callable[[str], Awaitable[None]],
        bounds: SamplingBounds = SamplingBounds(),  # noqa: B008 - immutable
        context: Context | None = None,
        opener: Opener = open_in_browser,
    ) -> None:
        self._gate, self._user, self._models = gate, user, models
        self._bounds, self._context, self._opener = bounds, context, opener
        self.roots = Rooting(roots, self._consented, changed)
        self._samplers: dict[str, Sampler] = {}

    def for_server(self, server: str) -> dict[str, Any]:
        """Keyword arguments of its `Client`; what it is not given, it does not claim to have."""
        asker = Asker(server, self._gate, self._user, opener=self._opener)
        found: dict[str, Any] = {
            "elicit": asker.form,
            "elicit_url": asker.page,
            "on_notification": asker.heard,
            "roots": self.roots.for_server(server),
        }
        if self._models:
            found["sample"] = self._sampler(server)
        return found

    def _sampler(self, server: str) -> Sampler:
        """One for each name: what a server has used up stays used up when it is started again."""
        if server not in self._samplers:
            self._samplers[server] = Sampler(
                server, self._gate, self._user, self._models, bounds=self._bounds, context=self._context
            )
        return self._samplers[server]

    async def _consented(self, server: str, roots: list[dict[str, Any]]) -> list[dict[str, Any]]:
        async def give(told: dict[str, Any]) -> list[dict[str, Any]]:
            return told["roots"]

        try:
            return await self._gate.through(Deed("roots", server, "roots/list", {"roots": roots}), give)
        except Denied:
            return []

    async def close(self) -> None:
        await self.roots.close()
