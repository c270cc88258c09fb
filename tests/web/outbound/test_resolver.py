"""web/outbound/resolver.py: every address is judged before it is connected to, and only what was judged is used."""

import ssl

import pytest

from interlock.web.outbound.address_policy import NAMED, TYPED, Policy, permit_of
from interlock.web.outbound.client import Outbound
from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.fetch import fetch
from interlock.web.outbound.ip_kinds import Kind
from interlock.web.outbound.resolver import check_peer, judging_resolver, permit_in_force
from interlock.wire.errors import ConnectionLost, LocalError, RemoteError
from support.http_peer import HttpPeer, http
from support.names import Names

OUTSIDE = "93.184.216.34"


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [OUTSIDE, "10.0.0.1"], ["::1", OUTSIDE], ["fe80::1"]])
async def test_one_bad_address_spoils_a_name(monkeypatch, addresses):
    names = Names(monkeypatch, {"x.example": addresses})
    permit_in_force.set(permit_of(NAMED, "https", "x.example"))
    with pytest.raises(RemoteError, match=r"x\.example has"):
        await judging_resolver().resolve("x.example", 443)
    assert names.asked == ["x.example"]


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "::ffff:127.0.0.1"])
async def test_a_spelling_that_only_the_system_understands_is_judged_by_what_it_means(monkeypatch, spelling):
    Names(monkeypatch)
    permit_in_force.set(permit_of(NAMED, "https", "x.example"))
    with pytest.raises(RemoteError):
        await judging_resolver().resolve(spelling, 443)


async def test_nothing_is_resolved_for_nobody(monkeypatch):
    Names(monkeypatch, {"x.example": [OUTSIDE]})
    with pytest.raises(LookupError):
        await judging_resolver().resolve("x.example", 443)


async def test_a_name_is_asked_for_once_and_its_address_is_the_one_connected_to(monkeypatch):
    """The second answer would lead inside: it is never asked for, and refused when it comes with the next request."""
    names = Names(monkeypatch, {"x.example": [[OUTSIDE], ["127.0.0.1"]]})
    endpoint = endpoint_of("https://x.example/", policy=NAMED)
    with pytest.raises(ConnectionLost, match="could not connect"):
        await fetch(endpoint)
    assert (names.asked, names.connected) == (["x.example"], [OUTSIDE])
    with pytest.raises(RemoteError):
        await fetch(endpoint)
    assert names.connected == [OUTSIDE]


async def test_a_name_is_asked_for_anew_with_each_connection(monkeypatch):
    """Also while others use the pool: an address that somebody else was led to is not taken over."""
    names = Names(monkeypatch, {"x.example": [[OUTSIDE], ["127.0.0.1"]]})
    keeps, endpoint = Outbound(endpoint_of("https://127.0.0.1:1/")), endpoint_of("https://x.example/", policy=NAMED)
    keeps._opened()
    with pytest.raises(ConnectionLost):
        await fetch(endpoint)
    with pytest.raises(RemoteError, match="has an address of this machine"):
        await fetch(endpoint)
    assert (names.asked, names.connected) == (["x.example"] * 2, [OUTSIDE])
    await keeps.close()


async def test_host_is_the_name_and_not_the_address(monkeypatch):
    names = Names(monkeypatch, {"x.example": ["127.0.0.1"]})
    async with HttpPeer(lambda request, stream: http(200, b"here")) as peer:
        assert (await fetch(endpoint_of(f"http://x.example:{peer.port}/a"))).body == b"here"
    assert names.connected == ["127.0.0.1"]
    assert peer.requests[0].header("host") == f"x.example:{peer.port}"


async def test_tls_is_spoken_with_the_name_and_not_with_the_address(monkeypatch):
    Names(monkeypatch, {"x.example": ["127.0.0.1"]})
    context, said = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    context.sni_callback = lambda connection, name, context: said.append(name)
    async with HttpPeer(lambda request, stream: http(200), tls=context) as peer:
        with pytest.raises(ConnectionLost):  # it has no certificate at all
            await fetch(endpoint_of(f"https://x.example:{peer.port}/"))
    assert said == ["x.example"]
    assert peer.requests == []


async def test_a_name_outside_is_not_asked_without_tls(monkeypatch):
    names = Names(monkeypatch, {"x.example": [OUTSIDE]})
    with pytest.raises(LocalError, match="allowed_hosts"):
        await fetch(endpoint_of("http://x.example/"))
    assert names.connected == []
    with pytest.raises(ConnectionLost):
        await fetch(endpoint_of("http://x.example/", allowed_hosts=["X.example"]))
    assert names.connected == [OUTSIDE]


async def test_an_open_socket_does_not_let_through_who_may_not_go_there(monkeypatch):
    """The pool is shared by all: what the owner opened inwards is not there for what a server names."""
    names = Names(monkeypatch, {"x.example": ["127.0.0.1"]})
    outwards = Policy("a test", frozenset({Kind.PUBLIC}), frozenset({Kind.PUBLIC}), RemoteError)
    async with HttpPeer(lambda request, stream: http(200, b"here")) as peer:
        url = f"http://x.example:{peer.port}/"
        mine = Outbound(endpoint_of(url))
        async with mine.sent("GET", None, {}) as (_, response):
            await mine.whole(response, "x")  # its socket is idle now
        names.names = {"x.example": [OUTSIDE]}
        with pytest.raises(RemoteError):
            await fetch(endpoint_of(url, policy=outwards))
        await mine.close()
    assert len(peer.requests) == peer.connections == 1


async def test_a_socket_without_a_peer_is_dead():
    class Dead:
        def get_extra_info(self, name):
            return None

    permit_in_force.set(permit_of(TYPED, "https", "x.example"))
    for transport in (None, Dead()):
        with pytest.raises(ConnectionResetError):
            check_peer(transport)


async def test_a_socket_is_judged_by_who_wants_to_use_it():
    class Inside:
        def get_extra_info(self, name):
            return ("127.0.0.1", 443)

    permit_in_force.set(permit_of(TYPED, "https", "x.example"))
    check_peer(Inside())
    permit_in_force.set(permit_of(NAMED, "https", "x.example"))
    with pytest.raises(RemoteError, match="may not reach"):
        check_peer(Inside())
