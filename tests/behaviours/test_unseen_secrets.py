"""Nothing secret is seen: one life of a login between our client, our server and our authorization server, in which
whatever is secret is noted where it is made, and then looked for in all that anybody could read.

What could be read: every log of every library at DEBUG, what is printed, every error of ours that is made on either
side, told or not, and the reprs of all that takes part.
"""

from __future__ import annotations

import asyncio
import base64
import html
import logging
import re
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, quote_plus, urlsplit

import aiohttp
import pytest

from interlock import AuthorizationFailed, AuthorizationServer, Client, KnownClient, OAuth, Server, hash_password
from interlock.auth.authorization_server import grant_store
from interlock.auth.authorization_server.client_metadata import hash_secret
from interlock.auth.authorization_server.responses import OAuthError
from interlock.auth.client.driver import Authorizer, drive
from interlock.auth.client.providers import ClientCredentials
from interlock.auth.client.token_manager import Seeker
from interlock.auth.client.token_storage import FileRecords
from interlock.auth.jose.jwt import BadToken
from interlock.auth.jose.signer import base64url, new_key
from interlock.auth.secrets import Secret
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import HttpStatus, InterlockError

PASSWORD = "correct horse battery"
CLIENT_SECRET = "s3cret+of/the=owner-0123456789"
CALLBACK = "http://127.0.0.1:7777/callback"


class Watch:
    """What is secret, and what can be read."""

    def __init__(self, caplog, monkeypatch) -> None:
        self.secrets: set[str] = {PASSWORD, CLIENT_SECRET}
        self.errors: list[Exception] = []
        self.shown: list[object] = []
        self._caplog = caplog
        self._every_logger(caplog, monkeypatch)
        self._note(monkeypatch, Secret, lambda secret, text: self.secrets.add(text))
        for kind in (InterlockError, OAuthError, BadToken):
            self._note(monkeypatch, kind, lambda error, *_, **__: self.errors.append(error))

    @staticmethod
    def _every_logger(caplog, monkeypatch) -> None:
        caplog.set_level(logging.DEBUG)
        for name, logger in [*logging.root.manager.loggerDict.items()]:
            if isinstance(logger, logging.Logger):
                monkeypatch.setattr(logger, "propagate", True)
                caplog.set_level(logging.DEBUG, logger=name)

    @staticmethod
    def _note(monkeypatch, kind, note) -> None:
        inner = kind.__init__

        def noted(self, *args, **more):
            inner(self, *args, **more)
            note(self, *args, **more)

        monkeypatch.setattr(kind, "__init__", noted)

    def spellings(self) -> set[str]:
        """As it is, as a form and as Basic writes it; of a key every line, of a URL what it holds."""
        found: set[str] = set()
        for secret in self.secrets:
            for each in [secret, *secret.splitlines(), *dict(parse_qsl(urlsplit(secret).query)).values()]:
                found |= {each, quote_plus(each), base64url(each.encode()), base64.b64encode(each.encode()).decode()}
        return {each for each in found if len(each) >= 12} - {CALLBACK, "access_denied", *self.public}

    public: frozenset[str] = frozenset()

    def readable(self) -> str:
        records = [f"{record.getMessage()} {record.__dict__!r}" for record in self._caplog.records]
        errors = [f"{error!r} {error} {error.__dict__!r} {error.__cause__!r}" for error in self.errors]
        return "\n".join([self._caplog.text, *records, *errors, *(f"{each!r} {each}" for each in self.shown)])

    def check(self, printed: str) -> None:
        text = self.readable() + printed
        seen = [each for each in self.spellings() if each in text]
        assert not seen, seen
        assert "eyJ" not in text, "a token, a proof or an assertion"
        assert "PRIVATE KEY" not in text


