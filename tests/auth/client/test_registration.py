"""Who we are to an issuer: the order, what is kept, and what is not taken."""

from __future__ import annotations

import pytest

from interlock.auth.client.registration import registration_key
from interlock.auth.client.token_record import read_registered
from interlock.auth.www_authenticate import Demand
from interlock.wire.errors import AuthorizationFailed, LoginRequired
from support.auth_world import ISSUER, REDIRECT, Issuer, World, basic_of, oauth, said

DOCUMENT = "https://app.example.com/client.json"


def logged_in(issuer, **plan):
    world = World(issuer)
    world.logged_in(oauth(**plan))
    return world


def test_what_the_owner_registered_comes_first():
    issuer = Issuer(client_id_metadata_document_supported=True)
    world = logged_in(issuer, client_id="mine", client_secret="s", client_metadata_url=DOCUMENT)
    assert world.visited()["client_id"] == "mine" and not issuer.clients
    assert basic_of(issuer.requests[0]["header authorization"]) == ("mine", "s")


def test_then_a_document_where_the_issuer_takes_one():
    world = logged_in(Issuer(client_id_metadata_document_supported=True), client_metadata_url=DOCUMENT)
    assert world.visited()["client_id"] == DOCUMENT
    for unsupported in (False, None):
        issuer = Issuer(client_id_metadata_document_supported=unsupported)
        assert logged_in(issuer, client_metadata_url=DOCUMENT).visited()["client_id"] == "client-1"


@pytest.mark.parametrize(
    ("redirect", "kind"), [(REDIRECT, "native"), ("http://localhost:1/cb", "native"), ("https://app.example/cb", "web")]
)
def test_then_a_registration_that_says_what_we_are(redirect, kind):
    issuer = Issuer()
    logged_in(issuer, redirect_uri=redirect, client_name="Mine", scope="a b")
    assert issuer.clients["client-1"] == {
        "client_name": "Mine",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": kind,
        "scope": "a b",
    }


def test_then_the_owner_is_asked_and_then_nobody_is_left():
    asked: list[str] = []

    def ask(issuer):
        asked.append(issuer)
        return "told", None

    world = logged_in(Issuer(registration_endpoint=None), ask_client=ask)
    assert asked == [ISSUER] and world.visited()["client_id"] == "told"
    with pytest.raises(LoginRequired, match="client_id="):
        logged_in(Issuer(registration_endpoint=None))


def test_who_gives_a_secret_when_asked_gives_it_for_every_refresh():
    asked: list[str] = []

    def ask(issuer: str) -> tuple[str, str | None]:
        asked.append(issuer)
        return "id", "the-secret-of-the-owner"

    world = World(Issuer(registration_endpoint=None))
    plan = oauth(ask_client=ask)
    seeker = world.logged_in(plan)
    assert b"the-secret" not in str(world.records._values).encode()
    world.clock.now += 3600
    assert world.run(seeker.current()).by == "refreshed" and asked == [ISSUER, ISSUER]
    assert basic_of(world.issuers[0].requests[-1]["header authorization"]) == ("id", "the-secret-of-the-owner")
    world.clock.now += 3600
    assert world.run(world.seeker(oauth()).current()) is None, "nobody is there to ask: a login is needed"
    assert len(world.issuers[0].requests) == 2


def test_a_registration_is_kept_for_its_issuer_and_used_again():
    issuer = Issuer()
    world = World(issuer)
    world.logged_in()
    kept = read_registered(world.records.load(registration_key(oauth(), ISSUER)))
    assert kept is not None and kept.id == "client-1" and kept.redirect_uri == REDIRECT
    world.again()
    assert len(world.visits) == 2 and len(issuer.clients) == 1 and world.visited()["client_id"] == "client-1"


def test_another_redirect_uri_or_an_old_secret_needs_another_registration():
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_post"])
    world = World(issuer)
    route = world.routes[f"{ISSUER}/register"]
    world.routes[f"{ISSUER}/register"] = lambda ask: said(
        {**route(ask).members("r"), "client_secret_expires_at": 1_000_100}, 201
    )
    world.logged_in()
    for now, registered in ((1_000_050.0, 1), (1_000_200.0, 2)):
        world.clock.now = now
        world.again()
        assert len(issuer.clients) == registered
    world.again(oauth(redirect_uri="http://127.0.0.1:1/x"))
    assert len(issuer.clients) == 3


