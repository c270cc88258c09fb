"""WWW-Authenticate: several challenges, odd spellings, hostile ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.www_authenticate import Demand, challenges_in, demand_in, scopes_in
from support.growth import assert_linear
from support.properties import many


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, Demand()),
        ("", Demand()),
        ("Basic realm=x", Demand()),
        ("Bearer", Demand()),
        ('Bearer resource_metadata="https://a/x"', Demand(metadata="https://a/x")),
        ('bearer  scope="a b",error=insufficient_scope', Demand(scope=("a", "b"), error="insufficient_scope")),
        ('Bearer scope=""', Demand(scope=())),
        ('Basic abc==, Bearer error="invalid_token"', Demand(error="invalid_token")),
        ('Negotiate, Basic realm="a, Bearer error=\\"no\\"", Bearer error=yes', Demand(error="yes")),
        ('DPoP error="use_dpop_nonce", algs="ES256"', Demand(dpop=True, error="use_dpop_nonce")),
        ('DPoP algs="ES256", Bearer resource_metadata="https://a"', Demand(metadata="https://a")),
        ('Bearer realm="r", DPoP resource_metadata="https://a"', Demand(metadata="https://a")),
        ('Bearer resource_metadata="https://a", resource_metadata="https://evil"', Demand(metadata="https://a")),
        ('Bearer resource_metadata = "https://a"', Demand(metadata="https://a")),
        ('Bearer error="a\\"b"', Demand(error='a"b')),
        ('Bearer error="unfinished', Demand()),
        ("Bearer =, =x, scope", Demand()),
    ],
)
def test_what_is_asked_for(header, wanted):
    assert demand_in(header) == wanted


def test_a_name_without_a_scheme_belongs_to_nobody():
    assert challenges_in('a="b", Bearer c="d"') == [("bearer", {"c": "d"})]


@given(st.text(alphabet='Bearer DPoP=,"\\ \t~x', max_size=200))
@many(200)
def test_nothing_breaks_the_reader(text):
    assert isinstance(demand_in(text), Demand)


def test_a_long_header_is_read_in_its_time_and_cut():
    assert len(challenges_in("a " * 200_000)) <= 8192
    assert demand_in('Bearer x="' + "\\" * 200_000) == Demand()


@pytest.mark.parametrize("piece", ["\\", '\\"', " ", "a ", "a=", 'a="', "=", ",", '",', 'a="\\",', "a b", "a=b "])
def test_a_header_made_to_be_slow_is_not(piece):
    assert_linear(challenges_in, lambda size: 'Bearer x="' + piece * (size // len(piece)) + "^", 1_000)
    assert_linear(challenges_in, lambda size: "Bearer x" + piece * (size // len(piece)) + "^", 1_000)


def test_scopes_are_those_of_the_standard_each_once():
    assert scopes_in("a  b a") == ("a", "b")
    assert scopes_in(["mcp:read", 'no"', "no\\", "no\n", "", "x" * 300, "ä"]) == ("mcp:read",)
    assert len(scopes_in(str(number) for number in range(500))) == 100
