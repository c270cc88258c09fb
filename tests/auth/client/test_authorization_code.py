"""A login, from the first URL to the token; and every way an answer can be wrong."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from interlock.auth.client.authorization_code import Attempt, challenge_of, code_in
from interlock.auth.flow import Prepare
from interlock.auth.secrets import Secret
from interlock.wire.errors import AuthorizationFailed, LocalError, LoginRequired
from support.auth_world import ISSUER, REDIRECT, SERVER, Issuer, World, oauth

STATE = "the-state-that-left"
GOOD = {"code": "the-code", "state": STATE, "iss": ISSUER}


def attempt(**more):
    told = {"issuer": ISSUER, "redirect_uri": REDIRECT, "iss_promised": True}
    return Attempt(**{**told, "state": Secret(STATE), "verifier": Secret("v"), **more})


def test_the_request_holds_what_the_standard_wants():
    world = World()
    world.logged_in(scope=("a", "b"))
    asked = world.visited()
    assert asked["response_type"] == "code" and asked["redirect_uri"] == REDIRECT and asked["resource"] == SERVER
    assert asked["scope"] == "a b" and asked["code_challenge_method"] == "S256" and len(asked["state"]) >= 40
    [request] = world.issuers[0].requests
    assert request["resource"] == SERVER and challenge_of(Secret(request["code_verifier"])) == asked["code_challenge"]
    assert 43 <= len(request["code_verifier"]) <= 128


def test_no_two_logins_share_anything():
    world = World()
    world.logged_in()
    world.again()
    first, second = world.visited(0), world.visited(1)
    assert first["state"] != second["state"] and first["code_challenge"] != second["code_challenge"]


def test_the_example_of_the_standard():
    assert challenge_of(Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")) == (
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_a_query_that_is_there_stays():
    world = World(Issuer(authorization_endpoint=f"{ISSUER}/authorize?tenant=7"))
    world.logged_in()
    assert world.visited()["tenant"] == "7" and world.visited()["resource"] == SERVER


def test_offline_access_is_asked_for_only_where_it_exists_and_is_wanted():
    for supported, wanted, asked in (
        (["offline_access"], True, True),
        (["a"], True, False),
        (["offline_access"], False, False),
    ):
        world = World(Issuer(scopes_supported=supported))
        world.logged_in(oauth(offline=wanted))
        assert ("offline_access" in world.visited().get("scope", "")) is asked
        assert (world.visited().get("prompt") == "consent") is asked


def test_a_port_that_the_owner_registered_is_the_one_or_none():
    world = World()
    world.do = lambda step, do=world.do: "http://127.0.0.1:9999/cb" if isinstance(step, Prepare) else do(step)
    with pytest.raises(LocalError, match="taken"):
        world.logged_in(oauth(redirect_uri="http://127.0.0.1:7000/cb"))
    world.logged_in(oauth(redirect_uri="http://127.0.0.1/cb"))
    assert world.visited()["redirect_uri"] == "http://127.0.0.1:9999/cb"


# --- downgrades ---


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"], ["plain", "S512"]])
def test_without_pkce_no_login_is_begun(methods):
    world = World(Issuer(code_challenge_methods_supported=methods))
    with pytest.raises(AuthorizationFailed, match="PKCE"):
        world.logged_in()
    assert not world.visits and not world.issuers[0].clients


@pytest.mark.parametrize("endpoint", ["http://as.example.com/authorize", "http://10.0.0.1/a", None])
def test_no_browser_is_sent_where_it_could_be_read(endpoint):
    world = World(Issuer(authorization_endpoint=endpoint))
    with pytest.raises(AuthorizationFailed):
        world.logged_in()
    assert not world.visits


def test_nobody_is_asked_where_that_is_not_wanted():
    world = World()
    with pytest.raises(LoginRequired):
        world.logged_in(oauth(login=None))
    assert not world.visits


# --- what comes back ---


def test_a_good_answer_has_a_code():
    assert code_in(Secret(f"{REDIRECT}?{urlencode(GOOD)}"), attempt()) == Secret("the-code")
    without = {name: value for name, value in GOOD.items() if name != "iss"}
    assert code_in(Secret(f"{REDIRECT}?{urlencode(without)}"), attempt(iss_promised=False)) == Secret("the-code")
    assert code_in(Secret(f"{REDIRECT}?{urlencode(GOOD)}#x"), attempt(iss_promised=False)) == Secret("the-code")


WRONG_STATES = ["", "x", STATE + "x", STATE[:-1], STATE.upper(), STATE + " ", "\u0000", "ä"]
WRONG_ISSUERS = [
    *(ISSUER + "/", ISSUER.upper(), "https://AS.example.com", "https://as.example.com:443", "http://as.example.com"),
    *(
        "https://as.example.com/x",
        "https://as.example.com.evil",
        "https://evil.example",
        "",
        "https%3A//as.example.com",
    ),
]
WRONG_PLACES = [
    *("http://127.0.0.1:7778/callback", "http://127.0.0.1:7777/callback/", "http://127.0.0.1:7777/Callback"),
    *("http://localhost:7777/callback", "https://127.0.0.1:7777/callback", "http://127.0.0.1:7777/", "", "/callback"),
    *("http://evil.example/callback", "http://127.0.0.1:7777/callback/../x", "http://user@127.0.0.1:7777/callback"),
]


@pytest.mark.parametrize("state", [*WRONG_STATES, None])
@pytest.mark.parametrize("more", [{}, {"error": "access_denied"}])
def test_an_answer_to_something_else_is_not_used(state, more):
    told = {**GOOD, **more, "state": state}
    query = urlencode({name: value for name, value in told.items() if value is not None})
    with pytest.raises(AuthorizationFailed, match="another state"):
        code_in(Secret(f"{REDIRECT}?{query}"), attempt())


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize("issuer", WRONG_ISSUERS)
def test_an_answer_of_somebody_else_is_not_used_promised_or_not(issuer, promised):
    told = {**GOOD, "iss": issuer, "error": "x", "error_description": "call-this-number"}
    with pytest.raises(AuthorizationFailed, match="another authorization server") as refused:
        code_in(Secret(f"{REDIRECT}?{urlencode(told)}"), attempt(iss_promised=promised))
    assert "call-this-number" not in str(refused.value) and refused.value.error is None


def test_a_promise_that_is_not_kept():
    with pytest.raises(AuthorizationFailed, match="does not say who"):
        code_in(Secret(f"{REDIRECT}?{urlencode({'code': 'c', 'state': STATE})}"), attempt())


@pytest.mark.parametrize("place", WRONG_PLACES)
def test_an_answer_at_another_place_is_not_used(place):
    with pytest.raises(AuthorizationFailed, match="another place"):
        code_in(Secret(f"{place}?{urlencode(GOOD)}"), attempt())


@pytest.mark.parametrize("twice", ["code", "state", "iss", "error"])
def test_what_is_said_twice_is_not_used(twice):
    query = urlencode([*({**GOOD, "error": ""} if twice == "error" else GOOD).items(), (twice, "x")])
    with pytest.raises(AuthorizationFailed, match="twice"):
        code_in(Secret(f"{REDIRECT}?{query}"), attempt())


def test_too_much_is_not_read():
    with pytest.raises(AuthorizationFailed, match="too much"):
        code_in(Secret(f"{REDIRECT}?" + "&".join(f"a{number}=1" for number in range(100))), attempt())


def test_a_refusal_is_told_as_data():
    told = {"state": STATE, "iss": ISSUER, "error": "access_denied", "error_description": "no\x1b[31m way"}
    with pytest.raises(AuthorizationFailed, match="access_denied") as refused:
        code_in(Secret(f"{REDIRECT}?{urlencode(told)}"), attempt())
    assert refused.value.error == "access_denied" and "\x1b" not in str(refused.value)
    with pytest.raises(AuthorizationFailed, match="without a code"):
        code_in(Secret(f"{REDIRECT}?{urlencode({'state': STATE, 'iss': ISSUER, 'code': ''})}"), attempt())


def test_no_code_goes_to_a_token_endpoint_unless_everything_is_right():
    for answer in ({"iss": "https://evil.example"}, {"state": "other"}):
        world = World()
        world.issuers[0].answer = lambda told, answer=answer: {**told, **answer}
        with pytest.raises(AuthorizationFailed):
            world.logged_in()
        assert world.visits and not world.issuers[0].requests


def test_a_code_is_used_once():
    world = World()
    world.logged_in()
    code = world.issuers[0].requests[0]["code"]
    world.issuers[0].answer = lambda told: {**told, "code": code}
    with pytest.raises(AuthorizationFailed, match="invalid_grant") as refused:
        world.again()
    assert code not in str(refused.value)
