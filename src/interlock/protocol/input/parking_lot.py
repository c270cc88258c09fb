"""The runs of a server that wait for answers, and how long. None does in most servers: what runs them comes later."""

from __future__ import annotations

import asyncio
from os import urandom
from typing import TYPE_CHECKING

from ...wire.channel import Outlet
from ...wire.errors import InternalError
from ...wire.exchange import Principal
from .settings import AskingRules

if TYPE_CHECKING:
    from .parking import Run

__all__ = ["Parking"]


class Parking:
    """The runs of one server that wait for answers."""

    def __init__(self, rules: AskingRules) -> None:
        self._rules = rules
        self._parked: dict[str, tuple[Run, asyncio.TimerHandle]] = {}
        self.worker = 0
        """The number of this process among several that share keys; its tickets name it."""

    def __len__(self) -> int:
        return len(self._parked)

    def check_room(self, who: Principal) -> None:
        """Refuse before anything is begun. Nobody may take more than half of the room."""
        mine = sum(run.exchange.peer.principal == who for run, _ in self._parked.values())
        if len(self._parked) >= self._rules.parked_runs or mine >= max(1, self._rules.parked_runs // 2):
            raise InternalError("Too many runs are waiting for answers: try again later")

    def put(self, run: Run) -> str:
        """The ticket for it."""
        try:
            self.check_room(run.exchange.peer.principal)
        except InternalError:
            run.task.cancel()
            raise
        ticket = f"{self.worker}-{urandom(16).hex()}"
        expiry = asyncio.get_running_loop().call_later(self._rules.seconds, self._expire, ticket)
        self._parked[ticket] = (run, expiry)
        return ticket

    def worker_of(self, sealed: str) -> int:
        """Which worker has the run that a state belongs to; 0: none that is known from it."""
        from .rounds import read_state  # only one of several processes is asked for it

        state = read_state(self._rules, sealed)
        worker = state.ticket.partition("-")[0] if state is not None else ""
        return int(worker) if worker.isdigit() else 0

    def look(self, ticket: str) -> Run | None:
        """The run of a ticket. None: unknown, used, expired, or of another process."""
        found = self._parked.get(ticket)
        return None if found is None else found[0]

    def take(self, ticket: str) -> Run | None:
        """The same, and the ticket is used up by this."""
        found = self._parked.pop(ticket, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]

    def _expire(self, ticket: str) -> None:
        run = self.take(ticket)
        if run is not None:
            run.task.cancel()

    def leave(self, outlet: Outlet) -> None:
        """A connection is over: nobody comes back for the runs that were parked on it."""
        for ticket in [ticket for ticket, (run, _) in self._parked.items() if run.exchange.outlet is outlet]:
            self._expire(ticket)

    def close(self) -> None:
        """Cancel every run that waits: the server is going."""
        for ticket in list(self._parked):
            self._expire(ticket)
