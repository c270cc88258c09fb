"""state/sealing.py: only what was sealed here opens, whole and unchanged."""

import asyncio
import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.state.memory import MemoryStore
from interlock.state.sealing import Seal, new_key
from interlock.wire.errors import LocalError, StoreError
from support.properties import many
from support.stores import Clock, opened

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


@given(st.binary(max_size=200))
@many(50)
def test_what_was_sealed_opens(payload):
    seal = Seal([KEY])
    assert seal.open(seal.seal(payload)) == payload


def test_no_two_seals_are_the_same_and_nothing_shows():
    seal = Seal([KEY])
    one, two = seal.seal(b"secret" * 20), seal.seal(b"secret" * 20)
    assert one != two
    assert base64.urlsafe_b64encode(b"secret").decode() not in one and "secret" not in one


ANY_LENGTH = pytest.mark.parametrize("payload", [b"a state of some length"[:end] for end in (22, 21, 20)])


@ANY_LENGTH
def test_every_single_bit_counts(payload):
    seal = Seal([KEY])
    sealed = seal.seal(payload)
    for at in range(len(sealed)):
        for bit in range(7):
            changed = sealed[:at] + chr(ord(sealed[at]) ^ (1 << bit)) + sealed[at + 1 :]
            assert seal.open(changed) is None, (at, bit)


@ANY_LENGTH
def test_every_cut_and_every_addition_counts(payload):
    seal = Seal([KEY])
    sealed = seal.seal(payload)
    assert all(seal.open(sealed[:end]) is None for end in range(len(sealed)))
    for more in ("x", "=", "==", "A", " ", "\n", ".", "-TAMPERED", "\0", "é", "AAAA", "===", "===="):
        assert seal.open(sealed + more) is None
        assert seal.open(more + sealed) is None


@given(st.text(max_size=80))
@many(200)
def test_noise_never_opens_and_never_raises(text):
    seal = Seal([KEY])
    assert seal.open(text) is None
    assert seal.open("s1." + seal.seal(b"x").split(".")[1] + "." + text) is None


def test_keys_rotate():
    old = Seal([KEY]).seal(b"x")
    both = Seal([OTHER, KEY])
    assert both.open(old) == b"x"
    assert Seal([OTHER]).open(old) is None
    assert Seal([OTHER]).open(both.seal(b"y")) == b"y"
    assert Seal([KEY]).open(both.seal(b"y")) is None


def test_without_keys_a_process_seals_for_itself():
    one, other = Seal(), Seal()
    assert one.open(one.seal(b"x")) == b"x"
    assert other.open(one.seal(b"x")) is None


@pytest.mark.parametrize("key", [b"", b"short", bytes(33)])
def test_a_key_has_32_bytes(key):
    with pytest.raises(LocalError, match="32 bytes"):
        Seal([key])
    assert len(new_key()) == 32 and new_key() != new_key()


async def test_what_counts_once_counts_once():
    seal = Seal([KEY])
    assert await seal.consume("n", 1e12)
    assert not await seal.consume("n", 1e12)
    assert await seal.consume("m", 1e12)


async def test_what_counts_once_counts_once_for_all_who_share_the_store(tmp_path):
    async with opened("sqlite", tmp_path) as here, opened("sqlite", tmp_path) as there:
        seals = [Seal([KEY], store=here), Seal([KEY], store=there)]
        firsts = await asyncio.gather(*[seal.consume("n", 1e12) for seal in seals * 10])
        assert sum(firsts) == 1


async def test_a_store_that_is_empty_is_a_store():
    class Sized(MemoryStore):
        def __len__(self) -> int:
            return 0

    store = Sized()
    assert sum([await seal.consume("n", 1e12) for seal in (Seal([KEY], store=store), Seal([KEY], store=store))]) == 1


async def test_uses_are_forgotten_when_they_expire_and_refused_when_there_is_no_room(tmp_path):
    clock = Clock(0.0)
    async with opened("memory", tmp_path, clock, entries=3) as store:
        seal = Seal([KEY], store=store)
        assert [await seal.consume(str(number), 10.0) for number in range(4)] == [True, True, True, False]
        clock.now = 69.0
        assert not await seal.consume("later", 80.0)
        clock.now = 70.0
        assert await seal.consume("later", 80.0)
        assert not await seal.consume("later", 80.0)


async def test_a_key_is_made_once_for_all_who_share_the_store(tmp_path):
    async with opened("sqlite", tmp_path) as here, opened("sqlite", tmp_path) as there:
        seals = [Seal(), Seal(), Seal([KEY])]
        before = seals[0].seal(b"before")
        stores = [here, there, here]
        await asyncio.gather(*(seal.share(store, "x") for seal, store in zip(seals, stores, strict=True)))
        assert seals[1].open(seals[0].seal(b"x")) == b"x" and seals[0].open(seals[1].seal(b"x")) == b"x"
        assert seals[0].open(before) == b"before"
        assert seals[2].open(seals[0].seal(b"x")) is None  # it has keys of its own
        assert sum([await seal.consume("n", 1e12) for seal in seals]) == 1
        late = Seal()
        await late.share(here, "y")
        assert late.open(seals[0].seal(b"x")) is None  # another place, another key


async def test_a_key_that_is_none_is_not_sealed_with(tmp_path):
    async with opened("memory", tmp_path) as store:
        await store.put("x/seal", b"short", until=float("inf"))
        with pytest.raises(StoreError, match="state_keys"):
            await Seal().share(store, "x")
