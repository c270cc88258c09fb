"""web/outbound/endpoint.py: URLs and headers are checked before anything is sent."""

import pytest

from interlock.web.outbound.address_policy import NAMED, NAMED_HERE, TYPED
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import HttpStatus, LocalError, RemoteError


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000"),
        ("https://Example.COM/mcp?x=1", "https://example.com:443"),
        ("http://localhost", "http://localhost:80"),
        ("HTTP://localhost/", "http://localhost:80"),
        ("http://[::1]:9/mcp", "http://[::1]:9"),
        ("https://example.com:443/a/../b%20c", "https://example.com:443"),
    ],
)
def test_a_proper_url(url, origin):
    found = endpoint_of(url)
    assert found.origin == origin
    assert found.url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x/",
        "file:///etc/passwd",
        "http://",
        "http:///mcp",
        "http://:80/",
        "http://x:0/",
        "http://x:99999/",
        "http://x:y/",
        "http://a b/",
        "http://x/\n",
        "http://x/\x00",
        "http://x\\y/",
        "http://127.0.0.1/a\\b",  # a slash to some who read URLs
        "http://exämple.com/",
        "http://x/#top",
        "http://x/#",
        "http://[::1/",
        "http://a,b/",
        "http://x/" + "a" * 9000,
        "http://[::1]x/",
        "http://x[::1]/",
        "http://[127.0.0.1]/",
        "http://[v1.x]/",
        "http://[fe80::1%25eth0]/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://x:+80/",
        "http://x:8_0/",
        "http://0.0.0.0:8000/mcp",
        "http://192.168.0.1/mcp",
        "http://169.254.169.254/",
        "https://169.254.169.254/",
        "http://8.8.8.8/",
    ],
)
def test_what_is_no_url_of_an_endpoint(url):
    with pytest.raises(LocalError):
        endpoint_of(url)


@pytest.mark.parametrize("url", ["http://user:secret@x/mcp", "http://secret@x/", "http://@x/", "http://:secret@x/"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url):
    with pytest.raises(LocalError, match="credentials") as error:
        endpoint_of(url)
    assert "secret" not in str(error.value)


# --- hosts that are allowed by name, and URLs that a server names ---


@pytest.mark.parametrize("name", ["192.168.0.1", "x.example", "X.Example", "[fd00::1]", "fd00::1"])
def test_a_host_is_allowed_by_its_name(name):
    host = f"[{name}]" if ":" in name and "[" not in name else name
    permit = endpoint_of(f"http://{host}/", allowed_hosts=[name]).permit
    permit.check("10.0.0.1")


@pytest.mark.parametrize("name", ["http://x", "x/y", "x:80", "*", "", "a b", "é"])
def test_what_is_no_host_cannot_be_allowed(name):
    with pytest.raises(LocalError, match=r"allowed_hosts: .* is no host"):
        endpoint_of("https://x/", allowed_hosts=[name])


def test_hosts_come_in_a_list():
    with pytest.raises(LocalError, match="a list of names"):
        endpoint_of("https://x/", allowed_hosts="x")


@pytest.mark.parametrize(
    ("mine", "url", "policy"),
    [
        ("https://mcp.example/mcp", "https://mcp.example/.well-known/x", TYPED),
        ("https://mcp.example/mcp", "https://MCP.example:443/", TYPED),
        ("https://mcp.example/mcp", "https://mcp.example:444/", NAMED),
        ("https://mcp.example/mcp", "https://as.example/", NAMED),
        ("https://10.0.0.1/mcp", "https://as.example/", NAMED),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/", NAMED_HERE),
        ("http://localhost:1/mcp", "http://127.0.0.1:1/", NAMED_HERE),
        ("https://[::1]:1/mcp", "https://as.example/", NAMED_HERE),
    ],
)
def test_what_a_server_names_is_judged_by_where_it_is_itself(mine, url, policy):
    named = endpoint_of(mine, {"X-Key": "secret"}).named(url)
    assert named.permit.policy is policy
    assert (named.url, named.headers) == (url, {})


def test_what_a_server_names_is_its_fault_and_its_headers_are_ours():
    mine = endpoint_of("https://mcp.example/mcp", allowed_hosts=["10.0.0.1"])
    for url in ("ftp://x/", "https://u:p@x/", "https://127.0.0.1/", "http://as.example/", "x", "https://10.0.0.2/"):
        with pytest.raises(RemoteError):
            mine.named(url)
    with pytest.raises(LocalError, match="header name"):
        mine.named("https://as.example/", {"a b": "x"})
    assert mine.named("http://10.0.0.1/").allowed == {"10.0.0.1"}


# --- headers ---


def test_headers_of_the_owner_are_kept():
    given = {"Authorization": "Bearer x y", "X-Empty": ""}
    assert endpoint_of("http://x/", given).headers == given


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "host",
        "Content-Type",
        "content-length",
        "Mcp-Name",
        "MCP-Protocol-Version",
        "mcp-session-id",
        "Accept",
        "Accept-Encoding",
        "Connection",
        "Transfer-Encoding",
        "Upgrade",
        "TE",
        "Proxy-Authorization",
        "Origin",
    ],
)
def test_headers_of_the_protocol_cannot_be_set(name):
    with pytest.raises(LocalError, match="belongs to the protocol"):
        endpoint_of("http://x/", {name: "x"})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ä", "a\x00"])
