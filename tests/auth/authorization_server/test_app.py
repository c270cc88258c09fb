"""The authorization server as an application: its addresses, its guards, and a whole flow with our own client."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re

import aiohttp
import pytest

from interlock import Client, Context, OAuth, Server
from interlock.auth.authorization_server import app as issuer_app
from interlock.auth.authorization_server.app import IssuerApp
from interlock.auth.authorization_server.passwords import hash_password
from interlock.auth.authorization_server.server import AuthorizationServer
from interlock.auth.client.token_storage import MemoryRecords
from interlock.auth.jose.signer import new_key
from interlock.state.sqlite.store import SQLiteStore
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.wire.errors import LocalError, StoreError
from support.asgi import begin
from support.auth_house import AS, House, served_by


async def test_the_metadata_stand_where_clients_look():
    house = House()
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        talk = await house.get(path)
        assert talk.status == 200 and talk.json["issuer"] == AS
        assert talk.headers["content-type"] == "application/json"
    assert (await house.get("/keys")).json == house.server.key_set()


async def test_an_issuer_with_a_path_has_three_addresses():
    app = IssuerApp(AuthorizationServer(AS + "/one", resources=["https://mcp.example.com/mcp"]))
    for path in (
        "/.well-known/oauth-authorization-server/one",
        "/.well-known/openid-configuration/one",
        "/one/.well-known/openid-configuration",
    ):
        assert (await served_by(app, "GET", AS + path)).json["token_endpoint"] == AS + "/one/token"
    assert (await served_by(app, "GET", AS + "/.well-known/oauth-authorization-server")).status == 404


async def test_what_is_refused_before_it_is_read():
    house = House()
    assert (await house.get("/token")).status == 405 and (await house.get("/nothing")).status == 404
    assert (await house.get("/token")).headers["allow"] == "POST"
    assert (await house.post("/token", b"{}", content_type="application/json")).status == 415
    assert (await house.post("/token", b"x" * 70_000)).status == 413
    assert (await house.register(b"{" * 70_000)).status == 413
    assert (await house.get("/keys", host="evil.example")).status == 403
    assert (await house.post("/token", {}, origin="https://evil.example")).status == 403
    assert (await house.post("/token", b"a=1&a=2")).json["error"] == "invalid_request"


async def test_pages_of_other_sites_lead_here_and_change_nothing():
    house, site = House(), {"sec_fetch_site": "cross-site"}
    assert (await house.get("/.well-known/oauth-authorization-server", **site)).status == 200
    assert (await house.get("/authorize?" + house.query(), **site)).status != 403
    assert (await house.post("/token", {}, **site)).status == 403


async def test_without_registration_there_is_no_such_address():
    assert (await House(registration=False).register({})).status == 404


async def test_a_failure_of_ours_is_no_more_than_that(caplog):
    house = House()

    async def broken(body, headers, address):
        raise RuntimeError("secret detail")

    house.app._desk.token = broken
    talk = await house.post("/token", {})
    assert talk.status == 500 and "secret" not in talk.body.decode() and "secret detail" in caplog.text


def slow(house):
    lines = [(b"host", b"as.example.com"), (b"content-type", b"application/x-www-form-urlencoded")]
    return begin(house.app, None, method="POST", path="/token", headers=lines)


async def test_who_sends_slowly_takes_no_place_from_others(monkeypatch):
    house = House()
    talks = [slow(house) for _ in range(150)]  # more than are answered at once
    await asyncio.sleep(0)
    machine = {"grant_type": "client_credentials", "resource": house.server.resources[0]}
    assert (await house.post("/token", machine, **house.basic())).status == 200
    monkeypatch.setattr(issuer_app, "_COMING", 150)
    assert (await slow(house).answer()).status == 503
    for talk in talks:
        talk.disconnect()
        await talk.answer()
    monkeypatch.setattr(issuer_app, "_BODY_SECONDS", 0.02)
    assert (await slow(house).answer()).status == 408


async def test_a_body_may_come_in_any_pieces():
    house = House()
    talk = slow(house)
    for _ in range(64 * 1024):
        talk.say(b"x", more=True)
    talk.say(b"x")
    assert (await talk.answer()).status == 413


async def test_a_store_that_cannot_be_used_is_said_so(monkeypatch, caplog):
    house = House()

    async def broken(key, *, owner=""):
        raise StoreError("the file is locked")

    monkeypatch.setattr(house.server.store, "get", broken)
    for talk in (await house.page(client_id="other"), await house.redeem("x"), await house.refresh("a.b")):
        assert talk.status == 503 and talk.json["error"] == "temporarily_unavailable"
    assert "the file is locked" in caplog.text


async def test_it_speaks_http_only():
    with pytest.raises(LocalError):
        await begin(House().app, None, type="websocket").task


# --- pages of other origins ---

PAGE = "https://app.example.com"
OPEN = {
    "/.well-known/oauth-authorization-server": "GET",
    "/.well-known/openid-configuration": "GET",
    "/keys": "GET",
    "/register": "POST",
    "/token": "POST",
    "/revoke": "POST",
}


def told(talk):
    return {name: value for name, value in talk.headers.items() if name.startswith("access-control") or name == "vary"}


def question(house, path, origin=PAGE):
    asks = {"access_control_request_method": "POST", "access_control_request_headers": "authorization,dpop"}
    return served_by(house.app, "OPTIONS", AS + path, origin=origin, **asks)


@pytest.mark.parametrize("path", [*OPEN, "/authorize"])
async def test_without_a_list_no_page_of_another_origin_is_told_anything(path):
    house = House()
    for origin, status in ((PAGE, 403), (AS, 405)):
        talk = await question(house, path, origin)
        assert talk.status == status and told(talk) == {}


@pytest.mark.parametrize("path", OPEN)
async def test_a_page_of_the_list_may_ask_for_all_that_a_client_needs(path):
    house = House(origins=(PAGE,))
    talk = await question(house, path)
    assert talk.status == 200 and talk.headers["access-control-allow-methods"] == OPEN[path]
    assert {"authorization", "dpop"} <= set(talk.headers["access-control-allow-headers"].split(", "))
    answer = await served_by(house.app, OPEN[path], AS + path, b"{}", origin=PAGE, content_type="application/json")
    assert answer.status == (200 if OPEN[path] == "GET" else 400 if path == "/register" else 415)
    for found in (talk, answer):
        assert (found.headers["access-control-allow-origin"], found.headers["vary"]) == (PAGE, "origin")
    assert (await question(house, path, "https://evil.example")).status == 403


async def test_a_page_reads_why_it_gets_no_token_or_is_to_wait():
    house = House(origins=(PAGE,))
    refused = await house.redeem("no-such-code", headers={"origin": PAGE})
    assert refused.status == 400 and refused.headers["access-control-allow-origin"] == PAGE
    statuses = []
    for _ in range(70):
        talk = await house.register({"redirect_uris": ["http://127.0.0.1/x"]}, origin=PAGE)
        statuses.append(talk.status)
        assert told(talk)["access-control-allow-origin"] == PAGE
    assert set(statuses) == {201, 429}


@pytest.mark.parametrize(("proxies", "others"), [((), 429), (("10.0.0.1",), 201)])
async def test_limits_per_address_see_the_caller_behind_a_trusted_proxy(proxies, others):
    issuer = House().server
    app = Server("s", auth=issuer.protection()).asgi(allowed_hosts=["as.example.com"], trusted_proxies=proxies)

    async def register(caller):
        body = json.dumps({"redirect_uris": ["http://127.0.0.1/x"]}).encode()
        said = {"content_type": "application/json", "x_forwarded_for": caller}
        return (await served_by(app, "POST", AS + "/register", body, address="10.0.0.1", **said)).status

    assert 429 in [await register("192.0.2.1") for _ in range(16)]
    assert await register("198.51.100.1") == others


async def test_the_page_where_people_agree_is_for_nobody_elses_pages():
    house = House(origins=(PAGE,))
    assert (await question(house, "/authorize")).status == 403 and told(await question(house, "/authorize")) == {}
    assert told(await house.page()) == {}
    fetched = await house.get("/authorize?" + house.query(), origin=PAGE)
    posted = await house.answer(await house.page(), {"origin": PAGE})
    for talk in (fetched, posted):
        assert talk.status == 403 and told(talk) == {}
    assert (await house.answer(await house.page())).status == 303


async def test_what_caches_keep_of_the_metadata_says_that_origins_differ():
    path = "/.well-known/oauth-authorization-server"
    assert told(await House(origins=(PAGE,)).get(path)) == {"vary": "origin"} and told(await House().get(path)) == {}


async def test_questions_of_browsers_need_the_room_of_requests(monkeypatch):
    house = House(origins=(PAGE,))
    monkeypatch.setattr(issuer_app, "_AT_ONCE", 0)
    talk = await question(house, "/token")
    assert talk.status == 503 and talk.headers["retry-after"] == "1"


async def test_beside_an_endpoint_the_list_is_the_same():
    house = House()
    server = Server("notes", auth=house.server.protection())
    app = server.asgi(allowed_origins=[PAGE])
    for path in ("/token", "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"):
        asks = {"origin": PAGE, "access_control_request_method": "GET"}
        talk = await served_by(app, "OPTIONS", "http://127.0.0.1:8000" + path, **asks)
        assert talk.status == 200 and told(talk)["access-control-allow-origin"] == PAGE
    talk = await served_by(app, "OPTIONS", "http://127.0.0.1:8000/authorize", **asks)
    assert talk.status == 403 and told(talk) == {}


@pytest.mark.parametrize("origin", ["*", "null", "https://app.example.com/path"])
def test_an_origin_that_is_none_is_refused_here_too(origin):
    with pytest.raises(LocalError, match="allowed_origins"):
        House(origins=(origin,))


# --- all of it: our client, our server, our authorization server ---


async def in_browser(url: str) -> str:
    """What a person does: open the page, fill in the form, follow to the client."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(url) as page:
            assert page.status == 200
            text = await page.text()
        ticket = html.unescape(re.search(r'name="ticket" value="([^"]*)"', text)[1])
        action = html.unescape(re.search(r'action="([^"]*)"', text)[1])
        form = {"ticket": ticket, "user": "ada", "password": "correct horse", "decision": "allow"}
        async with browser.post(action, data=form, allow_redirects=False) as back:
            assert back.status == 303
            return back.headers["location"]


