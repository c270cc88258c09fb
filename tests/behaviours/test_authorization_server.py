"""The embedded authorization server: what clients of each revision find there, and what nobody gets."""

from __future__ import annotations

import json

import pytest

from interlock.auth.authorization_server.client_metadata import JWT_BEARER, KnownClient, hash_secret
from interlock.auth.authorization_server.server import AuthorizationServer, IdentityProvider
from interlock.auth.flow import Ask, Said
from interlock.auth.flow_http import asked
from interlock.auth.jose.jwt import read_written
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import LocalError, RemoteError
from support.auth_house import AS, CALLBACK, MCP, SECRET, House
from support.auth_tokens import jwk_of, prover

ID = "https://app.example.com/client.json"
DOCUMENT = {"client_id": ID, "client_name": "App", "redirect_uris": [CALLBACK]}
IDP, NOW = "https://idp.example.com", 1_000_000.0


def published(house, members=DOCUMENT, **headers):
    body = members if isinstance(members, bytes) else json.dumps(members).encode()
    house.documents[ID] = Said(status=200, headers={"content-type": "application/json", **headers}, body=body)


@pytest.mark.requirement("AUTH-09", "AUTH-32", "AUTH-33", "AUTH-79", "AUTH-011", "AUTH-022", "AUTH-SEC-010")
@pytest.mark.requirement("EXT-CC-003", "EXT-CC-004", "EXT-DPOP-011")
@pytest.mark.parametrize("name", ["oauth-authorization-server", "openid-configuration"])
async def test_its_metadata_stand_at_both_places(name):
    found = (await House().get(f"/.well-known/{name}")).json
    assert found["issuer"] == AS and found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True
    methods = found["token_endpoint_auth_methods_supported"]
    assert "private_key_jwt" in methods and "client_secret_basic" in methods
    for names in ("token_endpoint_auth_signing_alg_values_supported", "dpop_signing_alg_values_supported"):
        assert found[names] and not any(each == "none" or each.startswith("HS") for each in found[names])


@pytest.mark.requirement("AUTH-10")
async def test_at_the_root_of_a_host_the_default_paths_are_its_paths():
    found = (await House().get("/.well-known/oauth-authorization-server")).json
    for name, path in (("authorization", "/authorize"), ("token", "/token"), ("registration", "/register")):
        assert found[f"{name}_endpoint"] == AS + path


@pytest.mark.requirement("AUTH-83", "AUTH-SEC-006")
async def test_all_its_endpoints_are_https():
    found = House().server.metadata()
    urls = [value for name, value in found.items() if name.endswith(("_endpoint", "_uri"))]
    assert len(urls) >= 5 and all(url.startswith("https://") for url in urls)
    with pytest.raises(LocalError):
        AuthorizationServer("http://as.example.com", resources=[MCP])


@pytest.mark.requirement("AUTH-06", "AUTH-14", "AUTH-006")
async def test_public_and_confidential_clients_get_what_fits_them():
    house = House()
    assert (await house.redeem(await house.code())).status == 200
    form = {"grant_type": "client_credentials", "resource": MCP}
    assert (await house.post("/token", form, **house.basic())).status == 200
    assert (await house.post("/token", {**form, "client_id": "public"})).json["error"] == "unauthorized_client"
    assert (await house.post("/token", {**form, "client_id": "machine"})).json["error"] == "invalid_client"


@pytest.mark.requirement("AUTH-021", "AUTH-023")
async def test_every_answer_at_the_redirect_says_who_gives_it():
    house = House()
    for back in (
        await house.answer(await house.page()),
        await house.answer(await house.page(), decision="deny"),
        await house.page(scope="unknown"),
    ):
        assert house.query_of(back)["iss"] == AS == house.server.metadata()["issuer"]


@pytest.mark.requirement("AUTH-45", "AUTH-47", "AUTH-REG-005")
async def test_a_client_may_be_a_url_whose_document_is_fetched_and_kept():
    house = House()
    published(house, **{"cache-control": "max-age=60"})
    for _ in range(2):
        assert (await house.page(client_id=ID)).status == 200
    assert house.asked == [ID]
    house.now += 61
    await house.page(client_id=ID)
    assert house.asked == [ID, ID]


@pytest.mark.requirement("AUTH-43", "AUTH-46", "AUTH-48", "AUTH-49", "AUTH-REG-006")
@pytest.mark.parametrize(
    "members",
    [
        DOCUMENT | {"client_id": ID + "2"},
        DOCUMENT | {"redirect_uris": ["https://x.example/"]},
        {"client_id": ID},
        b"<x>",
    ],
)
async def test_a_document_that_says_something_else_helps_nobody(members):
    house = House()
    published(house, members)
    page = await house.page(client_id=ID)
    assert page.status == 400 and "location" not in page.headers


@pytest.mark.requirement("AUTH-50", "AUTH-90", "AUTH-REG-007", "AUTH-SEC-016")
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:a9fe:a9fe]"])
async def test_no_document_is_fetched_from_inside(host):
    with pytest.raises(RemoteError):
        await asked(Ask(url=f"https://{host}/client.json"), endpoint_of(AS), redirects=False)


