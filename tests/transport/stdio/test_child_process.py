"""transport/stdio/child_process.py: real child processes that behave, misbehave and die."""

import asyncio
import logging
import os
import signal
import subprocess
import sys

import pytest

from interlock.transport.stdio.child_process import ChildChannel, Command, _give_up, _Tail
from interlock.transport.stdio.environment import MINIMAL_ENVIRONMENT, NETWORK_ENVIRONMENT
from interlock.wire.errors import ConnectionClosed, PeerClosed, SpawnFailed
from interlock.wire.limits import Limits
from support.doubles import Receiver

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line.upper())\n    sys.stdout.flush()\n"
PAUSE = "[sys.executable, '-S', '-c', 'import signal; signal.pause()']"


def python(code, *words, **options):
    return Command.of([sys.executable, "-S", "-c", code, *words], **options)


async def opened(code, *words, limits=None, on_stderr=None, **options):
    channel = ChildChannel(python(code, *words, **options), limits or Limits(), on_stderr=on_stderr)
    heard = Receiver()
    await channel.open(heard)
    return channel, heard


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


# --- talking ---


async def test_a_child_is_talked_to_by_lines():
    channel, heard = await opened(ECHO)
    assert channel.pid and alive(channel.pid)
    channel.send(b"one")
    channel.send(b"two")
    await heard.until(lambda: len(heard.messages) == 2)
    assert heard.messages == [b"ONE", b"TWO"]
    assert (channel.delivered, channel.backlog) == (8, 0)
    await channel.drain()
    await channel.close()
    assert not alive(channel.pid)


async def test_a_line_of_the_child_over_the_limit_is_told():
    channel, heard = await opened("print('x' * 100); print('y')", limits=Limits(message_bytes=50))
    await heard.until(lambda: heard.messages)
    assert heard.too_long == [(b"x" * 100, 100)]
    assert heard.messages == [b"y"]
    await channel.close()


# --- its end by itself ---


async def test_an_exit_is_told_with_its_code_and_the_tail_of_stderr():
    channel, heard = await opened("import sys; sys.stderr.write('Traceback: boom'); sys.exit(3)")
    await heard.until(lambda: heard.ends)
    [end] = heard.ends
    assert isinstance(end, PeerClosed)
    assert end.exit_code == 3
    assert "boom" in end.stderr and "boom" in str(end)
    assert os.path.basename(sys.executable) in str(end)
    await channel.close()


async def test_what_was_written_right_before_the_end_is_still_heard():
    channel, heard = await opened("import os\nos.write(1, b'x' * 60000 + b'\\nlast\\n')\nos._exit(0)")
    await heard.until(lambda: heard.ends)
    assert heard.messages == [b"x" * 60000, b"last"]
    await channel.close()


async def test_a_death_by_signal_is_told():
    channel, heard = await opened(ECHO)
    os.kill(channel.pid, signal.SIGKILL)
    await heard.until(lambda: heard.ends)
    assert heard.ends[0].exit_code == -signal.SIGKILL
    await channel.close()


async def test_the_death_is_seen_though_a_grandchild_holds_the_streams():
    # The end of its output never comes: only the kernel's notice tells (design §5).
    code = f"import subprocess, sys; subprocess.Popen({PAUSE}); sys.exit(4)"
    channel, heard = await opened(code)
    await heard.until(lambda: heard.ends)
    assert heard.ends[0].exit_code == 4
    await channel.close()


async def test_a_child_that_closes_its_stdout_is_lost():
    code = "import os, signal; os.close(1); signal.pause()"
    channel, heard = await opened(code, close_seconds=0.05)
    await heard.until(lambda: heard.ends)
    assert isinstance(heard.ends[0], PeerClosed)
    assert "stdout" in str(heard.ends[0])
    pid = channel.pid
    await channel.close()
    assert not alive(pid)


async def test_a_child_that_is_gone_when_we_write_is_told_as_gone_not_as_a_broken_pipe():
    # `PeerClosed` promises the exit code and the tail of stderr; who writes first must not lose them.
    code = (
        "import os, sys, time; sys.stderr.write('boom'); sys.stderr.flush(); os.close(0); "
        "print('ready', flush=True); time.sleep(0.05); os._exit(3)"
    )
    channel, heard = await opened(code)
    await heard.until(lambda: heard.messages)
    channel.send(b"anybody?")
    await heard.until(lambda: heard.ends)
    await channel.close()
    assert isinstance(heard.ends[0], PeerClosed)
    assert (heard.ends[0].exit_code, heard.ends[0].stderr) == (3, "boom")


async def test_the_end_is_told_once():
    channel, heard = await opened("pass")
    await heard.until(lambda: heard.ends)
    await channel.close()
    await channel.close()
    assert len(heard.ends) == 1


