"""Servers that are up at the same time and take turns in short windows, so that all of them meet the same machine.

What disturbs a shared machine comes and goes within seconds. Measured one after the other, each for a second, two
servers are compared in different weather; window by window, they are not. Of a contestant's windows the middle counts.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from messages import Era
from peers import Contestant

Attempt = Callable[["Guest", Callable[[], None]], bool]
"""Does something with one of them, and says whether that went well."""


@dataclass
class Guest:
    """One contestant with its server, in one era."""

    contestant: Contestant
    era: Era
    driver: Any
    seen: list[float] = field(default_factory=list)
    failed: bool = False


class Turns:
    """Use `stack` as a context manager: with it all servers end."""

    def __init__(self, stack: ExitStack, attempt: Attempt) -> None:
        self._stack = stack
        self._attempt = attempt
        self.guests: list[Guest] = []

    @contextmanager
    def welcome(self, contestant: Contestant, era: Era, driver: Any) -> Generator[None]:
        """Its server is up. One that fails while it gets warm takes no turn: for one fault it fails once."""
        self._stack.enter_context(driver)
        yield
        self.guests.append(Guest(contestant, era, driver))

    def of(self, *names: str) -> list[Guest]:
        return [guest for guest in self.guests if guest.contestant.name in names]

    def each(self, guests: list[Guest], act: Callable[[Guest], None]) -> None:
        """Do this with all of them that have not failed yet."""
        for guest in guests:
            if not guest.failed:
                guest.failed = not self._attempt(guest, lambda g=guest: act(g))

    def take(self, guests: list[Guest], windows: int, take: Callable[[Any], float]) -> list[tuple[Guest, float]]:
        """The middle of so many windows of each of these; the first window warms up and does not count."""
        for guest in guests:
            guest.seen.clear()
        for _ in range(windows + 1):
            self.each(guests, lambda guest: guest.seen.append(take(guest.driver)))
        return [(guest, median(guest.seen[1:])) for guest in guests if not guest.failed]
