"""web/outbound/ip_kinds.py: what kind of place an address is, and which texts are one."""

import ipaddress

import pytest

from interlock.web.outbound.ip_kinds import Kind, kind_of, literal_in


@pytest.mark.parametrize(
    ("kind", "addresses"),
    [
        (Kind.PUBLIC, "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0"),
        (Kind.PUBLIC, "172.15.255.255 172.32.0.0 192.167.0.1 192.169.0.1 198.17.0.1 198.20.0.0 223.255.255.255"),
        (Kind.PUBLIC, "2001:200::1 2606:4700:4700::1111 2a00::1 2003::1 3ffe::1 64:ff9b::8.8.8.8 168.63.129.17"),
        (Kind.LOOPBACK, "127.0.0.1 127.0.0.0 127.255.255.255 ::1 64:ff9b::7f00:1"),
        (Kind.PRIVATE, "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0"),
        (Kind.PRIVATE, "100.100.100.200 198.18.0.1 fc00::1 fd00:ec2::254 fdff::1 fec0::1 64:ff9b::10.0.0.1"),
        (Kind.LINK_LOCAL, "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 fe80::1%1 febf::1 168.63.129.16"),
        (Kind.LINK_LOCAL, "64:ff9b::a9fe:a9fe"),
        (Kind.NOBODY, "0.0.0.0 0.255.255.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.0.2.1"),
        (Kind.NOBODY, "192.0.0.192 198.51.100.1 203.0.113.1 192.88.99.1 :: ff02::1 ff00::1 2001:db8::1 3fff::1"),
        (Kind.NOBODY, "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 2002:7f00:1:: 2002:808:808:: 2001:0:1::1"),
        (Kind.NOBODY, "64:ff9b:1::7f00:1 100::1 5f00::1 4000::1 1::1 fe00::1 x 127.1 localhost"),
    ],
)
def test_whose_an_address_is(kind, addresses):
    assert {address: kind_of(address) for address in addresses.split()} == dict.fromkeys(addresses.split(), kind)


@pytest.mark.parametrize("first", [0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240, 255])
def test_nothing_is_public_that_the_standard_library_knows_to_be_local(first):
    for second in range(256):
        found = ipaddress.ip_address(f"{first}.{second}.0.1")
        if found.is_private or found.is_multicast or found.is_reserved or found.is_link_local:
            assert kind_of(str(found)) is not Kind.PUBLIC, found


@pytest.mark.parametrize(
    "name", ["localhost", "example.com", "a.1b", "1.example", "0x7g", "x0x7f", "example.com.", "1-1", "a_1", "beef"]
)
def test_a_name_is_no_address(name):
    assert literal_in(name) is None


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("FE80::1", "fe80::1")],
)
def test_an_address_as_everybody_reads_it(host, address):
    assert literal_in(host) == address


STRANGE = """
    2130706433 0x7f000001 017700000001 127.1 127.0.1 0177.0.0.1 0x7f.0.0.1 127.0.0.01 127.0.0.1. 1.2.3.4.5 256.1.1.1
    0 0x 1.2.3 a.1 example.0x7f 127.0.0.0x1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::1.2.3.4 ::1%1 1:2 ::: ::g
"""


@pytest.mark.parametrize("host", STRANGE.split())
def test_an_address_in_a_strange_spelling(host):
    with pytest.raises(ValueError, match=r"IPv4|IPv6"):
        literal_in(host)
