"""Strangers as clients: how many, how long they are remembered, and what is fetched for them."""

from __future__ import annotations

import json

import pytest

from interlock.auth.authorization_server.client_store import Meter
from interlock.auth.authorization_server.responses import OAuthError
from interlock.auth.flow import Said
from interlock.state.memory import MemoryStore
from interlock.state.store import Bounds
from interlock.wire.errors import RemoteError
from support.asgi import begin
from support.auth_house import CALLBACK, House

ID = "https://app.example.com/client.json"
DOCUMENT = {"client_id": ID, "client_name": "App", "redirect_uris": [CALLBACK]}
MEMBERS = {"redirect_uris": [CALLBACK], "client_name": "x"}


def said(members=DOCUMENT, status=200, kind="application/json", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = members if isinstance(members, bytes) else json.dumps(members).encode()
    return Said(status=status, headers={"content-type": kind, **named}, body=body)


async def test_a_client_registers_itself_and_is_forgotten_unless_it_is_used():
    house = House()
    told = (await house.register(MEMBERS)).json
    assert told["token_endpoint_auth_method"] == "none" and "client_secret" not in told
    client = await house.app._clients.find(told["client_id"])
    assert client.kind == "registered" and client.public
    house.now += 1000
    await house.app._clients.used(client)
    house.now += 80 * 86400
    assert await house.app._clients.find(client.id)
    other = (await house.register(MEMBERS)).json["client_id"]
    house.now += 3601
    with pytest.raises(OAuthError):
        await house.app._clients.find(other)


async def test_a_secret_is_told_once_and_kept_as_a_hash():
    house = House()
    told = (await house.register(MEMBERS | {"token_endpoint_auth_method": "client_secret_post"})).json
    client = await house.app._clients.find(told["client_id"])
    assert client.has_secret(told["client_secret"]) and told["client_secret_expires_at"] == 0
    assert told["client_secret"] not in repr(client)


async def test_registrations_have_a_rate():
    house = House()
    found = [(await house.register(MEMBERS)).status for _ in range(65)]
    assert found == [201] * 60 + [429] * 5
    house.now += 4
    assert (await house.register(MEMBERS)).status == 201


async def test_a_full_store_refuses_and_throws_nobody_out():
    house = House(store=MemoryStore(Bounds(entries=2), clock=lambda: 1_000_000.0))
    assert [(await house.register(MEMBERS)).status for _ in range(3)] == [201, 201, 503]


async def test_a_document_is_fetched_once_and_kept_as_its_header_says():
    house = House()
    house.documents[ID] = said(cache_control="max-age=60")
    for _ in range(3):
        assert (await house.app._clients.find(ID)).name == "App"
    assert house.asked == [ID]
    house.now += 61
    await house.app._clients.find(ID)
    assert len(house.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        said(status=404),
        said(status=302),
        said(kind="text/html"),
        said(b"x" * 11_000),
        said(DOCUMENT | {"client_id": ID + "x"}),
        said(b"[]"),
    ],
)
async def test_what_is_no_document_is_not_asked_for_again_at_once(answer):
    house = House()
    house.documents[ID] = answer
    for _ in range(3):
        with pytest.raises(OAuthError):
            await house.app._clients.find(ID)
    assert house.asked == [ID]


async def test_documents_have_a_rate_and_failures_are_no_errors_of_ours():
    house = House()

    async def refused(step):
        raise RemoteError("inside")

    house.app._clients._ask = refused
    errors = []
    for number in range(65):
        with pytest.raises(OAuthError) as caught:
            await house.app._clients.find(f"{ID}{number}")
        errors.append(caught.value.status)
    assert errors == [401] * 60 + [429] * 5


async def test_documents_may_be_switched_off():
    house = House(documents=False)
    with pytest.raises(OAuthError):
        await house.app._clients.find(ID)
    assert house.asked == []


@pytest.mark.parametrize("id", [None, "", "x", "x" * 3000, "client/public", "é"])
async def test_who_is_not_known(id):
    with pytest.raises(OAuthError):
        await House().app._clients.find(id)


def test_a_meter_fills_up_again():
    now = [0.0]
    meter = Meter(lambda: now[0], most=2)
    assert [meter.take() for _ in range(3)] == [True, True, False]
    now[0] = 30.0
    assert meter.take() and not meter.take()
    now[0] = 0.0  # a clock that was set back gives nothing
    assert not meter.take()


async def test_a_document_is_used_where_there_is_no_room_to_keep_it():
    house = House(store=MemoryStore(Bounds(entries=1), clock=lambda: 1_000_000.0))
    await house.register(MEMBERS)
    house.documents[ID] = said()
    assert [(await house.app._clients.find(ID)).name for _ in range(2)] == ["App"] * 2 and len(house.asked) == 2


def test_one_place_leaves_room_for_others():
    meter = Meter(lambda: 0.0, most=5, each=2)
    assert [meter.take("192.0.2.1") for _ in range(9)] == [True, True] + [False] * 7
    assert [meter.take(f"2001:db8::{number}") for number in range(9)] == [True, True] + [False] * 7  # one network
    assert meter.take("192.0.2.2") and not meter.take("192.0.2.3")


async def test_a_flood_from_one_place_leaves_room_for_others():
    house = House()

    async def registered(address):
        lines = [(b"host", b"as.example.com"), (b"content-type", b"application/json")]
        scope = {"method": "POST", "path": "/register", "headers": lines, "client": (address, 1)}
        return (await begin(house.app, [json.dumps(MEMBERS).encode()], **scope).answer()).status

    assert [await registered("192.0.2.1") for _ in range(40)] == [201] * 15 + [429] * 25
    assert await registered("192.0.2.2") == 201
