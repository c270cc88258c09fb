"""The token endpoint: how we authenticate, what is taken, and that refusals show nothing of ours."""

from __future__ import annotations

import pytest

from interlock.auth.client.dpop import Prover
from interlock.auth.client.token_record import Registered
from interlock.auth.client.token_request import JWT_BEARER, TokenRequest, method_for, refusal_in, request_token
from interlock.auth.jose.signer import new_key
from interlock.auth.secrets import Secret
from interlock.wire.errors import AuthorizationFailed, HttpStatus, LocalError
from support.auth_world import Clock, Said, basic_of, said

GOOD = {"access_token": "tok", "token_type": "Bearer", "expires_in": 3600}
FORM = {"grant_type": "x", "code": "c0de-of-mine"}
FOREVER = 1_000_000 + 3650 * 86400 - 30


def request(client=None, **more):
    return TokenRequest(endpoint="https://as/token", issuer="https://as", client=client, clock=Clock(), **more)


def take(answer, *more, asked=("a",), **how):
    """The outcome of a request that gets these answers, and what was asked."""
    flow, answers, asks = request_token(request(**how), FORM, asked), [answer, *more], []
    try:
        asks.append(next(flow))
        while True:
            asks.append(flow.send(answers.pop(0)))
    except StopIteration as end:
        return end.value, asks


def test_a_token_is_taken_with_an_end_that_stays():
    token, asks = take(said({**GOOD, "refresh_token": "r", "scope": "a b"}))
    assert token.access == Secret("tok") and token.refresh == Secret("r") and not token.dpop
    assert token.expires == 1_000_000 + 3600 - 30 and token.asked == ("a",) and token.granted == ("a", "b")
    assert asks[0].method == "POST" and asks[0].form == FORM


@pytest.mark.parametrize(
    ("life", "expires"),
    [
        ("60", 1_000_000 + 30), (10, 1_000_000 + 5), (0, None), (-5, None), (None, None),
        ("soon", None), ([], None), ({}, None), (True, None), ("nan", None), ("-inf", None), (1e-300, 1_000_000),
        (10**30, FOREVER), (10**400, None), ("9" * 5000, FOREVER), ("inf", FOREVER),
    ],
)  # fmt: skip
def test_lives_of_all_kinds(life, expires):
    assert take(said({**GOOD, "expires_in": life}))[0].expires == expires


@pytest.mark.parametrize(
    "bad",
    [
        {}, {"access_token": "tok"}, {"token_type": "Bearer"}, {**GOOD, "access_token": ""},
        {**GOOD, "access_token": "a\r\nX: y"}, {**GOOD, "access_token": "ä"}, {**GOOD, "access_token": 5},
        {**GOOD, "access_token": "x" * 70_000}, {**GOOD, "token_type": "mac"}, {**GOOD, "token_type": None},
        {**GOOD, "token_type": "N_A"}, {**GOOD, "token_type": "DPoP"},
    ],
)  # fmt: skip
def test_what_is_no_token_is_not_taken(bad):
    with pytest.raises(AuthorizationFailed):
        take(said(bad))


def test_a_refusal_is_told_without_what_we_sent():
    told = {"error": "invalid_grant", "error_description": "c0de-of-mine is\x1b used; token=abcdefgh"}
    with pytest.raises(AuthorizationFailed) as refused:
        take(said(told, 400))
    assert refused.value.error == "invalid_grant"
    assert "c0de-of-mine" not in str(refused.value) and "abcdefgh" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("answer", [Said(status=400), said([], 400), said({"error": "a b<"}, 400), said({}, 302)])
def test_a_refusal_without_a_code(answer):
    found = refusal_in(answer)
    assert found is not None and found.error is None


