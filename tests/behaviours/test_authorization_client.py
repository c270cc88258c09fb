"""How a client is authorized (basic/authorization of every revision): whom it asks, what it says, what it refuses.

Most of it runs in a world without sockets (`support.auth_world`), in which every request of a flow can be seen; what
is about requests to the server itself runs over one.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import webbrowser
from urllib.parse import urlencode

import aiohttp
import pytest

from interlock import AuthorizationFailed, Client, LoginRequired, OAuth
from interlock.auth.client.authorization_code import Attempt, code_in
from interlock.auth.client.browser_login import Loopback
from interlock.auth.client.driver import drive
from interlock.auth.client.token_record import read_standing
from interlock.auth.client.token_storage import FileRecords
from interlock.auth.secrets import Secret
from interlock.auth.urls import browser_url
from interlock.auth.www_authenticate import Demand, demand_in
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import InterlockError, LocalError
from support.auth_peer import GuardedPeer
from support.auth_world import ISSUER, REDIRECT, SERVER, Issuer, World, oauth, said
from support.http_peer import DISCOVERY, http, result
from support.wire_peer import HANDSHAKE, MODERN

HOST = "https://mcp.example.com"
PATH, ROOT = f"{HOST}/.well-known/oauth-protected-resource/mcp", f"{HOST}/.well-known/oauth-protected-resource"
OWN = f"{HOST}/.well-known/oauth-authorization-server"
TWO = "https://two.example.com"
requirement = pytest.mark.requirement


def server_of(revision):
    """A server of one revision that answers `ping`, or `server/discover`."""

    def script(request, stream):
        if request.verb != "POST":
            return http(405 if request.verb == "GET" else 200)
        if request.method == "initialize":
            told = {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return result(request, told).replace(b"\r\n", b"\r\nMcp-Session-Id: abc\r\n", 1)
        if request.id is None:
            return http(202)
        return result(request, DISCOVERY if request.method == "server/discover" else {})

    return script


# --- who grants tokens ---


@requirement("AUTH-20", "AUTH-24", "AUTH-25", "AUTH-010", "AUTH-DISC-005", "AUTH-DISC-006")
@pytest.mark.parametrize("place", ["challenge", "path", "root"])
def test_the_metadata_of_the_server_are_found_in_this_order(place):
    world = World()
    where = {"challenge": f"{HOST}/custom.json", "path": PATH, "root": ROOT}[place]
    world.routes[where] = world.routes.pop(PATH)
    header = f'Bearer realm="x", resource_metadata="{where}"' if place == "challenge" else "Bearer"
    world.run(world.seeker().renewed(demand_in(header), None))
    assert [url for url in world.asked_urls if HOST in url] == {
        "challenge": [where],
        "path": [PATH],
        "root": [PATH, ROOT],
    }[place]


@requirement("AUTH-08", "AUTH-12", "AUTH-13")
@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_server_of_2025_03_26_is_its_own_issuer(has_metadata):
    issuer = Issuer(HOST) if has_metadata else Issuer(HOST, authorization_response_iss_parameter_supported=None)
    world = World(issuer, url=f"{HOST}/v1/mcp")
    world.routes = {url: route for url, route in issuer.routes().items() if has_metadata or url != OWN}
    world.logged_in()
    assert world.asked_urls.index(OWN) < world.asked_urls.index(f"{HOST}/register")
    assert world.visits[0].startswith(f"{HOST}/authorize?") and f"{HOST}/token" in world.asked_urls


@requirement("AUTH-11", "AUTH-03", "AUTH-76")
async def test_a_client_of_2025_03_26_says_so_while_it_looks():
    async with GuardedPeer(server_of("2025-03-26")) as host:
        host.issuer.issuer = host.origin
        host.routes = host.issuer.routes()
        async with Client(host.url, auth=host.oauth(), revision="2025-03-26") as client:
            assert client.revision == "2025-03-26"
        looked = [request for request in host.peer.requests if "well-known" in request.path]
        assert {request.header("MCP-Protocol-Version") for request in looked} == {"2025-03-26"}


@requirement("AUTH-21", "AUTH-DISC-002")
def test_of_several_issuers_one_is_taken_and_kept_to():
    world = World(Issuer(), Issuer(TWO))
    world.resource["authorization_servers"] = [ISSUER, TWO]
    world.logged_in()
    world.resource["authorization_servers"] = [TWO, ISSUER]
    assert world.again().standing.issuer == ISSUER


@requirement("AUTH-34", "AUTH-35", "AUTH-36", "AUTH-37", "AUTH-012", "AUTH-DISC-007", "AUTH-DISC-008")
@pytest.mark.parametrize("tenant", ["", "/tenant1"])
def test_the_metadata_of_an_issuer_are_found_in_this_order(tenant):
    at = "https://as.example.com"
    places = [f"{at}/.well-known/oauth-authorization-server{tenant}", f"{at}/.well-known/openid-configuration{tenant}"]
    places += [f"{at}{tenant}/.well-known/openid-configuration"] if tenant else []
    for number, place in enumerate(places):
        issuer = Issuer(at + tenant)
        world = World(issuer)
        world.routes.pop(places[0])
        world.routes[place] = lambda ask, issuer=issuer: said(issuer.metadata())
        world.logged_in()
        assert [url for url in world.asked_urls if url in places] == places[: number + 1]


@requirement("AUTH-DISC-009", "AUTH-DISC-010")
@pytest.mark.parametrize("issuer", ["https://evil.example.com", ISSUER + "/", "https://AS.example.com", ""])
def test_metadata_of_another_issuer_are_not_used(issuer):
    world = World()
    world.routes[f"{ISSUER}/.well-known/oauth-authorization-server"] = lambda ask: said(
        {**Issuer().metadata(), "issuer": issuer}
    )
    with pytest.raises(AuthorizationFailed, match="another issuer"):
        world.logged_in()
    assert not world.visits and not world.issuers[0].clients and not world.issuers[0].requests


@requirement("AUTH-029")
def test_metadata_of_another_resource_are_not_used():
    world = World(resource={"resource": "https://evil.example.com/mcp", "authorization_servers": [ISSUER]})
    with pytest.raises(AuthorizationFailed, match="another resource"):
        world.logged_in()
    assert world.asked_urls == [PATH]


# --- who we are ---


@requirement("AUTH-15", "AUTH-17", "AUTH-38", "AUTH-39", "AUTH-51", "AUTH-007", "AUTH-013")
@requirement("AUTH-REG-001", "AUTH-REG-008", "AUTH-REG-010")
@pytest.mark.parametrize("way", ["given", "document", "registered", "asked", "nobody"])
def test_the_client_is_known_before_anybody_logs_in(way):
    issuer = Issuer(
        client_id_metadata_document_supported=way in ("given", "document"),
        registration_endpoint=None if way in ("asked", "nobody") else f"{ISSUER}/register",
    )
    world = World(issuer)
    said_by_owner = {"client_metadata_url": "https://app.example.com/client.json"}
    if way == "given":
        said_by_owner["client_id"] = "mine"
    plan = oauth(**said_by_owner, ask_client=(lambda at: ("asked", None)) if way == "asked" else None)
    if way == "nobody":
        with pytest.raises(LoginRequired, match="register there"):
            world.logged_in(plan)
        assert not world.visits
        return
    world.logged_in(plan)
    wanted = {
        "given": "mine",
        "document": said_by_owner["client_metadata_url"],
        "registered": "client-1",
        "asked": "asked",
    }
    assert world.visited()["client_id"] == wanted[way] and len(issuer.clients) == (way == "registered")


@requirement("AUTH-40", "AUTH-41", "AUTH-42", "AUTH-REG-002", "AUTH-REG-003")
def test_the_document_of_a_client_names_its_own_place():
    url = "https://app.example.com/client.json"
    document = oauth(client_metadata_url=url, client_name="Mine").client_metadata()
    assert (
        document["client_id"] == url and document["client_name"] == "Mine" and document["redirect_uris"] == [REDIRECT]
    )
    assert OAuth(client_metadata_url=url).client_metadata()["redirect_uris"]
    for bad in ("http://app.example.com/client.json", "https://app.example.com", "https://app.example.com/"):
        with pytest.raises(LocalError):
            OAuth(client_metadata_url=bad)
    with pytest.raises(LocalError):
        OAuth().client_metadata()


@requirement("AUTH-85", "AUTH-039", "AUTH-REG-011", "AUTH-REG-012", "AUTH-SEC-011")
@pytest.mark.parametrize(("redirect", "kind"), [(REDIRECT, "native"), ("https://app.example.com/cb", "web")])
def test_a_registration_says_what_we_are_and_where_we_come_back_to(redirect, kind):
    world = World()
    world.logged_in(oauth(redirect_uri=redirect))
    [registered] = world.issuers[0].clients.values()
    assert registered["application_type"] == kind and "refresh_token" in registered["grant_types"]
    assert registered["redirect_uris"] == [redirect] == [world.visited()["redirect_uri"]]


@requirement("AUTH-REG-013", "AUTH-REG-014")
def test_a_registration_that_is_refused_is_told():
    world = World()
    told = {"error": "invalid_redirect_uri", "error_description": "loopback is not allowed"}
    world.routes[f"{ISSUER}/register"] = lambda ask: said(told, 400)
    with pytest.raises(AuthorizationFailed, match=r"invalid_redirect_uri.*loopback is not allowed"):
        world.logged_in()


@requirement("AUTH-66", "AUTH-036", "AUTH-DISC-002", "AUTH-DISC-003")
@requirement("AUTH-REG-016", "AUTH-REG-017", "AUTH-REG-018")
def test_another_issuer_is_another_registration_another_login_another_token():
    one, two = Issuer(), Issuer(TWO)
    two.token = lambda told: {**told, "access_token": "of-two"}
    world = World(one, two)
    seeker = world.logged_in()
    world.resource["authorization_servers"] = [TWO]
    got = world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert got.standing.token.access == Secret("of-two") and list(two.clients) == ["client-1"]
    assert not {"refresh-1", "access-1"} & {value for each in two.requests for value in each.values()}
    other = World(one, two, url=f"{HOST}/other")
    other.records = world.records
    assert other.run(other.seeker().current()) is None, "a token belongs to one server"


@requirement("AUTH-REG-019")
def test_credentials_for_another_issuer_are_an_error():
    world = World()
    with pytest.raises(AuthorizationFailed, match="trusts another"):
        world.logged_in(oauth(client_id="c", client_secret="s", issuer=TWO))
    assert not world.visits and not world.issuers[0].requests


# --- scopes ---


@requirement("AUTH-28", "AUTH-29", "AUTH-31", "AUTH-52", "AUTH-53", "AUTH-015", "AUTH-016", "AUTH-019", "SEC-37")
@pytest.mark.parametrize(
    ("challenged", "supported", "asked"),
    [(("c",), ["x", "y"], "c"), (None, ["x", "y"], "x y"), (None, None, None), ((), ["x"], None)],
)
def test_the_challenge_decides_then_the_server_then_nobody(challenged, supported, asked):
    world = World()
    if supported is not None:
        world.resource["scopes_supported"] = supported
    world.logged_in(scope=challenged)
    assert world.visited().get("scope") == asked


@requirement("AUTH-72", "AUTH-74", "AUTH-017", "AUTH-047", "AUTH-049", "SEC-37")
async def test_more_is_asked_for_when_more_is_wanted_and_not_for_ever():
    async with GuardedPeer(server_of(MODERN[0])) as host, Client(host.url, auth=host.oauth(scope="basic")) as client:
        host.needs = {"server/discover": "write"}
        await client.ping()
        assert "scope=basic+write" in host.visits[1] and len(host.visits) == 2
        host.needs = {"server/discover": "write"}
        with pytest.raises(AuthorizationFailed, match="asked for already"):
            await client.ping()
        assert len(host.visits) == 2


# --- for which resource ---


@requirement("AUTH-54", "AUTH-55", "AUTH-56", "AUTH-57", "AUTH-58", "AUTH-59", "AUTH-028", "AUTH-030", "AUTH-031")
@pytest.mark.parametrize(
    ("url", "resource"),
    [
        (f"{HOST}/a/mcp", f"{HOST}/a/mcp"),
        (f"{HOST}/mcp", "HTTPS://MCP.Example.com/mcp"),
        (f"{HOST}/mcp", HOST),
        ("HTTPS://MCP.EXAMPLE.COM/mcp", None),
        (f"{HOST}/", None),
    ],
)
def test_every_token_is_for_this_server(url, resource):
    issuer = Issuer() if resource is not None else Issuer(HOST)
    world = World(issuer, url=url, resource={"resource": resource, "authorization_servers": [ISSUER]})
    if resource is None:
        world.routes = issuer.routes()
    elif resource == HOST:  # the whole origin: told at its root alone (RFC 9728 §3.3)
        world.routes = issuer.routes() | {ROOT: lambda ask: said(world.resource)}
    else:
        world.routes[world.seeker().url.replace(HOST, ROOT)] = lambda ask: said(world.resource)
    world.logged_in()
    wanted = resource or {"HTTPS://MCP.EXAMPLE.COM/mcp": f"{HOST}/mcp"}.get(url, HOST)
    assert world.visited()["resource"] == wanted == issuer.requests[0]["resource"] and "#" not in wanted


@requirement("AUTH-60", "AUTH-61", "AUTH-62", "AUTH-032", "AUTH-033", "AUTH-002")
@pytest.mark.parametrize("revision", [*HANDSHAKE[1:], *MODERN])
async def test_the_token_is_in_the_header_of_every_request_and_in_no_url(revision):
    async with GuardedPeer(server_of(revision)) as host:
        async with Client(host.url, auth=host.oauth(), revision=revision) as client:
            await client.ping()
            while revision in HANDSHAKE and not any(call.verb == "GET" for call in host.calls):
                await asyncio.sleep(0.005)
        first, *others = host.calls
        assert first.header("Authorization") is None
        assert {call.header("Authorization") for call in others} == {"Bearer access-1"}
        assert {call.verb for call in others} == ({"POST", "GET", "DELETE"} if revision in HANDSHAKE else {"POST"})
        assert not [request.path for request in host.peer.requests if "access-1" in request.path]


# --- logins ---


@requirement("AUTH-76", "AUTH-77", "AUTH-78", "AUTH-SEC-008", "AUTH-SEC-009")
@pytest.mark.parametrize("methods", [["S256"], ["plain", "S256"], ["plain"], [], None])
def test_no_login_without_s256(methods):
    world = World(Issuer(code_challenge_methods_supported=methods))
    if methods and "S256" in methods:
        world.logged_in()
        assert world.visited()["code_challenge_method"] == "S256" and world.issuers[0].issued == 1
        return
    with pytest.raises(AuthorizationFailed, match="PKCE"):
        world.logged_in()
    assert not world.visits


@requirement("AUTH-84", "AUTH-SEC-007")
def test_a_browser_comes_back_to_this_machine_or_by_https():
    for good in ("https://app.example.com/cb", "http://localhost:1/cb", "http://127.0.0.1/cb", "http://[::1]:2/cb"):
        assert oauth(redirect_uri=good).redirect_uri == good
    for bad in ("http://app.example.com/cb", "myapp://cb", "http://localhost.evil.com/", "http://10.0.0.1/cb"):
        with pytest.raises(LocalError):
            oauth(redirect_uri=bad)


@requirement("AUTH-87", "AUTH-SEC-013")
@pytest.mark.parametrize("state", ["", "other", None])
def test_an_answer_with_another_state_is_thrown_away(state):
    world = World()
    world.issuers[0].answer = lambda told: {k: v for k, v in {**told, "state": state}.items() if v is not None}
    with pytest.raises(AuthorizationFailed, match="another state"):
        world.logged_in()
    assert not world.issuers[0].requests


@requirement("AUTH-020", "AUTH-024", "AUTH-025", "AUTH-026", "AUTH-027")
@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize(
    ("issuer", "good"),
    [
        (ISSUER, True), (None, None), ("https://evil.example.com", False), (ISSUER + "/", False),
        ("https://AS.example.com", False), ("https://as.example.com:443", False), ("https://as%2Eexample.com", False),
    ],
)  # fmt: skip
def test_an_answer_is_of_the_issuer_that_was_asked(issuer, good, promised):
    kept = Attempt(issuer=ISSUER, redirect_uri=REDIRECT, state=Secret("s"), verifier=Secret("v"), iss_promised=promised)
    told = {"state": "s", "code": "c"} | ({} if issuer is None else {"iss": issuer})
    if good or (good is None and not promised):
        assert code_in(Secret(f"{REDIRECT}?{urlencode(told)}"), kept) == Secret("c")
        return
    shown = {**told, "error": "bad", "error_description": "call 555", "error_uri": "https://evil.example.com"}
    with pytest.raises(AuthorizationFailed) as refused:
        code_in(Secret(f"{REDIRECT}?{urlencode(shown)}"), kept)
    assert refused.value.error is None and not any(text in str(refused.value) for text in ("555", "evil", "bad"))


# --- keeping and renewing ---


@requirement("AUTH-80", "AUTH-038", "AUTH-SEC-003", "AUTH-101")
def test_what_is_kept_is_the_owners_alone(tmp_path):
    world = World()
    world.records = FileRecords(tmp_path / "tokens")
    seeker = world.logged_in()
    files = [*(tmp_path / "tokens").iterdir()]
    assert len(files) == 2 and {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    world.clock.now += 3600
    assert world.run(seeker.current()).by == "refreshed" and len(world.visits) == 1
    assert all("refresh-" not in ask.url for ask in world.asks)
    kept = read_standing(world.records.load(f"server default {SERVER}"))
    assert kept is not None and "refresh-2" not in repr(kept) and "access-2" not in repr(kept)


@requirement("AUTH-041")
def test_a_refresh_token_is_not_counted_on():
    world = World()
    world.issuers[0].token = lambda told: {name: value for name, value in told.items() if name != "refresh_token"}
    seeker = world.logged_in()
    world.clock.now += 3600
    assert world.run(seeker.current()) is None
    assert world.run(seeker.renewed(Demand(), Secret("access-1"))).by == "granted"


@requirement("AUTH-04", "AUTH-003")
def test_a_program_that_is_started_has_no_such_login():
    with pytest.raises(LocalError, match="auth= belongs to a target that is"):
        Client(["python", "server.py"], auth=OAuth())


# --- URLs that servers name ---


@requirement("SEC-29", "SEC-30", "SEC-014", "SEC-33", "SEC-016")
@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "file:///x", "vbscript:x", "ssh://h", "http://as.example.com/", ""],
)
def test_a_browser_is_sent_by_https_alone(url):
    with pytest.raises(AuthorizationFailed):
        browser_url(url)
    world = World(Issuer(authorization_endpoint=url))
    with pytest.raises(AuthorizationFailed):
        world.logged_in()
    assert not world.visits


@requirement("SEC-31", "SEC-32", "SEC-015", "SEC-017")
async def test_a_browser_is_opened_by_the_platform_and_comes_back_to_a_page_that_runs_nothing(monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    login = Loopback()
    try:
        redirect = await login.prepare(None)
        visit = asyncio.create_task(login.visit("https://as.example.com/a?x=$(touch+/tmp/x)&y=;ls", "s"))
        while not opened:
            await asyncio.sleep(0.005)
        async with aiohttp.ClientSession() as browser, browser.get(f"{redirect}?state=s&code=<script>") as page:
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert "<script" not in await page.text()
        assert (await visit).startswith(f"{redirect}?state=s")
    finally:
        await login.close()
    assert opened == ["https://as.example.com/a?x=$(touch+/tmp/x)&y=;ls"]


BROWSER = """#!{python} -IS
import json, sys, urllib.request
with open("opened", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
if "redirect=" in sys.argv[1]:
    urllib.request.urlopen(sys.argv[1].partition("redirect=")[2] + "?state=s&code=c").read()
"""
VISITS = """
import asyncio, sys
from interlock.host.callbacks.url_check import open_in_browser, page_at
from interlock.auth.client.browser_login import Loopback

async def visit(url):
    login = Loopback()
    try:
        redirect = await login.prepare(None)
        assert (await login.visit(f"{url}&redirect={redirect}", "s")).endswith("?state=s&code=c")
    finally:
        await login.close()
    page = page_at(url)
    assert page.url == url and await open_in_browser(page.url)

async def main():
    for url in sys.argv[1:]:
        await visit(url)

asyncio.run(main())
"""
COMMANDS = [
    "$(touch${IFS}pwned)",
    "`touch${IFS}pwned`",
    ";touch${IFS}pwned;",
    "|touch${IFS}pwned",
    "&&touch${IFS}pwned&",
]


@requirement("SEC-31", "SEC-015")
@pytest.mark.skipif(os.name != "posix", reason="the browser here is a script with a #! line")
def test_a_url_is_one_argument_of_a_real_browser_and_never_a_shells(tmp_path):
    """The login of a client and the pages of a host, with a program as the browser that notes what it was given."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    injected = ["".join(COMMANDS), "'" + '"' + "".join(COMMANDS), ">pwned%s*?[x]~"]
    urls = [f"https://as.example.com/a?x={each}" for each in injected]
    environment = {**os.environ, "BROWSER": str(browser), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", VISITS, *urls]
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=120, capture_output=True)
    opened = [json.loads(line) for line in (tmp_path / "opened").read_text().splitlines()]
    for url, login, page in zip(urls, opened[::2], opened[1::2], strict=True):
        assert len(login) == 1 and login[0].startswith(f"{url}&redirect=http://127.0.0.1:")
        assert page == [url]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["browser", "opened"]


@requirement("SEC-14", "SEC-15", "SEC-16", "SEC-012", "SEC-013")
@pytest.mark.parametrize(
    "named",
    [
        "https://169.254.169.254/latest",
        "https://[::ffff:a9fe:a9fe]/",
        "https://10.0.0.1/",
        "https://2130706433/",
        "http://h/",
    ],
)
async def test_metadata_are_not_fetched_from_inside(named, tmp_path):
    world = World()
    flow = world.seeker().renewed(Demand(metadata=named), None)
    with pytest.raises(InterlockError):
        await drive(flow, oauth(tokens=tmp_path / "t"), endpoint_of(SERVER))
