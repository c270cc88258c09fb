"""Servers that are up at the same time and take turns in short windows, so that all of them meet the same machine.

What disturbs a shared machine comes and goes within seconds. Measured one after the other, each for a second, two
servers are compared in different weather; window by window, they are not. Of a contestant's windows the middle counts.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from http_driver import HttpDriver
from http_loads import Talk
from peers import Contestant

Take = Callable[[HttpDriver], float]
Attempt = Callable[["Guest", Callable[[], None]], bool]
"""Does something with one of them, and says whether that went well."""


@dataclass
class Guest:
    """One contestant with its server."""

    contestant: Contestant
    driver: HttpDriver
    talk: Talk
    seen: list[float] = field(default_factory=list)
    failed: bool = False


class Turns:
    """Use `stack` as a context manager: with it all servers end."""

    def __init__(self, stack: ExitStack, attempt: Attempt) -> None:
        self._stack = stack
        self._attempt = attempt
        self.guests: list[Guest] = []

    def welcome(self, contestant: Contestant, driver: HttpDriver, talk: Talk, block_seconds: float) -> None:
        """Once it is warm: a server that fails before that takes no turn, and so does not fail twice."""
        self._stack.enter_context(driver)
        driver.begin(talk)
        driver.warm_up(block_seconds)
        self.guests.append(Guest(contestant, driver, talk))

    def take(self, names: tuple[str, ...], connections: int, windows: int, take: Take) -> dict[str, float]:
        """The middle of so many windows of each of these; the first window warms up and does not count."""
        guests = [guest for guest in self.guests if guest.contestant.name in names and not guest.failed]
        for guest in guests:
            guest.seen.clear()
            self._do(guest, lambda g: g.driver.begin(g.talk, connections))
        for _ in range(windows + 1):
            for guest in guests:
                self._do(guest, lambda g: g.seen.append(take(g.driver)))
        return {guest.contestant.name: median(guest.seen[1:]) for guest in guests if not guest.failed}

    def _do(self, guest: Guest, act: Callable[[Guest], None]) -> None:
        if not guest.failed:
            guest.failed = not self._attempt(guest, lambda: act(guest))
