"""The login of a user at the embedded authorization server: limits, the password, and the device cookie.

A password hash costs 16 MiB and about 0.2 s of CPU time, so `MAX_HASHES` are computed at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Mapping, MutableMapping

import msgspec

from ...wire.escaping import display
from .client_metadata import hashed
from .login_limiter import LoginAttempt, LoginLimiter
from .passwords import fits, hash_password, is_outdated
from .server import AuthorizationServer

__all__ = ["DEVICE_TTL", "LoggedIn", "UserLogin"]

DEVICE_TTL = 90 * 86400.0  # seconds a browser stays known after a login
MAX_HASHES = 4  # computed at the same time: 64 MiB
log = logging.getLogger("interlock.auth")


class LoggedIn(msgspec.Struct, frozen=True):
    subject: str
    device: str
    """The value of the device cookie to set."""


class _Device(msgspec.Struct, frozen=True):
    """The sealed content of a device cookie."""

    user: str
    id: str
    until: float


class UserLogin:
    def __init__(self, server: AuthorizationServer) -> None:
        self._server = server
        self._limiter = LoginLimiter(server.clock)
        self._hashing = asyncio.Semaphore(MAX_HASHES)

    async def log_in(self, name: str, password: str, address: str, cookie: str) -> LoggedIn | str:
        """The user, or the reason to show, which is the same for a wrong name and a wrong password."""
        user = hashed(name)
        device = self._read_device(user, cookie)
        attempt = LoginAttempt(user, address, device)
        if wait := self._limiter.take(attempt):
            return f"Too many wrong passwords: wait {math.ceil(wait)} seconds."
        users = self._server.users
        if callable(users):
            async with self._hashing:  # the function may hash, too
                subject = await users(name, password) or None
        else:
            subject = name if await self._check_password(users, name, password) else None
        if subject is None:
            return "The name or the password is wrong."
        self._limiter.succeed(attempt)
        return LoggedIn(subject, self._write_device(user, device or secrets.token_urlsafe(16)))

    # --- the device cookie ------------------------------------------------------------------------

    def _read_device(self, user: str, cookie: str) -> str | None:
        opened = self._server.device_seal.open(cookie)
        if opened is None:
            return None
        device = msgspec.json.decode(opened, type=_Device)
        return device.id if device.user == user and device.until >= self._server.clock() else None

    def _write_device(self, user: str, id: str) -> str:
        device = _Device(user, id, self._server.clock() + DEVICE_TTL)
        return self._server.device_seal.seal(msgspec.json.encode(device))

    # --- the password -----------------------------------------------------------------------------

    async def _check_password(self, users: Mapping[str, str], name: str, password: str) -> bool:
        """Compare the password, and replace a hash that was made with outdated parameters."""
        known = users.get(name)
        right, renewed = await self._hash(password, known)
        if renewed is not None:
            replaced = isinstance(users, MutableMapping)
            if replaced and users.get(name) == known:
                users[name] = renewed
            done = "was replaced in users=" if replaced else "cannot be replaced in users="
            log.warning(
                "! the password hash of %s has outdated parameters and %s: configure a new one of hash_password(...)",
                display(name, 100),
                done,
            )
        return right

    async def _hash(self, password: str, known: str | None) -> tuple[bool, str | None]:
        """A thread cannot be stopped: a request that is given up holds its place until its hash is done."""
        await self._hashing.acquire()
        task = asyncio.create_task(asyncio.to_thread(_compare, password, known))
        task.add_done_callback(lambda _: self._hashing.release())
        return await asyncio.shield(task)


def _compare(password: str, known: str | None) -> tuple[bool, str | None]:
    """Is it right, and the hash that should replace the known one."""
    right = fits(password, known)
    return right, hash_password(password) if right and known is not None and is_outdated(known) else None
