"""A protected endpoint: what is judged before the body, what after it, and what is told to whom."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time

import pytest

from interlock import Context, Server
from interlock.auth.resource_server import guard as protecting
from interlock.auth.resource_server.guard import Protector
from interlock.auth.www_authenticate import challenges_in
from interlock.state.memory import MemoryStore
from interlock.transport.http.server.app import HttpApp
from interlock.web.asgi.message import Headers, HttpRefusal
from interlock.wire.errors import LocalError, StoreError
from support.asgi import begin, call_tool, message, post
from support.auth_house import House
from support.auth_tokens import NOW, RESOURCE, bound, jwk_of, proof_of, protection, signer, token
from support.http_peer import HttpPeer, http
from support.sessions import OverSession
from support.stores import opened

LATER = 4e9  # in the real time of a whole application


def house(**rules):
    server = Server("house", auth=protection(**rules))

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject

    @server.tool(scopes=["write", "delete"])
    async def wipe() -> str:
        return "gone"

    return server, server.asgi(allowed_hosts=["mcp.example.com"])


def bearer(**claims):
    return {"authorization": f"Bearer {token(exp=LATER, **claims)}"}


async def test_the_caller_is_the_subject_of_the_token():
    _, app = house()
    answer = await post(app, call_tool("who"), bearer()).answer()
    assert answer.status == 200 and answer.json["result"]["content"][0]["text"] == "ada"


async def test_nobody_is_heard_without_a_token_and_the_body_stays_unread():
    _, app = house(scopes=("read",))
    for verb in ("POST", "GET", "DELETE"):
        lines = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"*/*")]
        talk = await begin(app, None, headers=lines, method=verb).answer()
        assert talk.status == 401 and talk.received == 0
        [(scheme, params)] = challenges_in(talk.headers["www-authenticate"])
        assert scheme == "bearer" and params["scope"] == "read"
        assert params["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")
        assert talk.json["error"]["code"] == -32600 and talk.headers["cache-control"] == "no-store"


async def test_the_old_endpoints_are_behind_it_too():
    _, app = house()
    for path, verb in (("/sse", "GET"), ("/messages", "POST")):
        lines = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        assert (await begin(app, None, headers=lines, method=verb, path=path).answer()).status == 401


async def test_the_metadata_are_for_everybody_at_both_places():
    _, app = house()
    lines = [(b"host", b"127.0.0.1")]
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        talk = await begin(app, None, headers=lines, method="GET", path=path).answer()
        assert talk.status == 200 and talk.json["resource"] == RESOURCE and talk.json["resource_name"] == "house"
        assert talk.headers["content-type"] == "application/json"
        assert (await begin(app, None, headers=lines, path=path).answer()).status == 405
        evil = [(b"host", b"evil.example")]
        assert (await begin(app, None, headers=evil, method="GET", path=path).answer()).status == 403
    other = "/.well-known/oauth-protected-resource/other"
    assert (await begin(app, None, headers=lines, method="GET", path=other).answer()).status == 404


async def test_a_tool_says_which_scopes_it_needs():
    _, app = house(scopes=("read",))
    talk = await post(app, call_tool("wipe"), bearer()).answer()
    [(_, params)] = challenges_in(talk.headers["www-authenticate"])
    assert talk.status == 403 and params["error"] == "insufficient_scope" and params["scope"] == "read write delete"
    talk = await post(app, call_tool("wipe"), bearer(scope="read write delete")).answer()
    assert talk.status == 200 and talk.json["result"]["content"][0]["text"] == "gone"


async def test_a_tool_that_is_hidden_needs_nothing_that_could_show_it():
    server, app = house()
    server.visible(lambda principal, item: item.name != "wipe")
    hidden = await post(app, call_tool("wipe"), bearer()).answer()
    absent = await post(app, call_tool("nope"), bearer()).answer()
    assert (hidden.status, hidden.error["code"]) == (absent.status, absent.error["code"])


async def test_in_a_batch_all_that_is_called_counts():
    _, app = house()
    batch = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "wipe"}} for n in (1, 2)]
    assert (await post(app, batch, bearer() | {"mcp-session-id": "x"}).answer()).status == 403


@pytest.mark.parametrize(
    "beside", [1, None, [], "x", {}, {"method": 1}, {"method": "tools/call", "params": {"name": 1}}]
)
async def test_what_is_no_call_hides_no_other_of_its_batch(beside):
    """Members of a batch are answered one by one: so are they judged (2025-03-26)."""
    _, app = house()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wipe"}}
    async with OverSession(app, "2025-03-26", **bearer()) as peer:
        for batch in ([beside, call], [call, beside], [beside, call, beside]):
            talk = await peer.post(batch).answer()
            assert talk.status == 403 and b"gone" not in talk.body
        spaced = b" \n\t" + json.dumps([beside, call]).encode()
        assert (await peer.post(spaced).answer()).status == 403
    app.stop()
    await app.settle(0)


@pytest.mark.parametrize("body", [b"", b"[", b"{}", b"[1]", b'{"method":"tools/call","params":{"name":1}}', b"\xff"])
async def test_what_cannot_be_read_is_left_to_who_reads_it(body):
    _, app = house()
    assert (await post(app, body, bearer()).answer()).status == 400


async def test_two_authorizations_are_none():
    _, app = house()
    lines = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"*/*")]
    twice = [*lines, (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")]
    assert (await begin(app, [b"{}"], headers=twice).answer()).status == 400


def test_there_is_one_who_says_who_asks():
    with pytest.raises(LocalError, match="both"):
        HttpApp(Server("s"), auth=protection(), authenticate=lambda headers: HttpRefusal(401))


@pytest.mark.parametrize(
    ("auth", "told"), [(House().server, "protection()"), ("a-token", "Protection"), (True, "Prot")]
)
def test_what_is_no_protection_is_said_so(auth, told):
    with pytest.raises(LocalError, match=re.escape(told)):
        Server("s", auth=auth).asgi()


@pytest.mark.parametrize("scopes", ["read", ["a b"], ["a", "a"], [""]])
def test_scopes_of_a_tool_are_words(scopes):
    with pytest.raises(LocalError, match="scopes"):
        Server("s").tool(scopes=scopes)(lambda: "x")


# --- proofs, on a clock of their own ---


def lines_of(**said):
    return Headers([(name.encode(), value.encode()) for name, value in said.items()])


async def test_a_proof_counts_once():
    guard = Protector(protection(), "/mcp", clock=lambda: NOW, store=MemoryStore(clock=lambda: NOW))
    good = bound()
    said = lines_of(authorization=f"DPoP {good}", dpop=proof_of(good))
    first, *others = await asyncio.gather(*(guard.admit(said, "POST", "/mcp") for _ in range(5)))
    assert not isinstance(first, HttpRefusal) and all(isinstance(other, HttpRefusal) for other in others)
    assert "invalid_dpop_proof" in dict(others[0].headers)["www-authenticate"]


async def test_proofs_name_the_address_that_was_asked():
    guard = Protector(protection(), "/mcp", clock=lambda: NOW)
    good = bound()
    said = lines_of(authorization=f"DPoP {good}", dpop=proof_of(good, htm="GET", htu="https://mcp.example.com/sse"))
    assert isinstance(await guard.admit(said, "POST", "/mcp"), HttpRefusal)
    assert not isinstance(await guard.admit(said, "GET", "/sse"), HttpRefusal)


async def test_the_nonce_comes_with_the_refusal():
    guard = Protector(protection(nonces=True), "/mcp", clock=lambda: NOW)
    good = bound()
    no = await guard.admit(lines_of(authorization=f"DPoP {good}", dpop=proof_of(good)), "POST", "/mcp")
    assert isinstance(no, HttpRefusal)
    nonce = dict(no.headers)["dpop-nonce"]
    again = lines_of(authorization=f"DPoP {good}", dpop=proof_of(good, nonce=nonce, jti="j2"))
    assert not isinstance(await guard.admit(again, "POST", "/mcp"), HttpRefusal)


async def test_processes_that_share_a_store_share_used_proofs_and_nonces(tmp_path):
    """Two applications with nothing in common but a file: what one gave or saw, the other knows."""
    apps = [house(nonces=True)[0].asgi(state=tmp_path / "state.db") for _ in range(2)]
    good, nonce = bound(exp=LATER), None

    async def asked(app, jti):
        proof = proof_of(good, jti=jti, iat=time.time(), nonce=nonce)
        talk = await post(app, message("tools/list"), {"authorization": f"DPoP {good}", "dpop": proof}).answer()
        return talk.status, talk.headers.get("dpop-nonce")

    status, nonce = await asked(apps[0], "1")
    assert status == 401 and nonce
    assert (await asked(apps[1], "2"))[0] == 200
    assert (await asked(apps[0], "2"))[0] == 401 and (await asked(apps[0], "3"))[0] == 200
    await apps[0]._lifecycle.leave()
    assert (await asked(apps[0], "4"))[0] == 200  # it begins again, with the same file
    assert (await asked(apps[1], "4"))[0] == 401
    for app in apps:
        app.stop()
        await app._lifecycle.finish()


async def test_a_store_of_the_server_counts_before_that_of_the_endpoint(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        guards = [Protector(protection(nonces=True), "/mcp", clock=lambda: NOW, store=store) for _ in range(2)]
        await guards[0].share(MemoryStore())
        good = bound()
        no = await guards[0].admit(lines_of(authorization=f"DPoP {good}", dpop=proof_of(good)), "POST", "/mcp")
        nonce = dict(no.headers)["dpop-nonce"]
        again = lines_of(authorization=f"DPoP {good}", dpop=proof_of(good, nonce=nonce, jti="j2"))
        assert not isinstance(await guards[1].admit(again, "POST", "/mcp"), HttpRefusal)


def test_several_processes_are_no_authorization_server_without_a_store_of_all(tmp_path):
    server = Server("s", auth=House().server.protection())
    with pytest.raises(LocalError, match="share its store"):
        server.asgi(state=tmp_path / "state.db")


async def test_a_store_that_cannot_be_used_lets_nobody_in(caplog):
    class Broken(MemoryStore):
        async def put(self, *arguments, **named):
            raise StoreError("the file is locked")

    guard = Protector(protection(), "/mcp", clock=lambda: NOW, store=Broken())
    good = bound()
    no = await guard.admit(lines_of(authorization=f"DPoP {good}", dpop=proof_of(good)), "POST", "/mcp")
    assert isinstance(no, HttpRefusal) and no.status == 503 and "the file is locked" in caplog.text


# --- an issuer on a socket ---


async def test_keys_are_fetched_once_for_all_who_wait():
    def issuer(request, stream):
        return http(200, json.dumps({"keys": [jwk_of(signer)]}).encode())

    async with HttpPeer(issuer) as peer:
        guard = Protector(protection(keys=None, keys_url=peer.url), "/mcp", clock=lambda: NOW)
        said = lines_of(authorization=f"Bearer {token()}")
        found = await asyncio.gather(*(guard.admit(said, "POST", "/mcp") for _ in range(8)))
        assert not any(isinstance(each, HttpRefusal) for each in found) and len(peer.requests) == 1


async def test_where_nothing_can_be_checked_nobody_gets_in(caplog, monkeypatch):
    monkeypatch.setattr(protecting, "_SECONDS", 5.0)
    async with HttpPeer(lambda request, stream: http(500)) as peer:
        guard = Protector(protection(keys=None, keys_url=peer.url), "/mcp", clock=lambda: NOW)
        with caplog.at_level(logging.DEBUG):
            no = await guard.admit(lines_of(authorization=f"Bearer {token()}"), "POST", "/mcp")
        assert isinstance(no, HttpRefusal) and no.status == 503 and ("retry-after", "5") in no.headers
        assert token()[:60] not in caplog.text and "could not be checked" in caplog.text


async def test_a_message_that_is_no_call_needs_no_scope():
    _, app = house()
    assert (await post(app, message("tools/list"), bearer(scope=None)).answer()).status == 200
