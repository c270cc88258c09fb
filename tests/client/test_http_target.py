"""client/http_target.py: an endpoint, loaded only by who has one."""

import subprocess
import sys

import pytest

from interlock import Client, ConfigError, read_config
from interlock.client.http_target import HttpTarget
from interlock.protocol.client.probe import Verdicts
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import ConnectionLost, InterlockError, LocalError
from interlock.wire.limits import DEFAULT_LIMITS
from support.http_peer import HttpPeer, http
from support.names import Names


def test_verdicts_are_kept_apart_by_path():
    one, other = (HttpTarget(endpoint_of(f"http://x/{path}"), DEFAULT_LIMITS) for path in ("a", "b"))
    assert (one.name, one.key != other.key) == ("http://x:80", True)


def test_a_client_of_a_process_loads_nothing_of_http():
    program = """
import sys
from interlock import Client, Server
Client(["python", "server.py"]); Client(Server("s"))
http = ("interlock.transport.http.client", "interlock.transport.http.server", "interlock.web.outbound.client")
print([name for name in sys.modules if name.startswith(http)])
Client("http://127.0.0.1:8000/mcp")
print("interlock.transport.http.client.link" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.splitlines() == ["[]", "True"]


async def test_a_name_outside_is_spoken_to_without_tls_only_when_it_is_allowed(monkeypatch):
    """Refused as what it is, and no evidence of any era; allowed by its name it is dialled."""
    names = Names(monkeypatch, {"mcp.internal": ["10.1.2.3"]})
    client = Client("http://mcp.internal/mcp", headers={"Authorization": "Bearer x"}, verdicts=Verdicts())
    with pytest.raises(LocalError, match=r"allowed_hosts=\['mcp\.internal'\]"):
        await client.open()
    await client.close()
    assert (names.asked, names.connected) == (["mcp.internal"], [])
    client = Client("http://mcp.internal/mcp", allowed_hosts=["mcp.internal"], verdicts=Verdicts())
    with pytest.raises(ConnectionLost, match="could not connect"):
        await client.open()
    await client.close()
    assert set(names.connected) == {"10.1.2.3"}


@pytest.mark.parametrize("script", ["echo", "close"])
async def test_nothing_that_a_configuration_looked_up_is_in_errors_or_logs(script, caplog):
    """Whatever a server echoes, and wherever it is: the references stand in the place of the values."""
    caplog.set_level("DEBUG")

    async def answer(request, stream):
        if script == "echo":
            await stream.write(
                http(404, f"no {request.path} for {request.header('X-Key')}".encode(), kind="text/plain")
            )

    environ = {"PATH_KEY": "path-secret", "QUERY_KEY": "query-secret", "KEY": "header-secret"}
    async with HttpPeer(answer) as peer:
        environ["PLACE"] = peer.url.removeprefix("http://").partition("/")[0]
        url = "http://${PLACE}/${env:PATH_KEY}?q=${env:QUERY_KEY}"
        entry = {"url": url, "headers": {"X-Key": "${env:KEY}"}}
        client = Client(read_config({"mcpServers": {"far": entry}}, environ=environ)["far"], verdicts=Verdicts())
        with pytest.raises(InterlockError) as caught:
            await client.open()
        await client.close()
    assert ("${env:PATH_KEY}" in str(caught.value)) is (script == "echo")
    shown = caught.value.explain() + repr(caught.value) + caplog.text
    assert not [value for value in environ.values() if value in shown]


def test_a_url_that_is_none_is_shown_as_it_is_written():
    for value in ("ftp://secret.example", "https://user:secret@a.example", "https://secret example"):
        entry = {"url": "${env:URL}/x"}
        with pytest.raises(ConfigError, match=r"\$\{env:URL\}") as caught:
            Client(read_config({"mcpServers": {"far": entry}}, environ={"URL": value})["far"])
        assert "secret" not in str(caught.value)
