"""The custom transport of examples/: every transcript over it, two clients at once, and how each side goes."""

from __future__ import annotations

import ast
import asyncio
import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock import Client, Patience
from interlock.wire.channel import Channel, Receiver
from interlock.wire.errors import CallTimeout, ConnectionEnded, ConnectionLost, PeerClosed
from support.plays import PLAYS, Play, Player
from support.socket_example import EXAMPLE, Handlers, dialled, example, members_of, raw_peer, socket_path
from support.wire_peer import ALL, HANDSHAKE, MODERN, fresh

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "custom_transports.md"


@pytest.fixture
def path() -> Iterator[str]:
    with socket_path() as found:
        yield found


# --- the protocol is the same over it ---


def shown_by(play: Play) -> list[str]:
    """TRANS-CUST-01/-02 and TRANSPORT-001/-003/-004: over a carrier of one's own nothing is different."""
    if play.revision in MODERN:
        return ["TRANSPORT-001", "TRANSPORT-003", "TRANSPORT-004"]
    return ["TRANS-CUST-01", "TRANS-CUST-02"]


@pytest.mark.parametrize(
    "play",
    [pytest.param(play, id=play.name, marks=pytest.mark.requirement(*shown_by(play))) for play in PLAYS],
)
async def test_every_transcript_plays_over_the_socket(play: Play, path: str):
    served = fresh(f"support.servers.{play.server}").server
    async with example.listening(served, path), raw_peer(path, play.revision) as peer:
        await Player(peer, free_order=play.free_order).play(play.transcript.entries)
        peer.transcript.check()


@pytest.mark.requirement("TRANS-CUST-02", "TRANSPORT-004")
@pytest.mark.parametrize("revision", ALL)
async def test_a_client_speaks_every_revision_over_the_socket(revision: str, path: str):
    served = fresh("support.servers.basic").server
    heard: list[tuple[float, float | None]] = []
    async with example.listening(served, path), dialled(path, revision=revision) as client:
        assert client.revision == revision
        assert "echo" in [tool.name for tool in await client.list_tools()]
        steps = await client.call_tool("steps", {"count": 2}, on_progress=lambda at, of, _: heard.append((at, of)))
        assert (steps.text, heard) == ("done", [(1, 2), (2, 2)])
        assert (await client.read_resource("note://one"))[0].text == "the first note"
        await client.ping()


