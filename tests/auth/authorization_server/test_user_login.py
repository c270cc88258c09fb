"""A user logs in: the owner is not locked out, guesses are bounded, outdated hashes are replaced."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from types import MappingProxyType

import pytest

from interlock.auth.authorization_server import user_login
from interlock.auth.authorization_server.passwords import fits, hash_password, is_outdated
from interlock.auth.authorization_server.user_login import DEVICE_TTL, MAX_HASHES, LoggedIn, UserLogin
from support.auth_house import House

DEVICE = "__Host-interlock-device"
WRONG, WAIT = "The name or the password is wrong.", "Too many wrong passwords"
OUTDATED = "scrypt$" + bytes(16).hex() + "$"
OUTDATED += hashlib.scrypt(b"correct horse", salt=bytes(16), n=1 << 14, r=8, p=1, dklen=32).hex()


@pytest.fixture
def guessed(monkeypatch):
    """The passwords that are looked at; only one is right."""
    seen = []

    def compare(password, known):
        seen.append(password)
        return known is not None and password == "correct horse", None

    monkeypatch.setattr(user_login, "_compare", compare)
    return seen


async def test_wrong_passwords_elsewhere_do_not_lock_the_owner_out(guessed):
    house = House()
    page = await house.page()
    house.address = "198.51.100.7"
    talks = [await house.answer(page, password="wrong") for _ in range(9)]
    assert sum(b"wait 30 seconds" in talk.body for talk in talks) == 4 and len(guessed) == 5
    house.address = "192.0.2.1"
    assert (await house.answer(page)).status == 303


async def test_guesses_with_ever_new_names_from_one_address_are_limited(guessed):
    house = House()
    page = await house.page()
    house.address = "198.51.100.7"
    for number in range(60):
        assert (await house.answer(page, user=f"name {number}", password="wrong")).status == 403
    assert len(guessed) == 20
    house.address = "192.0.2.1"
    await house.answer(page, user="bob", password="wrong")
    assert len(guessed) == 21


async def test_a_browser_of_the_owner_logs_in_while_the_account_is_guessed_from_everywhere(guessed):
    house = House()
    first = await house.answer(await house.page())
    cookie, *flags = first.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{DEVICE}=") and {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} < set(flags)
    page = await house.page()
    consent = page.headers["set-cookie"].partition(";")[0]
    for number in range(150):
        house.address = f"10.0.0.{number}"
        await house.answer(page, password="wrong")
    house.address = "192.0.2.1"
    assert b"wait" in (await house.answer(page)).body  # an unknown browser at a new address waits, too
    answered = await house.answer(page, {"cookie": f"{consent}; {cookie}"})
    assert answered.status == 303 and DEVICE in answered.headers["set-cookie"]


@pytest.mark.parametrize("user", ["ada", "no-such-user"])
async def test_of_guesses_that_come_together_no_more_are_looked_at(user, guessed):
    """And nothing tells a name that exists from one that does not."""
    house = House()
    page = await house.page()
    talks = await asyncio.gather(*(house.answer(page, user=user, password=f"guess {n}") for n in range(40)))
    assert len(guessed) == 5 and {talk.status for talk in talks} == {403}
    assert sum(b"wait 30 seconds" in talk.body for talk in talks) == 35
    house.now += 31
    await asyncio.gather(*(house.answer(page, user=user, password="guess") for _ in range(10)))
    assert len(guessed) == 6


async def test_guesses_are_bounded_for_a_function_that_knows_the_users():
    asked = []

    async def users(name, password):
        asked.append(name)

    house = House(users=users)
    page = await house.page()
    for _ in range(9):
        assert (await house.answer(page, user="x")).status == 403
    assert len(asked) == 5 and (await house.answer(page, user="y")).status == 403 and len(asked) == 6


async def test_a_device_cookie_counts_for_its_user_and_its_time(guessed):
    house = House(users={"ada": hash_password("correct horse"), "bob": hash_password("correct horse")})
    login = UserLogin(house.server)
    known = await login.log_in("ada", "correct horse", "192.0.2.1", "")
    assert isinstance(known, LoggedIn) and known.subject == "ada"
    for name in ("ada", "bob"):
        for _ in range(5):
            assert await login.log_in(name, "wrong", "192.0.2.2", "") == WRONG
    assert isinstance(await login.log_in("ada", "correct horse", "192.0.2.2", known.device), LoggedIn)
    for name, cookie in [("bob", known.device), ("ada", known.device[:-4] + "AAAA"), ("ada", ""), ("ada", "é;\ud800")]:
        assert (await login.log_in(name, "correct horse", "192.0.2.2", cookie)).startswith(WAIT)
    house.now += DEVICE_TTL + 1
    for _ in range(5):
        assert await login.log_in("ada", "wrong", "192.0.2.2", known.device) == WRONG
    again = await login.log_in("ada", "correct horse", "192.0.2.2", known.device)
    assert isinstance(again, str) and again.startswith(WAIT)


async def test_a_ticket_is_not_a_device_cookie_nor_the_other_way_round(guessed):
    house = House()
    login = UserLogin(house.server)
    known = await login.log_in("ada", "correct horse", "192.0.2.1", "")
    assert isinstance(known, LoggedIn)
    assert (await house.answer(await house.page(), ticket=known.device)).status == 400
    assert isinstance(await login.log_in("ada", "correct horse", "", house.server.seal.seal(b"{}")), LoggedIn)


async def test_an_outdated_hash_is_replaced_at_login(caplog):
    users = {"ada": OUTDATED}
    login = UserLogin(House(users=users).server)
    assert await login.log_in("ada", "wrong password", "", "") == WRONG and users["ada"] == OUTDATED
    with caplog.at_level(logging.WARNING, "interlock.auth"):
        assert isinstance(await login.log_in("ada", "correct horse", "", ""), LoggedIn)
    renewed = users["ada"]
    assert renewed.startswith("scrypt$ln=14,r=8,p=5$") and not is_outdated(renewed) and fits("correct horse", renewed)
    assert "was replaced" in caplog.text and renewed not in caplog.text and "correct horse" not in caplog.text
    assert isinstance(await login.log_in("ada", "correct horse", "", ""), LoggedIn) and users["ada"] == renewed


async def test_users_that_cannot_be_changed_log_in_and_the_owner_is_told(caplog):
    login = UserLogin(House(users=MappingProxyType({"ada": OUTDATED})).server)
    with caplog.at_level(logging.WARNING, "interlock.auth"):
        assert isinstance(await login.log_in("ada", "correct horse", "", ""), LoggedIn)
    assert "cannot be replaced" in caplog.text and "hash_password" in caplog.text


async def test_few_hashes_are_computed_at_once_also_where_requests_are_given_up(monkeypatch):
    running, most, lock, go = 0, 0, threading.Lock(), threading.Event()
    loop, full = asyncio.get_running_loop(), asyncio.Event()

    def compare(password, known):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == MAX_HASHES:
                loop.call_soon_threadsafe(full.set)
        go.wait(30)
        with lock:
            running -= 1
        return False, None

    monkeypatch.setattr(user_login, "_compare", compare)
    login = UserLogin(House().server)
    tries = [asyncio.create_task(login.log_in(f"name {n}", "wrong", "", "")) for n in range(3 * MAX_HASHES)]
    await full.wait()
    for each in tries[:MAX_HASHES]:
        each.cancel()
    await asyncio.wait(tries[:MAX_HASHES])
    assert login._hashing.locked()  # their threads still compute
    go.set()
    assert {await each for each in tries[MAX_HASHES:]} == {WRONG} and most == MAX_HASHES
