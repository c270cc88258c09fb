"""transport/stdio/server.py: a server on a pair of descriptors, and the standard streams that nobody else can touch."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from interlock.transport.stdio.server import serve_stdio
from interlock.wire.errors import LocalError
from interlock.wire.messages import encode_call
from interlock.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from support.doubles import turns

ENVELOPE = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}


def ask(id, method="tools/list"):
    return encode_call(id, method, {"_meta": ENVELOPE}) + b"\n"


class Served:
    """`serve_stdio` in a task, with the client's ends of its pipes."""

    def __init__(self, handler, **options):
        stdin, self.input = os.pipe()
        self.output, stdout = os.pipe()
        os.set_blocking(self.output, False)
        self.task = asyncio.ensure_future(serve_stdio(handler, (stdin, stdout), **options))
        self.heard = b""

    def say(self, data):
        os.write(self.input, data)

    async def answers(self, count):
        """The first `count` lines it wrote."""
        while self.heard.count(b"\n") < count:
            await asyncio.sleep(0)
            self._read()
        return [json.loads(line) for line in self.heard.splitlines()[:count]]

    def _read(self):
        try:
            self.heard += os.read(self.output, 1 << 16)
        except BlockingIOError:
            pass

    async def end(self):
        os.close(self.input)
        await self.task
        self._read()
        os.close(self.output)


async def echo(exchange):
    return {"method": exchange.method}


async def test_requests_are_answered_until_the_client_closes_the_input():
    served = Served(echo)
    served.say(ask(1) + ask(2))
    assert [frame["id"] for frame in await served.answers(2)] == [1, 2]
    await served.end()


async def test_what_was_asked_before_the_end_is_answered_after_it():
    gate = asyncio.Event()

    async def slow(exchange):
        await gate.wait()
        return {}

    stopped = asyncio.Event()
    served = Served(slow, on_stop=stopped.set)
    served.say(ask(1))
    await turns(5)
    os.close(served.input)
    await stopped.wait()
    gate.set()
    await served.task
    served._read()
    assert json.loads(served.heard)["id"] == 1
    os.close(served.output)


async def test_the_last_request_needs_no_newline():
    served = Served(echo)
    served.say(ask(1).rstrip())
    await served.end()
    assert json.loads(served.heard)["id"] == 1


async def test_what_does_not_end_in_time_is_given_up():
    stopped = []

    async def forever(exchange):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    served = Served(forever)
    served.say(ask(1))
    await turns(5)
    await served.end()
    assert stopped == [1]
    assert served.heard == b""


async def test_a_client_that_does_not_read_any_more_ends_it():
    served = Served(echo)
    os.close(served.output)
    served.say(ask(1))
    await served.task
    os.close(served.input)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order(number):
    stopped = []
    served = Served(echo, on_stop=lambda: stopped.append(1))
    served.say(ask(1))
    await served.answers(1)
    os.kill(os.getpid(), number)
    await served.task
    assert stopped == [1]
    os.close(served.input)
    os.close(served.output)


async def test_signals_are_given_back():
    served = Served(echo)
    await turns()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    await served.end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_can_be_served_from_another_thread():
    # Signals can be watched in the main thread only; everything else works.
    failed = []

    def run():
        async def main():
            served = Served(echo)
            served.say(ask(1))
            await served.answers(1)
            await served.end()

        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed


# --- the standard streams, in a process of their own ---

PROGRAM = """
import os, subprocess, sys
from interlock.transport.stdio.server import run_stdio, take_stdio

async def handler(exchange):
    print("a print")
    sys.stdout.write("a write")
    sys.stdout.flush()
    os.write(1, b"raw bytes")
    os.system("echo from a shell")
    subprocess.run([sys.executable, "-S", "-c", "import sys; print(repr(sys.stdin.read()))"])
    return {"stdin": os.read(0, 10).decode(), "same": take_stdio() == take_stdio()}

run_stdio(handler)
"""


def run_program(program, data, **options):
    return subprocess.run(
        [sys.executable, "-c", program], input=data, capture_output=True, timeout=60, check=False, **options
    )


def test_nothing_but_the_protocol_reaches_stdout():
    done = run_program(PROGRAM, ask(1) + b'{"jsonrpc":"2.0","method":"notifications/x"}\n')
    [line] = done.stdout.splitlines()
    assert json.loads(line)["result"]["stdin"] == ""  # the handler's stdin is empty, not ours
    assert json.loads(line)["result"]["same"] is True
    for noise in (b"a print", b"a write", b"raw bytes", b"from a shell", b"''"):
        assert noise in done.stderr
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_a_person_at_a_terminal_is_told_what_it_waits_for(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from interlock import Server\nServer('mine').run()\n")
    ours, theirs = os.openpty()
    process = subprocess.Popen([sys.executable, str(file)], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    try:
        told = [process.stderr.readline().decode() for _ in range(4)]
    finally:
        process.send_signal(signal.SIGINT)
        process.stderr.close()
        process.wait(60)
        os.close(ours)
    assert "Waiting for an MCP client on stdin, which is a terminal here" in told[0]
    assert [line.strip() for line in told[1:]] == [
        f"interlock list {file}",
        f"interlock chat {file}",
        f"interlock run {file} --http",
    ]


def test_a_program_that_starts_it_is_told_nothing():
    assert run_program(PROGRAM, ask(1)).stderr.count(b"Waiting") == 0


def test_a_server_without_stderr_is_served_too():
    program = "import os; os.close(2)\n" + PROGRAM.replace("subprocess.run", "# subprocess.run")
    done = run_program(program, ask(1))
    assert len(done.stdout.splitlines()) == 1


def test_a_file_can_be_played_into_a_server(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(ask(1) + ask(2))
    with open(path, "rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], stdin=stdin, capture_output=True, timeout=60, check=False
        )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


# --- what lives with the handler ---


class Lived:
    def __init__(self, start):
        self.start, self.told = start, []
        self.lives = self

    async def __call__(self, exchange):
        self.told.append("request")
        return {"tools": []}

    def enter(self, carrier):
        self.told.append("enter")

    def leave(self, carrier):
        self.told.append("leave")

    async def settle(self):
        self.told.append("settle")


async def test_it_begins_before_anything_is_read_and_ends_last():
    async def start():
        handler.told.append("start")

    handler = Lived(start)
    served = Served(handler)
    served.say(ask(1))
    await served.answers(1)
    await served.end()
    assert handler.told == ["enter", "start", "request", "leave", "settle"]


async def test_what_cannot_begin_is_told_to_the_runner_and_nothing_is_read():
    async def start():
        raise LocalError("no database")

    handler = Lived(start)
    served = Served(handler)
    served.say(ask(1))
    with pytest.raises(LocalError, match="no database"):
        await served.task
    with pytest.raises(LocalError):
        await served.end()
    os.close(served.output)
    assert handler.told == ["enter", "leave", "settle"]


async def test_a_client_that_goes_does_not_wait_for_a_beginning():
    handler = Lived(asyncio.Event().wait)
    served = Served(handler)
    await turns()
    served.task.get_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    await served.task
    await served.end()
    assert handler.told == ["enter", "leave", "settle"]
