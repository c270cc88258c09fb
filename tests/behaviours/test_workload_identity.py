"""Workload identity federation, on the side of our authorization server: whom it trusts, and by which rules."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from interlock import AuthorizationServer, Client, Context, Server, Workload, WorkloadIdentity, WorkloadPlatform
from interlock.auth.authorization_server.client_metadata import JWT_BEARER
from interlock.transport.http.runner.serve import bind, serve_http
from interlock.wire.errors import AuthorizationFailed, LocalError
from support.auth_house import AS, MCP, House
from support.auth_tokens import NOW, jwk_of, signer, stranger

requirement = pytest.mark.requirement
PLATFORM = "https://platform.example.com"


def rules(**more):
    named = (Workload(subject="job", claims={"tenant": "t1"}, scopes=("read",)),)
    return WorkloadPlatform(**{"issuer": PLATFORM, "keys": (jwk_of(signer),), "workloads": named, **more})


def statement(key=signer, now=NOW, audience=AS + "/token", **changes):
    base = {"iss": PLATFORM, "sub": "job", "aud": audience, "iat": now, "exp": now + 60, "jti": "1", "tenant": "t1"}
    return key.signed({"kid": "k1"}, {**base, **changes})


async def answered(assertion, **more):
    house = House(platforms=[rules(**more)])
    return await house.post("/token", {"grant_type": JWT_BEARER, "assertion": assertion, "resource": MCP})


@requirement("EXT-WIF-003", "EXT-WIF-004")
@pytest.mark.parametrize(
    "wrong",
    [
        statement(iss="https://evil.example"),
        statement(stranger),
        statement(sub="other"),
        statement(tenant="t2"),
        statement(aud=MCP),
        statement(exp=NOW - 60),
        statement(nbf=NOW + 60),
    ],
)
async def test_only_what_a_trusted_platform_says_of_a_known_program_counts(wrong):
    assert (await answered(statement())).status == 200
    assert (await answered(wrong)).json["error"] == "invalid_grant"


@requirement("EXT-WIF-003", "EXT-WIF-006")
def test_keys_come_by_tls_and_nobody_is_trusted_without_rules():
    for wrong in ({"keys": None, "keys_url": "http://platform.example.com/keys"}, {"workloads": ()}):
        with pytest.raises(LocalError):
            rules(**wrong)


@requirement("EXT-WIF-006")
async def test_the_owner_says_which_claims_must_be_there():
    named = (Workload(subject="job", claims={"tenant": "t2"}),)
    assert (await answered(statement(), workloads=named)).json["error"] == "invalid_grant"
    assert (await answered(statement(tenant="t2"), workloads=named)).status == 200


@requirement("EXT-WIF-007")
def test_the_grant_is_in_the_metadata_where_it_is_offered():
    for platforms, there in (([rules()], True), ([], False)):
        metadata = AuthorizationServer(AS, resources=[MCP], scopes=["read"], platforms=platforms).metadata()
        assert (JWT_BEARER in metadata["grant_types_supported"]) is there


@requirement("EXT-WIF-009")
async def test_who_got_in_and_who_did_not_is_in_the_log(caplog):
    caplog.set_level(logging.INFO)
    await answered(statement())
    await answered(statement(tenant="t2"))
    assert f"{PLATFORM}#job" in caplog.text and "a workload was refused" in caplog.text


@requirement("EXT-WIF-003", "EXT-WIF-004")
async def test_a_program_calls_a_server_with_nothing_but_its_platforms_word():
    """Our client, our authorization server and our server, over sockets."""
    listener = bind("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    issuer = AuthorizationServer(base, resources=[base + "/mcp"], scopes=["read"], platforms=[rules()])
    server = Server("house", auth=issuer.protection(scopes=("read",)))

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject

    stop = asyncio.Event()
    serving = asyncio.create_task(serve_http(server.asgi(), listener, stop=stop))
    try:
        for tenant, good in (("t1", True), ("t2", False)):
            said = statement(now=time.time(), audience=base + "/token", tenant=tenant)
            if good:
                async with Client(base + "/mcp", auth=WorkloadIdentity(said)) as client:
                    assert (await client.call_tool("who")).text == f"{PLATFORM}#job"
            else:
                with pytest.raises(AuthorizationFailed):
                    async with Client(base + "/mcp", auth=WorkloadIdentity(said)):
                        pass
    finally:
        stop.set()
        await serving
