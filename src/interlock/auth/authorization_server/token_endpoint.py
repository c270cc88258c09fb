"""The token endpoint and the one where tokens are given back: who asks, with what, and what he gets for it.

Every grant ends in the same place: a short token for one resource. What is wrong is told in the words of the standard,
and a failed try costs the code it was made with.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote_plus

from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from ..flow import Ask, Said
from ..jose.dpop_proof import BadProof, Proof, check_proof
from ..jose.jwt import BadToken, is_token, read_written, text_of
from ..jose.signer import base64url
from .assertions import ASSERTION_TYPE, ID_JAG, check_client_assertion, check_identity
from .attempt_limiter import Guesses, place_of
from .client_metadata import CODE, JWT_BEARER, MACHINE, REFRESH, KnownClient, hashed
from .client_store import ClientStore
from .grant_store import Grant, GrantStore
from .responses import OAuthError, Reply, as_json, read_form
from .server import AuthorizationServer
from .workload_identity import check_workload

__all__ = ["Desk"]

_TRIES, _PAUSE = 10, 6.0  # wrong secrets of one client from one place; then one every so many seconds
_VERIFIER = pattern(r"[A-Za-z0-9._~-]{43,128}")

_NOBODY = KnownClient(id="", grants=(JWT_BEARER,))
"""Who shows no more than the statement of a platform."""
log = logging.getLogger("interlock.auth")


class Desk:
    def __init__(
        self,
        server: AuthorizationServer,
        clients: ClientStore,
        grants: GrantStore,
        ask: Callable[[Ask], Awaitable[Said]],
    ) -> None:
        self._server, self._clients, self._grants, self._ask = server, clients, grants, ask
        self._guesses = Guesses(server.clock, _TRIES, _PAUSE)
        self._kinds = {CODE: self._code, REFRESH: self._refresh, MACHINE: self._machine, JWT_BEARER: self._identity}

    async def token(self, body: bytes, headers: Mapping[str, str], address: str = "") -> Reply:
        """One token request (RFC 6749 §3.2). `address` is where it comes from, as far as that is known."""
        try:
            form = read_form(body)
            grant = self._kinds.get(form.get("grant_type", ""))
            if grant is None or (grant == self._identity and not (self._server.providers or self._server.platforms)):
                raise OAuthError("unsupported_grant_type", "this grant_type is not known here")
            nobody = grant == self._identity and not _names_client(form, headers)
            client = _NOBODY if nobody else await self._client(form, headers, address)
            if form["grant_type"] not in client.grants:
                raise OAuthError("unauthorized_client", "this client may not use this grant")
            proof = self._proof(client, headers)
            answer = await grant(form, client, None if proof is None else proof.key)
            await self._count(proof)
            await self._clients.used(client)
        except OAuthError as error:
            return error.reply()
        return as_json(200, answer)

    async def revoke(self, body: bytes, headers: Mapping[str, str], address: str = "") -> Reply:
        """Give a refresh token back, and with it all that came of it (RFC 7009). Access tokens end by themselves."""
        try:
            form = read_form(body)
            client = await self._client(form, headers, address)
            token = form.get("token")
            if token is None:
                raise OAuthError("invalid_request", "token is missing")
            if is_token(token):
                raise OAuthError("unsupported_token_type", "access tokens end by themselves, within minutes")
            await self._grants.revoke(token, client.id)
        except OAuthError as error:
            return error.reply()
        return as_json(200, {})

    # --- who asks ---------------------------------------------------------------------------------

    async def _client(self, form: Mapping[str, str], headers: Mapping[str, str], address: str) -> KnownClient:
        """The client, authenticated in the one way it used (§2.3); a public one is who it says."""
        basic, assertion = _basic_in(headers.get("authorization")), form.get("client_assertion")
        if sum((basic is not None, "client_secret" in form, assertion is not None)) > 1:
            raise OAuthError("invalid_request", "one way to authenticate is enough")
        try:
            if assertion is not None:
                return await self._by_assertion(form, assertion, address)
            id, secret = basic or (form.get("client_id"), form.get("client_secret"))
            if form.get("client_id", id) != id:
                raise OAuthError("invalid_client", "two different clients", 401)
            client = await self._clients.find(id, address)
            if secret is None and client.public:
                return client
            if secret is None or not self._knows(client, secret, address):
                raise OAuthError("invalid_client", "the client is not known, or its secret is wrong", 401)
            return client
        except OAuthError as error:
            if error.error == "invalid_client" and basic is not None:
                asked = ("www-authenticate", 'Basic realm="token"')
                raise OAuthError(error.error, str(error), 401, asked) from None
            raise

    def _knows(self, client: KnownClient, secret: str, address: str) -> bool:
        """By place and client: who guesses elsewhere makes the client itself not wait, nor anybody who signs."""
        guessed = f"{place_of(address)} {hashed(client.id)}"
        if wait := self._guesses.take(guessed):
            again = ("retry-after", str(math.ceil(wait)))
            raise OAuthError("temporarily_unavailable", "too many wrong secrets: try again later", 429, again)
        if not client.has_secret(secret):
            return False
        self._guesses.right(guessed)
        return True

    async def _by_assertion(self, form: Mapping[str, str], assertion: str, address: str) -> KnownClient:
        if form.get("client_assertion_type") != ASSERTION_TYPE:
            raise OAuthError("invalid_client", "client_assertion_type is not known", 401)
        audiences = (self._server.issuer, self._server.endpoint("token"))
        find, now = partial(self._clients.find, address=address), self._server.clock()
        client, once, until = await check_client_assertion(assertion, find, audiences, now)
        if form.get("client_id", client.id) != client.id or not await self._grants.first_use(once, until):
            raise OAuthError("invalid_client", "the assertion is of another client, or was used before", 401)
        return client

    def _proof(self, client: KnownClient, headers: Mapping[str, str]) -> Proof | None:
        """Of the key that the token is to be bound to (RFC 9449 §5)."""
        proof = headers.get("dpop")
        if proof is None:
            if client.bound:
                raise OAuthError("invalid_dpop_proof", "this client gets tokens for a key only: send a proof")
            return None
        try:
            return check_proof(proof, "POST", self._server.endpoint("token"), self._server.clock())
        except BadProof as bad:
            raise OAuthError("invalid_dpop_proof", str(bad)) from None

    async def _count(self, proof: Proof | None) -> None:
        """Of proofs that got a token only: others can be made by anybody, and would fill the store."""
        if proof is not None and not await self._grants.first_use(f"dpop {proof.once}", proof.until):
            raise OAuthError("invalid_dpop_proof", "the proof was used before")

    # --- what for ---------------------------------------------------------------------------------

    async def _code(self, form: Mapping[str, str], client: KnownClient, key: str | None) -> dict[str, Any]:
        code, verifier = form.get("code"), form.get("code_verifier", "")
        if code is None:
            raise OAuthError("invalid_request", "code is missing")
        grant = await self._grants.redeem(code, client.id)
        if form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            raise OAuthError("invalid_grant", "redirect_uri is another one than before")
        proved = base64url(hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest())
        if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(proved, grant.challenge):
            raise OAuthError("invalid_grant", "code_verifier does not fit")
        if grant.key is not None and grant.key != key:
            raise OAuthError("invalid_grant", "the code is bound to another key")
        self._same_resource(form, grant.resource)
        answer = self._server.access_token(grant.subject, client.id, grant.scopes, grant.resource, key)
        if REFRESH in client.grants:
            kept = _rebound(grant, key if client.public else None)
            answer["refresh_token"] = await self._grants.begin(kept)
        return answer

    async def _refresh(self, form: Mapping[str, str], client: KnownClient, key: str | None) -> dict[str, Any]:
        token = form.get("refresh_token")
        if token is None:
            raise OAuthError("invalid_request", "refresh_token is missing")
        held = await self._grants.behind(token, client.id)  # what is asked for wrongly costs no login
        self._same_resource(form, held.resource)
        scopes = self._narrowed(form.get("scope"), held.scopes)

        def answer(grant: Grant) -> dict[str, Any]:
            return self._server.access_token(grant.subject, client.id, scopes, grant.resource, key)

        return await self._grants.rotate(token, client.id, key, answer)

    def _narrowed(self, asked: str | None, granted: tuple[str, ...]) -> tuple[str, ...]:
        """Never more than was granted (RFC 6749 §6); nothing of it at all is no request for a token."""
        if asked is None:
            return granted
        found = tuple(scope for scope in asked.split(" ") if scope in granted)
        if granted and not found:
            raise OAuthError("invalid_scope", "none of these scopes was granted")
        return found

    async def _machine(self, form: Mapping[str, str], client: KnownClient, key: str | None) -> dict[str, Any]:
        """A client for itself (RFC 6749 §4.4): only one that the owner named, and that showed who it is."""
        if client.public or client.kind != "owner":
            raise OAuthError("unauthorized_client", "this client may not use this grant")
        resource, scopes = self._resource(form), self._server.scopes_for(form.get("scope"), client.scopes)
        if scopes is None:
            raise OAuthError("invalid_scope", "none of these scopes is known here")
        return self._server.access_token(client.id, client.id, scopes, resource, key)

    async def _identity(self, form: Mapping[str, str], client: KnownClient, key: str | None) -> dict[str, Any]:
        """Somebody of an enterprise, by what its own provider says (ID-JAG); or a program of a platform."""
        if client is _NOBODY:
            return await self._workload(form, key)
        if client.public and client.kind != "document":
            raise OAuthError("invalid_client", "this grant needs a client that authenticates", 401)
        found = await check_identity(form.get("assertion", ""), client.id, self._server, self._ask)
        resource = self._server.resource_of(found.resource or form.get("resource"))
        if resource is None:
            raise OAuthError("invalid_grant", "the assertion is for a resource that is not here")
        self._same_resource(form, resource)
        asked = form.get("scope")
        wanted = found.scopes if asked is None else tuple(word for word in asked.split(" ") if word in found.scopes)
        if not await self._grants.first_use(found.once, found.until):
            raise OAuthError("invalid_grant", "the assertion was used before")
        scopes = tuple(scope for scope in wanted if scope in self._server.scopes)
        return self._server.access_token(found.subject, client.id, scopes, resource, key)

    async def _workload(self, form: Mapping[str, str], key: str | None) -> dict[str, Any]:
        """A program, by what its platform says; it needs no client id (EXT-WIF-001)."""
        try:
            written = read_written(form.get("assertion", ""))
            issuer = text_of(written.claims, "iss")
            known = self._server.platforms.get(issuer or "")
            if written.type == ID_JAG:
                raise OAuthError("invalid_client", "this grant needs a client that authenticates", 401)
            if known is None:
                raise BadToken("its issuer is not trusted here")
            platform, keys = known
            found = check_workload(written, platform, await keys.of(written.key_id, self._ask), self._server)
        except BadToken as bad:
            log.info("! a workload was refused: %s", bad)
            raise OAuthError("invalid_grant", f"the assertion is not accepted: {bad}") from None
        resource, scopes = self._resource(form), self._narrowed(form.get("scope"), found.workload.scopes)
        if found.once is not None and not await self._grants.first_use(found.once, found.until):
            raise OAuthError("invalid_grant", "the assertion was used before")
        log.info("= a token for the workload %s", display(found.subject, 200))
        return self._server.access_token(found.subject, found.subject, scopes, resource, key)

    def _resource(self, form: Mapping[str, str]) -> str:
        found = self._server.resource_of(form.get("resource"))
        if found is None:
            raise OAuthError("invalid_target", "resource is none that tokens are given for here")
        return found

    def _same_resource(self, form: Mapping[str, str], allowed: str) -> None:
        """A token is for what was allowed, whatever is asked for later (RFC 8707 §2.2)."""
        if "resource" in form and self._server.resource_of(form["resource"]) != allowed:
            raise OAuthError("invalid_target", "resource is another one than was allowed")


def _names_client(form: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Does anybody say which client asks?"""
    return "authorization" in headers or any(
        name in form for name in ("client_id", "client_secret", "client_assertion")
    )


def _rebound(grant: Grant, key: str | None) -> Grant:
    return Grant(
        client=grant.client,
        subject=grant.subject,
        scopes=grant.scopes,
        resource=grant.resource,
        family=grant.family,
        key=key,
    )


def _basic_in(header: str | None) -> tuple[str, str] | None:
    """Name and secret, each encoded as in a form (§2.3.1)."""
    if header is None:
        return None
    scheme, _, value = header.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError("another scheme")
        id, colon, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        if not colon:
            raise ValueError("no pair")
        return unquote_plus(id, errors="strict"), unquote_plus(secret, errors="strict")
    except (ValueError, binascii.Error):
        raise OAuthError("invalid_client", "Authorization is no pair of a name and a secret", 401) from None
