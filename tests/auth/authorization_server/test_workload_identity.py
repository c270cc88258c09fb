"""Programs that a platform vouches for: whom the owner named gets in, and nobody else."""

from __future__ import annotations

import json
import logging

import pytest

from interlock.auth.authorization_server.client_metadata import JWT_BEARER
from interlock.auth.authorization_server.workload_identity import Workload, WorkloadPlatform
from interlock.auth.flow import Said
from interlock.auth.jose.jwt import read_written
from interlock.wire.errors import LocalError
from support.auth_house import AS, MCP, House
from support.auth_tokens import NOW, jwk_of, proof_of, prover, signer, stranger

PLATFORM = "https://platform.example.com"
SUBJECT = "system:serviceaccount:shop:reporter"
FORM = {"grant_type": JWT_BEARER, "resource": MCP}


def platform(**more):
    named = (Workload(subject=SUBJECT, claims={"tenant": "t1", "level": 2}, scopes=("read",)),)
    return WorkloadPlatform(**{"issuer": PLATFORM, "keys": (jwk_of(signer, "p1"),), "workloads": named, **more})


def house(**more):
    return House(platforms=[platform(**more)])


def statement(key=signer, header=None, **changes):
    base = {"iss": PLATFORM, "sub": SUBJECT, "aud": AS + "/token", "iat": NOW, "exp": NOW + 600, "jti": "1"}
    base |= {"tenant": "t1", "level": 2}
    claims = {name: value for name, value in {**base, **changes}.items() if value is not None}
    return key.signed({"kid": "p1", **(header or {})}, claims)


async def shown(assertion, at=None, **more):
    return await (at or house()).post("/token", {**FORM, "assertion": assertion, **more})


async def test_a_program_of_the_platform_gets_a_token_as_itself(caplog):
    caplog.set_level(logging.INFO)
    talk = await shown(statement())
    claims = read_written(talk.json["access_token"]).claims
    assert claims["sub"] == claims["client_id"] == f"{PLATFORM}#{SUBJECT}"
    assert claims["aud"] == MCP and claims["scope"] == "read" and "refresh_token" not in talk.json
    assert SUBJECT in caplog.text and "eyJ" not in caplog.text


async def test_a_statement_may_be_shown_again_unless_it_counts_once():
    often, once = house(), house(single_use=True)
    assert [(await shown(statement(), often)).status for _ in range(2)] == [200, 200]
    assert [(await shown(statement(), once)).status for _ in range(2)] == [200, 400]
    assert (await shown(statement(jti=None), once)).json["error"] == "invalid_grant"
    assert (await shown(statement(jti=None), often)).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        statement(stranger),
        statement(header={"kid": "p2"}),
        statement(header={"typ": "at+jwt"}),
        statement(header={"typ": "dpop+jwt"}),
        statement(header={"crit": ["x"]}),
        statement(header={"alg": "none"})[:-86],
        statement(iss="https://evil.example"),
        statement(iss=PLATFORM + "/"),
        statement(iss=None),
        statement(sub="system:serviceaccount:shop:other"),
        statement(sub=SUBJECT + " "),
        statement(sub=[SUBJECT]),
        statement(sub=None),
        statement(tenant="t2"),
        statement(tenant=None),
        statement(tenant=["t1"]),
        statement(level="2"),
        statement(level=True),
        statement(level=2.0),
        statement(aud=MCP),
        statement(aud=[AS, AS + "/token"]),
        statement(aud=None),
        statement(exp=NOW - 31),
        statement(exp=NOW + 3600 + 31),
        statement(exp=None),
        statement(iat=None),
        statement(iat=NOW + 31),
        statement(nbf=NOW + 31),
        statement(nbf="x"),
        statement()[:-4] + "AAAA",
        "a.b.c",
        "",
    ],
)
async def test_statements_that_are_not_taken(wrong):
    talk = await shown(wrong)
    assert talk.status == 400 and talk.json["error"] in ("invalid_grant", "invalid_request")


async def test_a_statement_about_a_person_is_none_about_a_program():
    talk = await shown(statement(header={"typ": "oauth-id-jag+jwt"}))
    assert (talk.status, talk.json["error"]) == (401, "invalid_client")


async def test_scopes_and_resource_are_bounded():
    assert (await shown(statement(), scope="read write")).json["scope"] == "read"
    assert (await shown(statement(), scope="write")).json["error"] == "invalid_scope"
    assert (await shown(statement(), resource="https://evil.example")).json["error"] == "invalid_target"


async def test_its_token_may_be_bound_to_a_key():
    proof = proof_of(None, prover, htu=AS + "/token", iat=NOW)
    talk = await house().post("/token", {**FORM, "assertion": statement()}, dpop=proof)
    assert talk.json["token_type"] == "DPoP"


async def test_who_names_a_client_is_judged_as_one():
    assert (await shown(statement(), client_id="public")).json["error"] == "unauthorized_client"
    assert (await house().post("/token", {**FORM, "assertion": statement()}, authorization="Bearer x")).status == 401


async def test_without_platforms_there_is_no_such_grant():
    assert (await shown(statement(), House())).json["error"] == "unsupported_grant_type"


async def test_keys_of_a_platform_are_looked_up_and_kept():
    published = house(keys=None, keys_url=PLATFORM + "/keys")
    body = json.dumps({"keys": [jwk_of(signer, "p1")]}).encode()
    published.documents[PLATFORM + "/keys"] = Said(status=200, body=body)
    assert [(await shown(statement(), published)).status for _ in range(3)] == [200] * 3
    assert published.asked == [PLATFORM + "/keys"]
    for _ in range(3):
        assert (await shown(statement(header={"kid": "new"}), published)).status == 400
    assert published.asked == [PLATFORM + "/keys"], "unknown names make nobody ask at once"


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://platform.example.com"},
        {"issuer": "platform"},
        {"keys_url": "http://platform.example.com/keys"},
        {"workloads": ()},
        {"workloads": (Workload(subject=""),)},
        {"algorithms": ("HS256",)},
        {"algorithms": ()},
        {"seconds": 10**6},
    ],
)
def test_a_platform_is_described_well(wrong):
    with pytest.raises(LocalError):
        platform(**wrong)


def test_a_workload_gets_no_scopes_that_do_not_exist():
    with pytest.raises(LocalError, match="scopes"):
        house(workloads=(Workload(subject="x", scopes=("admin",)),))
