"""Having, renewing and widening a token: who is asked, how often, and what is never mixed up."""

from __future__ import annotations

import pytest

from interlock.auth.client.providers import ClientCredentials, WorkloadIdentity
from interlock.auth.client.token_record import read_standing
from interlock.auth.secrets import Secret
from interlock.auth.www_authenticate import Demand
from interlock.wire.errors import AuthorizationFailed, HttpStatus
from support.auth_world import ISSUER, SERVER, Issuer, World, oauth, said

TWO = "https://two.example.com"


def token_of(got):
    return got.standing.token.access.reveal()


def test_nothing_is_kept_before_the_first_login_and_it_is_after():
    world = World()
    assert world.run(world.seeker().current()) is None
    world.logged_in()
    asked = len(world.asks)
    assert token_of(world.run(world.seeker().current())) == "access-1"
    assert len(world.asks) == asked, "what is fresh needs nobody"


def test_what_has_expired_is_refreshed_first_and_what_came_is_kept():
    world = World()
    seeker = world.logged_in()
    world.clock.now += 3600
    got = world.run(seeker.current())
    assert got.by == "refreshed" and token_of(got) == "access-2" and len(world.visits) == 1
    request = world.issuers[0].requests[-1]
    assert request["resource"] == SERVER and request["client_id"] == "client-1"
    assert token_of(world.run(world.seeker().current())) == "access-2"
    world.clock.now += 3600
    assert token_of(world.run(seeker.current())) == "access-3"


def test_a_refresh_token_that_is_not_replaced_is_used_again():
    world = World()
    world.issuers[0].token = lambda told: (
        told if told["access_token"] == "access-1" else {**told, "refresh_token": None}
    )
    seeker = world.logged_in()
    world.clock.now += 3600
    got = world.run(seeker.current())
    assert got.standing.token.refresh == Secret("refresh-1")


def test_a_refresh_that_is_refused_leads_to_a_login():
    world = World()
    seeker = world.logged_in()
    world.issuers[0].refreshes.clear()
    world.clock.now += 3600
    assert world.run(seeker.current()) is None
    got = world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert got.by == "granted" and len(world.visits) == 2


def test_trouble_at_the_token_endpoint_costs_nobody_his_refresh_token():
    world = World()
    seeker = world.logged_in()
    world.clock.now += 3600
    route = world.routes[f"{ISSUER}/token"]
    world.routes[f"{ISSUER}/token"] = lambda ask: said({"error": "invalid_grant"}, 503)
    with pytest.raises(HttpStatus):
        world.run(seeker.current())
    world.routes[f"{ISSUER}/token"] = route
    assert world.run(seeker.current()).by == "refreshed"


def test_who_was_turned_away_with_an_old_token_takes_the_new_one():
    world = World()
    seeker = world.logged_in()
    world.clock.now += 3600
    world.run(seeker.current())
    asked = len(world.asks)
    got = world.run(world.seeker().renewed(Demand(), Secret("access-1")))
    assert got.by == "kept" and token_of(got) == "access-2" and len(world.asks) == asked


def test_a_token_that_is_refused_is_refreshed_and_then_asked_for_anew():
    world = World()
    seeker = world.logged_in()
    got = world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert got.by == "refreshed"
    got = world.run(seeker.renewed(Demand(), Secret("access-2"), refresh=False))
    assert got.by == "granted" and len(world.visits) == 2


def test_without_a_refresh_token_a_login_is_needed():
    world = World()
    world.issuers[0].token = lambda told: {**told, "refresh_token": None}
    seeker = world.logged_in()
    world.clock.now += 3600
    assert world.run(seeker.current()) is None
    assert world.run(seeker.renewed(Demand(), Secret("access-1"))).by == "granted"


# --- scopes ---


@pytest.mark.parametrize(
    ("plan", "challenged", "supported", "wanted"),
    [
        (None, ("a",), ["x"], ("a",)),
        (None, (), ["x"], ()),
        (None, None, ["x", "y"], ("x", "y")),
        (None, None, None, ()),
        ("p q", None, ["x"], ("p", "q")),
        ("p", ("a",), ["x"], ("p", "a")),
    ],
)
def test_which_scopes_are_asked_for_first(plan, challenged, supported, wanted):
    world = World(resource={"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": supported or []})
    if supported is None:
        del world.resource["scopes_supported"]
    world.logged_in(oauth(scope=plan), scope=challenged)
    assert world.visited().get("scope", "") == " ".join(wanted)
    assert ("scope" in world.visited()) is bool(wanted)


