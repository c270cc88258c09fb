"""A server as a child process of a client: how it is started, and what it may say beside messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from interlock import Client, Command
from interlock.wire.errors import LocalError, SpawnFailed
from interlock.wire.limits import Limits
from support.children import client_of, command_of, group_of, write_server
from support.talking import start
from support.wire_peer import ALL, HANDSHAKE, HERE


async def number(client, tool):
    return int((await client.call_tool(tool)).text)


# --- starting -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("TRANS-STDIO-01", "TRANS-STDIO-02")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_server_is_a_child_in_a_group_of_its_own(tmp_path, revision):
    async with client_of(tmp_path, f"REVISION = {revision!r}\ntool(os.getppid)", revision=revision) as client:
        pid = await number(client, "pid")
        assert await number(client, "getppid") == os.getpid()
        assert group_of(pid) == pid != os.getpgid(0)  # Ctrl-C at our terminal is ours, not its


ODD_ARGUMENTS = [
    "two words",
    "; touch owned",
    "$HOME",
    "`id`",
    "$(id)",
    '"',
    "'",
    "*",
    "",
    "-x",
    "a\nb",
    "ä€",
    "\\",
    "|",
    "&",
]


UNICODE_ARGUMENTS = pytest.mark.skipif(sys.getfilesystemencoding() == "ascii", reason="arguments here are ASCII")


@UNICODE_ARGUMENTS
async def test_arguments_arrive_as_they_were_given(tmp_path):
    """A list, never a shell."""
    path = write_server(tmp_path, "@tool\ndef given():\n    return json.dumps(sys.argv[1:])")
    command = command_of(path, *ODD_ARGUMENTS, cwd=str(tmp_path))
    async with Client(command, revision=HANDSHAKE[-1]) as client:
        assert json.loads((await client.call_tool("given")).text) == ODD_ARGUMENTS
    assert os.listdir(tmp_path) == ["server.py"]


STARTS = """
import asyncio, sys
from interlock import Client
from interlock.wire.errors import SpawnFailed

async def main():
    try:
        async with Client([sys.executable, "server.py", "caf\\u00e9"]):
            pass
    except SpawnFailed as error:
        print(error)

