"""Signed statements at the token endpoint: of clients about themselves, and of providers about people."""

from __future__ import annotations

import json

import pytest

from interlock.auth.authorization_server.assertions import ASSERTION_TYPE
from interlock.auth.authorization_server.client_metadata import JWT_BEARER, KnownClient, hash_secret
from interlock.auth.authorization_server.server import IdentityProvider
from interlock.auth.flow import Said
from interlock.auth.jose.jwt import read_written
from interlock.wire.errors import LocalError
from support.auth_house import AS, MCP, SECRET, House
from support.auth_tokens import jwk_of, prover, signer

IDP = "https://idp.example.com"
NOW = 1_000_000.0
CLIENT = KnownClient(id="jwt", keys=(jwk_of(signer),), grants=("client_credentials",))
APP = KnownClient(id="app", secret_hash=hash_secret(SECRET), grants=(JWT_BEARER,))


def client_assertion(key=signer, header=None, **changes):
    base = {"iss": "jwt", "sub": "jwt", "aud": AS, "exp": NOW + 60, "jti": "j1"}
    claims = {name: value for name, value in {**base, **changes}.items() if value is not None}
    return key.signed({"kid": "k1", **(header or {})}, claims)


async def as_client(assertion, house=None):
    house = house or House(clients=[CLIENT])
    form = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    return await house.post("/token", form)


async def test_a_client_signs_for_itself_once():
    house = House(clients=[CLIENT])
    talk = await as_client(client_assertion(), house)
    assert read_written(talk.json["access_token"]).claims["sub"] == "jwt"
    assert (await as_client(client_assertion(), house)).json["error"] == "invalid_client"
    assert (await as_client(client_assertion(aud=AS + "/token", jti="j2"), house)).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        client_assertion(prover),
        client_assertion(header={"kid": "x"}),
        client_assertion(header={"typ": "at+jwt"}),
        client_assertion(iss="other"),
        client_assertion(sub="other"),
        client_assertion(sub=None),
        client_assertion(aud="https://evil.example"),
        client_assertion(aud=[AS, "https://evil.example"]),
        client_assertion(aud=None),
        client_assertion(exp=NOW - 31),
        client_assertion(exp=NOW + 10_000),
        client_assertion(exp=None),
        client_assertion(jti=None),
        client_assertion(iss="machine", sub="machine"),
        "a.b.c",
    ],
)
async def test_assertions_that_are_not_taken(wrong):
    assert (await as_client(wrong)).json["error"] == "invalid_client"


# --- ID-JAG ---


def identity(key=prover, header=None, **changes):
    base = {"iss": IDP, "sub": "u1", "aud": AS, "client_id": "app", "jti": "i1", "iat": NOW, "exp": NOW + 300}
    told = {**base, "resource": MCP, "scope": "read admin", **changes}
    claims = {name: value for name, value in told.items() if value is not None}
    return key.signed({"typ": "oauth-id-jag+jwt", "kid": "i1", **(header or {})}, claims)


def enterprise(**more):
    provider = IdentityProvider(issuer=IDP, **{"keys": (jwk_of(prover, "i1"),), **more})
    return House(clients=[APP, CLIENT], providers=[provider])


async def as_somebody(assertion, house=None, **form):
    house = house or enterprise()
    told = {"grant_type": JWT_BEARER, "assertion": assertion, **form}
    return await house.post("/token", told, **house.basic("app"))


async def test_a_provider_vouches_for_somebody_once():
    house = enterprise()
    talk = await as_somebody(identity(), house)
    claims = read_written(talk.json["access_token"]).claims
    assert claims["aud"] == MCP and claims["sub"] == f"{IDP}#u1" and claims["client_id"] == "app"
    assert claims["scope"] == "read" and "refresh_token" not in talk.json
    assert (await as_somebody(identity(), house)).json["error"] == "invalid_grant"


async def test_scopes_are_what_both_say():
    assert (await as_somebody(identity(), scope="read write")).json["scope"] == "read"
    assert (await as_somebody(identity(scope=None), scope="read")).json["scope"] == ""


@pytest.mark.parametrize(
    "wrong",
    [
        identity(signer),
        identity(header={"typ": "JWT"}),
        identity(header={"kid": "x"}),
        identity(iss="https://evil.example"),
        identity(iss=None),
        identity(aud=MCP),
        identity(aud=[AS, MCP]),
        identity(aud=None),
        identity(client_id="jwt"),
        identity(client_id=None),
        identity(sub=None),
        identity(jti=None),
        identity(exp=NOW - 31),
        identity(exp=NOW + 3600),
        identity(exp=None),
        identity(iat=None),
        identity(iat=NOW + 31),
        identity(nbf=NOW + 31),
        identity(resource="https://evil.example"),
        identity(resource=1),
        identity()[:-4] + "AAAA",
        "",
        "x",
    ],
)
async def test_statements_that_are_not_taken(wrong):
    assert (await as_somebody(wrong)).json["error"] in ("invalid_grant", "invalid_request")


async def test_the_client_must_be_who_it_says():
    house = enterprise()
    form = {"grant_type": JWT_BEARER, "assertion": identity(), "client_id": "app"}
    assert (await house.post("/token", form)).json["error"] == "invalid_client"


async def test_without_providers_there_is_no_such_grant():
    house = House(clients=[APP])
    assert (await as_somebody(identity(), house)).json["error"] == "unsupported_grant_type"


async def test_keys_of_a_provider_are_looked_up():
    house = enterprise(keys=None, keys_url=IDP + "/keys")
    house.documents[IDP + "/keys"] = Said(status=200, body=json.dumps({"keys": [jwk_of(prover, "i1")]}).encode())
    assert (await as_somebody(identity(), house)).status == 200 and house.asked == [IDP + "/keys"]
    absent = await as_somebody(identity(), enterprise(keys=None, keys_url=IDP + "/keys"))
    assert (absent.status, absent.json["error"]) == (503, "temporarily_unavailable")


@pytest.mark.parametrize("wrong", [{"issuer": "http://idp.example.com"}, {"keys_url": "http://x/"}, {"algorithms": ()}])
def test_a_provider_is_described_well(wrong):
    with pytest.raises(LocalError):
        IdentityProvider(**{"issuer": IDP, **wrong})


async def test_a_subject_that_no_server_would_read_is_not_granted():
    assert (await as_somebody(identity(sub="x" * 1010))).json["error"] == "invalid_grant"


async def test_an_assertion_says_for_which_of_several_resources_it_is():
    house = enterprise()
    house.server.resources = (MCP + "2", MCP)
    form = {"grant_type": JWT_BEARER, "assertion": identity()}
    talk = await house.post("/token", form, **house.basic("app"))
    assert read_written(talk.json["access_token"]).claims["aud"] == MCP
    other = await house.post(
        "/token", {**form, "assertion": identity(jti="2"), "resource": MCP + "2"}, **house.basic("app")
    )
    assert other.json["error"] == "invalid_target"
