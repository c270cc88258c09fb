"""The authorization endpoint: a request is checked, a person is asked, and only his yes makes a code.

Nothing is kept before somebody has said yes: what was asked travels sealed in the page, bound to the browser that got
it by a cookie. There is no way to say yes but to post that page with a name and a password.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

import msgspec

from ...wire.errors import StoreFull
from ...wire.lazy_regex import pattern
from ..jose.signer import base64url
from .client_metadata import CODE, KnownClient
from .client_store import ClientStore
from .consent_page import consent_page, error_page
from .grant_store import Grant, GrantStore
from .responses import OAuthError, Reply, read_form, redirect
from .server import AuthorizationServer
from .user_login import DEVICE_TTL, UserLogin

__all__ = ["Door"]

_CHALLENGE = pattern(r"[A-Za-z0-9_-]{43}")
_THUMBPRINT = _BROWSER = pattern(r"[A-Za-z0-9_-]{43}")
_SECONDS = 600.0  # to read the page and to say yes
_LONGEST_STATE = 2048


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, as it travels in the page."""

    client: str
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    challenge: str
    state: str | None
    key: str | None
    browser: str
    until: float
    once: str


class Door:
    def __init__(self, server: AuthorizationServer, clients: ClientStore, grants: GrantStore) -> None:
        self._server, self._clients, self._grants = server, clients, grants
        secure = server.origin.startswith("https:")
        self._cookie = "__Host-interlock-consent" if secure else "interlock-consent"
        self._device_cookie = "__Host-interlock-device" if secure else "interlock-device"
        self._flags = f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
        self._login = UserLogin(server)

    # --- the request ------------------------------------------------------------------------------

    async def show(self, query: str, cookies: str = "", address: str = "") -> Reply:
        """The page, for a request that is in order. Before a client and its redirect URI are known nobody is sent."""
        try:
            form = read_form(query)
            client = await self._clients.find(form.get("client_id"), address)
            uri = _redirect_of(client, form.get("redirect_uri"))
        except OAuthError as error:
            return error_page(str(error), 429 if error.status == 429 else 400)
        try:
            asked = self._asked(form, client, uri)
        except OAuthError as error:
            return self._refused(client, uri, form.get("state"), error)
        known = _cookie_in(cookies, self._cookie)  # a browser that asks twice has two pages, and answers either
        browser = known if _BROWSER.fullmatch(known) else secrets.token_urlsafe(32)
        asked = msgspec.structs.replace(asked, browser=_mark(browser))
        return self._page(asked, client, headers=(self._set_cookie(self._cookie, browser, _SECONDS),))

    def _set_cookie(self, name: str, value: str, seconds: float) -> tuple[str, str]:
        return "set-cookie", f"{name}={value}; Max-Age={int(seconds)}; {self._flags}"

    def _asked(self, form: Mapping[str, str], client: KnownClient, uri: str) -> _Asked:
        if form.get("response_type") != "code":
            raise OAuthError("unsupported_response_type", "response_type is code")
        if form.get("response_mode", "query") != "query":
            raise OAuthError("invalid_request", "response_mode is query")
        if CODE not in client.grants:
            raise OAuthError("unauthorized_client", "this client may not use codes")
        challenge = form.get("code_challenge", "")
        if form.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
            raise OAuthError("invalid_request", "PKCE is needed, with S256")
        key = form.get("dpop_jkt")
        if len(form.get("state", "")) > _LONGEST_STATE or (key is not None and not _THUMBPRINT.fullmatch(key)):
            raise OAuthError("invalid_request", "state is too long, or dpop_jkt no thumbprint")
        resource = self._server.resource_of(form.get("resource"))
        if resource is None:
            raise OAuthError("invalid_target", "resource is none that tokens are given for here")
        scopes = self._server.scopes_for(form.get("scope"), client.scopes)
        if scopes is None:
            raise OAuthError("invalid_scope", "none of these scopes is known here")
        return _Asked(
            client=client.id,
            redirect_uri=uri,
            scopes=scopes,
            resource=resource,
            challenge=challenge,
            state=form.get("state"),
            key=key,
            browser="",
            until=self._server.clock() + _SECONDS,
            once=secrets.token_urlsafe(16),
        )

    def _refused(self, client: KnownClient, uri: str, state: str | None, error: OAuthError) -> Reply:
        """To clients of the owner by redirect. Others could use us to send people anywhere (AUTH-SEC-015)."""
        if client.kind != "owner":
            return error_page(f"{error.error}: {error}")
        return self._back(uri, state, error=error.error, error_description=str(error))

    def _back(self, uri: str, state: str | None, **members: str) -> Reply:
        return redirect(uri, **members, state=state, iss=self._server.issuer)

    def _page(
        self,
        asked: _Asked,
        client: KnownClient,
        *,
        wrong: str | None = None,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        ticket = self._server.seal.seal(msgspec.json.encode(asked))
        where = self._server.endpoint("authorize")
        return consent_page(
            client,
            asked.redirect_uri,
            asked.scopes,
            asked.resource,
            ticket,
            action=where,
            wrong=wrong,
            status=status,
            headers=headers,
        )

    # --- the answer -------------------------------------------------------------------------------

    async def decide(self, body: bytes, headers: Mapping[str, str], address: str = "") -> Reply:
        """What the person posted. `headers` have names in small letters."""
        try:
            form = read_form(body)
            asked = self._ticket_in(form, headers)
            client = await self._clients.find(asked.client, address)
            if not client.may_redirect(asked.redirect_uri):
                raise OAuthError("invalid_request", "the client has changed since it asked")
        except OAuthError as error:
            return error_page(str(error))
        if form.get("decision") != "allow":
            return self._back(asked.redirect_uri, asked.state, error="access_denied")
        device = _cookie_in(headers.get("cookie", ""), self._device_cookie)
        user = await self._login.log_in(form.get("user", ""), form.get("password", ""), address, device)
        if isinstance(user, str):
            return self._page(asked, client, wrong=user, status=403)
        reply = await self._granted(asked, user.subject)
        known = self._set_cookie(self._device_cookie, user.device, DEVICE_TTL)
        return msgspec.structs.replace(reply, headers=(*reply.headers, known))

    def _ticket_in(self, form: Mapping[str, str], headers: Mapping[str, str]) -> _Asked:
        """Of a page that this browser got from us, not long ago; a page of somebody else cannot post it."""
        site, origin = headers.get("sec-fetch-site", "same-origin"), headers.get("origin", self._server.origin)
        if site != "same-origin" or origin != self._server.origin:
            raise OAuthError("invalid_request", "this was posted by another page")
        opened = self._server.seal.open(form.get("ticket", ""))
        if opened is None:
            raise OAuthError("invalid_request", "this page is not of this server, or too old")
        asked = msgspec.json.decode(opened, type=_Asked)
        cookie = _cookie_in(headers.get("cookie", ""), self._cookie)
        if asked.until < self._server.clock() or not hmac.compare_digest(_mark(cookie), asked.browser):
            raise OAuthError("invalid_request", "this page is too old, or was opened in another browser")
        return asked

    async def _granted(self, asked: _Asked, subject: str) -> Reply:
        try:
            if not await self._server.seal.consume(asked.once, asked.until):
                return error_page("this page was answered before")
            grant = Grant(
                client=asked.client,
                subject=subject,
                scopes=asked.scopes,
                resource=asked.resource,
                family=secrets.token_urlsafe(16),
                key=asked.key,
                redirect_uri=asked.redirect_uri,
                challenge=asked.challenge,
            )
            code = await self._grants.new_code(grant)
        except StoreFull:
            return self._back(asked.redirect_uri, asked.state, error="temporarily_unavailable")
        return self._back(asked.redirect_uri, asked.state, code=code)


def _redirect_of(client: KnownClient, asked: str | None) -> str:
    if asked is None and len(client.redirect_uris) == 1:
        return client.redirect_uris[0]
    if asked is None or not client.may_redirect(asked):
        raise OAuthError("invalid_request", "the redirect URI is none of this client's")
    return asked


def _mark(browser: str) -> str:
    return base64url(hashlib.sha256(browser.encode("utf-8", "surrogatepass")).digest())


def _cookie_in(header: str, name: str) -> str:
    """Of several of one name none: somebody else may have set the other."""
    pairs = [pair.strip().partition("=") for pair in header.split(";")]
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else ""