def test_a_step_up_asks_for_everything_before_and_more():
    world = World()
    seeker = world.logged_in(scope=("mcp:basic",))
    demand = Demand(scope=("mcp:write",), error="insufficient_scope")
    got = world.run(seeker.widened(demand, Secret("access-1")))
    assert world.visited()["scope"] == "mcp:basic mcp:write" and got.standing.token.asked == ("mcp:basic", "mcp:write")
    with pytest.raises(AuthorizationFailed) as again:
        world.run(seeker.widened(demand, Secret("access-2")))
    assert again.value.error == "insufficient_scope" and len(world.visits) == 2


def test_a_step_up_without_scopes_asks_for_what_the_server_has():
    world = World(resource={"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["a", "b"]})
    seeker = world.logged_in(scope=("a",))
    world.run(seeker.widened(Demand(), Secret("access-1")))
    assert world.visited()["scope"] == "a b"


def test_who_was_too_narrow_takes_the_wider_token_that_is_there():
    world = World()
    seeker = world.logged_in(scope=("a",))
    world.run(seeker.widened(Demand(scope=("b",)), Secret("access-1")))
    assert world.run(seeker.widened(Demand(scope=("b",)), Secret("access-1"))).by == "kept"
    assert len(world.visits) == 2


@pytest.mark.parametrize("how", ["other scopes", "refused tokens"])
def test_no_server_has_a_user_log_in_again_and_again(how):
    world = World()
    seeker = world.seeker()
    world.run(seeker.renewed(Demand(), None))

    def more(number):
        if how == "other scopes":
            return seeker.widened(Demand(scope=(f"s{number}",)), None)
        return seeker.renewed(Demand(), Secret(f"access-{number}"), refresh=False)

    for number in range(1, 10):
        world.run(more(number))
    with pytest.raises(AuthorizationFailed, match="10 logins within 10 minutes"):
        world.run(more(10))
    assert len(world.visits) == 10
    world.clock.now += 600
    world.run(more(10))
    assert len(world.visits) == 11


def test_a_user_who_said_no_is_not_asked_the_same_again_soon():
    world = World()
    world.issuers[0].answer = lambda told: {"state": told["state"], "iss": ISSUER, "error": "access_denied"}
    seeker = world.seeker()
    for _ in range(3):
        with pytest.raises(AuthorizationFailed) as refused:
            world.run(seeker.renewed(Demand(scope=("a",)), None))
        assert refused.value.error == "access_denied"
    assert len(world.visits) == 1
    world.clock.now += 601
    with pytest.raises(AuthorizationFailed):
        world.run(seeker.renewed(Demand(scope=("a",)), None))
    assert len(world.visits) == 2


# --- issuers are not mixed up ---


def test_another_issuer_gets_nothing_of_the_first():
    one, two = Issuer(), Issuer(TWO)
    world = World(one, two)
    seeker = world.logged_in()
    world.resource["authorization_servers"] = [TWO]
    got = world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert got.standing.issuer == TWO and got.by == "granted" and len(two.clients) == 1
    assert [request["grant_type"] for request in two.requests] == ["authorization_code"], (
        "no refresh token of the first"
    )
    assert two.requests[0]["code"] == "code-1-of-https://two.example.com"


def test_given_credentials_are_of_one_issuer():
    world = World(Issuer(), Issuer(TWO))
    plan = ClientCredentials("svc", "s3")
    seeker = world.logged_in(plan)
    world.resource["authorization_servers"] = [TWO]
    with pytest.raises(AuthorizationFailed, match="changed its authorization server"):
        world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert not world.issuers[1].requests


def test_a_refresh_that_was_refused_does_not_loosen_whose_the_credentials_are():
    world = World(Issuer(), Issuer(TWO))
    plan = oauth(client_id="c", client_secret="hunter2")
    seeker = world.logged_in(plan)
    world.issuers[0].refreshes.clear()
    world.clock.now += 3600
    assert world.run(seeker.current()) is None
    world.resource["authorization_servers"] = [TWO]
    for again in (seeker, world.seeker(plan)):
        with pytest.raises(AuthorizationFailed, match="changed its authorization server"):
            world.run(again.renewed(Demand(), None))
        with pytest.raises(AuthorizationFailed, match="changed its authorization server"):
            world.run(again.widened(Demand(scope=("a",)), None))
    assert not world.issuers[1].requests and len(world.visits) == 1
    world.resource["authorization_servers"] = [TWO, ISSUER]
    assert world.run(world.seeker(plan).renewed(Demand(), None)).standing.issuer == ISSUER


def test_the_word_of_a_platform_is_of_one_issuer():
    world = World(Issuer(), Issuer(TWO))
    seeker = world.logged_in(WorkloadIdentity("a.b.c"))
    world.resource["authorization_servers"] = [TWO]
    with pytest.raises(AuthorizationFailed, match="changed its authorization server"):
        world.run(seeker.renewed(Demand(), Secret("access-1")))
    assert not world.issuers[1].requests
    trusting = WorkloadIdentity("a.b.c", issuer=TWO)
    assert world.run(world.seeker(trusting).renewed(Demand(), Secret("access-1"))).standing.issuer == TWO


def test_what_is_spent_is_never_sent():
    world = World()
    seeker = world.logged_in()
    world.issuers[0].refreshes.clear()
    world.clock.now += 3600
    assert world.run(seeker.current()) is None and world.run(world.seeker().current()) is None
    kept = world.records.load(f"server default {SERVER}")
    assert kept is not None and b"access-1" not in kept and b"refresh-1" not in kept
    assert token_of(world.run(seeker.widened(Demand(scope=("a",)), None))) == "access-2"


def test_a_step_up_at_another_issuer_begins_anew():
    world = World(Issuer(), Issuer(TWO))
    seeker = world.logged_in(scope=("a",))
    world.resource["authorization_servers"] = [TWO]
    got = world.run(seeker.widened(Demand(scope=("b",)), Secret("access-1")))
    assert got.standing.issuer == TWO and world.visited()["scope"] == "b"


def test_only_the_trusted_issuer_is_used():
    world = World(Issuer(), Issuer(TWO))
    with pytest.raises(AuthorizationFailed, match="trusts another"):
        world.logged_in(oauth(issuer=TWO, client_id="c"))
    assert not world.visits and not world.issuers[0].requests
    world.resource["authorization_servers"] = [ISSUER, TWO]
    world.logged_in(oauth(issuer=TWO, client_id="c"))
    assert world.visits[0].startswith(TWO)
    assert world.run(world.seeker(oauth(issuer=ISSUER)).current()) is None, "kept by an issuer that is not trusted now"


def test_two_principals_have_two_records():
    world = World()
    world.logged_in(oauth(principal="ann"))
    assert world.run(world.seeker(oauth(principal="bob")).current()) is None
    assert token_of(world.run(world.seeker(oauth(principal="ann")).current())) == "access-1"


def test_what_is_kept_holds_no_credentials_of_the_owner():
    world = World()
    seeker = world.logged_in(oauth(client_id="c", client_secret="hunter2"))
    [kept] = [world.records.load(key) for key in (f"server default {SERVER}",)]
    assert kept is not None and b"hunter2" not in kept and read_standing(kept) is not None
    world.clock.now += 3600
    world.run(seeker.current())
    assert "header authorization" in world.issuers[0].requests[-1]


# --- bound to a key ---


@pytest.mark.parametrize("why", ["plan", "challenge", "metadata"])
def test_a_token_is_bound_where_anybody_wants_it(why):
    issuer = Issuer(dpop_signing_alg_values_supported=["ES256"])
    issuer.token = lambda told: {**told, "token_type": "DPoP"}
    world = World(issuer)
    if why == "metadata":
        world.resource["dpop_bound_access_tokens_required"] = True
    seeker = world.logged_in(oauth(dpop=why == "plan"), dpop=why == "challenge")
    assert "header dpop" in issuer.requests[0]
    kept = world.run(world.seeker().current()).standing
    assert kept.token.dpop and seeker.prover_for(kept) is not None
    world.clock.now += 3600
    again = world.run(world.seeker().current()).standing
    assert again.dpop_key == kept.dpop_key, "a refresh token is bound to the same key"


def test_a_key_of_another_kind_is_not_had():
    world = World(Issuer(dpop_signing_alg_values_supported=["RS256"]))
    with pytest.raises(AuthorizationFailed, match="ES256"):
        world.logged_in(dpop=True)
