"""The extensions of authorization, on the client's side: client credentials, ID-JAG, workloads, bound tokens."""

from __future__ import annotations

import base64
import json
import logging

import pytest

from interlock import AuthorizationFailed, Client, ClientCredentials, EnterpriseManaged, WorkloadIdentity
from interlock.auth.client.driver import drive
from interlock.auth.client.machine_grants import workload_identity
from interlock.auth.discovery import Found, read_server_metadata
from interlock.auth.jose.signer import Signer, new_key
from interlock.auth.secrets import Secret
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import InterlockError, LocalError
from support.auth_peer import GuardedPeer
from support.auth_world import ISSUER, SERVER, Clock, Issuer, World, basic_of, oauth, said
from support.http_peer import http, server

requirement = pytest.mark.requirement
IDP = "https://idp.example.com/token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


def claims_of(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


# --- client credentials ---


@requirement("EXT-CC-001", "EXT-CC-002", "EXT-CC-005", "EXT-CC-006")
@pytest.mark.parametrize("by", ["secret", "key"])
def test_a_program_shows_who_it_is(by):
    methods = {"secret": ["client_secret_basic"], "key": ["private_key_jwt"]}[by]
    issuer = Issuer(token_endpoint_auth_methods_supported=methods)
    plan = (
        ClientCredentials("svc", "s3") if by == "secret" else ClientCredentials("svc", private_key=new_key().reveal())
    )
    world = World(issuer)
    world.logged_in(plan)
    [request] = issuer.requests
    assert request["grant_type"] == "client_credentials" and request["resource"] == SERVER
    assert not issuer.clients and not world.visits
    if by == "secret":
        assert basic_of(request["header authorization"]) == ("svc", "s3")
        return
    assert request["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    claims = claims_of(request["client_assertion"])
    assert claims["iss"] == claims["sub"] == "svc" and claims["aud"] == ISSUER and claims["exp"] > claims["iat"]


@requirement("EXT-CC-001")
def test_a_program_that_is_started_needs_no_token():
    with pytest.raises(LocalError, match="auth= belongs"):
        Client(["python", "server.py"], auth=ClientCredentials("svc", "s3"))


@requirement("EXT-CC-007")
async def test_the_extension_is_declared_with_every_request():
    async with GuardedPeer(server()) as host:
        async with Client(
            host.url, auth=ClientCredentials("svc", "s3"), extensions={"com.example/x": {"a": 1}}
        ) as client:
            await client.ping()
        for call in host.calls:
            told = call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
            assert told == {"io.modelcontextprotocol/oauth-client-credentials": {}, "com.example/x": {"a": 1}}


# --- a company decides ---


def managed(**more):
    told = {"idp_token_endpoint": IDP, "idp_client_id": "at-idp", "id_token": "the-id-token", **more}
    return EnterpriseManaged("c", "s", **told)


@requirement("EXT-EMA-001", "EXT-EMA-002", "EXT-EMA-003", "EXT-EMA-005", "EXT-EMA-011", "EXT-EMA-029")
def test_an_id_token_becomes_a_grant_becomes_a_token():
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"])
    world = World(issuer)
    grant = {"access_token": "the-id-jag", "issued_token_type": ID_JAG, "token_type": "N_A"}
    world.routes[IDP] = lambda ask: said(grant)
    world.logged_in(managed())
    [exchange] = [ask for ask in world.asks if ask.url == IDP]
    assert exchange.form is not None and exchange.form["audience"] == ISSUER and exchange.form["resource"] == SERVER
    assert exchange.form["requested_token_type"] == ID_JAG and exchange.form["subject_token"] == "the-id-token"
    assert exchange.form["subject_token_type"] == "urn:ietf:params:oauth:token-type:id_token"
    [request] = issuer.requests
    assert request["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert request["assertion"] == "the-id-jag" and not world.visits
    assert not [url for url in world.asked_urls if "the-id" in url]


@requirement("EXT-EMA-021")
def test_a_client_of_a_company_signs_instead_of_sharing_a_secret():
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic", "private_key_jwt"])
    world = World(issuer)
    world.routes[IDP] = lambda ask: said({"access_token": "the-id-jag", "issued_token_type": ID_JAG})
    plan = EnterpriseManaged(
        "c", private_key=new_key().reveal(), idp_token_endpoint=IDP, idp_client_id="at-idp", id_token="the-id-token"
    )
    world.logged_in(plan)
    [request] = issuer.requests
    assert request["client_assertion_type"].endswith(":jwt-bearer") and request["client_assertion"].count(".") == 2
    assert "client_secret" not in request and "header authorization" not in request


@requirement("EXT-EMA-007")
@pytest.mark.parametrize(
    ("profiles", "asked"), [(["urn:ietf:params:oauth:grant-profile:id-jag"], True), (["other"], False), ([], False)]
)
def test_an_issuer_that_takes_no_such_grant_is_seen_before(profiles, asked):
    world = World(Issuer(authorization_grant_profiles_supported=profiles))
    world.routes[IDP] = lambda ask: said({"error": "access_denied"}, 400)
    with pytest.raises(AuthorizationFailed):
        world.logged_in(managed())
    assert (IDP in world.asked_urls) is asked


@requirement("EXT-EMA-010", "EXT-WIF-010")
@pytest.mark.parametrize("endpoint", ["http://idp.example.com/token", "http://10.0.0.1/token"])
async def test_nothing_is_sent_without_tls(endpoint):
    with pytest.raises(LocalError, match="https"):
        managed(idp_token_endpoint=endpoint)
    metadata = read_server_metadata(said(Issuer(token_endpoint=endpoint).metadata()), (ISSUER,))
    found = Found(issuer=ISSUER, server=metadata, resource=SERVER)
    flow = workload_identity(WorkloadIdentity("the-jwt"), found, (), None, Clock())
    with pytest.raises(InterlockError, match="https"):
        await drive(flow, oauth(), endpoint_of(SERVER))


@requirement("EXT-EMA-017", "EXT-EMA-024")
def test_grants_and_tokens_are_not_seen(caplog):
    caplog.set_level(logging.DEBUG)
    world = World()
    world.routes[IDP] = lambda ask: said({"access_token": "the-id-jag", "issued_token_type": ID_JAG})
    told = {"error": "invalid_grant", "error_description": "the-id-jag was used"}
    world.routes[f"{ISSUER}/token"] = lambda ask: said(told, 400)
    with pytest.raises(AuthorizationFailed) as refused:
        world.logged_in(managed())
    shown = str(refused.value) + caplog.text + repr(world.asks) + repr(managed())
    assert "the-id-jag" not in shown and "the-id-token" not in shown


# --- workloads ---


@requirement("EXT-WIF-001")
def test_the_platforms_word_is_the_grant():
    world = World()
    world.logged_in(WorkloadIdentity(lambda: "the-jwt"))
    assert world.issuers[0].requests == [
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "the-jwt", "resource": SERVER}
    ]


@requirement("EXT-WIF-011")
@pytest.mark.parametrize("error", ["invalid_grant", "invalid_scope", "unauthorized_client"])
async def test_a_word_that_is_refused_is_not_said_again(error):
    async with GuardedPeer(server()) as host:
        host.routes[f"{host.origin}/as/token"] = lambda ask: said({"error": error}, 400)
        with pytest.raises(AuthorizationFailed) as refused:
            async with Client(host.url, auth=WorkloadIdentity("the-jwt")):
                pass
        assert refused.value.error == error and host.asked.count("/as/token") == 1


# --- bound tokens ---


@requirement("EXT-DPOP-001", "EXT-DPOP-002")
async def test_every_request_shows_that_the_token_is_ours():
    async with GuardedPeer(server(), scheme="DPoP") as host:
        async with Client(host.url, auth=host.oauth()) as client:
            await client.ping()
        assert "header dpop" in host.issuer.requests[0]
        proofs = [claims_of(call.header("DPoP")) for call in host.calls[1:]]
        assert len({proof["jti"] for proof in proofs}) == len(proofs) == 2 and all("ath" in proof for proof in proofs)
        assert {call.header("Authorization") for call in host.calls[1:]} == {"DPoP access-1"}


@requirement("EXT-DPOP-003")
async def test_a_nonce_that_is_wanted_is_sent_back():
    async with GuardedPeer(server(), scheme="DPoP") as host:
        inner = host.peer.script

        def script(request, stream):
            proof = request.header("DPoP")
            if request.path == "/mcp" and proof is not None and claims_of(proof).get("nonce") != "of-the-server":
                told = "WWW-Authenticate: DPoP error=use_dpop_nonce"
                return http(401, b"", told, "DPoP-Nonce: of-the-server")
            if request.path == "/as/token" and claims_of(proof).get("nonce") is None:
                return http(400, b'{"error": "use_dpop_nonce"}', "DPoP-Nonce: of-the-issuer")
            return inner(request, stream)

        host.peer.script = script
        async with Client(host.url, auth=host.oauth()) as client:
            await client.ping()
        assert host.asked.count("/as/token") == 2 and len(host.visits) == 1
        assert claims_of(host.calls[-1].header("DPoP"))["nonce"] == "of-the-server"


@requirement("EXT-DPOP-013", "EXT-DPOP-014")
def test_a_key_is_kept_with_its_token_and_signs_by_no_shared_secret():
    issuer = Issuer()
    issuer.token = lambda told: {**told, "token_type": "DPoP"}
    world = World(issuer)
    world.logged_in(oauth(dpop=True))
    standing = world.run(world.seeker().current()).standing
    assert "PRIVATE" not in repr(standing) and standing.dpop_key is not None
    for algorithm in ("HS256", "none", "HS512", ""):
        with pytest.raises(LocalError):
            Signer(Secret(standing.dpop_key.reveal()), algorithm)
