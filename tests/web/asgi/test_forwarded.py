"""web/asgi/forwarded.py: who calls behind proxies, and who only says so."""

import pytest

from interlock import Server
from interlock.web.asgi.forwarded import TrustedProxies, trust
from interlock.web.asgi.message import Headers
from interlock.wire.errors import LocalError

PROXIES = TrustedProxies(["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"])


def said(*lines):
    return Headers([(b"x-forwarded-for", line) for line in lines])


@pytest.mark.parametrize(
    ("peer", "lines", "caller"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", [b"192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", [b"198.51.100.1, 192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", [b"198.51.100.1", b"192.0.2.1, 10.1.2.3"], "192.0.2.1"),
        ("127.0.0.1", [b"10.9.9.9, 10.1.2.3"], "10.9.9.9"),
        ("127.0.0.1", [b"192.0.2.1:4711"], "192.0.2.1"),
        ("127.0.0.1", [b"[2001:db9::1]:4711"], "2001:db9::1"),
        ("2001:db8::5", [b"2001:db9::1"], "2001:db9::1"),
        ("::ffff:10.0.0.1", [b"::ffff:192.0.2.1"], "192.0.2.1"),
        ("192.0.2.9", [b"198.51.100.1"], "192.0.2.9"),
        ("", [b"198.51.100.1"], ""),
        ("127.0.0.1", [b"198.51.100.1, unknown"], "127.0.0.1"),
        ("127.0.0.1", [b"198.51.100.1, unknown, 10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", [b""], "127.0.0.1"),
        ("127.0.0.1", [b"192.0.2.1, " + b"10.0.0.1," * 5000 + b"10.0.0.1"], "10.0.0.1"),
    ],
)
def test_the_first_address_from_the_right_that_is_not_trusted(peer, lines, caller):
    assert PROXIES.client_address(peer, said(*lines)) == caller


def test_every_address_may_be_trusted_a_unix_socket_too():
    everyone = TrustedProxies(["*"])
    assert everyone.client_address("", said(b"192.0.2.1, 203.0.113.1")) == "192.0.2.1"
    assert everyone.client_address("203.0.113.9", said()) == "203.0.113.9"


def test_no_proxy_is_trusted_unless_it_is_named():
    assert trust(()) is trust([]) is None


@pytest.mark.parametrize("given", [["proxy.example.com"], ["10.0.0.1/8"], [""], "10.0.0.1"])
def test_an_address_that_is_none_is_refused_at_start(given):
    with pytest.raises(LocalError, match="trusted_proxies"):
        Server("s").asgi(trusted_proxies=given)