@pytest.mark.requirement("AUTH-86", "AUTH-88", "AUTH-SEC-012", "AUTH-SEC-014", "EXT-EMA-023")
@pytest.mark.parametrize(
    "uri", ["https://evil.example/", "https://app.example.com/done/", "https://APP.example.com/done"]
)
async def test_nobody_is_sent_to_another_place_than_was_registered(uri):
    page = await House().page(redirect_uri=uri)
    assert page.status == 400 and "location" not in page.headers


@pytest.mark.requirement("AUTH-89", "AUTH-SEC-015")
async def test_strangers_cannot_have_people_redirected_without_a_word():
    house = House()
    id = (await house.register({"redirect_uris": ["https://evil.example/"]})).json["client_id"]
    page = await house.page(client_id=id, redirect_uri="https://evil.example/", response_type="token")
    assert page.status == 400 and "location" not in page.headers


@pytest.mark.requirement("AUTH-91", "AUTH-93", "AUTH-SEC-017", "AUTH-SEC-018")
async def test_the_page_shows_where_it_leads_and_warns_of_this_machine():
    house = House()
    here = (await house.page()).body.decode()
    assert "<strong>127.0.0.1:7777</strong>" in here and "could pretend" in here
    there = (await house.page(redirect_uri="https://app.example.com/done")).body.decode()
    assert "<strong>app.example.com</strong>" in there and "could pretend" not in there


@pytest.mark.requirement("AUTH-81", "AUTH-82", "AUTH-SEC-004", "AUTH-SEC-005")
async def test_tokens_are_short_and_refresh_tokens_count_once():
    house = House()
    first = await house.redeem(await house.code())
    assert first.json["expires_in"] <= 600
    second = await house.refresh(first.json["refresh_token"])
    assert second.json["refresh_token"] != first.json["refresh_token"]
    house.now += 61
    assert (await house.refresh(first.json["refresh_token"])).json["error"] == "invalid_grant"
    assert (await house.refresh(second.json["refresh_token"])).json["error"] == "invalid_grant"


@pytest.mark.requirement("EXT-DPOP-012")
async def test_a_client_that_wants_bound_tokens_gets_no_others():
    house = House()
    told = (await house.register({"redirect_uris": [CALLBACK], "dpop_bound_access_tokens": True})).json
    assert told["dpop_bound_access_tokens"] is True
    code = await house.code(client_id=told["client_id"])
    assert (await house.redeem(code, client_id=told["client_id"])).json["error"] == "invalid_dpop_proof"


# --- enterprise-managed authorization ---


def identity(**changes):
    claims = {"iss": IDP, "sub": "u1", "aud": AS, "client_id": "app", "jti": "1", "iat": NOW, "exp": NOW + 300}
    told = {**claims, "resource": MCP, "scope": "read admin", **changes}
    header = {"typ": "oauth-id-jag+jwt", "kid": "i1"}
    return prover.signed(header, {name: value for name, value in told.items() if value is not None})


def enterprise():
    app = KnownClient(id="app", secret_hash=hash_secret(SECRET), grants=(JWT_BEARER,))
    return House(clients=[app], providers=[IdentityProvider(issuer=IDP, keys_url=IDP + "/keys")])


async def exchanged(house, assertion, **form):
    house.documents.setdefault(
        IDP + "/keys", Said(status=200, body=json.dumps({"keys": [jwk_of(prover, "i1")]}).encode())
    )
    told = {"grant_type": JWT_BEARER, "assertion": assertion, **form}
    return await house.post("/token", told, **house.basic("app"))


@pytest.mark.requirement("EXT-EMA-006", "EXT-EMA-009", "EXT-EMA-016")
async def test_an_assertion_becomes_a_token_for_its_resource_once():
    house = enterprise()
    talk = await exchanged(house, identity(), scope="read write")
    claims = read_written(talk.json["access_token"]).claims
    assert claims["aud"] == MCP and claims["scope"] == "read"
    assert (await exchanged(house, identity())).json["error"] == "invalid_grant"


@pytest.mark.requirement("EXT-EMA-012", "EXT-EMA-013", "EXT-EMA-015", "EXT-EMA-027")
@pytest.mark.parametrize(
    "assertion",
    [
        identity(iss="https://evil.example"),
        identity(aud=MCP),
        identity(resource="https://other.example.com"),
        identity(sub=None),
        identity(iat=None),
        identity(exp=NOW - 60),
        identity(exp=NOW + 86400),
        identity(client_id="other"),
        "eyJhbGciOiJub25lIn0." + identity().split(".")[1] + ".",
    ],
)
async def test_an_assertion_that_is_wrong_in_one_thing_is_no_grant(assertion):
    assert (await exchanged(enterprise(), assertion)).json["error"] == "invalid_grant"


@pytest.mark.requirement("EXT-EMA-014")
async def test_keys_of_a_provider_rotate():
    house = enterprise()
    assert (await exchanged(house, identity())).status == 200
    house.now += 601
    house.documents[IDP + "/keys"] = Said(status=200, body=json.dumps({"keys": [jwk_of(prover, "new")]}).encode())
    late = identity(jti="2", iat=house.now, exp=house.now + 60)
    assert (await exchanged(house, late)).json["error"] == "invalid_grant"  # signed with the key that is gone