async def test_without_a_pidfd_a_thread_watches(monkeypatch):
    def refused(pid):
        raise OSError("not here")

    monkeypatch.setattr(os, "pidfd_open", refused)
    channel, heard = await opened("import sys; sys.exit(5)")
    await heard.until(lambda: heard.ends)
    assert heard.ends[0].exit_code == 5
    await channel.close()


# --- its end by us ---


async def test_a_child_that_is_well_behaved_goes_when_its_stdin_is_closed(tmp_path):
    marker = tmp_path / "marker"
    code = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write('eof')"
    channel, heard = await opened(code, str(marker), close_seconds=60)
    await channel.close()
    assert marker.read_text() == "eof"
    assert [type(end) for end in heard.ends] == [ConnectionClosed]


async def test_what_was_said_last_reaches_it_before_the_end(tmp_path):
    marker = tmp_path / "marker"
    code = "import sys; open(sys.argv[1], 'w').write(str(len(sys.stdin.read())))"
    channel, _ = await opened(code, str(marker), close_seconds=60)
    channel.send(b"x" * 1_000_000)
    await channel.close()
    assert marker.read_text() == "1000001"


STUBBORN = """
import os, signal, subprocess, sys
marker = sys.argv[1]
def told(*_):
    open(marker, "w").write("term")
    if sys.argv[2] == "obeys":
        os._exit(0)
signal.signal(signal.SIGTERM, told)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("how", ["obeys", "ignores"])
async def test_a_child_that_stays_is_terminated_then_killed(tmp_path, how):
    marker = tmp_path / "marker"
    patience = 60 if how == "obeys" else 2.0  # for its handler to run: a loaded machine takes its time
    channel, heard = await opened(STUBBORN, str(marker), how, close_seconds=0.05, terminate_seconds=patience)
    await heard.until(lambda: heard.messages)
    pid = channel.pid
    await channel.close()
    assert marker.read_text() == "term"
    assert not alive(pid)


async def test_who_gives_up_waiting_does_not_stop_the_end():
    channel, heard = await opened(ECHO, close_seconds=60)
    first = asyncio.ensure_future(channel.close())
    second = asyncio.ensure_future(channel.close())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert not alive(channel.pid)
    assert len(heard.ends) == 1


async def test_its_children_go_with_it():
    code = f"import subprocess, sys; child = subprocess.Popen({PAUSE});print(child.pid, flush=True); sys.stdin.read()"
    channel, heard = await opened(code, close_seconds=60)
    await heard.until(lambda: heard.messages)
    grandchild = int(heard.messages[0])
    await channel.close()
    while alive(grandchild):  # killed, but perhaps not gone yet; the test is bounded
        await asyncio.sleep(0.01)


async def test_a_channel_nobody_closed_takes_its_child_with_the_interpreter(tmp_path):
    code = """
import asyncio, sys
from interlock.transport.stdio.child_process import ChildChannel, Command

class Ears:
    def received(self, message): pass
    def oversized(self, beginning, size): pass
    def ended(self, error): pass

async def main():
    global channel
    channel = ChildChannel(Command.of([sys.executable, "-S", "-c", "import signal; signal.pause()"]))
    await channel.open(Ears())
    print(channel.pid, flush=True)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=60, check=True)
    while alive(int(done.stdout)):
        await asyncio.sleep(0.01)


# --- starting ---


@pytest.mark.parametrize(
    "command",
    [
        Command.of([]),
        Command.of(["/nowhere/to/be/found"]),
        Command.of([sys.executable], cwd="/nowhere/to/be/found"),
        Command.of([sys.executable, "a\0b"]),
        Command.of(["/"]),
    ],
)
async def test_a_program_that_cannot_be_started_is_said_so(command):
    channel = ChildChannel(command)
    with pytest.raises(SpawnFailed):
        await channel.open(Receiver())
    assert channel.pid is None
    assert (channel.delivered, channel.backlog) == (0, 0)
    await channel.drain()
    await channel.close()


async def test_no_shell_is_ever_in_between(tmp_path):
    marker = tmp_path / "marker"
    word = f"; touch {marker}; $(touch {marker})"
    channel, heard = await opened("import sys; print(sys.argv[1])", word)
    await heard.until(lambda: heard.ends)
    assert heard.messages == [word.encode()]
    assert not marker.exists()
    await channel.close()


async def test_the_working_folder_is_the_one_that_was_said(tmp_path):
    channel, heard = await opened("import os; print(os.getcwd())", cwd=str(tmp_path))
    await heard.until(lambda: heard.ends)
    assert heard.messages == [os.path.realpath(tmp_path).encode()]
    await channel.close()


async def test_a_child_inherits_no_descriptor_of_ours():
    read, write = os.pipe()
    os.set_inheritable(write, True)
    channel, heard = await opened("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))")
    await heard.until(lambda: heard.ends)
    assert heard.messages == [b"[0, 1, 2, 3]"]  # 3 is the listing itself
    await channel.close()
    os.close(read)
    os.close(write)


