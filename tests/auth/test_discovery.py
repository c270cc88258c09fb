"""The ladder: which documents are asked for, in which order, and where the search ends."""

from __future__ import annotations

import pytest

from interlock.auth.discovery import discover, issuer_urls, metadata_of
from interlock.auth.www_authenticate import Demand
from interlock.wire.errors import AuthorizationFailed, HttpStatus
from support.auth_world import ISSUER, SERVER, Issuer, Said, World, said

HOST = "https://mcp.example.com"
PATH, ROOT = f"{HOST}/.well-known/oauth-protected-resource/mcp", f"{HOST}/.well-known/oauth-protected-resource"
OWN = f"{HOST}/.well-known/oauth-authorization-server"


def test_what_the_challenge_names_is_asked_and_nothing_else():
    world = World()
    world.routes["https://other.example/doc"] = world.routes.pop(PATH)
    found = world.run(discover(SERVER, Demand(metadata="https://other.example/doc")))
    assert found.issuer == ISSUER and found.resource == SERVER
    assert world.asked_urls == ["https://other.example/doc", f"{ISSUER}/.well-known/oauth-authorization-server"]
    assert {ask.policy for ask in world.asks} == {"named"}


def test_what_the_challenge_names_and_is_not_there_ends_the_search():
    world = World()
    with pytest.raises(AuthorizationFailed, match="not there"):
        world.run(discover(SERVER, Demand(metadata="https://other.example/doc")))
    assert world.asked_urls == ["https://other.example/doc"]


def test_without_a_challenge_the_path_comes_before_the_root():
    world = World()
    world.run(discover(SERVER, Demand()))
    assert world.asked_urls[0] == PATH and ROOT not in world.asked_urls
    world = World()
    world.routes[ROOT] = world.routes.pop(PATH)
    world.run(discover(SERVER, Demand()))
    assert world.asked_urls[:2] == [PATH, ROOT]


@pytest.mark.parametrize(
    ("issuer", "wanted"),
    [
        (
            "https://as.example.com",
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
        ),
        (
            "https://as.example.com/tenant1",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_metadata_of_an_issuer_are_looked_for_in_this_order(issuer, wanted):
    assert issuer_urls(issuer) == [f"https://as.example.com{path}" for path in wanted]
    for number, url in enumerate(issuer_urls(issuer)):
        world = World(Issuer(issuer))
        world.routes = {url: lambda ask: said(Issuer(issuer).metadata())}
        assert world.run(metadata_of(issuer)).issuer == issuer
        assert world.asked_urls == issuer_urls(issuer)[: number + 1]


def test_metadata_of_another_issuer_end_the_search():
    world = World()
    world.routes[f"{ISSUER}/.well-known/oauth-authorization-server"] = lambda ask: said(
        Issuer("https://evil.example").metadata()
    )
    with pytest.raises(AuthorizationFailed, match="another issuer"):
        world.run(discover(SERVER, Demand()))
    assert f"{ISSUER}/.well-known/openid-configuration" not in world.asked_urls


def test_metadata_of_another_resource_end_the_search():
    world = World(resource={"resource": "https://evil.example.com/mcp", "authorization_servers": [ISSUER]})
    with pytest.raises(AuthorizationFailed, match="another resource"):
        world.run(discover(SERVER, Demand()))
    assert world.asked_urls == [PATH]


@pytest.mark.parametrize(
    ("named", "at", "taken"),
    [
        (None, PATH, False),
        (None, ROOT, True),
        (ROOT, ROOT, True),
        (PATH, PATH, False),
        ("https://other.example/.well-known/oauth-protected-resource", None, False),
    ],
)
@pytest.mark.requirement("AUTH-029")
def test_the_whole_origin_is_the_resource_of_its_root_document_alone(named, at, taken):
    """A document for one path, or one that stands elsewhere, speaks for one server and not for its neighbours."""
    world = World(resource={"resource": HOST, "authorization_servers": [ISSUER]})
    world.routes[at or named] = world.routes.pop(PATH)
    flow = discover(SERVER, Demand(metadata=named))
    if taken:
        assert world.run(flow).resource == HOST
    else:
        with pytest.raises(AuthorizationFailed, match="another resource"):
            world.run(flow)


def test_of_several_issuers_the_one_that_is_known_is_taken():
    world = World(Issuer(), Issuer("https://two.example.com"))
    world.resource["authorization_servers"] = [ISSUER, "https://two.example.com"]
    assert world.run(discover(SERVER, Demand())).issuer == ISSUER
    assert world.run(discover(SERVER, Demand(), prefer="https://two.example.com")).issuer == "https://two.example.com"
    assert world.run(discover(SERVER, Demand(), prefer="https://evil.example.com")).issuer == ISSUER


def test_a_server_of_the_oldest_rules_is_its_own_issuer():
    world = World()
    world.routes = {OWN: lambda ask: said(Issuer(HOST).metadata())}
    found = world.run(discover(SERVER, Demand()))
    assert world.asked_urls == [PATH, ROOT, OWN]
    assert found.own and found.issuer == HOST and found.server.token_endpoint == f"{HOST}/token"


def test_a_server_without_any_metadata_has_three_paths():
    world = World()
    world.routes = {}
    found = world.run(discover(SERVER, Demand()))
    server = found.server
    assert [server.authorization_endpoint, server.token_endpoint, server.registration_endpoint] == [
        f"{HOST}/{name}" for name in ("authorize", "token", "register")
    ]
    with pytest.raises(AuthorizationFailed, match="does not say who grants"):
        world.run(discover(SERVER, Demand(), may_be_own=False))


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_trouble_is_no_sign_of_age(status):
    world = World()
    world.routes = {PATH: lambda ask: Said(status=status)}
    with pytest.raises(HttpStatus, match="try again later"):
        world.run(discover(SERVER, Demand()))
    assert world.asked_urls == [PATH]


def test_a_page_for_everything_is_as_good_as_nothing():
    world = World()
    page = Said(status=200, headers={"content-type": "text/html"}, body=b"<!doctype html>")
    world.routes = dict.fromkeys((PATH, ROOT, OWN), lambda ask: page)
    assert world.run(discover(SERVER, Demand())).own