class Dialler:
    """Somebody's object with a method that makes channels."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make(self) -> Channel:
        return example.SocketChannel(self.path)


TARGETS: dict[str, Callable[[str], object]] = {
    "a channel": lambda path: example.SocketChannel(path),
    "a partial": lambda path: example.dial(path),
    "a closure": lambda path: lambda: example.SocketChannel(path),
    "a closure with a default": lambda path: lambda path=path: example.SocketChannel(path),
    "a method": lambda path: Dialler(path).make,
}


@pytest.mark.requirement("TRANS-CUST-01", "TRANSPORT-003")
@pytest.mark.parametrize("target", TARGETS)
async def test_a_client_takes_a_channel_or_whatever_makes_one(target: str, path: str):
    async with example.listening(Handlers().server, path), Client(TARGETS[target](path)) as client:
        assert (await client.call_tool("steps")).text == "done"


@pytest.mark.requirement("TRANS-CUST-02")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_server_asks_over_the_socket(revision: str, path: str):
    served = fresh("support.servers.basic").server
    async with (
        example.listening(served, path),
        dialled(path, revision=revision, roots=["file:///home/ada"]) as client,
    ):
        answer = await client.call_tool("question", {"method": "roots/list"})
        assert "file:///home/ada" in answer.text


# --- two clients at once ---


@pytest.mark.requirement("TRANS-CUST-01", "TRANSPORT-003")
async def test_two_clients_at_once_are_two_sessions(path: str):
    served = fresh("support.servers.basic").server
    async with (
        example.listening(served, path),
        dialled(path, revision="2025-06-18", name="one", roots=[]) as one,
        dialled(path, revision="2024-11-05", name="two") as two,
    ):
        assert [one.revision, two.revision] == ["2025-06-18", "2024-11-05"]
        told_one, told_two = await asyncio.gather(one.call_tool("who"), two.call_tool("who"))
        assert '"name":"one"' in told_one.text and '"roots":true' in told_one.text
        assert '"name":"two"' in told_two.text and '"roots":false' in told_two.text


async def test_work_for_one_client_holds_up_nobody_else(path: str):
    handlers = Handlers()
    heard: list[float] = []
    async with example.listening(handlers.server, path), dialled(path) as one, dialled(path) as two:
        held = asyncio.create_task(one.call_tool("hold", on_progress=lambda at, *_: heard.append(at)))
        await handlers.running.wait()
        assert (await two.call_tool("steps")).text == "done"
        assert not held.done()
        handlers.let_go.set()
        assert (await held).text == "let go"
    assert heard == []  # progress of the other's request is none of its business


async def test_both_hear_of_a_change_and_one_that_left_disturbs_nobody(path: str):
    handlers = Handlers()
    heard = {"one": asyncio.Event(), "two": asyncio.Event()}
    async with (
        example.listening(handlers.server, path),
        dialled(path, revision=HANDSHAKE[-1], on_notification=lambda *_: heard["one"].set()) as one,
        dialled(path, revision=HANDSHAKE[0], on_notification=lambda *_: heard["two"].set()) as two,
    ):
        await asyncio.gather(one.ping(), two.ping())  # `initialized` has arrived on both
        await two.call_tool("change")
        async with asyncio.timeout(20):
            await asyncio.gather(heard["one"].wait(), heard["two"].wait())
        await one.close()
        heard["two"].clear()
        await two.call_tool("change")
        async with asyncio.timeout(20):
            await heard["two"].wait()


# --- the server goes away ---


async def test_a_server_that_leaves_lets_what_runs_finish(path: str):
    handlers = Handlers()
    serving = example.listening(handlers.server, path, grace=60)
    await serving.__aenter__()
    async with dialled(path) as client:
        held = asyncio.create_task(client.call_tool("hold"))
        await handlers.running.wait()
        leaving = asyncio.create_task(serving.__aexit__(None, None, None))
        handlers.let_go.set()
        assert (await held).text == "let go"
        await leaving
        assert not os.path.exists(path)
        with pytest.raises(ConnectionLost, match="cannot connect"):
            await client.call_tool("steps")


@pytest.mark.requirement("TRANS-CUST-02", "TRANSPORT-004")
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], *MODERN])
async def test_a_server_that_is_gone_fails_the_calls_and_can_be_reached_again(revision: str, path: str):
    first, second = Handlers(), Handlers()
    client = dialled(path, revision=revision)
    async with example.listening(first.server, path, grace=0):
        await client.open()
        held = asyncio.create_task(client.call_tool("hold"))
        await first.running.wait()
    with pytest.raises(PeerClosed) as caught:
        await held
    assert caught.value.sent is None  # this channel does not claim to know
    assert first.stopped.is_set()
    async with example.listening(second.server, path):
        assert (await client.call_tool("steps")).text == "done"  # connected anew by itself
        await client.close()


async def test_a_server_that_is_killed(path: str):
    """A real process, which says nothing on its way out."""
    with subprocess.Popen([sys.executable, str(EXAMPLE), "serve", path], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().startswith(b"listening")
            async with dialled(path) as client:
                assert (await client.call_tool("count", {"to": 3})).text == "counted to 3"
                process.send_signal(signal.SIGSTOP)  # so that the call is surely not answered
                call = asyncio.create_task(client.call_tool("count", {"to": 1}))
                await asyncio.sleep(0)
                process.kill()
                with pytest.raises(ConnectionEnded):
                    await call
        finally:
            process.kill()


async def test_nobody_there(path: str):
    client = dialled(path)
    with pytest.raises(ConnectionLost, match="cannot connect"):
        await client.open()
    await client.close()


# --- the client gives up ---


@pytest.mark.requirement("TRANS-CUST-02", "TRANSPORT-004")
@pytest.mark.parametrize("revision", ALL)
async def test_a_cancelled_call_stops_the_handler_and_nothing_else(revision: str, path: str):
    handlers = Handlers()
    async with example.listening(handlers.server, path), dialled(path, revision=revision) as client:
        held = asyncio.create_task(client.call_tool("hold"))
        await handlers.running.wait()
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        async with asyncio.timeout(20):
            await handlers.stopped.wait()
        assert not handlers.let_go.is_set()  # it was stopped, not let go
        assert (await client.call_tool("steps")).text == "done"


async def test_a_deadline_stops_the_handler(path: str):
    handlers = Handlers()
    async with example.listening(handlers.server, path), dialled(path) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool("hold", timeout=Patience(idle=None, total=0.05))
        async with asyncio.timeout(20):
            await handlers.stopped.wait()


async def test_a_client_that_goes_stops_what_runs_for_it(path: str):
    handlers = Handlers()
    async with example.listening(handlers.server, path):
        async with dialled(path) as client:
            held = asyncio.create_task(client.call_tool("hold"))
            await handlers.running.wait()
        with pytest.raises(ConnectionEnded):
            await held
        async with asyncio.timeout(20):
            await handlers.stopped.wait()


# --- the documentation ---


@pytest.mark.requirement("TRANS-CUST-03", "TRANSPORT-005")
def test_the_page_documents_setup_framing_and_cancellation():
    sections = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S))
    for title, words in {
        "Connection setup": ["connects to its path", "`initialize`", "One connection is one client"],
        "Framing": ["one message per line", "UTF-8", "newline"],
        "Cancellation": ["`notifications/cancelled`", "end of the connection cancels"],
    }.items():
        prose = " ".join(sections[title].split())
        assert [word for word in words if word not in prose] == []
    for member in members_of(Channel) + members_of(Receiver):
        assert f"`{member}" in sections["The interface"] or f"`async {member}" in sections["The interface"], member


def test_the_code_on_the_page_is_python_and_names_what_exists():
    page = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.+?)```", page, re.S):
        compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for name in re.findall(r"`(interlock\.[\w.]+)`", page):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    for name in re.findall(r"`((?:examples|tests|docs)/[\w./]+)`", page):
        assert (ROOT / name).exists(), name


def test_the_example_runs():
    told = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == ["connected to socket, speaking 2026-07-28", "1/3", "2/3", "3/3", "counted to 3"]
