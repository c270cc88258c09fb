"""What is remembered about the era of a server, for whom and for how long (modern.md §11)."""

from __future__ import annotations

import pytest

from interlock import Client
from interlock.revisions.probing import Verdicts
from interlock.wire.errors import InterlockError, PeerClosed
from support.children import command_of, words, write_server
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
    if request["method"] == "server/discover" and era != "handshake":
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
async def test_a_verdict_that_turns_out_wrong_is_looked_at_again(tmp_path):
    """The server lost its handshake since: the verdict fails, and the next look finds the truth."""
    (tmp_path / "era").write_text("handshake")
    verdicts = Verdicts()
    await visit(tmp_path, verdicts)
    (tmp_path / "era").write_text("stateless")
    try:
        found = await visit(tmp_path, verdicts)
    except InterlockError:
        found = await visit(tmp_path, verdicts)
    assert found[0] == NEWEST


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
