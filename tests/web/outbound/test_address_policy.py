"""web/outbound/address_policy.py: who may name what."""

from contextlib import nullcontext

import pytest

from interlock.web.outbound.address_policy import NAMED, NAMED_HERE, TYPED, is_here, permit_of
from interlock.web.outbound.ip_kinds import Kind
from interlock.wire.errors import LocalError, RemoteError

PLACES = {
    Kind.PUBLIC: "8.8.8.8",
    Kind.LOOPBACK: "127.0.0.1",
    Kind.PRIVATE: "192.168.1.1",
    Kind.LINK_LOCAL: "169.254.169.254",
    Kind.NOBODY: "0.0.0.0",
}
TABLE = {
    (TYPED, "https"): {Kind.PUBLIC, Kind.LOOPBACK, Kind.PRIVATE},
    (TYPED, "http"): {Kind.LOOPBACK},
    (NAMED, "https"): {Kind.PUBLIC},
    (NAMED, "http"): set(),
    (NAMED_HERE, "https"): {Kind.PUBLIC, Kind.LOOPBACK},
    (NAMED_HERE, "http"): {Kind.LOOPBACK},
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(("policy", "scheme"), TABLE)
def test_the_table(policy, scheme, kind):
    """An address in the URL, and one that a name turns out to have, are judged alike."""
    if kind in TABLE[policy, scheme]:
        assert permit_of(policy, scheme, PLACES[kind]).host == PLACES[kind]
        permit_of(policy, scheme, "x.example").check(PLACES[kind])
        return
    with pytest.raises(policy.error):
        permit_of(policy, scheme, PLACES[kind])
    with pytest.raises(policy.error):
        permit_of(policy, scheme, "x.example").check(PLACES[kind])


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(("policy", "scheme"), TABLE)
def test_the_owner_can_let_a_host_through_by_its_name(policy, scheme, kind):
    permit = permit_of(policy, scheme, "x.example", frozenset({"x.example"}))
    with pytest.raises(policy.error) if kind is Kind.NOBODY else nullcontext():
        permit.check(PLACES[kind])


@pytest.mark.parametrize("host", ["y.x.example", "example", "x.example.", "xx.example"])
def test_a_name_is_let_through_as_it_stands_and_no_other(host):
    with pytest.raises(RemoteError):
        permit_of(NAMED, "http", host, frozenset({"x.example"}))


def test_a_refusal_says_what_to_do():
    with pytest.raises(LocalError, match=r"10\.0\.0\.1 is an address of a private.*read on the way.*allowed_hosts="):
        permit_of(TYPED, "http", "10.0.0.1")
    with pytest.raises(LocalError, match=r"x\.example has a public address, .*allowed_hosts=\['x\.example'\]"):
        permit_of(TYPED, "http", "x.example").check("8.8.8.8")
    with pytest.raises(RemoteError, match=r"^x\.example has .*metadata.* a server gave .*allowed_hosts"):
        permit_of(NAMED, "https", "x.example").check("169.254.169.254")
    with pytest.raises(RemoteError, match=r"begins with https://.*allowed_hosts"):
        permit_of(NAMED, "http", "x.example")
    with pytest.raises(LocalError) as nobody:
        permit_of(TYPED, "https", "0.0.0.0")
    assert "allowed_hosts" not in str(nobody.value)


def test_a_policy_is_printed_by_whom_it_is_for():
    assert repr(NAMED) == "Policy('a server')"


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_what_is_this_machine_by_its_name(host):
    assert is_here(host)


@pytest.mark.parametrize("host", ["localhost.example", "xlocalhost", "10.0.0.1", "::2", "example.com", "8.8.8.8"])
def test_what_is_not(host):
    assert not is_here(host)
