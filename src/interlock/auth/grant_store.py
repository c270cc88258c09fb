"""What was granted and how long it lasts: codes that count once, and families of refresh tokens.

Only hashes are kept: who reads the store can use nothing of it. A code or a refresh token that comes a second time was
stolen, by whoever came first or second: everything that grew from it ends (RFC 9700 §2.2.2, §4.14.2). Of several who
come at the same moment the store lets one through.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from ..state.store import Store
from .clients import hashed
from .replies import OAuthError

__all__ = ["Grant", "GrantStore"]

_CODE_SECONDS = 60.0
_MOST_SPENT = 32  # refresh tokens of a family that are known as used; older ones are simply unknown
_USED, _ENDED = b"used ", b""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a person allowed a client."""

    client: str
    subject: str
    scopes: tuple[str, ...]
    resource: str
    family: str
    key: str | None = None
    """The key that tokens are bound to (RFC 9449 §5); of a public client it binds refresh tokens, too."""
    redirect_uri: str = ""
    challenge: str = ""


class _Family(msgspec.Struct, frozen=True):
    grant: Grant
    current: str
    spent: tuple[str, ...] = ()


class GrantStore:
    def __init__(self, store: Store, issuer: str, clock: Any, refresh_seconds: float) -> None:
        self._store, self._owner, self._clock, self._seconds = store, f"as {issuer}"[:400], clock, refresh_seconds

    # --- codes ------------------------------------------------------------------------------------

    async def new_code(self, grant: Grant) -> str:
        code = secrets.token_urlsafe(32)
        await self._put(f"code/{hashed(code)}", msgspec.json.encode(grant), _CODE_SECONDS, expect=0)
        return code

    async def redeem(self, code: str, client: str) -> Grant:
        """The grant behind a code, for the client it was given to, once; `invalid_grant` for everybody else."""
        key = f"code/{hashed(code)}"
        entry = await self._store.get(key, owner=self._owner)
        if entry is None:
            raise _no("the code is not known, or has expired")
        used = entry.value.startswith(_USED)
        grant = msgspec.json.decode(entry.value.removeprefix(_USED), type=Grant)
        if grant.client != client:
            raise _no("the code is not known, or has expired")  # it stays usable for whom it was given to
        if not used:
            used = not await self._put(key, _USED + entry.value, _CODE_SECONDS * 10, expect=entry.version)
        if used:
            await self.end(grant.family)
            raise _no("the code was used before: all that came of it has ended")
        return grant

    # --- refresh tokens ---------------------------------------------------------------------------

    async def begin(self, grant: Grant) -> str:
        """The first refresh token of a family; none for one that has ended already."""
        token = self._token(grant.family)
        value = msgspec.json.encode(_Family(grant, hashed(token)))
        if not await self._put(f"family/{grant.family}", value, self._seconds, expect=0):
            raise _no("the code was used before: all that came of it has ended")
        return token

    async def behind(self, token: str, client: str) -> Grant:
        """What a refresh token stands for; nothing is known yet about whether it still counts."""
        _, _, family = await self._family_of(token)
        if family is None or family.grant.client != client:
            raise _no("the refresh token is not known, or has ended")
        return family.grant

    async def rotate(self, token: str, client: str, key: str | None) -> tuple[Grant, str]:
        """The grant and the next token; the one given counts no more (AUTH-SEC-005)."""
        name, version, family = await self._family_of(token)
        if family is None or family.grant.client != client:
            raise _no("the refresh token is not known, or has ended")
        if family.current != hashed(token):
            if hashed(token) in family.spent:
                await self.end(name)
            raise _no("the refresh token is not known, or has ended")
        if family.grant.key is not None and family.grant.key != key:
            raise _no("the refresh token is bound to another key")
        fresh = self._token(name)
        spent = (*family.spent, family.current)[-_MOST_SPENT:]
        value = msgspec.json.encode(_Family(family.grant, hashed(fresh), spent))
        if not await self._put(f"family/{name}", value, self._seconds, expect=version):
            await self.end(name)  # somebody used it at the same moment
            raise _no("the refresh token was used before: all that came of it has ended")
        return family.grant, fresh

    async def revoke(self, token: str, client: str) -> None:
        """Of its own client only; for others nothing happens (RFC 7009 §2.1)."""
        name, _, family = await self._family_of(token)
        if family is None or family.grant.client != client:
            return
        if hashed(token) in (family.current, *family.spent):
            await self.end(name)

    async def end(self, family: str) -> None:
        """From now on, also for who is just about to begin or to go on with it."""
        await self._put(f"family/{family}", _ENDED, self._seconds)

    async def first_use(self, name: str, until: float) -> bool:
        """Did nobody come with this before? For assertions and proofs, which count once."""
        return await self._store.put(f"once/{hashed(name)}", b"", until=until, owner=self._owner, expect=0) > 0

    async def _family_of(self, token: str) -> tuple[str, int, _Family | None]:
        name, dot, _ = token.partition(".")
        entry = await self._store.get(f"family/{name}", owner=self._owner) if dot and len(name) < 64 else None
        if entry is None or entry.value == _ENDED:
            return name, 0, None
        return name, entry.version, msgspec.json.decode(entry.value, type=_Family)

    def _token(self, family: str) -> str:
        return f"{family}.{secrets.token_urlsafe(32)}"

    async def _put(self, key: str, value: bytes, seconds: float, expect: int | None = None) -> bool:
        until = self._clock() + seconds
        return await self._store.put(key, value, until=until, owner=self._owner, expect=expect) > 0


def _no(told: str) -> OAuthError:
    return OAuthError("invalid_grant", told)
