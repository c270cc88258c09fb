"""cli/doctor/process_monitor.py: what a process writes where messages belong."""

from interlock.cli.doctor.process_monitor import Evidence, WatchedChild, _Spy
from interlock.client.client import Client
from interlock.transport.stdio.child_process import Command
from support.children import command_of, write_server

COMMAND = Command(args=("x",), hide=("secret",))


def test_lines_are_told_apart_and_only_the_first_are_kept():
    seen = Evidence()
    for line in (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', b"[]", b"{oops", b"hello secret", b"x" * 999):
        seen.line(line, COMMAND)
    for _ in range(10):
        seen.line(b"\xff\x1b", COMMAND)
    assert (seen.messages, seen.junk, seen.broken) == (1, 14, 2)
    assert len(seen.junk_lines) == 5 and max(map(len, seen.junk_lines)) == 200
    assert "secret" not in seen.junk_lines[2] and seen.first_line is not None
    assert Evidence().junk_lines == [], "each has its own"


def test_a_batch_is_a_message():
    seen = Evidence()
    seen.line(b'[{"jsonrpc": "2.0", "method": "notifications/x"}]', COMMAND)
    assert (seen.messages, seen.junk) == (1, 0)


async def test_a_client_talks_as_before_and_everything_is_seen(tmp_path):
    seen = Evidence()
    command = command_of(write_server(tmp_path, "print('banner', flush=True)"))
    async with Client(lambda: WatchedChild(command, seen)) as client:
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
    assert seen.starts == 1 and seen.messages >= 2 and seen.junk_lines == ["banner"] and seen.oversized == 0


def test_a_line_without_end_is_counted():
    seen = Evidence()
    heard = []

    class Receiver:
        def oversized(self, beginning, size):
            heard.append(size)

        def ended(self, error):
            heard.append(error)

    spy = _Spy(Receiver(), seen, COMMAND)
    spy.oversized(b"x", 7)
    spy.ended("over")
    assert (seen.oversized, heard) == (1, [7, "over"])
