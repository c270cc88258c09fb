"""Who gets in: good tokens, forgeries, bound tokens, and what the issuer says of a token."""

from __future__ import annotations

import json

import pytest

from interlock.auth.flow import Said
from interlock.auth.resource_server.protection import Introspection
from interlock.auth.resource_server.token_verifier import Admitted, Judge, Turned, Unsure
from interlock.wire.exchange import Principal
from support.auth_tokens import (
    FORGERIES,
    ISSUER,
    NOW,
    RESOURCE,
    bound,
    claims_of,
    proof_of,
    protection,
    prover,
    signer,
    token,
)

HOW = Introspection(url=ISSUER + "/introspect", client_id="r s", client_secret="p:w")


def judged(authorization, proof=None, judge=None, said=None, **rules) -> Admitted:
    """Judge one POST; `said` answers what is asked."""
    judge = judge or Judge(protection(**rules), lambda: NOW)
    flow, answer = judge.judge(authorization, proof, "POST", RESOURCE), None
    try:
        while True:
            ask = flow.send(answer)
            assert said is not None, f"asked: {ask}"
            answer = said(ask) if callable(said) else said
    except StopIteration as end:
        return end.value


def turned(*given, **more) -> Turned:
    with pytest.raises(Turned) as caught:
        judged(*given, **more)
    return caught.value


def test_a_good_token_says_who_asks_and_what_he_may():
    found = judged(f"Bearer {token(scope='read write')}")
    assert found.principal == Principal(ISSUER, "ada", "c") and found.scopes == {"read", "write"}
    assert judged(f"bEARER   {token(client_id=None, azp='z', scope=None, scp=['a'])}").scopes == {"a"}
    assert judged(f"Bearer {token({'typ': None}, aud=[RESOURCE])}").principal.subject == "ada"


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=list(FORGERIES))
def test_forgeries_are_turned_away(forged):
    no = turned(f"Bearer {forged}")
    assert no.status == 401 and 'error="invalid_token"' in no.challenge
    assert len(forged) < 10 or (forged not in str(no) and forged not in no.challenge)


@pytest.mark.parametrize("none", [None, "", "Basic YTpi", "Negotiate", "bearer-x y", "DPoPx y"])
def test_without_a_token_there_is_no_error_but_the_way_to_one(none):
    no = turned(none, scopes=("read",))
    assert no.status == 401 and "error" not in no.challenge
    assert 'scope="read"' in no.challenge and "resource_metadata=" in no.challenge


@pytest.mark.parametrize(
    "broken", ["Bearer", "Bearer ", "Bearer a b", "Bearer a, Bearer b", "Bearer ä", "Bearer " + "a" * 20_000, "DPoP ="]
)
def test_what_has_no_form_is_a_bad_request(broken):
    no = turned(broken)
    assert no.status == 400 and 'error="invalid_request"' in no.challenge


def test_scopes_for_everything_and_for_one_tool():
    no = turned(f"Bearer {token()}", scopes=("use",))
    assert no.status == 403 and 'error="insufficient_scope"' in no.challenge and 'scope="use"' in no.challenge
    judge = Judge(protection(scopes=("read",), implies={"admin": ("read", "write")}), lambda: NOW)
    found = judged(f"Bearer {token()}", judge=judge)
    with pytest.raises(Turned) as caught:
        judge.need(found, ("write", "delete"))
    assert 'scope="read write delete"' in caught.value.challenge
    judge.need(judged(f"Bearer {token(scope='admin')}", judge=judge), ("write",))


def test_a_bound_token_needs_its_proof():
    good = bound()
    found = judged(f"DPoP {good}", proof_of(good))
    assert found.proof is not None and found.principal.subject == "ada"
    for authorization, proof in (
        (f"Bearer {good}", None),
        (f"Bearer {good}", proof_of(good)),
        (f"DPoP {good}", None),
        (f"DPoP {good}", "x"),
        (f"DPoP {good}", proof_of(good, key=signer)),
        (f"DPoP {good}", proof_of(bound(sub="bob"))),
        (f"DPoP {token()}", proof_of(token())),
        (f"DPoP {token(cnf={'x5t#S256': 'x'})}", None),
        (f"Bearer {token(cnf={'x5t#S256': 'x'})}", None),
        (f"Bearer {token(cnf='x')}", None),
    ):
        no = turned(authorization, proof)
        assert no.status == 401
    assert turned(f"DPoP {good}", None).challenge.startswith('DPoP error="invalid_dpop_proof"')


