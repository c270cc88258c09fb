"""client/http_target.py: an endpoint, loaded only by who has one."""

import subprocess
import sys

import pytest

from interlock import Client
from interlock.client.http_target import HttpTarget
from interlock.revisions.probing import Verdicts
from interlock.transport.endpoints import endpoint_of
from interlock.wire.errors import ConnectionLost, LocalError
from interlock.wire.limits import DEFAULT_LIMITS
from support.names import Names


def test_verdicts_are_kept_apart_by_path():
    one, other = (HttpTarget(endpoint_of(f"http://x/{path}"), DEFAULT_LIMITS) for path in ("a", "b"))
    assert (one.name, one.key != other.key) == ("http://x:80", True)


def test_a_client_of_a_process_loads_nothing_of_http():
    program = """
import sys
from interlock import Client, Server
Client(["python", "server.py"]); Client(Server("s"))
print([name for name in sys.modules if name.startswith("interlock") and ("http" in name or "outbound" in name)])
Client("http://127.0.0.1:8000/mcp")
print("interlock.transport.http_client" in sys.modules)
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
