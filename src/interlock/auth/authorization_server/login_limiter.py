"""Limits on password guesses that slow an attacker down and do not lock the owner of an account out.

A browser in which a user logged in before holds a device cookie. It has its own limit for that user, whatever is
guessed elsewhere (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). Every other guess counts three
times: for the account at its address, for its address over all accounts, and for the account over all addresses. Names
that do not exist count as well: otherwise the limits would tell which users exist.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .attempt_limiter import Guesses, place_of

__all__ = ["LoginAttempt", "LoginLimiter"]

PER_SOURCE = 5, 30.0  # guesses for one account from one address or device; then one per so many seconds
PER_ADDRESS = 20, 30.0  # for all accounts together from one address
PER_ACCOUNT = 100, 60.0  # for one account from all addresses together


class LoginAttempt(msgspec.Struct, frozen=True):
    user: str
    """A hash of the name."""
    address: str
    """Where the request comes from; requests from unknown addresses ("") share one limit."""
    device: str | None = None
    """The id in the device cookie, for a browser in which this user logged in before."""


class LoginLimiter:
    """Bounded: of each kind 20,000 are remembered, and the one longest unused is forgotten first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._sources, self._addresses, self._accounts = (
            Guesses(clock, tries, interval) for tries, interval in (PER_SOURCE, PER_ADDRESS, PER_ACCOUNT)
        )

    def take(self, attempt: LoginAttempt) -> float:
        """0 where the guess may be checked now, else the seconds to wait; a refused guess costs nothing."""
        taken: list[tuple[Guesses, str]] = []
        for guesses, key in self._limits_of(attempt):
            if wait := guesses.take(key):
                for earlier, name in taken:
                    earlier.give_back(name)
                return wait
            taken.append((guesses, key))
        return 0.0

    def succeed(self, attempt: LoginAttempt) -> None:
        """The password was right. This clears its own limit and takes this guess off the shared ones: a login of the
        owner must not give an attacker elsewhere, nor one with an account of their own, new guesses."""
        for guesses, key in self._limits_of(attempt):
            if guesses is self._sources:
                guesses.right(key)
            else:
                guesses.give_back(key)

    def _limits_of(self, attempt: LoginAttempt) -> list[tuple[Guesses, str]]:
        if attempt.device is not None:
            return [(self._sources, f"device {attempt.device}")]
        place = place_of(attempt.address)
        # The address first: what it refuses leaves no entry in the others. Else ever new names, which cost no hash once
        # the address is refused, would push the limits of others out of memory.
        return [
            (self._addresses, place),
            (self._sources, f"{place} {attempt.user}"),
            (self._accounts, attempt.user),
        ]
