"""What a server names is not asked when it leads inwards (security_best_practices#server-side-request-forgery-ssrf).

Every URL here is one that a server somewhere on the internet gave, as the place of its metadata say. Each is refused
before anything is connected to; `Names` sees every attempt, and answers for the resolver.
"""

from __future__ import annotations

import contextlib

import pytest
import yarl
from hypothesis import given
from hypothesis import strategies as st

from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.fetch import fetch
from interlock.web.outbound.ip_kinds import Kind, kind_of
from interlock.wire.errors import ConnectionLost, RemoteError
from support.http_peer import HttpPeer, http
from support.names import Names
from support.properties import many

SERVER = endpoint_of("https://mcp.example/mcp", {"Authorization": "Bearer secret"})
OUTSIDE = "93.184.216.34"

IPV4 = """
    127.0.0.1 127.0.0.1:8443 127.255.255.254 127.1 127.0.1 127.0.0.01 0127.0.0.1 127.0.0.1. 127.0.0.1..
    2130706433 0x7f000001 0x7F000001 017700000001 0x7f.0.0.1 0177.0.0.1 0x7f.1 0177.1 127.0x1 00000177.0.0.1
    0 0.0.0.0 00000000 0x0 0.0.0.0:443 4294967295 4294967297 340282366920938463463374607431768211457
    10.0.0.1 10.255.255.255 167772161 012.0.0.1 0xa.0.0.1 10.1 172.16.0.1 172.31.255.255 0xac100001
    192.168.0.1 192.168.1 0xc0a80001 0300.0250.0.1 3232235521 100.64.0.1 100.100.100.200 198.18.0.1
    169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 168.63.129.16 192.0.0.192
    224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 192.0.2.1 203.0.113.9 192.88.99.1 1.2.3.4.5 256.256.256.256
"""
IPV6 = """
    [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [::1]:8443 [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:a9fe:a9fe]
    [0:0:0:0:0:ffff:10.0.0.1] [::127.0.0.1] [::7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe]
    [64:ff9b::8.8.8.8] [64:ff9b:1::10.0.0.1] [2002:7f00:1::] [2002:a9fe:a9fe::1] [2001:0:7f00:1::] [2001::1]
    [fe80::1] [fe80::1%25eth0] [fe80::1%eth0] [::1%25lo] [fe80::5efe:7f00:1] [fc00::1] [fd00:ec2::254] [fec0::1]
    [ff02::1] [ff05::1:3] [2001:db8::1] [3fff::1] [100::1] [127.0.0.1] [::1 [::1]] [v1.x] [::1]x x[::1] [] [:]
"""
STRANGE = [
    "http://as.example/",  # without TLS
    "http://127.0.0.1/",
    "HTTP://as.example/",
    "ftp://as.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "unix:/var/run/docker.sock",
    "ws://as.example/",
    "javascript:alert(1)",
    "data:application/json,{}",
    "vbscript:x",
    "//127.0.0.1/",
    "/relative",
    "https:127.0.0.1",
    "https:/127.0.0.1/",
    "https:///127.0.0.1/",
    "https://as.example@127.0.0.1/",  # who is the host?
    "https://127.0.0.1@as.example/",
    "https://as.example:443@127.0.0.1/",
    "https://as.example%40127.0.0.1/",
    "https://as.example\\@127.0.0.1/",
    "https://127.0.0.1\\.as.example/",
    "https://as.example#@127.0.0.1/",
    "https://127.0.0.1%23@as.example/",
    "https://127.0.0.1%00.as.example/",
    "https://127.0.0.1\x00.as.example/",
    "https://as.example\t.internal/",
    "https://as.example\r\n127.0.0.1/",
    " https://127.0.0.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://l\u00f6calhost/",
    "https://as.example:443:80/",
    "https://as.example:0/",
    "https://as.example:65536/",
    "https://as.example:４４３/",
    "https://%31%32%37.0.0.1/",
    "https://as.example,127.0.0.1/",
    "https://as.example;127.0.0.1/",
    "https://*/",
    "",
]
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "a.localhost": ["::1"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "metadata.internal.example": ["169.254.169.254"],
    "azure.example": ["168.63.129.16"],
    "ten.example": ["10.0.0.1"],
    "office.example": ["192.168.1.1"],
    "shared.example": ["100.64.0.1"],
    "zero.example": ["0.0.0.0"],
    "many.example": ["224.0.0.1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "mapped-outside.example": [f"::ffff:{OUTSIDE}"],
    "six.example": ["::1"],
    "unspecified.example": ["::"],
    "link.example": ["fe80::1"],
    "unique.example": ["fd00::1"],
    "translated.example": ["64:ff9b::a9fe:a9fe"],
    "tunnel.example": ["2002:7f00:1::1"],
    "teredo.example": ["2001:0:1::1"],
    "mixed.example": [OUTSIDE, "10.0.0.1"],
    "mixed-six.example": ["2606:4700::1", "::1"],
}
URLS = [
    *(f"https://{host}/.well-known/oauth-authorization-server" for host in (IPV4 + IPV6).split()),
    *STRANGE,
    *(f"https://{name}/" for name in NAMES),
    *(f"https://{name.upper()}:8443/a" for name in ("ten.example", "localhost")),
]


@pytest.mark.requirement("SEC-14", "SEC-15", "SEC-16", "SEC-012", "SEC-013")
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_what_leads_inwards_is_refused_before_anything_is_sent(monkeypatch, verb):
    """One test for all: each spelling is a line of the lists above, and those that get through are named."""
    assert len(URLS) > 150
    names = Names(monkeypatch, NAMES | {name.upper(): addresses for name, addresses in NAMES.items()})
    through = []
    for url in URLS:
        try:
            await fetch(SERVER.named(url), verb, b"a=b" if verb == "POST" else None)
            through.append(url)
        except RemoteError:
            continue
        except Exception as error:
            through.append((url, error))
    assert (through, names.connected) == ([], [])


@pytest.mark.requirement("SEC-15", "SEC-16", "SEC-013")
@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://as.example/", OUTSIDE),
        ("https://as.example:8443/a?b=@127.0.0.1", OUTSIDE),
        ("https://six.as.example/", "2606:4700::1"),
        (f"https://{OUTSIDE}/", OUTSIDE),
        ("https://nat64.example/", "64:ff9b::808:808"),
    ],
)
async def test_what_leads_outwards_is_asked_at_the_address_that_was_judged(monkeypatch, url, address):
    """The guard does not simply refuse everything: these get as far as a connection."""
    known = {"as.example": [OUTSIDE], "six.as.example": ["2606:4700::1"], "nat64.example": ["64:ff9b::808:808"]}
    names = Names(monkeypatch, known)
    with pytest.raises(ConnectionLost, match="could not connect"):
        await fetch(SERVER.named(url))
    assert names.connected == [address]


