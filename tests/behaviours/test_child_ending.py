"""How a server that is a child process ends: on its own, which fails every call, or by us, with all it started."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

import pytest

from interlock import Client
from interlock.wire.errors import ConnectionEnded, ConnectionLost, PeerClosed
from interlock.wire.limits import Limits
from support.children import alive, client_of, exited, words, write_server
from support.talking import start
from support.wire_peer import HANDSHAKE, HERE, MODERN, WAIT

# A process that stays whatever happens, told apart by how it was started; says its pid through a file.
STUBBORN = """
STAY = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"

def grandchild(**options):
    child = subprocess.Popen([sys.executable, "-S", "-E", "-c", STAY], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)
    child.stdout.readline()
    return child.pid

@tool
def in_group():
    return grandchild()

@tool
def outside():
    return grandchild(start_new_session=True)

@tool
def daemon():
    # Forks twice: it is in a session of its own, and no process knows whose it was.
    ready, up = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if (pid := os.fork()) == 0:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 1), os.dup2(0, 2)
            os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", STAY])
        os.write(up, b"%d" % pid)
        os._exit(0)
    os.wait()
    return int(os.read(ready, 100))
"""
IGNORES_EOF = "\nserve()\nnote(sys.argv[0] + '.log', 'eof')\nwhile True:\n    time.sleep(60)\n"
IGNORES_TERM = "\nsignal.signal(signal.SIGTERM, lambda *_: note(sys.argv[0] + '.log', 'term'))\n"


async def number(client, tool):
    return int((await client.call_tool(tool)).text)


async def pending(client, name, count=1, **arguments):
    """Calls that the server has read and will never answer."""
    calls = [start(client.call_tool(name, arguments)) for _ in range(count)]
    await client.call_tool("echo")  # the pipe is in order: it has read them
    return calls


# --- the end of a child -------------------------------------------------------------------------------------


@pytest.mark.requirement("STDIO-016")
@pytest.mark.parametrize("how", ["exit 0", "exit 3", "killed", "aborted"])
async def test_a_child_that_dies_fails_every_call_and_the_next_one_starts_it_again(tmp_path, how):
    body = """
    @tool
    def hang():
        return None
    @tool
    def die(how):
        os.write(2, b"the last words")
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "aborted":
            os.abort()
        sys.exit(int(how.split()[1]))
    """
    code = {"exit 0": 0, "exit 3": 3, "killed": -signal.SIGKILL, "aborted": -signal.SIGABRT}[how]
    async with client_of(tmp_path, body) as client:
        first = await number(client, "pid")
        calls = await pending(client, "hang", 20)
        calls.append(start(client.call_tool("die", {"how": how})))
        for call in calls:
            with pytest.raises(PeerClosed) as told:
                async with asyncio.timeout(WAIT):
                    await call
            assert told.value.exit_code == code
            assert told.value.stderr.endswith("the last words")
            assert told.value.sent is True  # the server had read it: nobody may simply send it again
        assert not alive(first)
        second = await number(client, "pid")
        assert second != first
        assert alive(second)


@pytest.mark.requirement("STDIO-016")
@pytest.mark.parametrize("revision", [HANDSHAKE[-1], MODERN[0], None], ids=str)
async def test_our_own_server_is_started_again_too(revision):
    command = [sys.executable, "-m", "interlock", "run", str(HERE / "servers" / "basic.py")]
    async with Client(command, revision=revision, keepalive=None) as client:
        call = start(client.call_tool("forever"))
        await client.call_tool("echo")
        os.kill(client._edge.link._channel.pid, signal.SIGKILL)
        with pytest.raises(PeerClosed):
            await call
        calls = [start(client.call_tool("echo", {"text": str(n)})) for n in range(5)]  # all at once, one start
        assert [(await call).text for call in calls] == ["0", "1", "2", "3", "4"]


async def test_an_open_subscription_ends_with_its_server():
    """Its caller is told, so that it can listen again on the new process."""
    command = [sys.executable, "-m", "interlock", "run", str(HERE / "servers" / "changing.py")]
    wanted = {"notifications": {"toolsListChanged": True}}
    async with Client(command, revision=MODERN[0]) as client:
        acknowledged = asyncio.Event()
        listen = client.request("subscriptions/listen", wanted, on_notification=lambda *_: acknowledged.set())
        listening = start(listen)
        async with asyncio.timeout(WAIT):
            await acknowledged.wait()
        os.kill(client._edge.link._channel.pid, signal.SIGKILL)
        with pytest.raises(PeerClosed):
            await listening
        acknowledged.clear()
        again = start(client.request("subscriptions/listen", wanted, on_notification=lambda *_: acknowledged.set()))
        async with asyncio.timeout(WAIT):
            await acknowledged.wait()
        again.cancel()


async def test_a_call_to_a_child_that_is_dead_already_says_how_it_died(tmp_path):
    """The write fails before the loop has heard of the death: it is the same death, with code and last words."""
    async with client_of(tmp_path, "os.write(2, b'the last words')") as client:
        pid = await number(client, "pid")
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # dead for sure, and our loop has not turned
        with pytest.raises(PeerClosed) as told:
            await client.call_tool("echo")
        assert told.value.exit_code == -signal.SIGKILL
        assert "the last words" in str(told.value)


async def test_answers_written_right_before_the_exit_are_heard(tmp_path):
    body = """
    @tool
    def goodbye():
        result(REQUEST, {"content": [{"type": "text", "text": "goodbye"}]})
        os._exit(0)
    def remember(request):
        global REQUEST
        REQUEST = request
        answer(request)
    serve(remember)
    """
    for _ in range(5):
        async with client_of(tmp_path, body) as client:
            assert (await client.call_tool("goodbye")).text == "goodbye"


async def test_a_child_whose_pipes_live_on_in_another_process_is_dead_all_the_same(tmp_path):
    """Death is the kernel's word, not the end of the output: a grandchild may hold the pipe for ever."""
    body = """
    @tool
    def hand_over_and_die():
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        note(sys.argv[0] + ".log", str(child.pid))
        sys.exit(0)
    """
    client = client_of(tmp_path, body)
    await client.open()
    with pytest.raises(PeerClosed) as told:
        async with asyncio.timeout(WAIT):
            await client.call_tool("hand_over_and_die")
    assert told.value.exit_code == 0
    await client.close()
    os.kill(int(words(tmp_path / "server.py.log")[0]), signal.SIGKILL)