def test_trouble_of_the_server_is_no_refusal_for_good():
    for status in (500, 503, 429):
        assert isinstance(refusal_in(said({"error": "invalid_grant"}, status)), HttpStatus)
    assert refusal_in(said({})) is None


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "private_key_jwt"])
@pytest.mark.parametrize("echo", ["error_description", "error"])
def test_a_server_that_repeats_what_we_are_shows_nothing_of_it(method, echo):
    """Not the secret, nor how it went out, nor a proof: they would stand in every log that the error reaches."""
    client = Registered(id="svc", method=method, secret=Secret("hunter2+hunter2"), key=new_key())
    asked = request(client, prover=Prover(new_key(), Clock()))
    flow = request_token(asked, FORM, ())
    ask = next(flow)
    sent = [*(ask.form or {}).values(), *(value.split()[-1] for value in ask.headers.values())]
    sent += ["hunter2+hunter2", "hunter2%2Bhunter2"]
    for value in sent:
        told = {"error": value[:64]} if echo == "error" else {"error": "invalid_client", "error_description": value}
        refused = asked.refusal_in(said(told, 401), ask)
        assert isinstance(refused, AuthorizationFailed)
        secret = len(value) > 5 and value not in ("svc", FORM["grant_type"], JWT_BEARER)
        assert not secret or len(value) > 64 or value not in f"{refused!r}{refused.error}"
    assert "hunter2" not in repr(asked.refusal_in(said({"error": "e", "error_description": str(sent)}, 400), ask))
    named = asked.refusal_in(said({"error": "invalid_client", "error_description": "svc is not known"}, 401), ask)
    assert "svc is not known" in str(named)


# --- who asks ---


def test_each_way_to_authenticate():
    def asked(**more):
        return request(Registered(id="a:b c", **more)).ask(FORM)

    assert asked().form["client_id"] == "a:b c" and "Authorization" not in asked().headers
    basic = asked(method="client_secret_basic", secret=Secret("s:/+ä"))
    assert basic_of(basic.headers["Authorization"]) == ("a:b c", "s:/+ä") and "client_secret" not in basic.form
    assert asked(method="client_secret_post", secret=Secret("s")).form["client_secret"] == "s"
    key = asked(method="private_key_jwt", key=new_key())
    assert key.form["client_assertion_type"].endswith(":jwt-bearer") and key.form["client_assertion"].count(".") == 2
    assert request(None).ask(FORM).form == FORM
    for method in ("client_secret_basic", "client_secret_post", "private_key_jwt"):
        with pytest.raises(LocalError, match="give the client"):
            asked(method=method)


@pytest.mark.parametrize(
    ("has", "supported", "wanted"),
    [
        ({}, ("none",), "none"),
        ({}, None, "none"),
        ({"secret": Secret("s")}, None, "client_secret_basic"),
        ({"secret": Secret("s")}, ("client_secret_post",), "client_secret_post"),
        ({"secret": Secret("s")}, ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        ({"key": Secret("k"), "secret": Secret("s")}, ("client_secret_basic", "private_key_jwt"), "private_key_jwt"),
    ],
)
def test_the_way_that_both_have(has, supported, wanted):
    assert method_for(Registered(id="c", **has), supported).method == wanted


def test_a_secret_is_not_thrown_away_for_a_server_that_wants_none():
    with pytest.raises(AuthorizationFailed, match="none of the credentials"):
        method_for(Registered(id="c", secret=Secret("s")), ("none",))


# --- bound to a key ---


def test_a_nonce_that_is_wanted_is_given_once():
    refused = said({"error": "use_dpop_nonce"}, 400, dpop_nonce="n1")
    token, asks = take(refused, said({**GOOD, "token_type": "DPoP"}), prover=Prover(new_key(), Clock()))
    assert token.dpop and len(asks) == 2 and asks[0].headers["DPoP"] != asks[1].headers["DPoP"]
    with pytest.raises(AuthorizationFailed) as again:
        take(refused, said({"error": "use_dpop_nonce"}, 400, dpop_nonce="n2"), prover=Prover(new_key(), Clock()))
    assert again.value.error == "use_dpop_nonce"


def test_a_token_for_anybody_is_not_taken_for_one_that_is_bound():
    with pytest.raises(AuthorizationFailed, match="anybody"):
        take(said(GOOD), prover=Prover(new_key(), Clock()))