@pytest.mark.requirement("SEC-14", "SEC-16", "SEC-012")
async def test_a_name_that_changes_its_mind_leads_nowhere_else(monkeypatch):
    """Rebinding: the first answer is public, every later one is not. One request asks once, and goes where it asked."""
    names = Names(monkeypatch, {"as.example": [[OUTSIDE], ["127.0.0.1"], ["169.254.169.254"]]})
    named = SERVER.named("https://as.example/")
    with pytest.raises(ConnectionLost):
        await fetch(named)
    for _ in range(3):
        with pytest.raises(RemoteError):
            await fetch(named)
    assert names.asked == ["as.example"] * 4
    assert names.connected == [OUTSIDE]


@pytest.mark.requirement("SEC-17", "SEC-013")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_leads_to_another_origin(monkeypatch, status):
    """Here the server runs on this machine, where it may name others; even so a redirect of theirs leads nowhere."""
    names = Names(monkeypatch, {"ten.example": ["10.0.0.1"], "as.example": [OUTSIDE]})
    places = [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "https://127.0.0.1/",
        "https://as.example/",
        "http://ten.example/",
        "//10.0.0.1/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "file:///etc/passwd",
        "http://127.0.0.1@10.0.0.1/",
        "\\\\10.0.0.1\\",
        "http:\\\\10.0.0.1\\",
        "gopher://127.0.0.1:1/",
    ]
    locations = iter(places)

    def script(request, stream):
        if request.path == "/inside":  # first a step within the origin, then out
            return http(307, b"", "Location: /further")
        return http(status, b"", f"Location: {next(locations)}")

    async with HttpPeer(script) as peer:
        named = endpoint_of("http://127.0.0.1:1/").named(peer.url.replace("/mcp", "/inside"), {"Authorization": "x"})
        for _ in places:
            assert (await fetch(named)).status == status
    assert len(peer.requests) == 2 * len(places)
    assert set(names.connected) == {"127.0.0.1"}
    assert names.asked == []


