"""A server that wants tokens: who is turned away, with which words, and that nobody's token goes any further."""

from __future__ import annotations

import json

import pytest

from interlock import Context, Server
from interlock.auth.resource_server.protection import Protection
from interlock.auth.www_authenticate import challenges_in
from interlock.testing import MemoryClient
from interlock.wire.errors import LocalError
from interlock.wire.exchange import LOCAL
from support.asgi import begin, call_tool, post
from support.auth_tokens import ISSUER, RESOURCE, bound, proof_of, protection, token
from support.sessions import OverSession, send

LATER = 4e9
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
SESSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


def house(**rules):
    server = Server("house", auth=protection(**{"scopes": ("read",), "implies": {"admin": ("write", "read")}, **rules}))

    @server.tool(scopes=["write", "delete"])
    async def wipe() -> str:
        return "gone"

    @server.tool(scopes=["write"])
    async def write() -> str:
        return "written"

    @server.tool
    async def headers(ctx: Context) -> str:
        return json.dumps(dict(ctx.headers))

    return server.asgi()


def bearer(**claims):
    return f"Bearer {token(**{'exp': LATER, **claims})}"


async def asked(app, revision, frame, authorization):
    """One request of a caller in this revision, up to the answer."""
    if revision == "2026-07-28":
        modern = call_tool("write") if frame is LIST else frame
        return await post(app, modern, {"authorization": authorization}).answer()
    return await send(app, "POST", frame, authorization=authorization).answer()


def params_of(talk):
    [(scheme, params)] = challenges_in(talk.headers["www-authenticate"])
    return scheme, params


@pytest.mark.requirement("AUTH-07", "AUTH-22", "AUTH-23", "AUTH-26", "AUTH-014", "AUTH-DISC-004", "SEC-010")
@pytest.mark.parametrize("revision", [*SESSIONS, "2026-07-28"])
async def test_who_brings_no_token_is_told_where_to_get_one(revision):
    talk = await asked(house(), revision, LIST, None)
    scheme, params = params_of(talk)
    assert talk.status == 401 and scheme == "bearer"
    assert params["resource_metadata"] == METADATA and params["scope"] == "read"


@pytest.mark.requirement("AUTH-18", "AUTH-19", "AUTH-009", "AUTH-DISC-001")
@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
async def test_the_metadata_name_the_authorization_server(path):
    talk = await begin(house(), None, method="GET", path=path, headers=[(b"host", b"127.0.0.1")]).answer()
    assert talk.status == 200 and talk.json["resource"] == RESOURCE and talk.json["authorization_servers"] == [ISSUER]


@pytest.mark.requirement("SEC-13", "AUTH-63", "AUTH-64", "AUTH-65", "AUTH-67", "AUTH-034", "AUTH-035", "AUTH-SEC-002")
@pytest.mark.requirement("EXT-EMA-025", "EXT-WIF-008")
@pytest.mark.parametrize("revision", [*SESSIONS, "2026-07-28"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "https://other.example.com"},
        {"aud": [RESOURCE, ISSUER]},
        {"aud": None},
        {"exp": 1},
        {"iss": "https://x"},
    ],
)
async def test_tokens_for_others_or_of_yesterday_are_not_accepted(revision, wrong):
    talk = await asked(house(), revision, LIST, bearer(**wrong))
    assert talk.status == 401 and params_of(talk)[1]["error"] == "invalid_token"


@pytest.mark.requirement("SEC-13")
@pytest.mark.parametrize(("verb", "path", "query"), [("GET", "/sse", b""), ("POST", "/messages", b"session_id=x")])
async def test_tokens_for_others_open_the_endpoints_of_old_clients_no_more_than_the_new_one(verb, path, query):
    async def told(authorization):
        headers = {"host": "127.0.0.1", "content-type": "application/json", "authorization": authorization}
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        talk = begin(house(), [b"{}"], method=verb, path=path, query_string=query, headers=lines)
        await talk.heard(2)
        talk.disconnect()
        return talk

    for wrong in ({"aud": "https://other.example.com"}, {"aud": None}, {"iss": "https://x"}):
        talk = await told(bearer(**wrong))
        assert talk.status == 401 and params_of(talk)[1]["error"] == "invalid_token"
    assert (await told(bearer())).status == {"GET": 200, "POST": 404}[verb]


@pytest.mark.requirement("AUTH-69", "AUTH-043")
async def test_each_kind_of_no_has_its_status():
    app = house()
    assert (await asked(app, "2026-07-28", LIST, None)).status == 401
    assert (await asked(app, "2026-07-28", LIST, "Bearer x.y.z")).status == 401
    assert (await asked(app, "2026-07-28", LIST, bearer(scope="other"))).status == 403
    assert (await asked(app, "2026-07-28", LIST, "Bearer a b")).status == 400


