"""The authorization endpoint: nobody is sent away, and nothing is granted, before it is clear to whom and by whom."""

from __future__ import annotations

import asyncio

import pytest

from support.auth_house import AS, CALLBACK, MCP, House


async def test_a_yes_makes_a_code_for_the_client():
    house = House()
    page = await house.page()
    assert page.status == 200 and b"Allow" in page.body and "__Host-" in page.headers["set-cookie"]
    back = await house.answer(page)
    found = house.query_of(back)
    assert back.status == 303 and back.headers["location"].startswith(CALLBACK + "?")
    assert found["state"] == "s t&" and found["iss"] == AS and len(found["code"]) >= 43


async def test_a_no_is_told_too():
    house = House()
    found = house.query_of(await house.answer(await house.page(), decision="deny", password=""))
    assert found == {"error": "access_denied", "state": "s t&", "iss": AS}


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": None},
        {"client_id": "nobody"},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": CALLBACK + "/x"},
        {"redirect_uri": CALLBACK + "?x"},
        {"redirect_uri": None},
        {"redirect_uri": "javascript:alert(1)"},
        {"client_id": "machine"},
    ],
)
async def test_nobody_is_sent_to_a_place_that_is_not_the_clients(changes):
    page = await House().page(**changes)
    assert page.status == 400 and "location" not in page.headers and "set-cookie" not in page.headers


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": "s256"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "x" * 44}, "invalid_request"),
        ({"code_challenge": "x" * 42 + "="}, "invalid_request"),
        ({"resource": "https://evil.example"}, "invalid_target"),
        ({"resource": MCP + "/"}, "invalid_target"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"state": "x" * 2049}, "invalid_request"),
        ({"dpop_jkt": "x"}, "invalid_request"),
    ],
)
async def test_what_else_is_wrong_is_told_to_the_client(changes, error):
    house = House()
    page = await house.page(**changes)
    assert page.status == 303 and house.query_of(page)["error"] == error and house.query_of(page)["iss"] == AS


async def test_a_client_that_nobody_knows_cannot_use_us_to_send_people_away():
    house = House()
    id = (await house.register({"redirect_uris": ["https://evil.example/"]})).json["client_id"]
    page = await house.page(client_id=id, redirect_uri="https://evil.example/", scope="admin")
    assert page.status == 400 and "location" not in page.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": ""},
        {"cookie": "__Host-interlock-consent=other"},
        {"cookie": "__Host-interlock-consent=a; __Host-interlock-consent=b"},
        {"origin": "https://mcp.example.com"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_a_page_is_answered_in_the_browser_that_got_it(headers):
    house = House()
    back = await house.answer(await house.page(), headers)
    assert back.status == 400 and "location" not in back.headers


@pytest.mark.parametrize("ticket", ["", "x", "s1.00000000.AAAA"])
async def test_a_ticket_cannot_be_made(ticket):
    house = House()
    assert (await house.answer(await house.page(), ticket=ticket)).status == 400


async def test_a_page_ends_and_is_answered_once():
    house = House()
    page = await house.page()
    answers = await asyncio.gather(*(house.answer(page) for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [303, 400, 400]
    late = await house.page()
    house.now += 601
    assert (await house.answer(late)).status == 400


async def test_a_wrong_password_shows_the_page_again_and_then_makes_one_wait():
    house = House()
    page = await house.page()
    wrong = [await house.answer(page, password="wrong") for _ in range(5)]
    assert {talk.status for talk in wrong} == {403} and b"or the password is wrong" in wrong[0].body
    assert b"wait 30 seconds" in (await house.answer(page)).body
    house.now += 31
    assert (await house.answer(page)).status == 303


@pytest.mark.parametrize(
    "form", [{"user": "bob"}, {"user": ""}, {"password": ""}, {"decision": "yes"}, {"decision": ""}]
)
async def test_only_a_known_person_who_says_yes_grants(form):
    house = House()
    back = await house.answer(await house.page(), **form)
    assert back.status == 403 or house.query_of(back)["error"] == "access_denied"


async def test_getting_the_answer_endpoint_grants_nothing():
    house = House()
    page = await house.get("/authorize?" + house.query() + "&decision=allow&user=ada&password=correct+horse")
    assert page.status == 200 and "location" not in page.headers


async def test_somebody_else_may_know_the_people():
    async def users(name, password):
        return "subject-7" if (name, password) == ("x", "y") else None

    house = House(users=users)
    page = await house.page()
    assert (await house.answer(page)).status == 403
    assert (await house.answer(page, user="x", password="y")).status == 303


async def test_a_browser_that_asks_twice_may_answer_either_page():
    house = House()
    first = await house.page()
    cookie = first.headers["set-cookie"].partition(";")[0]
    second = await house.get("/authorize?" + house.query(state="2"), cookie=cookie)
    assert second.headers["set-cookie"].startswith(cookie + ";")
    for page in (first, second):
        assert (await house.answer(page, {"cookie": cookie})).status == 303


@pytest.mark.parametrize("value", ["", "x", "a" * 42, "a" * 44, "a" * 42 + "=", "<script>" + "a" * 35])
async def test_a_mark_that_is_none_of_ours_is_replaced(value):
    house = House()
    page = await house.get("/authorize?" + house.query(), cookie=f"__Host-interlock-consent={value}")
    mark = page.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert mark != value and len(mark) == 43 and (await house.answer(page)).status == 303