def test_a_header_name_is_a_token(name):
    with pytest.raises(LocalError, match="header name"):
        endpoint_of("http://x/", {name: "x"})


@pytest.mark.parametrize("value", ["secret\r\nX: y", "secret\n", "secret\x00", "sécret", " secret", "secret "])
def test_a_header_value_is_plain_and_never_shown(value):
    with pytest.raises(LocalError) as error:
        endpoint_of("http://x/", {"X-Key": value})
    assert "cret" not in str(error.value)


def test_one_name_once_and_not_without_end():
    with pytest.raises(LocalError, match="twice"):
        endpoint_of("http://x/", {"X-Key": "a", "x-key": "b"})
    with pytest.raises(LocalError, match="bytes"):
        endpoint_of("http://x/", {"X-Key": "a" * 70_000})


def test_an_endpoint_can_be_printed_without_its_secrets():
    assert "secret" not in repr(endpoint_of("http://x/mcp?key=secret", {"X-Key": "secret"}))


# --- redirects ---


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/mcp/", "http://x:1/mcp/"),
        ("other", "http://x:1/other"),
        ("http://x:1/y", "http://x:1/y"),
        ("http://X:1/y", "http://X:1/y"),
        ("https://x:1/y", None),
        ("http://x:2/y", None),
        ("http://y:1/", None),
        ("//y/", None),
        ("http://u:p@x:1/", None),
        ("file:///x", None),
        ("http://[", None),
        ("/a b", None),
        ("/x#y", None),
    ],
)
def test_a_redirect_stays_within_the_origin(location, url):
    assert endpoint_of("http://x:1/mcp").redirected(location) == url


def test_a_second_redirect_is_read_where_the_first_one_led():
    endpoint = endpoint_of("http://x:1/mcp")
    assert endpoint.redirected("other", "http://x:1/v2/mcp") == "http://x:1/v2/other"
    assert endpoint.redirected("//y:1/other", "http://x:1/v2/mcp") is None


@pytest.mark.parametrize(
    ("url", "shown", "label"),
    [
        ("https://a.example/x", "", "https://a.example:443"),
        ("https://a.example/secret-path", "https://a.example/${env:PATH}", "https://a.example:443"),
        ("https://secret.example/x", "https://${file:/etc/host?}/x", "https://${file:/etc/host?}"),
        ("https://secret.example/x", "https://${H}:${P}/x", "https://${H}:${P}"),
        ("https://secret.example/x", "${env:URL}", "${env:URL}"),
    ],
)
def test_messages_name_an_endpoint_as_its_configuration_does(url, shown, label):
    endpoint = endpoint_of(url, shown=shown)
    assert endpoint.label == label and "secret" not in repr(endpoint)


def test_errors_show_references_instead_of_what_was_looked_up():
    endpoint = endpoint_of("https://a.example/secret-one", references={"secret-one": "${A}", "secret-one-two": "${B}"})
    error = HttpStatus("no secret-one here", 404, body="secret-one-two, secret-one")
    error.hint, error.__cause__ = "not at secret-one", OSError("secret-one-two")
    assert endpoint.conceal(error) is error
    assert (str(error), error.body, error.status) == ("no ${A} here", "${B}, ${A}", 404)
    assert (error.hint, str(error.__cause__)) == ("not at ${A}", "${B}")