class Person:
    """Fills in the form, as a browser sends it."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.visits, self.agrees = watch, 0, True

    async def __call__(self, url: str) -> str:
        self.visits += 1
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            async with browser.get(url) as page:
                text = await page.text()
                self.watch.secrets |= {cookie.value for cookie in browser.cookie_jar}
            [ticket] = re.findall(r'name="ticket" value="([^"]*)"', text)
            [action] = re.findall(r'action="([^"]*)"', text)
            self.watch.secrets.add(html.unescape(ticket))
            answer = {"user": "ada", "password": PASSWORD, "decision": "allow" if self.agrees else "deny"}
            form = {"ticket": html.unescape(ticket), **answer}
            async with browser.post(html.unescape(action), data=form, allow_redirects=False) as back:
                self.watch.secrets |= {cookie.value for cookie in browser.cookie_jar}
                return back.headers["location"]


@asynccontextmanager
async def house(watch: Watch, *, dpop: bool):
    """Both servers on one socket, and where they are."""
    listener, stop = bind("127.0.0.1", 0), asyncio.Event()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    secret = hash_secret(CLIENT_SECRET)
    issuer = AuthorizationServer(
        base,
        resources=[base + "/mcp"],
        users={"ada": hash_password(PASSWORD)},
        clients=[
            KnownClient(id="owner", secret_hash=secret, redirect_uris=(CALLBACK,)),
            KnownClient(id="machine", secret_hash=secret, grants=("client_credentials",)),
        ],
        scopes=["read", "write"],
        key=new_key(),
    )
    server = Server("house", auth=issuer.protection(scopes=("read",), **({"dpop": "required"} if dpop else {})))

    @server.tool(scopes=["write"])
    async def change() -> str:
        return "changed"

    app = server.asgi()
    watch.shown += [issuer, server, app, issuer.store, *issuer.clients.values()]
    watch.public = frozenset({base, base + "/mcp"})
    serving = asyncio.create_task(serve_http(app, listener, stop=stop))
    try:
        yield base
    finally:
        stop.set()
        await serving


@pytest.mark.requirement("AUTH-80", "AUTH-SEC-003", "AUTH-038", "AUTH-101")
@pytest.mark.parametrize("dpop", [False, True], ids=["bearer", "dpop"])
async def test_no_secret_of_a_whole_login_is_seen_anywhere(dpop, tmp_path, caplog, capfd, monkeypatch):
    watch = Watch(caplog, monkeypatch)
    person = Person(watch)
    monkeypatch.setattr(grant_store, "REPLAY_TTL", -1.0)  # every second use of a refresh token is a late one
    async with house(watch, dpop=dpop) as base:
        url, records = base + "/mcp", FileRecords(tmp_path / "tokens")
        plan = OAuth(
            client_id="owner",
            client_secret=CLIENT_SECRET,
            login=person,
            redirect_uri=CALLBACK,
            tokens=records,
            dpop=dpop,
        )
        async with Client(url, auth=plan) as client:
            assert (await client.call_tool("change")).text == "changed"
            watch.shown += [client, plan, records, plan.given]
        seeker, endpoint = Seeker(plan, url), endpoint_of(url)
        got = await drive(seeker.current(), plan, endpoint)
        watch.shown += [seeker, got, seeker.prover_for(got.standing), Authorizer(plan, endpoint), endpoint]
        await refused_everywhere(watch, person, plan, url)
        machine = ClientCredentials("machine", CLIENT_SECRET, scope="read", dpop=dpop)
        async with Client(url, auth=machine) as client:
            watch.shown += [client, machine, await client.list_tools()]
    assert person.visits == 3 and len(watch.errors) >= 4 and len(watch.secrets) > 15
    watch.check("".join(capfd.readouterr()))


async def refused_everywhere(watch: Watch, person: Person, plan: OAuth, url: str) -> None:
    """What goes wrong shows as little: a refresh token used again, a token that was changed, a user who says no."""
    seeker, endpoint = Seeker(plan, url), endpoint_of(url)
    got = await drive(seeker.current(), plan, endpoint)
    assert got is not None and got.standing.token.refresh is not None
    key = f"server default {url}"
    before = plan.records.load(key)
    await drive(seeker._refreshed(got.standing), plan, endpoint)
    plan.records.save(key, before)
    assert await drive(seeker._refreshed(got.standing), plan, endpoint) is None, "used again: refused, and all of it"
    access = got.standing.token.access.reveal()
    watch.secrets.add(f"{access[:-4]}AAAA")
    with pytest.raises(HttpStatus) as refused:
        async with Client(url, headers={"Authorization": f"Bearer {access[:-4]}AAAA"}):
            raise AssertionError("this is not the token that was signed")
    person.agrees = False
    with pytest.raises(AuthorizationFailed) as denied:
        async with Client(url, auth=plan):
            raise AssertionError("nobody agreed")
    watch.shown += [refused.value.explain(), denied.value.explain(), refused.value.challenge]


async def test_the_watch_sees_what_is_shown(caplog, monkeypatch):
    """A test that finds nothing must be able to."""
    for show in (
        lambda secret: logging.getLogger("some.library").debug("got %s", secret.reveal()),
        lambda secret: AuthorizationFailed(f"refused: {secret.reveal()}"),
        lambda secret: logging.getLogger("x").debug("x", extra={"form": quote_plus(secret.reveal())}),
    ):
        caplog.clear()
        watch = Watch(caplog, monkeypatch)
        show(Secret("a token of some length/"))
        with pytest.raises(AssertionError):
            watch.check("")
