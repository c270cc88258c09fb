"""wire/json/hash_collisions.py: values made to have one hash cost no more than others, and ordinary ones are let
through."""

import json
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest

from interlock.wire.json.hash_collisions import MAX_HASHED_BYTES, MAX_LARGE_INTEGERS, HashLimitExceeded
from interlock.wire.json.reader import JsonReader

MODULUS = 2**61 - 1
COLLIDING = [number * MODULUS for number in range(10, 10 + 4 * MAX_LARGE_INTEGERS)]
FEW = COLLIDING[:MAX_LARGE_INTEGERS]


@dataclass(frozen=True)
class Record:
    id: int


class Pair(NamedTuple):
    left: int
    right: int


class Struct(msgspec.Struct, frozen=True):
    id: int


class Arguments(msgspec.Struct):
    data: str = ""
    ids: set[int] = set()
    keys: dict[uuid.UUID, int] = {}
    more: list[dict[str, set[int | None]]] = []


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_the_integers_have_one_hash():
    assert len({hash(number) for number in COLLIDING}) == 1


@pytest.mark.parametrize("type", [set[int], frozenset[int], set[Any], set, set[int | str], list[set[int]]])
def test_many_large_integers_in_a_set_are_refused(type):
    reader = JsonReader(type)
    nested = type == list[set[int]]
    with pytest.raises(
        HashLimitExceeded, match=r"more than 19 digits: 1024 \(limit 256 in a set or as keys\): send fewer"
    ):
        reader.decode(written([COLLIDING] if nested else COLLIDING))
    found = reader.decode(written([FEW] if nested else FEW))
    assert (found[0] if nested else found) == set(FEW)


def test_keys_are_written_as_text_and_count_as_well():
    reader = JsonReader(dict[int, int])
    with pytest.raises(HashLimitExceeded):
        reader.decode(written(dict.fromkeys(COLLIDING, 1)))
    assert reader.decode(written(dict.fromkeys(FEW, 1))) == dict.fromkeys(FEW, 1)


def test_negative_integers_count_as_well():
    with pytest.raises(HashLimitExceeded):
        JsonReader(set[int]).decode(written([-number for number in COLLIDING]))


@pytest.mark.parametrize(
    "type",
    [
        set[tuple[int, int]],
        set[tuple[int, ...]],
        set[Pair],
        set[Record],
        set[Struct],
        set[frozenset[int]],
        set[Decimal],
    ],
)
def test_a_long_set_of_what_can_have_any_hash_is_refused(type):
    with pytest.raises(HashLimitExceeded, match=r"131073 bytes \(limit 131072\): send fewer"):
        JsonReader(type).decode(b" " * (MAX_HASHED_BYTES - 1) + b"[]")
    assert JsonReader(type).decode(b" " * (MAX_HASHED_BYTES - 2) + b"[]") == set()


@pytest.mark.parametrize(
    "type", [list[int], Any, dict[str, Any], set[str], dict[str, int], dict, list[tuple[int, int]]]
)
def test_a_type_that_hashes_no_integers_has_no_bound(type):
    long = [[1, 2]] * MAX_HASHED_BYTES if type == list[tuple[int, int]] else COLLIDING
    if type in (dict[str, Any], dict[str, int], dict):
        long = {str(number): number for number in COLLIDING}
    elif type == set[str]:
        long = [str(number) for number in COLLIDING]
    assert len(JsonReader(type).decode(written(long))) == len(long)


def test_integers_of_64_bits_have_no_bound():
    many = list(range(2**62, 2**62 + 20_000))
    assert JsonReader(set[int]).decode(written(many)) == set(many)


def test_of_arguments_only_those_with_hashes_count():
    reader = JsonReader(Arguments)
    text = "1234567890" * MAX_HASHED_BYTES
    assert reader.decode(written({"data": text, "ids": FEW, "other": COLLIDING})).ids == set(FEW)
    for arguments in ({"ids": COLLIDING}, {"more": [{"a": COLLIDING}]}, {"\u0069ds": COLLIDING}):
        with pytest.raises(HashLimitExceeded):
            reader.decode(written({"data": text} | arguments))
    keys = {str(uuid.UUID(int=number)): 1 for number in range(MAX_HASHED_BYTES // 40)}
    with pytest.raises(HashLimitExceeded):
        reader.decode(written({"keys": keys}))


@pytest.mark.parametrize("order", [1, -1])
def test_two_members_with_one_name_are_refused_since_both_are_read(order):
    first, last = (written(COLLIDING), b"[1]")[::order]
    with pytest.raises(msgspec.ValidationError, match="the member 'ids' occurs twice in one object: send it once"):
        JsonReader(Arguments).decode(b'{"ids":%s,"ids":%s}' % (first, last))


@pytest.mark.parametrize("broken", [b'{"data":1,"ids":[1]', b"[", b'{"data":"\xff"}', b'{"data":' + b"[" * 5000])
def test_what_is_not_such_an_object_is_told_as_ever(broken):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)) as told:
        JsonReader(Arguments).decode(broken + b" " * MAX_HASHED_BYTES)
    assert not isinstance(told.value, HashLimitExceeded)


def test_what_was_accepted_before_is_never_refused():
    assert JsonReader(set[int], bounded=False).decode(written(COLLIDING)) == set(COLLIDING)
