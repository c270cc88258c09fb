"""client/failures.py: one typed error for each failure, with all that is known about it."""

import asyncio
import sys

import pytest

from interlock import Client, Command
from interlock.client.failures import explained, opening_error
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import (
    AuthRequired,
    BadResult,
    CallTimeout,
    ConnectionLost,
    HandshakeFailed,
    HttpStatus,
    InterlockError,
    InvalidParams,
    LocalError,
    NoCommonRevision,
    PeerClosed,
    RemoteError,
    SpawnFailed,
)
from support.http_peer import HttpPeer, http
from support.talking import Clock, start

COMPLAINT = "import sys; print('no database', file=sys.stderr, flush=True); "


@pytest.mark.parametrize("error", [BadResult("x"), InvalidParams("x"), RemoteError("x")], ids=repr)
def test_a_server_that_does_not_begin_is_one_failure(error):
    found = opening_error(error)
    assert type(found) is HandshakeFailed
    assert found.__cause__ is error and found.hint


@pytest.mark.parametrize(
    "error",
    [NoCommonRevision("x"), HttpStatus("x", 500), SpawnFailed("x"), ConnectionLost("x"), LocalError("x")],
    ids=repr,
)
def test_what_says_more_is_left_as_it_is(error):
    assert opening_error(error) is error


class Child:
    def stderr_tail(self):
        return "no database"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CallTimeout("x", 1, "idle"), True),
        (ConnectionLost("x"), True),
        (PeerClosed("x"), True),
        (BadResult("x"), True),
        (InvalidParams("x"), False),
        (LocalError("x"), False),
        (SpawnFailed("x"), False),
    ],
    ids=repr,
)
def test_what_the_process_said_last_is_told_where_it_may_matter(error, told):
    assert explained(error, Child()) is error
    assert (error.stderr == "no database") is told
    assert ("no database" in error.explain()) is told
    explained(error, Child())
    assert error.explain().count("no database") <= 1


def test_a_carrier_without_a_process_has_nothing_to_add():
    error = ConnectionLost("x")
    assert explained(error, None).stderr == explained(error, object()).stderr == ""


def test_everything_is_in_one_place_of_every_error():
    bare = InterlockError("x")
    assert (bare.hint, bare.exit_code, bare.stderr, bare.explain()) == (None, None, "", "x")
    closed = PeerClosed("gone", exit_code=7, stderr="no database").for_call("tools/call", True)
    assert (closed.exit_code, closed.stderr, closed.hint) == (7, "no database", PeerClosed.hint)
    lines = closed.explain().splitlines()
    assert lines[0] == "tools/call: gone" and "hint: " in closed.explain() and "7" in closed.explain()


def command(program):
    return Client(Command.of([sys.executable, "-c", COMPLAINT + program]), verdicts=Verdicts(), connect_timeout=20)


async def test_a_server_that_goes_at_once_says_how():
    with pytest.raises(PeerClosed) as caught:
        await command("sys.exit(3)").open()
    assert (caught.value.exit_code, caught.value.stderr) == (3, "no database")


async def open_counted(tmp_path, program):
    """Open a program that does not become a server; the error, and how often it was started."""
    starts = tmp_path / "starts"
    program = f"f = open({str(starts)!r}, 'a+'); f.write('x'); f.seek(0); n = len(f.read()); f.close()\n{program}"
    client = Client(Command.of([sys.executable, "-c", program]), verdicts=Verdicts(), connect_timeout=60)
    with pytest.raises(PeerClosed) as caught:
        await client.open()
    await client.close()
    return caught.value, len(starts.read_text())


async def test_a_server_that_dies_before_it_reads_is_started_once_and_heard(tmp_path):
    error, starts = await open_counted(tmp_path, "import sys; sys.exit(f'no database {n}')")
    assert (error.exit_code, error.stderr) == (1, "no database 1")
    assert starts == (1 if sys.platform == "linux" else 2)


async def test_of_two_starts_the_first_is_heard(tmp_path):
    """One that reads the probe may have ended because of it: it gets one second start, with initialize alone."""
    program = "import sys; print('noise ' * 3, n, file=sys.stderr); line = sys.stdin.readline()\n"
    program += "print('initialize' in line, file=sys.stderr); sys.exit(4 + n)"
    error, starts = await open_counted(tmp_path, program)
    assert starts == 2
    assert (error.exit_code, error.stderr) == (5, "noise noise noise  1\nFalse")
    assert isinstance(error.__cause__, PeerClosed) and error.__cause__.exit_code == 6
    told = error.explain()
    assert "exited with code 5" in told and "exited with code 6" in told and told.count("noise noise") == 1


async def test_a_server_that_is_silent_says_what_it_said(tmp_path):
    said = tmp_path / "said"
    program = f"{COMPLAINT}open({str(said)!r}, 'w').close(); sys.stdin.read()"
    client = Client(
        Command.of([sys.executable, "-c", program], close_seconds=0.1),
        revision="2025-11-25",
        verdicts=Verdicts(),
        connect_timeout=60,
    )
    clock, opening = Clock(), start(client.open())
    async with asyncio.timeout(30):
        while not said.exists():
            await asyncio.sleep(0.01)
    await clock.advance(61)
    with pytest.raises(CallTimeout) as caught:
        await opening
    assert "no database" in caught.value.explain()
    assert any("no database" in note for note in caught.value.__notes__)
    await client.close()


async def test_a_server_that_refuses_to_begin():
    async def refusing(exchange):
        raise InvalidParams("not with you")

    with pytest.raises(HandshakeFailed, match="not with you") as caught:
        await Client(refusing, revision="2026-07-28", verdicts=Verdicts()).open()
    assert isinstance(caught.value, NoCommonRevision) or isinstance(caught.value.__cause__, InvalidParams)


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (401, {"WWW-Authenticate": "Bearer"}, AuthRequired),
        (401, {}, AuthRequired),
        (403, {"WWW-Authenticate": "Bearer scope=x"}, AuthRequired),
        (403, {}, HttpStatus),
        (500, {}, HttpStatus),
    ],
)
async def test_a_server_that_wants_credentials_says_so(status, headers, kind):
    lines = [f"{name}: {value}" for name, value in headers.items()]
    async with HttpPeer(lambda request, stream: http(status, b"", *lines)) as peer:
        with pytest.raises(HttpStatus) as caught:
            await Client(peer.url, verdicts=Verdicts()).open()
    assert type(caught.value) is kind
    assert caught.value.challenge == headers.get("WWW-Authenticate")
