"""Everything a server may ask its host, as the callbacks of its client: one set for each server, which sees nothing of
any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from ...server.execution.rate_limits import Buckets, Rate
from ...wire.errors import InternalError
from ..gate.action import Deed, Denied
from ..models.model import Model
from ..user import Absent, User
from .elicitation import Asker
from .roots import Root, Rooting
from .sampling import Context, Sampler, SamplingBounds, Through
from .url_check import Opener, open_in_browser

__all__ = ["Questions"]

_RATE = Rate(0.5, 20)  # times that one server may ask for its roots, and so many at once after a rest
_MOST_SERVERS = 1_000


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
        self._askers: dict[str, Asker] = {}
        self._pace = Buckets(_RATE, _MOST_SERVERS)

    def for_server(self, server: str) -> dict[str, Any]:
        """Keyword arguments of its `Client`; what it is not given, it does not claim to have. Where nobody is there
        who could fill in a form or agree to a page, servers are told so and need not ask to hear no."""
        asker = self._asker(server)
        found: dict[str, Any] = {"on_notification": asker.heard, "roots": self.roots.for_server(server)}
        if type(self._user) is not Absent:
            found |= {"elicit": asker.form, "elicit_url": asker.page}
        if self._models:
            found["sample"] = self._sampler(server)
        return found

    def _asker(self, server: str) -> Asker:
        """One for each name, as of samplers: a server that ends and comes back is no less slowed down."""
        if server not in self._askers:
            self._askers[server] = Asker(server, self._gate, self._user, opener=self._opener)
        return self._askers[server]

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

        if wait := self._pace.take(server, monotonic()):
            raise InternalError(f"Too many questions: try again in {wait:.0f} s")
        try:
            return await self._gate.through(Deed("roots", server, "roots/list", {"roots": roots}), give)
        except Denied:
            return []

    def forget(self, server: str) -> None:
        """It was removed: one that comes under its name begins with nothing used up."""
        self._samplers.pop(server, None)
        self._askers.pop(server, None)
        self.roots.forget(server)

    async def close(self) -> None:
        await self.roots.close()
