"""Programs that share a directory of tokens: real processes, one refresh for all of them, and files for their owner."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest

from interlock import Client
from interlock.auth.client.token_record import kept, read_standing
from interlock.auth.client.token_storage import FileRecords
from support.auth_peer import GuardedPeer
from support.http_peer import server

PROGRAMS = 2
WAIT = 60.0
CALLED = {"content": [{"type": "text", "text": "ok"}]}
PROGRAM = """
import asyncio, sys
from interlock import Client, OAuth

async def main(url, folder):
    async with Client(url, auth=OAuth(login=None, tokens=folder)) as client:
        print("open", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print((await client.call_tool("t")).text, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def program(url, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    words = [sys.executable, "-c", PROGRAM, url, str(folder)]
    process = await asyncio.create_subprocess_exec(*words, env=environment, **pipes)
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), WAIT)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def said_by(processes):
    return [(await asyncio.wait_for(each.stdout.readline(), WAIT)).decode().strip() for each in processes]


def expire(folder, url):
    """As if hours had passed: the end that was written down is a time, and lies behind us now."""
    records, key = FileRecords(folder), f"server default {url}"
    standing = read_standing(records.load(key))
    assert standing is not None and standing.token.expires is not None and standing.token.expires > 1e9
    token = msgspec.structs.replace(standing.token, expires=1.0)
    records.save(key, kept(msgspec.structs.replace(standing, token=token)))


@pytest.mark.requirement("AUTH-80", "AUTH-SEC-003")
async def test_several_programs_that_need_a_new_token_get_one_together(tmp_path):
    folder = tmp_path / "tokens"
    listed = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    async with GuardedPeer(server(tools_call=CALLED, tools_list=listed)) as host:
        async with Client(host.url, auth=host.oauth(tokens=folder)):
            pass
        inner = host.peer.script

        async def slow(request, stream):
            if request.path == "/as/token":
                await asyncio.sleep(0.05)  # so that the others come while one is asking
            return inner(request, stream)

        host.peer.script = slow
        expire(folder, host.url)
        async with AsyncExitStack() as programs:
            running = [await programs.enter_async_context(program(host.url, folder)) for _ in range(PROGRAMS)]
            assert await said_by(running) == ["open"] * PROGRAMS
            assert grants(host) == ["authorization_code", "refresh_token"], "an old one is renewed once, unasked"
            for newest in ("access-2", "access-3"):
                host.revoked.add(newest)
                for each in running:
                    each.stdin.write(b"\n")
                assert await said_by(running) == ["ok"] * PROGRAMS
        assert grants(host) == ["authorization_code"] + ["refresh_token"] * 3 and len(host.visits) == 1
        assert [each["refresh_token"] for each in host.issuer.requests[1:]] == ["refresh-1", "refresh-2", "refresh-3"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def grants(host):
    return [each["grant_type"] for each in host.issuer.requests]
