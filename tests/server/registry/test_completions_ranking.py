"""server/registry/completions.py: the nearest first, and nothing that does not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.registry.completions import ranked
from support.properties import many


@pytest.mark.parametrize(
    ("typed", "choices", "found"),
    [
        ("", ["b", "a"], ["b", "a"]),
        ("py", ["happy", "numpy", "Python", "c-python", "pYx", "p-yes", "ruby"],
         ["Python", "pYx", "c-python", "happy", "numpy", "p-yes"]),
        ("new", ["renew new", "renewed", "New York"], ["New York", "renew new", "renewed"]),
        ("abc", ["a-b-c", "cba", "ab"], ["a-b-c"]),
        ("STRASSE", ["Hauptstraße", "Straße"], ["Straße", "Hauptstraße"]),
        ("x", ["a", "b"], []),
    ],
)  # fmt: skip
def test_the_nearest_come_first(typed, choices, found):
    assert ranked(typed, choices) == found


@many(200)
@given(st.text("abAB- ", max_size=4), st.lists(st.text("abAB- ", max_size=8), max_size=8))
def test_what_is_found_was_there_and_holds_what_was_typed(typed, choices):
    found = ranked(typed, choices)
    assert sorted(found) == sorted(choice for choice in choices if holds(typed.casefold(), choice.casefold()))
    begins = [choice.casefold().startswith(typed.casefold()) for choice in found]
    assert begins == sorted(begins, reverse=True)


def holds(wanted, choice):
    rest = iter(choice)
    return all(letter in rest for letter in wanted)
