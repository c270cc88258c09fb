"""transport/http/server/backends.py: who shares gets what is shared, and who does not pays nothing for it."""

import subprocess
import sys

from interlock import Context, Server
from interlock.protocol.input.strategy import Asker
from interlock.transport.http.cluster.legacy_sse import SharedOldConnections
from interlock.transport.http.cluster.sessions import SharedSessions
from interlock.transport.http.server.app import HttpApp
from interlock.transport.http.server.backends import share
from interlock.transport.http.server.legacy_sse import OldConnections
from interlock.transport.http.server.sessions import Sessions
from interlock.transport.jsonrpc.served_handler import asker_of
from interlock.wire.exchange import Exchange


def test_with_a_store_all_is_shared_and_without_one_nothing(tmp_path):
    alone, together = HttpApp(Server("s")), HttpApp(Server("s"), state=tmp_path / "state.db")
    assert (type(alone._sessions), type(alone._old), alone.shared) == (Sessions, OldConnections, False)
    assert (type(together._sessions), type(together._old)) == (SharedSessions, SharedOldConnections)
    assert together.shared
    assert HttpApp(Server("s"), state=tmp_path / "state.db", sessions=None)._sessions is None


async def test_a_plain_handler_shares_too(tmp_path):
    async def handler(exchange: Exchange):
        return {}

    asker = asker_of(handler)
    assert isinstance(asker, Asker)
    sharing = share(tmp_path / "state.db", handler, "/mcp", asker, lease=5.0)
    await sharing.ready()
    await sharing.leave()
    other = share(tmp_path / "state.db", handler, "/other", asker, lease=5.0)
    assert other.space != sharing.space


async def test_keys_are_made_once_and_those_of_the_configuration_stay(tmp_path):
    servers = [Server("s"), Server("s"), Server("s", state_keys=[b"k" * 32])]
    for server in servers:

        @server.tool
        async def ask(ctx: Context) -> str:
            return (await ctx.roots())[0].uri

    sharings = [share(tmp_path / "s.db", server, "/mcp", server.asker, lease=5.0) for server in servers]
    for sharing in sharings:
        await sharing.ready()
    first, second, third = (server.asker.rules.sealer for server in servers)
    assert second.open(first.seal(b"x")) == b"x"
    assert third.open(first.seal(b"x")) is None and first.open(third.seal(b"x")) is None
    assert await first.consume("nonce", 1e12)
    assert not await second.consume("nonce", 1e12) and not await third.consume("nonce", 1e12)
    for sharing in sharings:
        await sharing.leave()


def test_who_shares_nothing_loads_nothing_of_it():
    program = (
        "import sys\nfrom interlock import Server\nServer('s').asgi()\n"
        "print([name for name in sys.modules if 'sqlite' in name or 'transport.shar' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