@pytest.mark.parametrize("how", ["killed", "ended by us"])
async def test_a_daemon_of_a_server_that_was_killed_is_ended(tmp_path, how):
    """It forked twice and is in a session of its own: neither its group nor its parents lead to it."""
    body = STUBBORN + (IGNORES_TERM + IGNORES_EOF if how == "ended by us" else "")
    client = client_of(tmp_path, body, close_seconds=0.2, terminate_seconds=0.2)
    async with client:
        daemon = await number(client, "daemon")
        other = await number(client, "daemon")
        assert alive(daemon) and alive(other)
        if how == "killed":
            os.kill(client._edge.link._channel.pid, signal.SIGKILL)
            await asyncio.gather(exited(daemon), exited(other))
    await asyncio.gather(exited(daemon), exited(other))


async def test_a_daemon_of_one_server_does_not_end_with_another(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with client_of(tmp_path / "a", STUBBORN) as one, client_of(tmp_path / "b", STUBBORN) as other:
        daemons = [await number(client, "daemon") for client in (one, other)]
        os.kill(one._edge.link._channel.pid, signal.SIGKILL)
        await exited(daemons[0])
        assert alive(daemons[1])
        os.kill(other._edge.link._channel.pid, signal.SIGKILL)
        await exited(daemons[1])


async def test_a_server_that_ends_in_order_may_leave_a_daemon(tmp_path):
    """As one that opened the user's browser does: it is not ours to end."""
    async with client_of(tmp_path, STUBBORN) as client:
        daemon = await number(client, "daemon")
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)
    await exited(daemon)


HOST = """
import asyncio, sys
from interlock import Client, Command

async def main():
    async with Client(Command.of([sys.executable, "-S", "-E", sys.argv[1]]), revision="2025-11-25") as client:
        print((await client.call_tool("pid")).text, (await client.call_tool("daemon")).text, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_when_the_host_is_killed_its_server_ends_with_its_input_and_a_daemon_does_not(tmp_path):
    """What docs/client.md says: no code of ours runs any more, so that only the end of its stdin tells the server."""
    body = STUBBORN + "\n@tool\ndef pid():\n    return os.getpid()\n"
    words = [sys.executable, "-c", HOST, str(write_server(tmp_path, body))]
    host = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert host.stdout is not None
    server, daemon = map(int, (await host.stdout.readline()).split())
    host.kill()
    await host.wait()
    await exited(server)
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)
    await exited(daemon)


async def test_a_child_that_closes_its_stdout_is_given_up_and_ended(tmp_path):
    """Nothing can come from it any more; the next call starts another, and no process is left over."""
    body = (
        """
@tool
def fall_silent():
    os.close(1)
