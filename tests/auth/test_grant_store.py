"""Codes and refresh tokens: each counts once, whoever comes at the same moment, and a second use ends everything."""

from __future__ import annotations

import asyncio

import pytest

from interlock.auth.grant_store import Grant, GrantStore
from interlock.auth.replies import OAuthError
from support.stores import KINDS, Clock, opened


def grant(**more):
    base = {"client": "c", "subject": "ada", "scopes": ("read",), "resource": "https://r", "family": "f"}
    return Grant(**{**base, **more})


async def outcomes(*tries):
    found = await asyncio.gather(*tries, return_exceptions=True)
    good = [each for each in found if not isinstance(each, BaseException)]
    assert all(isinstance(each, OAuthError) and each.error == "invalid_grant" for each in found if each not in good)
    return good


@pytest.mark.parametrize("kind", KINDS)
async def test_of_many_who_redeem_a_code_at_once_one_gets_it_and_keeps_nothing(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        code = await grants.new_code(grant())
        assert len(await outcomes(*(grants.redeem(code, "c") for _ in range(10)))) == 1
        with pytest.raises(OAuthError):
            await grants.begin(grant())  # the family has ended before it could begin


@pytest.mark.parametrize("kind", KINDS)
async def test_of_many_who_refresh_at_once_one_gets_a_token_and_it_is_worth_nothing(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        token = await grants.begin(grant())
        good = await outcomes(*(grants.rotate(token, "c", None) for _ in range(10)))
        assert len(good) <= 1
        for _, fresh in good:
            assert not await outcomes(grants.rotate(fresh, "c", None))


async def test_a_used_refresh_token_ends_its_family(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        first = await grants.begin(grant())
        _, second = await grants.rotate(first, "c", None)
        _, third = await grants.rotate(second, "c", None)
        assert not await outcomes(grants.rotate(first, "c", None))
        assert not await outcomes(grants.rotate(third, "c", None))


@pytest.mark.parametrize("garbage", ["", "x", "f", "f.", "f.x", ".x", "f." + "x" * 43, "é.x", "x" * 99 + ".y"])
async def test_garbage_ends_nothing(garbage, tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        token = await grants.begin(grant())
        assert not await outcomes(grants.rotate(garbage, "c", None))
        assert not await outcomes(grants.rotate(token, "other", None))
        await grants.revoke(garbage, "c")
        await grants.revoke(token, "other")
        assert await outcomes(grants.rotate(token, "c", None))


async def test_another_client_neither_gets_nor_spends_a_code(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        code = await grants.new_code(grant())
        assert not await outcomes(grants.redeem(code, "other"), grants.redeem("x", "c"))
        assert await grants.redeem(code, "c") == grant()


async def test_a_code_ends_within_a_minute_and_a_family_with_its_time(tmp_path):
    clock = Clock()
    async with opened("memory", tmp_path, clock) as store:
        grants = GrantStore(store, "as", clock, 1000)
        code, token = await grants.new_code(grant()), await grants.begin(grant(family="g"))
        clock.now += 61
        assert not await outcomes(grants.redeem(code, "c"))
        clock.now += 1000
        assert not await outcomes(grants.rotate(token, "c", None))


async def test_a_family_may_be_bound_to_a_key_and_be_given_back(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        token = await grants.begin(grant(key="k"))
        assert not await outcomes(grants.rotate(token, "c", None), grants.rotate(token, "c", "other"))
        _, token = await grants.rotate(token, "c", "k")
        await grants.revoke(token, "c")
        assert not await outcomes(grants.rotate(token, "c", "k"))


async def test_nothing_that_could_be_used_is_in_the_store(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        grants = GrantStore(store, "as", Clock(), 1000)
        code, token = await grants.new_code(grant()), await grants.begin(grant(family="g"))
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert code.encode() not in raw and token.partition(".")[2].encode() not in raw


async def test_what_counts_once_counts_once_for_each_issuer(tmp_path):
    async with opened("memory", tmp_path) as store:
        one = GrantStore(store, "one", Clock(), 1000)
        assert sorted(await asyncio.gather(*(one.first_use("x", 5000) for _ in range(5)))) == [False] * 4 + [True]
