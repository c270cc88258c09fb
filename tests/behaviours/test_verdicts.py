"""What is remembered about the era of a server, for whom and for how long (modern.md §11)."""

from __future__ import annotations

import pytest

from interlock import Client, Server
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import HandshakeFailed, PeerClosed
from support.children import command_of, words, write_server
from support.http_socket import served
from support.wire_peer import HANDSHAKE, MODERN

NEWEST = MODERN[0]
LEGACY = HANDSHAKE[-1]


# Writes down the methods it hears; "era" beside it says what it is.
REMEMBERING = """
def listen(request):
    note("heard", request["method"])
    if os.path.exists("crash"):
        os.unlink("crash")
        sys.exit(1)
    era = open("era").read()
    if era == "neither":
        error(request, -32000, "closed today")
    elif request["method"] == "server/discover" and era != "handshake":
        result(request, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                         "ttlMs": 0, "cacheScope": "private"})
    elif era == "stateless" and request["method"] == "initialize":
        error(request, -32022, "no handshake here", data={"supported": ["2026-07-28"], "requested": "2025-11-25"})
    else:
        answer(request)

serve(listen)
"""


async def visit(folder, verdicts, **options):
    """Open and close a client; gives the revision and what was said."""
    (folder / "heard").unlink(missing_ok=True)
    command = command_of(write_server(folder, REMEMBERING), cwd=str(folder), **options)
    async with Client(command, verdicts=verdicts) as client:
        revision = client.revision
    return revision, words(folder / "heard")


HANDSHAKE_OPENING = ["initialize", "notifications/initialized"]


@pytest.mark.requirement("COMPAT-007")
async def test_a_server_known_to_shake_hands_is_not_probed_again(tmp_path):
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts()
    assert await visit(tmp_path, verdicts) == (LEGACY, ["server/discover", *HANDSHAKE_OPENING])
    assert await visit(tmp_path, verdicts) == (LEGACY, HANDSHAKE_OPENING)
    assert await visit(tmp_path, Verdicts()) == (LEGACY, ["server/discover", *HANDSHAKE_OPENING])


@pytest.mark.requirement("COMPAT-007", "COMPAT-008")
async def test_that_verdict_expires(tmp_path):
    """A server that got better is never noticed by an error: only by looking again."""
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts(handshake_seconds=0)
    await visit(tmp_path, verdicts)
    (tmp_path / "era").write_text("both")
    assert await visit(tmp_path, verdicts) == (NEWEST, ["server/discover"])


@pytest.mark.requirement("COMPAT-007")
async def test_a_stateless_server_is_asked_for_its_discovery_each_time(tmp_path):
    (tmp_path / "era").write_text("stateless")
    verdicts = Verdicts()
    for _ in range(2):
        assert await visit(tmp_path, verdicts) == (NEWEST, ["server/discover"])


@pytest.mark.requirement("COMPAT-006", "COMPAT-007")
async def test_a_crash_of_a_server_known_to_be_stateless_is_no_change_of_era(tmp_path):
    (tmp_path / "era").write_text("both")
    verdicts = Verdicts()
    await visit(tmp_path, verdicts)
    (tmp_path / "crash").touch()
    assert await visit(tmp_path, verdicts) == (NEWEST, ["server/discover", "server/discover"])


@pytest.mark.requirement("COMPAT-008")
async def test_a_verdict_outlives_the_server_and_is_probed_again_when_it_fails(tmp_path):
    """Each visit starts the same configuration again. The server lost its handshake at last: one refusal tells."""
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts()
    assert await visit(tmp_path, verdicts) == (LEGACY, ["server/discover", *HANDSHAKE_OPENING])
    assert await visit(tmp_path, verdicts) == (LEGACY, HANDSHAKE_OPENING)
    (tmp_path / "era").write_text("stateless")
    assert await visit(tmp_path, verdicts) == (NEWEST, ["initialize", "server/discover"])
    assert await visit(tmp_path, verdicts) == (NEWEST, ["server/discover"])


@pytest.mark.requirement("COMPAT-008")
async def test_a_server_that_ends_instead_of_shaking_hands_is_probed_the_next_time(tmp_path):
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts()
    await visit(tmp_path, verdicts)
    (tmp_path / "era").write_text("stateless")
    (tmp_path / "crash").touch()
    with pytest.raises(PeerClosed):
        await visit(tmp_path, verdicts)
    assert words(tmp_path / "heard") == ["initialize"]
    assert await visit(tmp_path, verdicts) == (NEWEST, ["server/discover"])


@pytest.mark.requirement("COMPAT-008")
async def test_a_server_that_refuses_both_is_refused_by_both(tmp_path):
    """And what is told is what it said."""
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts()
    await visit(tmp_path, verdicts)
    (tmp_path / "era").write_text("neither")
    with pytest.raises(HandshakeFailed, match="closed today"):
        await visit(tmp_path, verdicts)
    assert words(tmp_path / "heard") == ["initialize", "server/discover", "initialize"]
    (tmp_path / "era").write_text("handshake")
    assert await visit(tmp_path, verdicts) == (LEGACY, ["server/discover", *HANDSHAKE_OPENING])


@pytest.mark.requirement("COMPAT-008")
async def test_a_verdict_of_an_address_is_probed_again_when_its_server_changed():
    """Over HTTP: restarts of the same server at the same port, then one that knows no handshake any more."""
    verdicts, port = Verdicts(), 0
    for revisions, revision in ((HANDSHAKE, LEGACY), (HANDSHAKE, LEGACY), (MODERN, NEWEST)):
        app = Server("s", revisions=revisions).asgi()
        async with served(app, port=port) as port, Client(f"http://127.0.0.1:{port}/mcp", verdicts=verdicts) as client:
            assert client.revision == revision


@pytest.mark.requirement("COMPAT-007")
async def test_the_verdict_of_one_command_says_nothing_about_another(tmp_path):
    """Another folder or another environment may make it another server."""
    verdicts = Verdicts()
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        (folder / "era").write_text("handshake")
        assert (await visit(folder, verdicts))[1][0] == "server/discover"
    assert (await visit(first, verdicts, env={"SERVER_VERSION": "2"}))[1][0] == "server/discover"


@pytest.mark.requirement("COMPAT-007", "STDIO-016")
async def test_a_restarted_server_is_not_probed_again(tmp_path):
    (tmp_path / "era").write_text("handshake")
    command = command_of(write_server(tmp_path, REMEMBERING), cwd=str(tmp_path))
    async with Client(command, verdicts=Verdicts()) as client:
        with pytest.raises(PeerClosed):
            await client.call_tool("leave")
        assert (await client.call_tool("echo", {"text": "again"})).text == "again"
    assert words(tmp_path / "heard").count("server/discover") == 1
