"""What was granted and how long it lasts: codes that count once, and families of refresh tokens.

The store holds hashes, and the newest answers sealed: reading it yields no code and no token. A code or a refresh token
that comes a second time may have been stolen, so everything that grew from it ends (RFC 9700 §2.2.2, §4.14.2). One
second use is not a theft: a client on several machines refreshes on two of them at once, or repeats a request whose
answer was lost. For `REPLAY_TTL` seconds the same client with the same DPoP key gets the same answer again. Of several
requests at the same moment, at any worker, the store lets one rotate the token.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from ...state.sealing import Seal
from ...state.store import Store
from .client_metadata import hashed
from .responses import OAuthError

__all__ = ["Grant", "GrantStore"]

_CODE_SECONDS = 60.0
_MOST_SPENT = 32  # refresh tokens of a family that are known as used; older ones are unknown
REPLAY_TTL = 60.0  # seconds in which a refresh token that was used gets its answer again
MAX_REPLAYS = 4  # answers of a family that are kept for that
_USED, _ENDED = b"used ", b""
_UNKNOWN = "the refresh token is not known, or has ended"


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


class _Replay(msgspec.Struct, frozen=True):
    """The answer that a refresh token got."""

    token: str
    key: str | None
    at: float
    sealed: str


class _Family(msgspec.Struct, frozen=True):
    grant: Grant
    current: str
    spent: tuple[str, ...] = ()
    replays: tuple[_Replay, ...] = ()


class GrantStore:
    def __init__(
        self, store: Store, issuer: str, clock: Callable[[], float], refresh_seconds: float, seal: Seal
    ) -> None:
        self._store, self._owner, self._clock, self._seconds = store, f"as {issuer}"[:400], clock, refresh_seconds
        self._seal = seal

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
        return (await self._find(token, client))[2].grant

    async def rotate(
        self, token: str, client: str, key: str | None, answer: Callable[[Grant], dict[str, Any]]
    ) -> dict[str, Any]:
        """`answer(grant)` with the next refresh token; the one given counts no more (AUTH-SEC-005).

        Where it was used a moment ago, the answer it got then.
        """
        name, version, family = await self._find(token, client)
        if family.current != hashed(token):
            return await self._replay(name, family, token, key)
        if family.grant.key is not None and family.grant.key != key:
            raise _no("the refresh token is bound to another key")
        fresh = self._token(name)
        made = answer(family.grant) | {"refresh_token": fresh}
        value = msgspec.json.encode(self._next(family, fresh, key, made))
        if await self._put(f"family/{name}", value, self._seconds, expect=version):
            return made
        name, _, family = await self._find(token, client)  # another request came first: its answer, if it rotated
        return await self._replay(name, family, token, key)

    def _next(self, family: _Family, fresh: str, key: str | None, made: dict[str, Any]) -> _Family:
        """In one record, written at once: no worker sees the token used and its answer missing."""
        now = self._clock()
        kept = [each for each in family.replays if abs(now - each.at) <= REPLAY_TTL]
        replay = _Replay(family.current, key, now, self._seal.seal(msgspec.json.encode(made)))
        spent = (*family.spent, family.current)[-_MOST_SPENT:]
        return _Family(family.grant, hashed(fresh), spent, (*kept, replay)[-MAX_REPLAYS:])

    async def _replay(self, name: str, family: _Family, token: str, key: str | None) -> dict[str, Any]:
        """The answer that a used token got, for the same key and a short time; otherwise its family ends."""
        used, now = hashed(token), self._clock()
        if used not in family.spent:
            raise _no(_UNKNOWN)
        for replay in family.replays:
            if replay.token != used or replay.key != key or abs(now - replay.at) > REPLAY_TTL:
                continue
            opened = self._seal.open(replay.sealed)
            if opened is not None:
                made = msgspec.json.decode(opened, type=dict[str, Any])
                return made | {"expires_in": max(0, made["expires_in"] - int(max(0.0, now - replay.at)))}
        await self.end(name)
        raise _no("the refresh token was used before: all that came of it has ended")

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

    async def _find(self, token: str, client: str) -> tuple[str, int, _Family]:
        """The family of a token that was given to this client. A used one in other hands was stolen."""
        name, version, family = await self._family_of(token)
        if family is None:
            raise _no(_UNKNOWN)
        if family.grant.client != client:
            if hashed(token) in family.spent:
                await self.end(name)
            raise _no(_UNKNOWN)
        return name, version, family

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
