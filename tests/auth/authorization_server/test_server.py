"""What an owner may say about an authorization server, and what it tells the world."""

from __future__ import annotations

import pytest

from interlock.auth.authorization_server.client_metadata import KnownClient
from interlock.auth.authorization_server.passwords import hash_password
from interlock.auth.authorization_server.server import AuthorizationServer, IdentityProvider
from interlock.auth.authorization_server.workload_identity import Workload, WorkloadPlatform
from interlock.auth.jose.jwk import keys_in
from interlock.auth.jose.jwt import read_written
from interlock.auth.jose.signer import new_key
from interlock.state.sqlite.store import SQLiteStore
from interlock.wire.errors import LocalError

ADA = hash_password("correct horse")
AS, MCP = "https://as.example.com", "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    "wrong",
    [
        {"resources": []},
        {"resources": ["mcp"]},
        {"scopes": ["a b"]},
        {"scopes": ["a", "a"]},
        {"users": {"ada": "plain password"}},
        {"access_seconds": 10},
        {"access_seconds": 7200},
        {"refresh_seconds": 10},
        {"clients": [KnownClient(id="c", redirect_uris=("javascript:x",))]},
        {"clients": [KnownClient(id="c", grants=("client_credentials",))]},
        {"clients": [KnownClient(id="c", grants=("password",))]},
        {"key": "no key"},
        {"resources": MCP},
        {"scopes": "read"},
        {"schemes": "cursor"},
        {"clients": [KnownClient(id="c"), KnownClient(id="c")]},
        {"clients": [KnownClient(id="c", redirect_uris="https://app.example.com/done")]},
        {"clients": [KnownClient(id="c", secret_hash="the secret as it is")]},
        {
            "clients": [KnownClient(id="ada", secret_hash="0" * 64, grants=("client_credentials",))],
            "users": {"ada": ADA},
        },
        {"clients": [KnownClient(id="c", scopes=("admin",))]},
        {"clients": [KnownClient(id="c", scopes="read")], "scopes": ["read"]},
        {"providers": [IdentityProvider(issuer=AS)] * 2},
        {"platforms": [WorkloadPlatform(issuer=AS, workloads=(Workload(subject="x"),))] * 2},
    ],
)
def test_what_makes_no_sense_is_said_at_once(wrong):
    with pytest.raises(LocalError):
        AuthorizationServer(AS, **{"resources": [MCP], **wrong})


@pytest.mark.parametrize("issuer", ["http://as.example.com", "as", AS + "?x", AS + "#x", "https://u@as.example.com"])
def test_an_issuer_is_a_url_with_https(issuer):
    with pytest.raises(LocalError):
        AuthorizationServer(issuer, resources=[MCP])
    AuthorizationServer("http://127.0.0.1:9000", resources=[MCP])


async def test_processes_that_share_a_store_share_the_key(tmp_path):
    store = SQLiteStore(tmp_path / "as.db")
    with pytest.raises(LocalError, match="key="):
        AuthorizationServer(AS, resources=[MCP], store=store)
    key = new_key()
    one, two = (AuthorizationServer(AS, resources=[MCP], store=store, key=key) for _ in range(2))
    assert one.key_set() == two.key_set() and one.seal.open(two.seal.seal(b"x")) == b"x"
    await store.close()


def test_a_protection_is_for_one_of_its_resources():
    issuer = AuthorizationServer(AS, resources=[MCP, MCP + "2"])
    assert issuer.protection(MCP + "2").resource == MCP + "2"
    with pytest.raises(LocalError, match="none of the resources"):
        issuer.protection(MCP + "3")


def test_the_metadata():
    found = AuthorizationServer(AS + "/tenant", resources=[MCP], scopes=["read"]).metadata()
    assert found["issuer"] == AS + "/tenant" and found["token_endpoint"] == AS + "/tenant/token"
    assert found["code_challenge_methods_supported"] == ["S256"] and found["response_types_supported"] == ["code"]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert found["client_id_metadata_document_supported"] is True and found["scopes_supported"] == ["read"]
    assert "none" not in found["dpop_signing_alg_values_supported"]
    assert "private_key_jwt" in found["token_endpoint_auth_methods_supported"]
    assert found["token_endpoint_auth_signing_alg_values_supported"]
    assert all(url.startswith("https://") for name, url in found.items() if name.endswith(("_endpoint", "_uri")))
    bare = AuthorizationServer(AS, resources=[MCP], registration=False, documents=False).metadata()
    assert "registration_endpoint" not in bare and not bare["client_id_metadata_document_supported"]
    assert "authorization_grant_profiles_supported" not in bare
    provided = AuthorizationServer(AS, resources=[MCP], providers=[IdentityProvider(issuer="https://idp.example")])
    assert provided.metadata()["authorization_grant_profiles_supported"]


def test_only_the_public_half_of_the_key_is_shown():
    [key] = AuthorizationServer(AS, resources=[MCP]).key_set()["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "kid", "use", "alg"}


def test_tokens_are_for_one_resource_and_short():
    server = AuthorizationServer(AS, resources=[MCP], clock=lambda: 1000.0)
    made = server.access_token("ada", "c", ("read",), MCP, "thumb")
    assert made["token_type"] == "DPoP" and made["expires_in"] == 300
    written = read_written(made["access_token"])
    written.check(keys_in(server.key_set()["keys"], ["ES256"]), ("ES256",), ("at+jwt",))
    assert written.claims["aud"] == MCP and written.claims["exp"] == 1300 and written.claims["cnf"] == {"jkt": "thumb"}


def test_which_resource_is_meant():
    one = AuthorizationServer(AS, resources=[MCP])
    assert one.resource_of(None) == MCP == one.resource_of("HTTPS://MCP.example.com/mcp")
    for other in ("", "x", MCP + "/x", "https://evil.example", MCP + "#x"):
        assert one.resource_of(other) is None
    assert AuthorizationServer(AS, resources=[MCP, AS + "/other"]).resource_of(None) is None


def test_scopes_that_are_not_known_are_left_out():
    server = AuthorizationServer(AS, resources=[MCP], scopes=["read", "write"])
    assert server.scopes_for(None) == () and server.scopes_for("write x") == ("write",)
    assert server.scopes_for("x") is None and server.scopes_for("offline_access") == ()
