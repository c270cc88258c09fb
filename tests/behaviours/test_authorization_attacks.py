"""What strangers try at a protected server and its authorization server, over sockets, processes and crowds."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from ipaddress import IPv4Address
from urllib.parse import urlencode

import pytest

from interlock import AuthorizationServer, Introspection, Server
from interlock.auth.authorization_server.app import IssuerApp
from interlock.auth.authorization_server.grant_store import Grant, GrantStore
from interlock.auth.authorization_server.responses import OAuthError
from interlock.auth.flow import Said
from interlock.auth.resource_server import guard as protecting
from interlock.auth.resource_server.guard import Protector
from interlock.state.sealing import Seal
from interlock.state.sqlite.store import SQLiteStore
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.web.asgi.message import Headers, HttpRefusal
from support.auth_house import AS, CALLBACK, MCP, House, challenge_of, served_by
from support.auth_tokens import ISSUER, NOW, jwk_of, protection, signer, token
from support.http_peer import HttpPeer, http
from support.names import Names

requirement = pytest.mark.requirement
INSIDE = ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1"]


def spellings(address):
    """The same address as resolvers, libraries and systems may read it."""
    number, parts = int(IPv4Address(address)), address.split(".")
    high, low = number >> 16, number & 0xFFFF
    yield from (address, address + ".", f"{number}", f"0x{number:x}", f"0{number:o}")
    yield ".".join(f"0x{int(part):x}" for part in parts)
    yield ".".join(f"0{int(part):o}" for part in parts)
    yield f"{parts[0]}.{number & 0xFFFFFF}"
    for prefix in ("::ffff:", "::", "64:ff9b::", "::ffff:0:"):
        yield f"[{prefix}{address}]"
    yield from (f"[::ffff:{high:x}:{low:x}]", f"[2002:{high:x}:{low:x}::1]", f"[::FFFF:{high:X}:{low:X}]")


HOSTS = [host for address in INSIDE for host in spellings(address)]
HOSTS += [
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "x.localhost",
]
NAMES = {
    "inside.example": ["127.0.0.1"],
    "both.example": ["93.184.216.34", "10.0.0.1"],
    "six.example": ["::ffff:169.254.169.254"],
    **{name: ["127.0.0.1"] for name in ("localhost", "localhost.", "LOCALHOST", "x.localhost")},
}


@requirement("AUTH-50", "AUTH-90", "AUTH-SEC-016")
async def test_no_spelling_of_a_place_inside_is_fetched_for_a_client(monkeypatch):
    """Nearly two hundred client ids at the authorization endpoint; not one connection."""
    now = [1_000_000.0]
    names = Names(monkeypatch, dict(NAMES))
    app = IssuerApp(AuthorizationServer(AS, resources=[MCP], clock=lambda: now[0]))
    hosts = [*HOSTS, *(f"{host}:8443" for host in HOSTS[::2]), "inside.example", "both.example", "six.example"]
    for host in hosts:
        now[0] += 10  # documents have a rate
        query = {"response_type": "code", "client_id": f"https://{host}/client.json", "redirect_uri": CALLBACK}
        query |= {"code_challenge": challenge_of("v" * 50), "code_challenge_method": "S256"}
        page = await served_by(app, "GET", f"{AS}/authorize?{urlencode(query)}")
        assert page.status == 400 and "location" not in page.headers, host
    assert names.connected == [] and len(set(hosts)) > 190


# --- two processes ---

RIVAL = """
import asyncio, sys
from interlock.auth.authorization_server.grant_store import GrantStore
from interlock.auth.authorization_server.responses import OAuthError
from interlock.state.sealing import Seal
from interlock.state.sqlite.store import SQLiteStore
import time

async def main():
    store = SQLiteStore(sys.argv[1])
    grants = GrantStore(store, "as", time.time, 1000, Seal([bytes(32)]))
    await store.get("warm")
    print("ready", flush=True)
    tokens = sys.stdin.readline().split()

    async def tried(each):
        try:
            if "." in each:
                return (await grants.rotate(each, "c", None, lambda _: {"expires_in": 300}))["refresh_token"]
            await grants.redeem(each, "c")
            return "code"
        except OAuthError:
            return "-"

    print(" ".join(await asyncio.gather(*(tried(each) for each in tokens))), flush=True)
    await store.close()

