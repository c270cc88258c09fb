"""The token endpoint: who gets what for which code, and who gets nothing."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest

from interlock.auth.authorization_server.client_metadata import KnownClient, hash_secret
from interlock.auth.jose.jwt import read_written
from interlock.auth.jose.signer import Signer, new_key, thumbprint
from interlock.state.memory import MemoryStore
from interlock.state.store import Bounds
from support.asgi import begin
from support.auth_house import AS, CALLBACK, MCP, SECRET, House
from support.auth_tokens import proof_of

KEY = Signer(new_key())
FORM = {"grant_type": "client_credentials", "resource": MCP}


def claims(talk):
    assert talk.status == 200, talk.body
    return read_written(talk.json["access_token"]).claims


def proof(house, jti="j1", **more):
    return {"dpop": proof_of(None, KEY, jti=jti, htu=AS + "/token", iat=house.now, **more)}


async def test_a_code_becomes_a_token_for_the_resource():
    house = House()
    talk = await house.redeem(await house.code(scope="read write nope"))
    found = claims(talk)
    assert (found["aud"], found["sub"], found["client_id"], found["scope"]) == (MCP, "ada", "public", "read write")
    assert talk.headers["cache-control"] == "no-store" and talk.json["token_type"] == "Bearer"


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "x"},
        {"code_verifier": None},
        {"code_verifier": "w" * 50},
        {"code_verifier": "v" * 42},
        {"code_verifier": "v" * 129},
        {"redirect_uri": CALLBACK + "x"},
        {"redirect_uri": "https://app.example.com/done"},
        {"resource": "https://evil.example"},
        {"client_id": "nobody"},
        {"client_id": None},
        {"grant_type": "password"},
        {"grant_type": None},
        {"client_secret": "x"},
    ],
)
async def test_a_code_alone_is_worth_nothing(changes):
    house = House()
    code = await house.code()
    talk = await house.redeem(changes.pop("code", code), **changes)
    assert talk.status in (400, 401) and "access_token" not in talk.json and talk.json["error"]
    assert code not in talk.body.decode() and talk.headers["cache-control"] == "no-store"


async def test_a_failed_try_costs_the_code():
    house = House()
    code = await house.code()
    await house.redeem(code, code_verifier="w" * 50)
    assert (await house.redeem(code)).json["error"] == "invalid_grant"


async def test_a_second_use_of_a_code_takes_back_what_the_first_gave():
    house = House()
    code = await house.code()
    first = await house.redeem(code)
    assert (await house.redeem(code)).json["error"] == "invalid_grant"
    assert (await house.refresh(first.json["refresh_token"])).json["error"] == "invalid_grant"


async def test_of_many_at_once_at_most_one_gets_a_token():
    house = House()
    code = await house.code()
    talks = await asyncio.gather(*(house.redeem(code) for _ in range(10)))
    assert sum(talk.status == 200 for talk in talks) <= 1


async def test_refresh_tokens_rotate_and_scopes_never_grow():
    house = House()
    first = await house.redeem(await house.code(scope="read"))
    second = await house.refresh(first.json["refresh_token"], scope="read write")
    assert claims(second)["scope"] == "read" and second.json["refresh_token"] != first.json["refresh_token"]
    kept = second.json["refresh_token"]
    assert (await house.refresh(kept, resource="https://evil.example")).json["error"] == "invalid_target"
    assert (await house.refresh(kept, scope="write")).json["error"] == "invalid_scope"
    assert (await house.refresh(kept)).status == 200  # what was asked for wrongly cost nothing


async def test_a_client_that_refreshes_on_two_machines_at_once_stays_logged_in():
    house = House()
    first = await house.redeem(await house.code(scope="read"))
    token = first.json["refresh_token"]
    talks = await asyncio.gather(*(house.refresh(token) for _ in range(4)))
    assert {talk.status for talk in talks} == {200} and len({talk.body for talk in talks}) == 1
    house.now += 59
    again = (await house.refresh(token)).json
    assert again == talks[0].json | {"expires_in": talks[0].json["expires_in"] - 59}
    assert (await house.refresh(again["refresh_token"])).status == 200
    house.now += 2
    assert (await house.refresh(token)).json["error"] == "invalid_grant"
    assert (await house.refresh(again["refresh_token"])).json["error"] == "invalid_grant"


async def test_an_answer_is_repeated_for_the_same_key_with_a_proof_of_its_own():
    house = House()
    token = (await house.redeem(await house.code(), proof(house, "j1"))).json["refresh_token"]
    one, two = await house.refresh(token, proof(house, "j2")), await house.refresh(token, proof(house, "j3"))
    assert one.status == 200 and one.body == two.body
    assert (await house.refresh(token, proof(house, "j3"))).json["error"] == "invalid_dpop_proof"
    assert (await house.refresh(token)).json["error"] == "invalid_grant"  # without the key: the family ends
    ended = await house.refresh(one.json["refresh_token"], proof(house, "j4"))
    assert ended.json["error"] == "invalid_grant"


async def test_a_token_can_be_given_back():
    house = House()
    first = await house.redeem(await house.code())
    token = first.json["refresh_token"]
    other = await house.post("/revoke", {"token": token}, **house.basic())
    assert other.status == 200  # another client's: nothing happens, nothing is told
    assert (await house.post("/revoke", {"client_id": "public"})).json["error"] == "invalid_request"
    access = await house.post("/revoke", {"token": first.json["access_token"], "client_id": "public"})
    assert access.json["error"] == "unsupported_token_type"
    assert (await house.post("/revoke", {"token": token, "client_id": "public"})).status == 200
    assert (await house.refresh(token)).json["error"] == "invalid_grant"


async def test_a_machine_shows_who_it_is():
    house = House()
    assert claims(await house.post("/token", FORM, **house.basic()))["sub"] == "machine"
    posted = {**FORM, "client_id": "machine", "client_secret": SECRET}
    assert claims(await house.post("/token", posted))["client_id"] == "machine"


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"client_id": "machine"}, {}),
        ({"client_id": "machine", "client_secret": "wrong"}, {}),
        ({"client_id": "public"}, {}),
        ({}, House().basic(secret="wrong")),
        ({}, House().basic(id="nobody")),
        ({"client_id": "public"}, House().basic()),
        ({"client_id": "machine", "client_secret": SECRET}, House().basic()),
        ({}, {"authorization": "Basic !!"}),
        ({}, {"authorization": "Basic bWFjaGluZQ=="}),
        ({}, {"authorization": "Bearer x"}),
        ({"client_assertion": "x"}, {}),
        ({"client_assertion": "a.b.c", "client_assertion_type": "x"}, {}),
        ({"resource": "https://evil.example"}, House().basic()),
        ({"scope": "admin"}, House().basic()),
    ],
)
async def test_who_does_not_gets_nothing(form, headers):
    talk = await House().post("/token", {**FORM, **form}, **headers)
    assert talk.status in (400, 401) and talk.json["error"] and SECRET not in talk.body.decode()
    if talk.status == 401 and headers:
        assert talk.headers.get("www-authenticate", "Basic").startswith("Basic")


async def test_tokens_may_be_bound_to_a_key():
    house = House()
    talk = await house.redeem(await house.code(), proof(house))
    assert talk.json["token_type"] == "DPoP" and claims(talk)["cnf"]["jkt"] == thumbprint(KEY.public_jwk())
    token = talk.json["refresh_token"]
    assert (await house.refresh(token)).json["error"] == "invalid_grant"  # a public client's refresh is bound, too
    assert (await house.refresh(token, proof(house, "j2"))).status == 200
    assert (await house.redeem(await house.code(), proof(house, "j2"))).json["error"] == "invalid_dpop_proof"
    assert (await house.redeem(await house.code(), {"dpop": "x"})).json["error"] == "invalid_dpop_proof"


async def test_a_code_may_be_bound_to_a_key():
    house = House()
    bound = thumbprint(KEY.public_jwk())
    assert (await house.redeem(await house.code(dpop_jkt=bound))).json["error"] == "invalid_grant"
    assert (await house.redeem(await house.code(dpop_jkt=bound), proof(house))).status == 200


async def test_a_client_may_want_no_other_tokens():
    house = House(clients=[KnownClient(id="public", redirect_uris=(CALLBACK,), bound=True)])
    assert (await house.redeem(await house.code())).json["error"] == "invalid_dpop_proof"


async def test_a_client_uses_its_own_grants_only():
    known = KnownClient(id="machine", secret_hash=hash_secret(SECRET), redirect_uris=(CALLBACK,))
    house = House(clients=[known])
    assert (await house.post("/token", FORM, **house.basic())).json["error"] == "unauthorized_client"


async def from_(house, address, secret="wrong-secret-of-some-length", id="machine"):
    raw = urlencode({**FORM, "client_id": id, "client_secret": secret}).encode()
    lines = {b"host": b"as.example.com", b"content-type": b"application/x-www-form-urlencoded"}
    scope = {"method": "POST", "path": "/token", "headers": list(lines.items()), "client": (address, 5)}
    return await begin(house.app, [raw], **scope).answer()


async def test_secrets_can_be_guessed_ten_times_and_then_slowly():
    house = House()
    assert [(await from_(house, "192.0.2.1")).status for _ in range(12)] == [401] * 10 + [429] * 2
    late = await from_(house, "192.0.2.1", SECRET)
    assert late.status == 429 and late.headers["retry-after"] == "6" and "www-authenticate" not in late.headers
    house.now += 6.001
    assert (await from_(house, "192.0.2.1", SECRET)).status == 200  # and all of them are given back
    assert [(await from_(house, "192.0.2.1")).status for _ in range(11)] == [401] * 10 + [429]


async def test_who_guesses_locks_nobody_out_elsewhere():
    house = House()
    for address in ("2001:db8::1", "2001:db8::2:1"):  # one network, one allowance
        for _ in range(6):
            await from_(house, address)
    assert (await from_(house, "2001:db8::3", SECRET)).status == 429
    assert (await from_(house, "2001:db8:0:1::3", SECRET)).status == 200
    assert (await from_(house, "192.0.2.1", SECRET)).status == 200


async def test_proofs_that_get_no_token_are_not_remembered():
    """Anybody can make as many as he likes: they would fill the store for all."""
    house = House(store=MemoryStore(Bounds(entries=3), clock=lambda: 1_000_000.0))
    for number in range(20):
        talk = await house.redeem("x", proof(house, f"j{number}"))
        assert talk.json["error"] == "invalid_grant"
    assert (await house.post("/token", FORM, **house.basic(), **proof(house))).status == 200


async def test_a_proof_gets_one_token():
    house = House()
    said = {**house.basic(), **proof(house)}
    talks = await asyncio.gather(*(house.post("/token", FORM, **said) for _ in range(5)))
    assert sorted(talk.status for talk in talks) == [200, 400, 400, 400, 400]


async def test_a_store_without_room_is_no_failure_of_who_asks():
    house = House(store=MemoryStore(Bounds(entries=2), clock=lambda: 1_000_000.0))
    code = await house.code()
    talk = await house.redeem(code)
    assert (talk.status, talk.json["error"]) == (503, "temporarily_unavailable")


async def test_a_client_may_be_given_some_scopes_only():
    known = [
        KnownClient(id="machine", secret_hash=hash_secret(SECRET), grants=("client_credentials",), scopes=("read",)),
        KnownClient(id="public", redirect_uris=(CALLBACK,), scopes=("write",)),
    ]
    house = House(clients=known)
    assert claims(await house.post("/token", {**FORM, "scope": "read write"}, **house.basic()))["scope"] == "read"
    assert (await house.post("/token", {**FORM, "scope": "write"}, **house.basic())).json["error"] == "invalid_scope"
    assert claims(await house.redeem(await house.code(scope="read write")))["scope"] == "write"
    assert (await house.page(scope="read")).status == 303  # invalid_scope, told to the client