def test_a_registration_that_the_issuer_forgot_is_forgotten():
    issuer = Issuer()
    world = World(issuer)
    world.routes[f"{ISSUER}/token"] = lambda ask: said({"error": "invalid_client"}, 401)
    with pytest.raises(AuthorizationFailed, match="invalid_client"):
        world.logged_in()
    assert world.records.load(registration_key(oauth(), ISSUER)) is None


def test_an_issuer_that_lost_its_clients_is_registered_at_again():
    """One that keeps them in memory, and was started anew: the refresh says so, or only the user sees it."""
    issuer = Issuer()
    world = World(issuer)
    seeker = world.logged_in()
    world.clock.now += 3600
    route = world.routes[f"{ISSUER}/token"]
    world.routes[f"{ISSUER}/token"] = lambda ask: said({"error": "invalid_client"}, 401)
    assert world.run(seeker.current()) is None
    world.routes[f"{ISSUER}/token"] = route
    assert world.run(seeker.renewed(Demand(), None)).standing.client.id == "client-2"


def test_a_login_that_nobody_came_back_from_is_begun_with_another_registration():
    issuer = Issuer()
    world = World(issuer)
    world.logged_in()
    visit, issuer.visit = issuer.visit, nobody
    with pytest.raises(LoginRequired):
        world.again()
    issuer.visit = visit
    assert world.again().standing.client.id == "client-2"
    assert world.records.load(registration_key(oauth(), ISSUER)) is not None


def nobody(url):
    raise LoginRequired("nobody logged in")


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"client_id": ""}, {"client_id": 1}, {"client_id": "a\nb"}, {"client_id": "x" * 3000},
        {"client_id": "c", "redirect_uris": ["https://evil.example/cb"]},
        {"client_id": "c", "redirect_uris": "https://evil.example/cb"}, {"client_id": "c", "redirect_uris": {"a": 1}},
        {"client_id": "c", "redirect_uris": True}, {"client_id": "c", "redirect_uris": [[]]},
        {"client_id": "c", "token_endpoint_auth_method": "client_secret_post", "client_secret": ""},
        {"client_id": "c", "token_endpoint_auth_method": "client_secret_basic", "client_secret": ["s"]},
        {"client_id": None}, {"client_id": ["c"]}, {"client_id": "a\x7f"}, {"client_id": "a\u202eb"},
        {"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"},
        {"client_id": "c", "token_endpoint_auth_method": "private_key_jwt"},
        {"client_id": "c", "token_endpoint_auth_method": ["none"]},
    ],
)  # fmt: skip
def test_a_registration_that_does_not_fit_is_not_used(answer):
    world = World()
    world.routes[f"{ISSUER}/register"] = lambda ask: said(answer, 201)
    with pytest.raises(AuthorizationFailed):
        world.logged_in()
    assert not world.visits


@pytest.mark.parametrize("ends", [0, -1, 10**400, True, "soon", None, [], 1e308, "9" * 400])
def test_a_secret_that_ends_at_no_time_is_used(ends):
    issuer = Issuer(token_endpoint_auth_methods_supported=["client_secret_basic"])
    world = World(issuer)
    told = {"client_id": "c", "client_secret": "s3cret-of-theirs", "client_secret_expires_at": ends}
    world.routes[f"{ISSUER}/register"] = lambda ask: said(told, 201)
    world.logged_in()
    world.again()
    assert world.asked_urls.count(f"{ISSUER}/register") == 1


def test_a_registration_that_is_refused_says_why():
    world = World()
    world.routes[f"{ISSUER}/register"] = lambda ask: said({"error": "invalid_redirect_uri"}, 400)
    with pytest.raises(AuthorizationFailed, match="invalid_redirect_uri"):
        world.logged_in()


@pytest.mark.parametrize(
    ("supported", "wanted"),
    [
        (["client_secret_basic", "none"], "none"),
        (["client_secret_post"], "client_secret_post"),
        (None, "client_secret_basic"),
    ],
)
def test_the_way_to_authenticate_is_one_that_the_issuer_has(supported, wanted):
    issuer = Issuer(token_endpoint_auth_methods_supported=supported)
    logged_in(issuer)
    assert issuer.clients["client-1"]["token_endpoint_auth_method"] == wanted
    with pytest.raises(AuthorizationFailed, match="no way to authenticate"):
        logged_in(Issuer(token_endpoint_auth_methods_supported=["tls_client_auth"]))