asyncio.run(main())
"""


@requirement("AUTH-SEC-005")
async def test_of_two_processes_one_redeems_a_code_and_both_get_one_answer_for_a_refresh_token(tmp_path):
    """At the same moment. A second use of the refresh token after a minute ends its family."""
    path = tmp_path / "as.db"
    store = SQLiteStore(path)
    ahead = 0.0
    grants = GrantStore(store, "as", lambda: time.time() + ahead, 1000, Seal([bytes(32)]))

    def grant(family):
        return Grant(client="c", subject="ada", scopes=(), resource=MCP, family=family)

    codes = [await grants.new_code(grant(f"c{number}")) for number in range(20)]
    tokens = [await grants.begin(grant(f"t{number}")) for number in range(20)]
    pipe = asyncio.subprocess.PIPE
    rivals = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", RIVAL, str(path), stdin=pipe, stdout=pipe)
        for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for rival in rivals:
            assert await rival.stdout.readline() == b"ready\n"
        for rival in rivals:
            rival.stdin.write(" ".join([*codes, *tokens]).encode() + b"\n")
        told = [(await rival.stdout.readline()).decode().split() for rival in rivals]
        for rival in rivals:
            rival.stdin.close()
            assert await rival.wait() == 0
    pairs = [*zip(*told, strict=True)]
    assert all("-" in pair for pair in pairs[:20])
    assert all(one == other and "." in one for one, other in pairs[20:])
    ahead = 61.0
    for used, (fresh, _) in zip(tokens, pairs[20:], strict=True):
        for each in (used, fresh):
            with pytest.raises(OAuthError):
                await grants.rotate(each, "c", None, lambda _: {"expires_in": 300})
    await store.close()


# --- crowds and issuers in trouble ---


def said(access):
    return Headers([(b"authorization", f"Bearer {access}".encode())])


async def test_a_storm_of_unknown_keys_is_one_question():
    def issuer(request, stream):
        return http(200, json.dumps({"keys": [jwk_of(signer)]}).encode())

    async with HttpPeer(issuer) as peer:
        guard = Protector(protection(keys=None, keys_url=peer.url), "/mcp", clock=lambda: NOW)
        forged = [token({"kid": f"x{number}"}) for number in range(60)]
        found = await asyncio.gather(*(guard.admit(said(each), "POST", "/mcp") for each in (*forged, token())))
        assert [isinstance(each, HttpRefusal) for each in found] == [True] * 60 + [False]
        assert len(peer.requests) == 1


@pytest.mark.parametrize("kind", ["keys", "introspection"])
async def test_an_issuer_that_hangs_lets_nobody_in_and_holds_nobody_for_long(kind, monkeypatch):
    monkeypatch.setattr(protecting, "_SECONDS", 0.05)
    async with HttpPeer(lambda request, stream: None) as peer:
        how = Introspection(url=peer.url, client_id="c", client_secret="s" * 16)
        rules = {"keys_url": peer.url} if kind == "keys" else {"introspection": how}
        guard = Protector(protection(keys=None, **rules), "/mcp", clock=lambda: NOW)
        async with asyncio.timeout(20):
            found = await asyncio.gather(*(guard.admit(said(token()), "POST", "/mcp") for _ in range(5)))
        assert {no.status for no in found} == {503}


async def test_tokens_that_are_made_up_do_not_flood_the_issuer(monkeypatch):
    monkeypatch.setattr(protecting, "_MOST_ASKED", 5)
    go, seen = asyncio.Event(), []

    async def slow(step, base):
        seen.append(step.form["token"])
        await go.wait()
        return Said(status=200, body=b'{"active":false}')

    monkeypatch.setattr(protecting, "asked", slow)
    how = Introspection(url=ISSUER + "/introspect", client_id="c", client_secret="s" * 16)
    guard = Protector(protection(keys=None, introspection=how), "/mcp", clock=lambda: NOW)
    flood = [asyncio.create_task(guard.admit(said(f"t{number}"), "POST", "/mcp")) for number in range(40)]
    async with asyncio.timeout(20):
        late = await asyncio.gather(*flood[5:])
        go.set()
        first = await asyncio.gather(*flood[:5])
    assert len(seen) == 5 and {no.status for no in late} == {503} and {no.status for no in first} == {401}


@requirement("SEC-010")
@pytest.mark.parametrize("authorization", [None, "Bearer a.b.c", f"Bearer {token(exp=1)}"])
async def test_a_token_is_judged_while_the_body_is_still_on_its_way(authorization):
    """Over a socket: the answer is there though not one byte of the megabyte that was announced has come."""
    listener = bind("127.0.0.1", 0)
    port, stop = listener.getsockname()[1], asyncio.Event()
    serving = asyncio.create_task(serve_http(Server("s", auth=protection()).asgi(), listener, stop=stop))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = [f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1000000"]
        lines += ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        lines += [f"Authorization: {authorization}"] if authorization else []
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        async with asyncio.timeout(20):
            assert (await reader.readline()).split()[1] == b"401"
        writer.close()
        await writer.wait_closed()
    finally:
        stop.set()
        await serving


# --- the page ---

TEXTS = [
    '"><script>alert(1)</script>',
    "<img src=x onerror=alert(1)>",
    "</title><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{7*7}}${7*7}<%= 7 %>",
    "\u202eexe.gpj",
    "\x1b[31mred",
    "a\nb\r\nSet-Cookie: x=1",
    "&lt;script&gt;",
    "<!--",
    "\ufeff<b>",
    "Your bank",
]


@requirement("SEC-03", "SEC-04", "SEC-05")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
async def test_a_client_is_shown_as_text_whatever_it_calls_itself(text):
    house = House()
    id = (await house.register({"redirect_uris": [CALLBACK], "client_name": text})).json["client_id"]
    page = await house.page(client_id=id)
    body = page.body.decode()
    assert page.status == 200 and "nobody has checked its name" in body and "127.0.0.1:7777" in body
    inside = body.partition("<h1>")[2].partition("</h1>")[0]
    assert not any(char in inside for char in "<>\x1b\n\r\u202e\ufeff'\"")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY" and "__Host-" in page.headers["set-cookie"]


@requirement("SEC-03", "SEC-06", "SEC-07")
async def test_the_page_says_all_that_is_asked_and_its_cookie_goes_to_nobody_else():
    house = House()
    page = await house.page(scope="read write")
    for told in ("Pub", "<li>read</li><li>write</li>", "<strong>127.0.0.1:7777</strong>", CALLBACK, MCP):
        assert told in page.body.decode()
    cookie = page.headers["set-cookie"]
    assert cookie.startswith("__Host-") and all(
        flag in cookie for flag in ("; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/")
    )
    for uri in (CALLBACK + "/", CALLBACK + "?x=1", CALLBACK.upper(), CALLBACK.replace("127.0.0.1", "localhost")):
        assert (await house.page(redirect_uri=uri)).status == 400


@requirement("SEC-04")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": AS + ".evil.example"},
        {"origin": "http://as.example.com"},
        {"origin": AS + ":8443"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"cookie": ""},
        {"cookie": "interlock-consent=x"},
        {"content_type": "text/plain"},
        {"content_type": "application/json"},
        {"host": "evil.example"},
    ],
)
async def test_no_other_page_can_say_yes(headers):
    house = House()
    back = await house.answer(await house.page(), headers)
    assert back.status in (400, 403, 415) and "location" not in back.headers


@requirement("AUTH-SEC-015")
@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_only_a_post_says_yes(verb):
    house = House()
    form = urlencode({"decision": "allow", "user": "ada", "password": "correct horse"})
    kind = {"content_type": "application/x-www-form-urlencoded"}
    for url in (f"{AS}/authorize?{house.query()}&{form}", f"{AS}/authorize"):
        talk = await served_by(house.app, verb, url, form.encode(), **kind)
        assert talk.status in (200, 400, 405) and "location" not in talk.headers