@pytest.mark.requirement("AUTH-30", "AUTH-70", "AUTH-71", "AUTH-018", "AUTH-044", "AUTH-045", "AUTH-046")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_a_call_needs_is_told_at_once_and_every_time_alike(revision):
    app = house()
    call = (
        call_tool("wipe") if revision == "2026-07-28" else {**LIST, "method": "tools/call", "params": {"name": "wipe"}}
    )
    for _ in range(2):
        talk = await asked(app, revision, call, bearer())
        scheme, params = params_of(talk)
        assert (talk.status, scheme, params["error"]) == (403, "bearer", "insufficient_scope")
        assert params["scope"] == "read write delete" and params["resource_metadata"] == METADATA


@pytest.mark.requirement("SEC-36")
async def test_nobody_is_asked_for_more_than_he_needs_now():
    """What single tools need is in neither the first challenge nor the metadata; a call that lacks it names it."""
    app = house()
    assert params_of(await asked(app, "2026-07-28", LIST, None))[1]["scope"] == "read"
    path = "/.well-known/oauth-protected-resource"
    found = await begin(app, None, method="GET", path=path, headers=[(b"host", b"127.0.0.1")]).answer()
    assert found.json["scopes_supported"] == ["read"]
    lacks = await post(app, call_tool("write"), {"authorization": bearer()}).answer()
    assert params_of(lacks)[1]["scope"] == "read write"


@pytest.mark.requirement("AUTH-050")
async def test_a_scope_may_stand_for_others():
    assert (await post(house(), call_tool("write"), {"authorization": bearer(scope="admin")}).answer()).status == 200
    assert (await post(house(), call_tool("wipe"), {"authorization": bearer(scope="admin")}).answer()).status == 403


@pytest.mark.requirement("AUTH-042")
def test_offline_access_is_none_of_a_servers_scopes():
    for where in ("scopes", "scopes_supported"):
        with pytest.raises(LocalError):
            Protection(resource=RESOURCE, issuer=ISSUER, **{where: ("offline_access",)})


@pytest.mark.requirement("AUTH-68", "AUTH-037", "AUTH-SEC-020")
async def test_the_code_of_an_author_does_not_even_see_the_token():
    told = {"authorization": bearer(), "x-mine": "1"}
    talk = await post(house(), call_tool("headers"), told).answer()
    seen = json.loads(talk.json["result"]["content"][0]["text"])
    assert seen["x-mine"] == "1" and not {"authorization", "dpop"} & set(seen)
    assert "eyJ" not in talk.body.decode()


@pytest.mark.requirement("AUTH-04", "AUTH-003")
async def test_over_stdio_nobody_is_asked_for_a_token():
    """The same server, beside HTTP: who starts it is who calls, and it never sees a token."""
    server = Server("house", auth=protection(scopes=("read",), dpop="required"))

    @server.tool(scopes=["write"])
    async def who(ctx: Context) -> str:
        return f"{ctx.principal == LOCAL} {dict(ctx.headers)}"

    async with MemoryClient(server) as client:
        assert (await client.call_tool("who")).text == "True {}"


@pytest.mark.requirement("SEC-010", "SEC-011")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_session_stays_with_its_user_whatever_token_he_brings(revision):
    """A refreshed token keeps it; to another user, client or issuer's subject it does not exist."""
    app = house()
    async with OverSession(app, revision, authorization=bearer()) as peer:
        assert (await peer.send("POST", LIST, authorization=bearer(jti="fresh", exp=LATER + 1)).answer()).status == 200
        for other in ({"sub": "bob"}, {"client_id": "d"}):
            foreign = await peer.send("POST", LIST, authorization=bearer(**other)).answer()
            unknown = await peer.send("POST", LIST, authorization=bearer(), mcp_session_id="0" * 43).answer()
            assert foreign.status == unknown.status == 404 and foreign.body == unknown.body
        assert (await peer.send("POST", LIST, authorization=None).answer()).status == 401
    app.stop()
    await app.settle(0)


@pytest.mark.requirement("EXT-DPOP-004", "EXT-DPOP-005", "EXT-DPOP-006", "EXT-DPOP-008", "EXT-DPOP-009", "EXT-DPOP-010")
async def test_a_bound_token_needs_a_fresh_proof_with_every_request():
    import time

    app, now, good = house(dpop="required"), time.time(), bound(exp=LATER)

    async def status(access, **claims):
        proof = proof_of(access, **{"iat": now, **claims})
        said = {"authorization": f"DPoP {access}", "dpop": proof}
        talk = await post(app, call_tool("headers"), said).answer()
        return talk.status, talk.headers.get("www-authenticate", "")

    assert await status(good, jti="1") == (200, "")
    for wrong in ({"jti": "1"}, {"iat": now - 400}, {"iat": now + 400}, {"htm": "GET"}, {"htu": ISSUER}, {"ath": "x"}):
        code, told = await status(good, **{"jti": str(wrong), **wrong})
        assert code == 401 and told.startswith('DPoP error="invalid_dpop_proof"'), wrong
    assert (await status(bound(exp=LATER, aud=ISSUER), jti="2"))[0] == 401
    assert (await asked(app, "2026-07-28", LIST, f"Bearer {good}")).status == 401