@pytest.mark.parametrize(
    ("revision", "rules"),
    [("2026-07-28", {"dpop": "required", "nonces": True}), ("2025-11-25", {}), ("2025-06-18", {})],
)
async def test_a_whole_login_without_a_browser(revision, rules, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    listener = bind("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    store = SQLiteStore(tmp_path / "as.db")
    issuer = AuthorizationServer(
        base,
        resources=[base + "/mcp"],
        users={"ada": hash_password("correct horse")},
        scopes=["read", "write"],
        store=store,
        key=new_key(),
    )
    server = Server("house", auth=issuer.protection(scopes=("read",), **rules))

    @server.tool(scopes=["write"])
    async def who(ctx: Context) -> str:
        return f"{ctx.principal.issuer} {ctx.principal.subject}"

    stop, seen = asyncio.Event(), []

    async def login(url: str) -> str:
        seen.append(await in_browser(url))
        return seen[-1]

    app = server.asgi()
    serving = asyncio.create_task(serve_http(app, listener, stop=stop))
    try:
        plan = OAuth(
            login=login, redirect_uri="http://127.0.0.1:7777/callback", tokens=MemoryRecords(), dpop=bool(rules)
        )
        async with Client(base + "/mcp", auth=plan, revision=revision) as client:
            assert [tool.name for tool in await client.list_tools()] == ["who"]
            result = await client.call_tool("who")
            assert result.text == f"{base} ada"
    finally:
        stop.set()
        await serving
        await store.close()
    assert len(seen) == 2  # once for reading, once more for what the tool needs
    for url in seen:
        assert re.search(r"code=([^&]+)", url)[1] not in caplog.text
    assert "correct horse" not in caplog.text and "eyJ" not in caplog.text