asyncio.run(main())
"""


def test_an_argument_that_the_locale_cannot_write_is_named():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", STARTS],
        capture_output=True,
        text=True,
        env={**os.environ, **plain},
        timeout=60,
        check=True,
    )
    assert "characters that are not ASCII" in done.stdout and "PYTHONUTF8=1" in done.stdout
    assert "PATH" not in done.stdout and "caf" not in done.stdout


async def test_a_command_line_in_one_string_is_not_guessed_at():
    with pytest.raises(LocalError, match="list"):
        Client("python server.py")


@UNICODE_ARGUMENTS
async def test_it_runs_where_it_is_told_to(tmp_path):
    folder = tmp_path / "ä b"
    folder.mkdir()
    async with client_of(tmp_path, "tool(os.getcwd)", cwd=str(folder)) as client:
        assert (await client.call_tool("getcwd")).text == str(folder)


@pytest.mark.parametrize(
    ("policy", "sees"),
    [("minimal", {"PATH", "GIVEN"}), ("inherit", {"PATH", "GIVEN", "SECRET_TOKEN"}), ("explicit", {"GIVEN"})],
)
async def test_the_environment_is_a_choice(tmp_path, monkeypatch, policy, sees):
    """By default a server sees what a program needs and none of our secrets (weaknesses.md 8)."""
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    body = "@tool\ndef environment():\n    return json.dumps(dict(os.environ))"
    async with client_of(tmp_path, body, env={"GIVEN": "1"}, env_policy=policy) as client:
        found = json.loads((await client.call_tool("environment")).text)
    assert {name for name in ("PATH", "GIVEN", "SECRET_TOKEN") if name in found} == sees
    assert ("s3cret" in found.values()) is (policy == "inherit")


async def test_it_inherits_no_descriptor_of_ours(tmp_path):
    ours = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        body = "@tool\ndef open_files():\n    return json.dumps(os.listdir('/proc/self/fd'))"
        async with client_of(tmp_path, body) as client:
            found = json.loads((await client.call_tool("open_files")).text)
            assert len(found) == 4  # the three streams, and the listing itself
    finally:
        os.close(ours)


UNSTARTABLE = {
    "no such program": (["interlock-no-such-program"], None),
    "not executable": (["./plain"], None),
    "a folder": (["."], None),
    "nothing": ([], None),
    "a NUL": ([sys.executable, "a\0b"], None),
    "no such folder": ([sys.executable], "nowhere"),
}


@pytest.mark.parametrize("what", UNSTARTABLE)
async def test_a_program_that_cannot_start_is_said_so(tmp_path, what):
    (tmp_path / "plain").write_text("text")
    arguments, folder = UNSTARTABLE[what]
    command = Command.of(arguments, cwd=str(tmp_path / folder if folder else tmp_path))
    client = Client(command)
    for _ in range(2):  # and it can be tried again
        with pytest.raises(SpawnFailed):
            await client.open()
    await client.close()


# --- output that is no message ------------------------------------------------------------------------------


@pytest.mark.requirement("BASE-01", "JSONRPC-002")
async def test_junk_on_stdout_is_skipped_and_reported(tmp_path, caplog):
    body = r"""
    JUNK = [b"Starting...\n", b"\n", b"   \n", b"\x1b[31mred\x1b[0m\n", b"\xff\xfe\n", b"{\n", b"[1]\n", b"null\n",
            b"{}\n", b'{"level":"info"}\n', b"\r\n", b"[" * 100000 + b"\n", b"half a line "]
    @tool
    def noise():
        for junk in JUNK[:-1]:
            os.write(1, junk)
        return "heard"
    """
    async with client_of(tmp_path, body) as client:
        assert (await client.call_tool("noise")).text == "heard"
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"
    assert "Starting..." in caplog.text
    assert "\x1b" not in caplog.text  # a log is read in terminals (weaknesses.md 94)


async def test_ten_thousand_lines_of_junk_among_the_answers(tmp_path):
    body = """
    @tool
    def noise(text):
        os.write(1, b"debug: something happened\\n" * 100)
        return text
    """
    async with client_of(tmp_path, body) as client:
        calls = [start(client.call_tool("noise", {"text": str(n)})) for n in range(100)]
        assert [(await call).text for call in calls] == [str(n) for n in range(100)]


async def test_an_answer_in_pieces_is_put_together(tmp_path):
    body = """
    def byte_by_byte(message):
        for byte in json.dumps(message).encode() + b"\\n":
            os.write(1, bytes([byte]))
    say = byte_by_byte
    """
    async with client_of(tmp_path, body) as client:
        assert (await client.call_tool("echo", {"text": "ä" * 50})).text == "ä" * 50


async def test_an_answer_over_the_limit_fails_its_call_alone(tmp_path):
    """Skipped up to its end, and its caller is told: nobody waits for an answer that came."""
    body = "@tool\ndef much(size):\n    return 'x' * size"
    async with client_of(tmp_path, body, limits=Limits(message_bytes=10_000), timeout=20) as client:
        with pytest.raises(Exception) as told:
            await client.call_tool("much", {"size": 100_000})
        assert not isinstance(told.value, TimeoutError)
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"


@pytest.mark.requirement("TRANS-STDIO-08", "TRANS-STDIO-09", "STDIO-003", "STDIO-004")
@pytest.mark.parametrize("revision", ALL)
async def test_stderr_is_no_failure(revision, tmp_path):
    """Megabytes of it, any level, any bytes: read away so that the child never blocks on it."""
    body = f"""
    REVISION = {revision!r}
    if REVISION == "2026-07-28":
        def answer(request, plain=answer):
            if request["method"] == "server/discover":
                found = {{"supportedVersions": [REVISION], "capabilities": {{"tools": {{}}}}}}
                result(request, {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **found}})
            else:
                plain(request)
    @tool
    def shout():
        for _ in range(100):
            os.write(2, b"ERROR: nothing is wrong \\xff\\x00\\n" * 2000)
        return "done"
    os.write(2, b"FATAL: just kidding\\n")
    serve(answer)
    """
    async with client_of(tmp_path, body, revision=revision) as client:
        assert client.revision == revision
        assert (await client.call_tool("shout")).text == "done"
        assert (await client.call_tool("echo", {"text": "fine"})).text == "fine"


@pytest.mark.requirement("TRANS-STDIO-11", "STDIO-006")
@pytest.mark.parametrize("revision", ALL)
async def test_its_stdin_gets_messages_and_nothing_else(revision, tmp_path):
    """Every line the child reads, from the first byte to the end of the stream, is a message."""
    path = tmp_path / "server.py"
    log = tmp_path / "stdin"
    path.write_text(
        f"import runpy, sys, threading, os\n"
        f"source, sink = os.pipe()\n"
        f"real = os.dup(0)\n"
        f"os.dup2(source, 0)\n"
        f"def copy():\n"
        f"    with open({str(log)!r}, 'wb') as out:\n"
        f"        while chunk := os.read(real, 65536):\n"
        f"            out.write(chunk); out.flush(); os.write(sink, chunk)\n"
        f"    os.close(sink)\n"
        f"threading.Thread(target=copy).start()\n"
        f"sys.argv = ['basic']\n"
        f"runpy.run_path({str(HERE / 'servers' / 'basic.py')!r}, run_name='__main__')\n"
    )
    async with Client(Command.of([sys.executable, str(path)], close_seconds=20), revision=revision) as client:
        await client.list_tools()
        await client.call_tool("echo", {"text": "one\ntwo"})
        call = start(client.call_tool("forever", {"name": "x"}))
        await client.call_tool("echo", {"text": "three"})
        call.cancel()
        await client.ping()
    lines = log.read_bytes().split(b"\n")
    assert lines.pop() == b""
    frames = [json.loads(line) for line in lines]
    assert all(frame["jsonrpc"] == "2.0" and isinstance(frame["method"], str) for frame in frames)
    assert [frame["method"] for frame in frames].count("tools/call") == 3
