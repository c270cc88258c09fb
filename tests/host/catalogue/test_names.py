"""host/catalogue/names.py: names a model may see, that say what they stand for and cannot be stolen."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.host.catalogue.names import LONGEST_NAME, exposed, looks
from support.properties import TEXT, many

ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
WORDS = st.text("aA1lI0O_-", min_size=1, max_size=6)
IDENTITIES = st.lists(st.tuples(WORDS | TEXT, WORDS | TEXT), max_size=12)


def name_of(*identity, among=()):
    found = exposed([identity, *among])
    return {each: name for name, each in found.items()}[identity]


def test_a_plain_name_says_server_and_tool():
    assert exposed([("notes", "find"), ("mail", "find")]) == {
        "notes__find": ("notes", "find"),
        "mail__find": ("mail", "find"),
    }


@given(IDENTITIES)
@example([("a", "b__c"), ("a__b", "c")])
@example([("a_", "_b"), ("a", "__b"), ("a_", "b"), ("a", "_b")])
@example([("", ""), ("", "x"), ("x", "")])
@many(200)
def test_every_identity_has_one_name_of_its_own_within_the_limits(identities):
    found = exposed(identities)
    assert set(found.values()) == set(identities) and len(found) == len(set(identities))
    assert all(ALLOWED.fullmatch(name) for name in found)


@given(IDENTITIES, st.randoms())
@many(100)
def test_names_do_not_depend_on_the_order(identities, random):
    shuffled = [*identities]
    random.shuffle(shuffled)
    assert exposed(shuffled) == exposed(identities)


def test_the_order_is_the_one_given():
    identities = [("b", "y"), ("a", "x"), ("b", "a")]
    assert [*exposed(identities).values()] == identities


@pytest.mark.parametrize(
    ("one", "other"),
    [("Get", "get"), ("read_1", "read_l"), ("read_I", "read_l"), ("get-user", "get_user"), ("turn", "tum")],
)
def test_of_two_that_look_alike_neither_has_the_plain_name(one, other):
    found = exposed([("s", one), ("s", other), ("s", "quite")])
    first, second, third = found
    assert third == "s__quite"
    assert re.fullmatch(re.escape(f"s__{one}") + "-[a-z2-7]{12}", first)
    assert first[-12:] != second[-12:]


def test_servers_that_look_alike_are_told_apart():
    first, second = exposed([("mail", "send"), ("mai1", "send")])
    assert first.startswith("mail__send-") and second.startswith("mai1__send-")


@pytest.mark.parametrize(
    "name", ["pay\u200b", "p\u0430y", "pay ", "pay\x1b[2K", "pay.now", "p" * 200, "_pay", "\U000e0070ay"]
)
def test_what_cannot_be_shown_has_a_digest_and_leaves_the_plain_name_alone(name):
    found = exposed([("bank", "pay"), ("bank", name)])
    assert found["bank__pay"] == ("bank", "pay")
    [other] = set(found) - {"bank__pay"}
    assert re.fullmatch(r"bank__[A-Za-z0-9_-]*-[a-z2-7]{12}", other) and len(other) <= LONGEST_NAME


def test_nobody_can_take_a_name_that_was_made():
    made = name_of("bank", "p\u0430y")
    thief = made.removeprefix("bank__")
    found = exposed([("bank", "p\u0430y"), ("bank", thief)])
    assert found[made] == ("bank", "p\u0430y") and len(found) == 2


def test_a_long_server_leaves_room_for_the_tool():
    assert "__find" in name_of("s" * 100, "find_" + "t" * 100)


def test_a_name_that_is_listed_twice_is_one():
    assert exposed([("a", "x"), ("a", "x")]) == {"a__x": ("a", "x")}


def test_looks_are_what_a_hasty_reader_sees():
    assert looks("PayPa1") == looks("paypal") != looks("paypals")
