"""Which client an id stands for: one of the owner's, one that registered itself, or a document that has to be read.

Strangers can register and name documents, so both are bounded: so many a minute, of such a size, and forgotten again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ...wire.errors import InterlockError, StoreFull
from ...wire.json.reader import read_members
from ..flow import Ask, Said
from .attempt_limiter import Guesses, place_of
from .client_metadata import KnownClient, hashed, is_document_id, read_document, read_metadata
from .responses import OAuthError
from .server import AuthorizationServer

__all__ = ["ClientStore", "Meter"]

_UNUSED = 3600.0  # seconds until a client that registered itself and never got a token is forgotten
_USED = 90 * 86400.0  # and one that did, since the last time
_A_MINUTE = 60  # registrations, and documents that are fetched; further ones wait
_FROM_ONE_PLACE = 15  # of them
_DOCUMENT_BYTES = 10 * 1024
_KEPT, _KEPT_MOST, _KEPT_LEAST = 300.0, 86400.0, 10.0  # seconds that a document is used again
_METHODS = ("none", "client_secret_basic", "client_secret_post")
_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,9})\"?\s*(?:,|$)")
_LONGEST_ID = 2048


class Meter:
    """So many in a minute, and fewer of them from one place: who floods us from there leaves room for others."""

    def __init__(self, clock: Callable[[], float], most: int = _A_MINUTE, each: int = _FROM_ONE_PLACE) -> None:
        self._all, self._each = Guesses(clock, most, 60 / most, 1), Guesses(clock, each, 60 / each)

    def take(self, address: str = "") -> bool:
        place = place_of(address)
        return not (place and self._each.take(place)) and not self._all.take("")


class ClientStore:
    def __init__(self, server: AuthorizationServer, ask: Callable[[Ask], Awaitable[Said]]) -> None:
        self._server, self._ask = server, ask
        self._owner = f"as {server.issuer}"[:400]
        self._registered, self._fetched = Meter(server.clock), Meter(server.clock)

    async def find(self, id: str | None, address: str = "") -> KnownClient:
        """The client, or `invalid_client`. `address` is where somebody asks for it from, as far as that is known."""
        if id is None or len(id) > _LONGEST_ID:
            raise _unknown()
        if (own := self._server.clients.get(id)) is not None:
            return own
        if is_document_id(id):
            return await self._document(id, address)
        entry = await self._server.store.get(f"client/{hashed(id)}", owner=self._owner)
        if entry is None:
            raise _unknown()
        return msgspec.json.decode(entry.value, type=KnownClient)

    async def used(self, client: KnownClient) -> None:
        """A client that got a token is worth remembering."""
        if client.kind == "registered":
            await self._keep(client, _USED)

    # --- registration (RFC 7591) ------------------------------------------------------------------

    async def register(self, body: bytes, address: str = "") -> dict[str, Any]:
        """What to answer to who registers; `OAuthError` for who may not."""
        if not self._registered.take(address):
            raise OAuthError("temporarily_unavailable", "too many registrations: try again", 429, ("retry-after", "60"))
        try:
            members = read_members(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise OAuthError("invalid_client_metadata", "the registration is no JSON object") from None
        id = secrets.token_urlsafe(18)
        found, method = read_metadata(members, id, methods=_METHODS, schemes=self._server.schemes)
        secret = None if method == "none" else secrets.token_urlsafe(32)
        secret_hash = None if secret is None else hashed(secret)
        client = msgspec.structs.replace(found, kind="registered", secret_hash=secret_hash)
        await self._keep(client, _UNUSED)
        return _told(client, method, secret, members, int(self._server.clock()))

    async def _keep(self, client: KnownClient, seconds: float) -> None:
        value, until = msgspec.json.encode(client), self._server.clock() + seconds
        try:
            await self._server.store.put(f"client/{hashed(client.id)}", value, until=until, owner=self._owner)
        except StoreFull:
            raise OAuthError("temporarily_unavailable", "no room: try again later", 503) from None

    # --- documents --------------------------------------------------------------------------------

    async def _document(self, id: str, address: str) -> KnownClient:
        if not self._server.documents:
            raise _unknown()
        key = f"document/{hashed(id)}"
        entry = await self._server.store.get(key, owner=self._owner)
        if entry is not None:
            if not entry.value:
                raise _unread()
            return read_document(entry.value, id)
        if not self._fetched.take(address):
            raise OAuthError("temporarily_unavailable", "too many new clients: try again", 429, ("retry-after", "60"))
        body, seconds = b"", _KEPT_LEAST
        try:
            body, seconds = await self._fetch(id)
            return read_document(body, id)
        except OAuthError:
            body, seconds = b"", _KEPT_LEAST  # not asked again at once
            raise
        finally:
            until = self._server.clock() + seconds
            with suppress(StoreFull):  # then it is fetched again the next time, at the same rate
                await self._server.store.put(key, body, until=until, owner=self._owner)

    async def _fetch(self, id: str) -> tuple[bytes, float]:
        """From where it says it is and from nowhere else: no redirects, nothing large, nothing inside our network."""
        try:
            said = await self._ask(Ask(url=id))
        except (InterlockError, OSError, TimeoutError):
            raise _unread() from None
        if said.status != 200 or not (said.media == "application/json" or said.media.endswith("+json")):
            raise _unread()
        if len(said.body) > _DOCUMENT_BYTES:
            raise _unread()
        return said.body, _seconds_in(said.headers.get("cache-control", ""))


def _seconds_in(control: str) -> float:
    """How long a document may be used again, by its own header and within our bounds."""
    control = control.lower()
    if "no-store" in control or "no-cache" in control:
        return _KEPT_LEAST
    found = _AGE.search(control)
    return _KEPT if found is None else min(max(float(found[1]), _KEPT_LEAST), _KEPT_MOST)


def _told(client: KnownClient, method: str, secret: str | None, members: Mapping[str, Any], now: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "client_id": client.id,
        "client_id_issued_at": now,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(client.grants),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }
    if client.name:
        told["client_name"] = client.name
    if members.get("application_type") in ("web", "native"):
        told["application_type"] = members["application_type"]
    if client.bound:
        told["dpop_bound_access_tokens"] = True
    return told | ({"client_secret": secret, "client_secret_expires_at": 0} if secret is not None else {})


def _unknown() -> OAuthError:
    return OAuthError("invalid_client", "this client is not known here", 401)


def _unread() -> OAuthError:
    return OAuthError("invalid_client", "the document of this client is not to be had", 401)