@pytest.mark.requirement("SEC-17", "SEC-013")
async def test_a_redirect_within_the_origin_is_judged_again(monkeypatch):
    """The second step resolves anew, since the first connection was closed; what it finds now is not allowed."""
    names = Names(monkeypatch, {"x.example": [["127.0.0.1"], ["10.0.0.1"]]})

    async def script(request, stream):
        return http(307, b"", "Location: /further", "Connection: close")

    async with HttpPeer(script) as peer:
        named = endpoint_of("http://127.0.0.1:1/").named(f"http://x.example:{peer.port}/")
        with pytest.raises(RemoteError, match=r"x\.example has an address of a private network"):
            await fetch(named)
    assert (len(peer.requests), names.connected) == (1, ["127.0.0.1"])


# --- URLs are read strictly ---------------------------------------------------------------------------------

_ODD = st.sampled_from([*"/\\@:#?[]%.;&\t\n \u3002é\x00", "//", "%40", "..", "127.0.0.1", "::1", "0x7f", "1", "443"])
_HOSTS = st.sampled_from(["as.example", "mcp.example", "MCP.example:443", "localhost", f"{OUTSIDE}", "[2606:4700::1]"])
_URLS = st.builds(
    lambda scheme, before, host, after, path: f"{scheme}{before}{host}{after}/{path}",
    st.sampled_from(["https://", "https://", "https://", "http://", "//", "HTTPS://", "https:/", ""]),
    st.sampled_from(["", "", ""]) | _ODD,
    _HOSTS,
    st.sampled_from(["", "", ""]) | _ODD,
    st.lists(_ODD | st.text(max_size=2), max_size=3).map("".join),
)


@pytest.mark.requirement("SEC-33", "SEC-016")
@many(200)
@given(_URLS)
def test_what_is_taken_means_the_same_to_everybody(url):
    """A URL that a server names is refused, or read by the HTTP library exactly as it was judged."""
    with contextlib.suppress(RemoteError):
        named = SERVER.named(url)
        read = yarl.URL(url, encoded=True)
        assert read.scheme == "https"
        assert (read.user, read.password, read.fragment) == (None, None, "")
        assert read.host.lower() == named.permit.host
        assert f"https://{read.host_subcomponent.lower()}:{read.port}" == named.origin
        assert all("!" <= char <= "~" for char in url)
        assert named.headers == {}


@pytest.mark.requirement("SEC-33", "SEC-016")
@many(150)
@given(_URLS)
def test_a_redirect_is_within_the_origin_to_everybody_or_nobody(location):
    """Nothing of what a server says as Location, or as the endpoint of the old transport, moves us elsewhere."""
    found = SERVER.redirected(location)
    if found is not None:
        read = yarl.URL(found, encoded=True)
        assert (read.scheme, read.host.lower(), read.port, read.user) == ("https", "mcp.example", 443, None)


@pytest.mark.requirement("SEC-16")
@many(150)
@given(st.ip_addresses())
def test_no_address_of_a_local_kind_is_public(address):
    """By the words of the standard library, which knows fewer of them than we do."""
    local = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    if local or address.is_unspecified or address.is_reserved:
        wrapped = str(address).startswith("64:ff9b:")
        assert wrapped or kind_of(str(address)) is not Kind.PUBLIC