def test_binding_may_be_asked_of_everybody():
    assert turned(f"Bearer {token()}", dpop="required").challenge.startswith("DPoP ")
    assert turned(None, dpop="required").challenge.startswith("DPoP ")
    good = bound()
    assert judged(f"DPoP {good}", proof_of(good), dpop="required").proof


def test_a_nonce_is_given_to_who_lacks_one():
    judge, good = Judge(protection(nonces=True), lambda: NOW), bound()
    no = turned(f"DPoP {good}", proof_of(good), judge=judge)
    assert 'error="use_dpop_nonce"' in no.challenge and no.nonce
    assert judged(f"DPoP {good}", proof_of(good, prover, nonce=no.nonce), judge=judge).proof


def test_an_audience_is_checked_with_a_proof_too():
    wrong = bound(aud="https://other.example.com")
    assert turned(f"DPoP {wrong}", proof_of(wrong)).status == 401


# --- introspection ---


def says(status=200, **claims):
    return Said(status=status, body=json.dumps({"active": True, **claims_of(**claims)}).encode())


def test_the_issuer_is_asked_as_the_client_we_are():
    asks = []

    def answer(ask):
        asks.append(ask)
        return says()

    found = judged("Bearer opaque", said=answer, introspection=HOW, keys=None)
    assert found.principal == Principal(ISSUER, "ada", "c")
    [ask] = asks
    assert ask.form == {"token": "opaque"} and ask.headers["Authorization"] == "Basic citzOnAlM0F3"
    assert "opaque" not in repr(ask)


def test_what_it_says_holds_for_some_seconds_and_for_that_token_only():
    now, asks = [NOW], []

    def answer(ask):
        asks.append(ask.form["token"])
        return says(exp=None)

    judge = Judge(protection(introspection=HOW, keys=None), lambda: now[0])
    for _ in range(3):
        judged("Bearer one", judge=judge, said=answer)
    judged("Bearer two", judge=judge, said=answer)
    now[0] += 11
    judged("Bearer one", judge=judge, said=answer)
    assert asks == ["one", "two", "one"]


@pytest.mark.parametrize(
    "claims",
    [
        {"active": False},
        {"active": "true"},
        {"active": 1},
        {"active": 0},
        {"iss": "https://evil.example"},
        {"aud": None},
        {"aud": "https://other.example.com"},
        {"exp": NOW - 100},
        {"nbf": NOW + 100},
        {"sub": None},
    ],
)
def test_a_token_that_the_issuer_does_not_vouch_for(claims):
    assert turned("Bearer opaque", said=says(**claims), introspection=HOW, keys=None).status == 401


def test_a_no_is_remembered_too_and_pushes_no_yes_out():
    now, asks = [NOW], []

    def answer(ask):
        asks.append(ask.form["token"])
        return says() if ask.form["token"] == "good" else says(active=False)

    judge = Judge(protection(introspection=HOW, keys=None), lambda: now[0])
    judged("Bearer good", judge=judge, said=answer)
    for _ in range(3):
        turned("Bearer bad", judge=judge, said=answer)
    assert asks == ["good", "bad"]
    for number in range(1100):
        turned(f"Bearer made-up-{number}", judge=judge, said=answer)
    judged("Bearer good", judge=judge, said=answer)
    assert asks.count("good") == 1 and len(judge._unknown) == 1000
    now[0] += 11
    turned("Bearer made-up-1099", judge=judge, said=answer)
    assert asks.count("made-up-1099") == 2


@pytest.mark.parametrize("said", [says(status=500), says(status=401), Said(status=200, body=b"<html>")])
def test_an_issuer_that_cannot_be_asked_is_no_reason_to_throw_a_token_away(said):
    with pytest.raises(Unsure):
        judged("Bearer opaque", said=said, introspection=HOW, keys=None)


def test_keys_that_are_not_to_be_had():
    with pytest.raises(Unsure):
        judged(f"Bearer {token()}", said=Said(status=503), keys=None)
    assert judged(
        f"Bearer {token()}",
        keys=None,
        keys_url=ISSUER + "/keys",
        said=Said(status=200, body=json.dumps({"keys": [signer.public_jwk() | {"kid": "k1"}]}).encode()),
    )
