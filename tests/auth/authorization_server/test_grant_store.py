"""Codes and refresh tokens: each counts once, also at the same moment; a late second use ends everything."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from interlock.auth.authorization_server.grant_store import MAX_REPLAYS, Grant, GrantStore
from interlock.auth.authorization_server.responses import OAuthError
from interlock.state.sealing import Seal
from support.stores import KINDS, Clock, opened


def grant(**more):
    base = {"client": "c", "subject": "ada", "scopes": ("read",), "resource": "https://r", "family": "f"}
    return Grant(**{**base, **more})


SEAL, NUMBERS = Seal([bytes(32)]), itertools.count()


def grants_in(store, issuer="as", clock=None):
    return GrantStore(store, issuer, clock or Clock(), 1000, SEAL)


async def rotate(grants, token, client="c", key=None):
    """The answer to a refresh; each one that is made has a number of its own."""
    return await grants.rotate(token, client, key, lambda grant: {"access": next(NUMBERS), "expires_in": 300})


async def next_token(grants, token, client="c", key=None):
    return (await rotate(grants, token, client, key))["refresh_token"]


async def outcomes(*tries):
    found = await asyncio.gather(*tries, return_exceptions=True)
    good = [each for each in found if not isinstance(each, BaseException)]
    assert all(isinstance(each, OAuthError) and each.error == "invalid_grant" for each in found if each not in good)
    return good


@pytest.mark.parametrize("kind", KINDS)
async def test_of_many_who_redeem_a_code_at_once_one_gets_it_and_keeps_nothing(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        grants = grants_in(store)
        code = await grants.new_code(grant())
        assert len(await outcomes(*(grants.redeem(code, "c") for _ in range(10)))) == 1
        with pytest.raises(OAuthError):
            await grants.begin(grant())  # the family has ended before it could begin


@pytest.mark.parametrize("kind", KINDS)
async def test_many_who_refresh_at_once_get_the_same_answer_and_it_counts(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        workers = [grants_in(store), grants_in(store)]
        token = await workers[0].begin(grant())
        first, *others = await asyncio.gather(*(rotate(workers[n % 2], token) for n in range(10)))
        assert all(other == first for other in others)
        assert (await next_token(workers[1], first["refresh_token"])) != first["refresh_token"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_used_refresh_token_gets_the_same_answer_for_a_minute_and_then_ends_its_family(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        grants = grants_in(store, clock=clock)
        token = await grants.begin(grant())
        first = await rotate(grants, token)
        clock.now += 60
        assert await rotate(grants, token) == first | {"expires_in": 240}
        clock.now += 0.1
        assert not await outcomes(rotate(grants, token))
        assert not await outcomes(rotate(grants, first["refresh_token"]))


async def test_the_answer_is_repeated_while_the_family_goes_on(tmp_path):
    """A machine that is late gets a token that was used since; that one gets its answer again, too."""
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        first = await grants.begin(grant())
        second = await next_token(grants, first)
        third = await next_token(grants, second)
        assert await next_token(grants, first) == second and await next_token(grants, second) == third
        assert await next_token(grants, third)


async def test_a_client_that_refreshes_all_the_time_is_remembered_for_a_few_answers_only(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        tokens = [await grants.begin(grant())]
        for _ in range(MAX_REPLAYS + 1):
            tokens.append(await next_token(grants, tokens[-1]))
        assert [await next_token(grants, each) for each in tokens[1:-1]] == tokens[2:]
        assert not await outcomes(rotate(grants, tokens[0]))
        assert not await outcomes(rotate(grants, tokens[-1]))


@pytest.mark.parametrize(("client", "key"), [("other", "k"), ("c", None), ("c", "other")])
async def test_a_used_refresh_token_of_another_client_or_key_ends_its_family(client, key, tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        for bound in (None, "k"):  # a confidential client's family is not bound to a key, its answers are
            token = await grants.begin(grant(key=bound, family=f"family-{bound}"))
            fresh = await next_token(grants, token, "c", "k")
            with pytest.raises(OAuthError):
                await rotate(grants, token, client, key)
            assert not await outcomes(rotate(grants, fresh, "c", "k"), rotate(grants, token, "c", "k"))


async def test_an_answer_that_cannot_be_opened_is_not_given(tmp_path):
    """Its key was rotated away: as a late second use."""
    async with opened("memory", tmp_path) as store:
        token = await grants_in(store).begin(grant())
        await rotate(grants_in(store), token)
        assert not await outcomes(rotate(GrantStore(store, "as", Clock(), 1000, Seal()), token))


async def test_a_family_that_ended_gives_no_answer_again(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        token = await grants.begin(grant())
        await rotate(grants, token)
        await grants.revoke(token, "c")
        assert not await outcomes(rotate(grants, token))


@pytest.mark.parametrize("garbage", ["", "x", "f", "f.", "f.x", ".x", "f." + "x" * 43, "é.x", "x" * 99 + ".y"])
async def test_garbage_ends_nothing(garbage, tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        token = await grants.begin(grant())
        assert not await outcomes(rotate(grants, garbage, "c", None))
        assert not await outcomes(rotate(grants, token, "other", None))
        await grants.revoke(garbage, "c")
        await grants.revoke(token, "other")
        assert await outcomes(rotate(grants, token, "c", None))


async def test_another_client_neither_gets_nor_spends_a_code(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        code = await grants.new_code(grant())
        assert not await outcomes(grants.redeem(code, "other"), grants.redeem("x", "c"))
        assert await grants.redeem(code, "c") == grant()


async def test_a_code_ends_within_a_minute_and_a_family_with_its_time(tmp_path):
    clock = Clock()
    async with opened("memory", tmp_path, clock) as store:
        grants = grants_in(store, clock=clock)
        code, token = await grants.new_code(grant()), await grants.begin(grant(family="g"))
        clock.now += 61
        assert not await outcomes(grants.redeem(code, "c"))
        clock.now += 1000
        assert not await outcomes(rotate(grants, token, "c", None))


async def test_a_family_may_be_bound_to_a_key_and_be_given_back(tmp_path):
    async with opened("memory", tmp_path) as store:
        grants = grants_in(store)
        token = await grants.begin(grant(key="k"))
        assert not await outcomes(rotate(grants, token, "c", None), rotate(grants, token, "c", "other"))
        token = await next_token(grants, token, "c", "k")
        await grants.revoke(token, "c")
        assert not await outcomes(rotate(grants, token, "c", "k"))


async def test_nothing_that_could_be_used_is_in_the_store(tmp_path):
    async with opened("sqlite", tmp_path) as store:
        grants = grants_in(store)
        code, token = await grants.new_code(grant()), await grants.begin(grant(family="g"))
        fresh = await grants.rotate(token, "c", None, lambda _: {"access_token": "an-access-token", "expires_in": 1})
        assert await rotate(grants, token) == fresh
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    secrets = (code, token.partition(".")[2], fresh["refresh_token"].partition(".")[2], "an-access-token")
    assert not any(secret.encode() in raw for secret in secrets)


async def test_what_counts_once_counts_once_for_each_issuer(tmp_path):
    async with opened("memory", tmp_path) as store:
        one = grants_in(store, "one")
        assert sorted(await asyncio.gather(*(one.first_use("x", 5000) for _ in range(5)))) == [False] * 4 + [True]