"""
        + IGNORES_TERM
        + IGNORES_EOF
    )
    client = client_of(tmp_path, body, close_seconds=0.2, terminate_seconds=0.2)
    await client.open()
    first = await number(client, "pid")
    with pytest.raises(ConnectionEnded):
        async with asyncio.timeout(WAIT):
            await client.call_tool("fall_silent")
    second = await number(client, "pid")
    assert second != first
    await client.close()
    assert not alive(second)
    try:
        async with asyncio.timeout(20):
            await exited(first)
    finally:
        if alive(first):
            os.kill(first, signal.SIGKILL)


async def test_a_command_that_exits_at_once_is_reported_with_its_last_words(tmp_path):
    body = "# no loop\nos.write(2, b'line one\\nusage: server [-h]\\n')\nsys.exit(2)"
    for revision in (None, HANDSHAKE[-1]):
        client = client_of(tmp_path, body, revision=revision)
        with pytest.raises(PeerClosed) as told:
            await client.open()
        assert told.value.exit_code == 2
        assert "usage: server [-h]" in str(told.value)
        await client.close()


async def test_of_a_flooded_stderr_the_end_is_kept(tmp_path):
    body = r"""
    # no loop
    for number in range(20000):
        os.write(2, b"line %d of very many \x1b[31m\n" % number)
    os.write(2, "Schluß\x07".encode())
    sys.exit(1)
    """
    client = client_of(tmp_path, body, limits=Limits(stderr_bytes=1000))
    with pytest.raises(PeerClosed) as told:
        await client.open()
    await client.close()
    kept = told.value.stderr
    assert "Schluß" in kept
    assert "line 19999" in kept
    assert len(kept) < 2000
    assert not {"\x1b", "\x07"} & set(kept)  # shown to people, in terminals


# --- ending a child -----------------------------------------------------------------------------------------


@pytest.mark.requirement("LIFE-18", "STDIO-013")
async def test_the_end_begins_with_the_end_of_its_stdin(tmp_path):
    body = IGNORES_TERM + "\nserve()\nnote(sys.argv[0] + '.log', 'eof')\n"
    client = client_of(tmp_path, body, close_seconds=20)
    await client.open()
    pid = await number(client, "pid")
    await client.close()
    assert not alive(pid)
    assert words(tmp_path / "server.py.log") == ["eof"]


@pytest.mark.requirement("LIFE-19", "STDIO-013")
async def test_one_that_stays_is_told_to_terminate(tmp_path):
    body = (
        """
def leave(*_):
    note(sys.argv[0] + '.log', 'term')
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
"""
        + IGNORES_EOF
    )
    client = client_of(tmp_path, body, close_seconds=1, terminate_seconds=20)
    await client.open()
    pid = await number(client, "pid")
    await client.close()
    assert not alive(pid)
    assert words(tmp_path / "server.py.log") == ["eof", "term"]


@pytest.mark.requirement("LIFE-20", "STDIO-013")
async def test_one_that_stays_even_then_is_killed(tmp_path):
    client = client_of(tmp_path, IGNORES_TERM + IGNORES_EOF, close_seconds=1, terminate_seconds=1)
    await client.open()
    pid = await number(client, "pid")
    await client.close()
    assert not alive(pid)
    assert words(tmp_path / "server.py.log") == ["eof", "term"]


@pytest.mark.requirement("LIFE-20", "STDIO-013")
@pytest.mark.parametrize("where", ["in_group", "outside"])
@pytest.mark.parametrize("server", ["leaves at once", "leaves when told", "ignores everything"])
async def test_what_the_server_started_goes_with_it(tmp_path, server, where):
    """Grandchildren that ignore TERM, in its group and in a session of their own."""
    ending = {"leaves at once": "", "leaves when told": IGNORES_EOF, "ignores everything": IGNORES_TERM + IGNORES_EOF}
    client = client_of(tmp_path, STUBBORN + ending[server], close_seconds=0.5, terminate_seconds=0.5)
    await client.open()
    pid, below = await number(client, "pid"), await number(client, where)
    assert alive(below)
    await client.close()
    assert not alive(pid)
    try:
        async with asyncio.timeout(20):
            await exited(below)
    finally:
        if alive(below):
            os.kill(below, signal.SIGKILL)


async def test_what_a_dead_server_left_in_its_group_goes_too(tmp_path):
    async with client_of(tmp_path, STUBBORN) as client:
        below = await number(client, "in_group")
        with pytest.raises(PeerClosed):
            await client.call_tool("leave")
        await exited(below)


async def test_a_child_that_does_not_read_can_be_ended(tmp_path):
    """More than a pipe holds waits to be written; closing does not wait for it for ever."""
    body = """
    @tool
    def stop_reading():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    """
    client = client_of(tmp_path, body, close_seconds=0.2, terminate_seconds=0.2)
    await client.open()
    pid = await number(client, "pid")
    calls = [start(client.call_tool("stop_reading"))]
    calls += [start(client.call_tool("echo", {"text": "x" * 100_000})) for _ in range(20)]
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT):
        await client.close()
    assert not alive(pid)
    for call in calls:
        with pytest.raises(ConnectionEnded):
            await call


async def test_a_child_that_leaves_too_much_unread_is_given_up(tmp_path):
    body = "@tool\ndef stop_reading():\n    time.sleep(600)"
    limits = Limits(outbound_bytes=1_000_000)
    client = client_of(tmp_path, body, limits=limits, close_seconds=0.2, terminate_seconds=5)
    await client.open()
    pid = await number(client, "pid")
    calls = [start(client.call_tool("stop_reading"))]
    calls += [start(client.call_tool("echo", {"text": "x" * 100_000})) for _ in range(20)]
    for call in calls:
        with pytest.raises(ConnectionLost):
            async with asyncio.timeout(WAIT):
                await call
    await client.close()
    assert not alive(pid)


async def test_a_big_answer_and_a_big_request_pass(tmp_path):
    async with client_of(tmp_path) as client:
        big = "ä" * 3_000_000
        assert (await client.call_tool("echo", {"text": big})).text == big


async def test_nothing_is_logged_at_error_when_all_goes_well(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with client_of(tmp_path) as client:
        await client.call_tool("echo")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
