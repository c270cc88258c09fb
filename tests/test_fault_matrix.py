"""Faults on every carrier and at every step of a conversation: each call ends typed, within its deadline."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import Client, SyncClient
from interlock.protocol.client.probe import Verdicts
from interlock.wire.errors import ConnectionClosed, InterlockError
from support.children import alive
from support.doubles import turns
from support.virtual_time import virtual_time

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

from faultlab import report  # noqa: E402 - they live among the tools
from faultlab.experiments import EXPERIMENTS  # noqa: E402
from faultlab.hostile_peers import CARRIERS, hostile  # noqa: E402
from faultlab.hostility import BENIGN, FAULTS, STEPS, Script  # noqa: E402
from faultlab.visiting import visit  # noqa: E402

# Which of them are played also over pipes and sockets, and how the call under which it happens must end there.
LOST = {"PeerClosed", "ConnectionLost"}
NOT_ANSWERED = {"CallTimeout", "BadResult", "HttpStatus"}
ENDS = {
    "killed": LOST,
    "half, killed": LOST | {"BadResult"},
    "stalled": {"CallTimeout"},
    "half": {"CallTimeout"},
    "garbage": NOT_ANSWERED,
    "wrong id": NOT_ANSWERED,
    "duplicate": {"ok"},
    "answers nobody asked for": {"ok", "BadResult"},  # on the stream of one request they are a broken answer
    "flood of notices": {"ok"},
}
WAITED_FOR = {"stalled", "half", "garbage", "wrong id"}  # of the others the end comes by itself
REAL = [carrier for carrier in CARRIERS if not carrier.startswith("memory")]


def cells(carrier, faults):
    era = CARRIERS[carrier]
    return [Script(era, step, fault) for step in STEPS[era] for fault in faults]


async def outcome(carrier, script, seconds):
    opening = 40.0 if script.step == "tools/call" else None
    async with hostile(carrier, script) as target:
        return await visit(target, seconds=seconds, opening=opening, hang=60, keepalive=None)


async def outcomes(carrier, scripts, at_once):
    lane = asyncio.Semaphore(at_once)

    async def one(script):
        async with lane:
            return script, await outcome(carrier, script, 0.4 if script.fault in WAITED_FOR else 20.0)

    return await asyncio.gather(*(one(script) for script in scripts))


def check(script, found, ends):
    assert not found.wrong, (script, found.wrong)
    assert found.ends["close"] == "ok", (script, found.ends)
    if script.step == "tools/call":
        assert found.ends["list"] == "ok" or script.fault in WAITED_FOR, (script, found.ends)
        assert {found.ends["call"], found.ends["again"]} <= ends, (script, found.ends)


@pytest.mark.parametrize("carrier", [carrier for carrier in CARRIERS if carrier.startswith("memory")])
@virtual_time
async def test_every_fault_at_every_step_in_memory(carrier):
    every = {"ok"} | LOST | NOT_ANSWERED | {"Refused", "RemoteError", "InternalError"}
    for script in cells(carrier, FAULTS):
        check(script, await outcome(carrier, script, 5.0), {"ok"} if script.fault in BENIGN else every)


@pytest.mark.parametrize("carrier", REAL)
async def test_faults_at_every_step_on_real_carriers(carrier):
    for script, found in await outcomes(carrier, cells(carrier, ENDS), 6 if carrier.startswith("stdio") else 20):
        check(script, found, ENDS[script.fault])


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_closing_in_another_task_ends_a_call(carrier):
    async with hostile(carrier, Script(CARRIERS[carrier], "tools/call", "stalled")) as target:
        client = Client(target, verdicts=Verdicts())
        await client.open()
        call = asyncio.ensure_future(client.call_tool("echo"))
        await turns(5)
        await asyncio.gather(*(asyncio.ensure_future(client.close()) for _ in range(3)))
        with pytest.raises(ConnectionClosed):
            await call


@pytest.mark.parametrize("carrier", ["http, stateless", "sse"])
async def test_the_blocking_client_meets_them_too(carrier):
    """Here the loop of the server is the one that is not blocked."""

    def use(target, fault):
        with SyncClient(target, verdicts=Verdicts(), timeout=0.3, connect_timeout=20) as client:
            try:
                return client.call_tool("echo").text
            except InterlockError as error:
                return type(error).__name__

    for fault, ends in {"killed": LOST, "stalled": {"CallTimeout"}, "duplicate": {"ok"}}.items():
        async with hostile(carrier, Script(CARRIERS[carrier], "tools/call", fault)) as target:
            assert await asyncio.to_thread(use, target, fault) in ends


PROGRAM = """
import asyncio, sys
sys.path.append(sys.argv[1])
from faultlab.hostile_peers import CARRIERS, hostile
from faultlab.hostility import Script
from interlock import Client
from interlock.wire.errors import LocalError

kept = []

async def left_open(carrier):
    peer = hostile(carrier, Script(CARRIERS[carrier], "tools/call", "stalled"))
    client = Client(await peer.__aenter__())
    await client.open()
    call = asyncio.ensure_future(client.call_tool("echo"))
    await asyncio.sleep(0.02)
    channel = getattr(client._edge.link, "_channel", None)
    kept.extend([peer, client, call, getattr(channel, "pid", None)])
    return client

async def again(client):
    try:
        await client.call_tool("echo")
    except LocalError:
        print("told", flush=True)

for carrier in CARRIERS:
    client = asyncio.run(left_open(carrier))
    asyncio.run(again(client))
    asyncio.run(client.close())
    print(carrier, kept[-1], flush=True)
print("all loops ended", file=sys.stderr, flush=True)
loop = asyncio.new_event_loop()
for carrier in CARRIERS:
    loop.run_until_complete(left_open(carrier))
    print(carrier, kept[-1], flush=True)
sys.exit(3)
"""


def test_the_end_of_a_loop_and_of_the_interpreter():
    """With a call under way on every carrier: first loops end, then, with others open, the interpreter does."""
    words = [sys.executable, "-c", PROGRAM, str(ROOT / "tools")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 3, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("told") == len(CARRIERS)
    pids = [int(line.split()[-1]) for line in lines if line.startswith("stdio")]
    assert len(pids) == 4 and not any(alive(pid) for pid in pids)
    noise, mark, _ = done.stderr.partition("all loops ended")  # what comes after it is about the loop left unclosed
    assert mark and not any(word in noise for word in ("already running", "Unclosed", "destroyed", "ignored")), noise


def test_the_page_has_the_results_and_the_words_of_every_experiment():
    page = (ROOT / "docs" / "faults.md").read_text("utf-8")
    _, words = report.document(report.Run([], 0, False, [], 0.0)).split("## What each does")
    assert page.endswith("## What each does" + words)
    assert [name for name in EXPERIMENTS if f"| {name}: " not in page] == []