# --- the environment ---


def test_the_minimal_environment_tells_no_secret(monkeypatch):
    monkeypatch.setenv("EXAMPLE_API_KEY", "secret")
    monkeypatch.setenv("PATH", "/bin")
    found = Command.of(["x"]).environment()
    assert "EXAMPLE_API_KEY" not in found
    assert found["PATH"] == "/bin"
    assert set(found) <= {*MINIMAL_ENVIRONMENT, *NETWORK_ENVIRONMENT, "PYTHONUTF8"}


def test_what_is_given_comes_on_top(monkeypatch):
    monkeypatch.setenv("PATH", "/bin")
    found = Command.of(["x"], env={"PATH": "/mine", "TOKEN": "t", "PYTHONUTF8": "0"}).environment()
    assert (found["PATH"], found["TOKEN"], found["PYTHONUTF8"]) == ("/mine", "t", "0")


def test_everything_or_nothing_can_be_chosen(monkeypatch):
    monkeypatch.setenv("EXAMPLE_API_KEY", "secret")
    assert Command.of(["x"], env_policy="inherit").environment()["EXAMPLE_API_KEY"] == "secret"
    assert Command.of(["x"], env_policy="explicit").environment() == {}
    assert Command.of(["x"], env_policy="explicit", env={"A": "1"}).environment() == {"A": "1"}


def test_our_own_environment_is_never_written_to(monkeypatch):
    Command.of(["x"], env_policy="inherit", env={"INTERLOCK_TEST_ONLY": "1"}).environment()
    assert "INTERLOCK_TEST_ONLY" not in os.environ


# --- stderr ---


async def test_stderr_is_heard_and_is_no_error():
    heard_stderr = []
    channel, heard = await opened(
        "import sys; sys.stderr.write('warming up'); sys.stderr.flush(); print('ready', flush=True); sys.stdin.read()",
        on_stderr=heard_stderr.append,
    )
    await heard.until(lambda: heard.messages)
    while not heard_stderr:
        await asyncio.sleep(0.005)
    assert b"".join(heard_stderr) == b"warming up"
    assert channel.stderr_tail() == "warming up"
    assert heard.ends == []
    await channel.close()


async def test_a_child_never_blocks_on_its_stderr(caplog):
    with caplog.at_level(logging.DEBUG, "interlock.client"):
        channel, heard = await opened("import sys; sys.stderr.write('x' * 1000000 + 'end'); print('done')")
        await heard.until(lambda: heard.ends)
    assert heard.messages == [b"done"]
    assert heard.ends[0].stderr.endswith("xend")
    assert len(heard.ends[0].stderr) == Limits().stderr_bytes
    assert "stderr of pid" in caplog.text
    await channel.close()


async def test_what_a_child_says_on_stderr_is_logged_line_by_line(caplog):
    with caplog.at_level(logging.DEBUG, "interlock.client"):
        said = "Traceback\\n" + "  inside\\n" * 200 + "ValueError: \\x1b[31mno\\n"
        channel, heard = await opened(f"import sys; sys.stderr.write('{said}'); print('done')")
        await heard.until(lambda: heard.ends)
    lines = [each.getMessage() for each in caplog.records if "stderr of pid" in each.getMessage()]
    assert lines[-1].endswith(": ValueError: \\x1b[31mno") and lines[-2].endswith(":   inside")
    await channel.close()


def test_the_tail_keeps_the_last_bytes_and_escapes_the_rest():
    tail = _Tail(11)
    assert tail.text() == ""
    tail.add(b"0123456789")
    tail.add(b"abcdef")
    assert tail.text() == "56789abcdef"
    tail.add(b"\x1b[31m\xff\nend\n")
    assert tail.text() == "f\\x1b[31m\ufffd\nend"


def test_what_is_hidden_is_shown_nowhere():
    command = Command.of(["x", "--key=hunter2"], env={"TOKEN": "other", "A": "b"}, hide=("hunter2",))
    assert repr(command) == "Command(['x', '--key=[redacted]'], env=['A', 'TOKEN'], cwd=None)"
    tail = _Tail(100, command)
    tail.add(b"the key is hunt")
    tail.add(b"er2\n")
    assert tail.text() == "the key is [redacted]"


def test_what_is_hidden_is_not_cut_in_the_middle():
    tail = _Tail(10, Command.of(["x"], hide=("hunter2",)))
    tail.add(b"the key is hunter2, 12345")
    assert tail.text() == "ed], 12345"


def test_a_fork_does_not_end_the_children_of_its_parent():
    pid = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"], start_new_session=True)
    try:
        _give_up(os.getpid() + 1, pid.pid, "mark", [])
        assert pid.poll() is None
        _give_up(os.getpid(), pid.pid, "mark", [])
        assert pid.wait(20) == -signal.SIGKILL
    finally:
        pid.kill()
        pid.wait()
