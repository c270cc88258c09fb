"""Grants without a browser."""

from __future__ import annotations

import base64
import json

import pytest

from interlock.auth.client.providers import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from interlock.auth.jose.signer import new_key
from interlock.auth.secrets import Secret
from interlock.auth.www_authenticate import Demand
from interlock.wire.errors import AuthorizationFailed
from support.auth_world import ISSUER, SERVER, Issuer, World, basic_of, said

IDP = "https://idp.example.com/token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


def claims_of(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_program_authenticates_with_its_secret():
    issuer = Issuer(registration_endpoint=None)
    world = World(issuer)
    got = world.logged_in(ClientCredentials("svc", "s3", scope="a"))
    [request] = issuer.requests
    assert request["grant_type"] == "client_credentials" and request["resource"] == SERVER and request["scope"] == "a"
    assert basic_of(request["header authorization"]) == ("svc", "s3")
    assert not world.visits and got is not None


def test_or_with_a_signature_for_this_issuer_alone():
    issuer = Issuer(token_endpoint_auth_methods_supported=["private_key_jwt"])
    World(issuer).logged_in(ClientCredentials("svc", private_key=new_key().reveal()))
    [request] = issuer.requests
    claims = claims_of(request["client_assertion"])
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("svc", "svc", ISSUER)
    assert claims["exp"] - claims["iat"] == 60 and claims["jti"] and request["client_id"] == "svc"


def test_a_company_decides():
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"])
    world = World(issuer)
    exchanged = []

    def exchange(ask):
        exchanged.append(ask)
        return said({"access_token": "the-id-jag", "issued_token_type": ID_JAG, "token_type": "N_A"})

    world.routes[IDP] = exchange
    plan = EnterpriseManaged("c", "s", idp_token_endpoint=IDP, idp_client_id="i", id_token=lambda: "the-id-token")
    world.logged_in(plan, scope=("a",))
    [ask] = exchanged
    assert ask.policy == "typed" and ask.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": ID_JAG,
        "audience": ISSUER,
        "resource": SERVER,
        "subject_token": "the-id-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "scope": "a",
        "client_id": "i",
    }
    [request] = issuer.requests
    assert request["grant_type"].endswith(":jwt-bearer") and request["assertion"] == "the-id-jag"
    assert basic_of(request["header authorization"]) == ("c", "s") and not world.visits


@pytest.mark.parametrize(
    "answer",
    [
        said({"error": "invalid_grant"}, 400),
        said({"access_token": "x", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
        said({"issued_token_type": ID_JAG}),
        said({"access_token": "", "issued_token_type": ID_JAG}),
    ],
)
def test_what_is_no_grant_goes_nowhere(answer):
    world = World()
    world.routes[IDP] = lambda ask: answer
    with pytest.raises(AuthorizationFailed):
        world.logged_in(EnterpriseManaged("c", "s", idp_token_endpoint=IDP, idp_client_id="i", id_token="t"))
    assert not world.issuers[0].requests


def test_an_issuer_that_says_it_takes_no_such_grant_is_not_asked():
    world = World(Issuer(authorization_grant_profiles_supported=["other"]))
    with pytest.raises(AuthorizationFailed, match="ID-JAG"):
        world.logged_in(EnterpriseManaged("c", "s", idp_token_endpoint=IDP, idp_client_id="i", id_token="t"))
    assert IDP not in world.asked_urls


def test_the_platform_vouches_once():
    issuer = Issuer()
    world = World(issuer)
    world.logged_in(WorkloadIdentity("the-jwt"))
    assert issuer.requests == [
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "the-jwt", "resource": SERVER}
    ]
    world = World(issuer)
    world.routes[f"{ISSUER}/token"] = lambda ask: said({"error": "invalid_grant"}, 400)
    with pytest.raises(AuthorizationFailed):
        world.logged_in(WorkloadIdentity("the-jwt", client_id="c"))
    assert world.asked_urls.count(f"{ISSUER}/token") == 1
    assert world.asks[-1].form is not None and world.asks[-1].form["client_id"] == "c"


def test_a_program_can_step_up_too():
    world = World()
    seeker = world.logged_in(ClientCredentials("svc", "s3"), scope=("a",))
    got = world.run(seeker.widened(Demand(scope=("b",)), Secret("access-1")))
    assert got.standing.token.asked == ("a", "b") and world.issuers[0].requests[-1]["scope"] == "a b"
