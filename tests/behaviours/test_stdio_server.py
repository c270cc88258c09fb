"""A server of ours on its standard streams, as a real process: handshake TRANS-STDIO, modern STDIO."""

import asyncio
import json
import os
import sys

import pytest

from interlock.wire.limits import Limits
from support.raw_process import SERVERS, call, command, line, opening, raw_process, request
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, VERSION_KEY, server_under_test

NOT_BATCHING = tuple(revision for revision in ALL if revision != "2025-03-26")
LIMIT = 4096  # of support/servers/small_limits.py
UNICODE = "é ß 中文 \U0001f600 \u2028 \u2029 \u0085 \x7f \ufeff \U0010ffff"
BREAKS = 'a\nb\r\nc\rd\u2028e\u2029f\u0085g\x0bh\x0ci\x00j\\n"k'


def text_of(answer):
    return answer["result"]["content"][0]["text"]


async def opened(child, revision):
    child.write(opening(revision))
    await child.answer("open")


def server_file(folder, source):
    path = folder / "made_for_this_test.py"
    path.write_text(source)
    return path


# --- nothing but messages on stdout ---


@pytest.mark.requirement("TRANS-STDIO-10", "TRANS-STDIO-07", "STDIO-005", "STDIO-002")
@pytest.mark.parametrize("revision", ALL)
async def test_print_write_and_children_cannot_reach_the_client(revision):
    """`noise` prints, writes a forged response to descriptor 1, and starts a child that writes there."""
    async with raw_process(command("basic")) as child:
        await opened(child, revision)
        child.write(call(revision, 7, "noise"))
        assert text_of(await child.answer(7)) == "quiet"
        frames = await child.finish()
        assert [frame["id"] for frame in frames] == ["open", 7]
        errors = await child.stderr()
        for text in ("a print", '"result":{}', "from a child"):
            assert text in errors


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005")
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_that_prints_a_lot(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.write(call(revision, "c", "chatter", {"lines": 5000}))
        assert text_of(await child.answer("c")) == "quiet"
        assert [frame["id"] for frame in await child.finish()] == ["open", "c"]


CHATTY = """
import atexit, logging, os, subprocess, sys
print("hello from the module", flush=True)
os.write(1, b"raw bytes from the module\\n")
sys.stdout.write("without a newline")
subprocess.run(["echo", "a child of the module"])
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)
atexit.register(print, "goodbye from the module")
from interlock import Server
server = Server("chatty")
@server.tool
async def speak() -> str:
    logging.warning("logged to stdout")
    return "spoken"
"""


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005", "STDIO-002", "TRANS-STDIO-07")
@pytest.mark.parametrize("revision", ALL)
async def test_a_file_that_talks_at_import_and_at_exit(revision, tmp_path):
    async with raw_process(command(server_file(tmp_path, CHATTY))) as child:
        await opened(child, revision)
        child.write(call(revision, 1, "speak"))
        assert text_of(await child.answer(1)) == "spoken"
        assert len(await child.finish()) == 2
        errors = await child.stderr()
        for text in ("hello from", "raw bytes", "a child of", "logged to stdout", "goodbye"):
            assert text in errors


BROKEN = {
    "an exception": 'print("half way")\nraise RuntimeError("no config")',
    "a syntax error": 'print("never"\n',
    "an exit": 'import sys\nprint("x")\nsys.exit(4)',
    "no server": 'print("nothing here")',
    "two servers": 'import interlock\na, b = interlock.Server("a"), interlock.Server("b")',
}


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005")
@pytest.mark.parametrize("source", BROKEN.values(), ids=list(BROKEN))
async def test_a_file_that_cannot_be_served_leaves_stdout_empty(source, tmp_path):
    async with raw_process(command(server_file(tmp_path, source))) as child:
        child.write(opening(ALL[-1]))
        assert await child.rest() == []
        assert await child.exit_code() != 0
        assert await child.stderr() != ""


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005")
@pytest.mark.parametrize("revision", ALL)
async def test_handlers_and_their_children_cannot_take_what_the_client_sends(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.write(call(revision, 1, "stdin") + call(revision, 2, "echo", {"text": "mine"}))
        answers = {frame["id"]: text_of(frame) for frame in (await child.read(), await child.read())}
        assert answers == {1: "('', b'', b'')", 2: "mine"}
        await child.finish()


@pytest.mark.requirement("STDIO-005", "TRANS-STDIO-10")
@pytest.mark.parametrize("revision", ALL)
async def test_failing_handlers_write_nothing_else(revision):
    async with raw_process(command("basic")) as child:
        await opened(child, revision)
        hows = ["tool", "bug", "exit", "cancel", "group", "unknown"]
        for how in hows:
            child.write(call(revision, how, "fail", {"how": how}))
        frames = await child.finish()
        assert sorted(frame["id"] for frame in frames) == sorted(["open", *hows])
        assert "secret detail" not in json.dumps(frames)
        assert "secret detail" in await child.stderr()


@pytest.mark.requirement("STDIO-008")
@pytest.mark.parametrize("revision", MODERN)
async def test_a_stateless_client_gets_no_requests(revision):
    async with raw_process(command("basic")) as child:
        await opened(child, revision)
        methods = ["roots/list", "sampling/createMessage", "elicitation/create"]
        for method in methods:
            child.write(call(revision, method, "question", {"method": method}))
        frames = await child.finish()
        assert [frame for frame in frames if "method" in frame and "id" in frame] == []
        assert sorted(frame["id"] for frame in frames) == sorted(["open", *methods])


# --- lines ---


@pytest.mark.requirement("TRANS-STDIO-03", "STDIO-001")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_line_breaks_in_texts_are_escaped(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        result = await peer.result("tools/call", {"name": "echo", "arguments": {"text": BREAKS}})
        assert result["content"][0]["text"] == BREAKS
        found = await peer.result("utilities/mirror", {"value": {BREAKS: [BREAKS]}})
        assert found["value"] == {BREAKS: [BREAKS]}
        error = await peer.error("tools/call", {"name": BREAKS, "arguments": {}})
        assert error["code"] == -32602
        assert all(b"\n" not in raw and b"\r" not in raw for raw in peer.raw)


@pytest.mark.requirement("TRANS-STDIO-03", "STDIO-001")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_parts_encoded_elsewhere_are_put_on_one_line(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        found = await peer.result("utilities/raw")
        assert found["part"] == {"a": [1, "x\ny"]}
        assert all(b"\n" not in raw and b"\r" not in raw for raw in peer.raw)


@pytest.mark.requirement("TRANS-STDIO-04")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
async def test_every_character_makes_the_round_trip_in_utf8(revision, locale):
    """As it is and in escapes, whatever the locale of the process."""
    async with raw_process(command("utilities"), env=locale) as child:
        await opened(child, revision)
        escaped = call(revision, 1, "echo", {"text": UNICODE})
        plain = json.dumps(json.loads(escaped), ensure_ascii=False).replace('"id": 1', '"id": "é"').encode()
        child.write(escaped + plain + b"\n")
        assert text_of(await child.answer(1)) == UNICODE
        assert text_of(await child.answer("é")) == UNICODE
        await child.finish()
        for raw in child.raw:
            raw.decode()


@pytest.mark.requirement("TRANS-STDIO-04")
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_no_utf8_gets_an_error_and_the_next_line_is_read(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        good = call(revision, 1, "echo", {"text": "@"})
        for wrong in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", "é".encode("latin-1")):
            child.write(good.replace(b"@", wrong))
            answer = await child.read()
            assert answer["error"]["code"] == -32700
            assert answer.get("id", 1) == 1
        child.write(good.replace(b'"id": 1', b'"id": 2'))
        assert text_of(await child.answer(2)) == "@"
        assert len(await child.finish()) == 8


@pytest.mark.requirement("TRANS-STDIO-03")
@pytest.mark.parametrize("revision", ALL)
async def test_crlf_and_blank_lines_between_messages(revision):
    async with raw_process(command("utilities")) as child:
        lines = opening(revision) + b"".join(call(revision, n, "echo", {"text": str(n)}) for n in range(20))
        blank = b"\n\r\n   \t\n \r\n"
        child.write(blank + lines.replace(b"\n", b"\r\n" + blank))
        frames = await child.finish()
        assert len(frames) == 21
        assert [text_of(answer) for n in range(20) for answer in child.answers(n)] == [str(n) for n in range(20)]


@pytest.mark.requirement("TRANS-STDIO-03")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
async def test_messages_in_pieces_of_any_size(revision, size):
    async with raw_process(command("utilities")) as child:
        texts = ["", UNICODE, BREAKS, "x" * (300 if size == 1 else 5000)]
        data = opening(revision) + b"".join(call(revision, n, "echo", {"text": t}) for n, t in enumerate(texts))
        for start in range(0, len(data), size):
            child.write(data[start : start + size])
            await child.drain()
            if size < 64:
                await asyncio.sleep(0)  # let the transport write the piece by itself
        await child.finish()
        assert [text_of(child.answers(n)[0]) for n in range(len(texts))] == texts


@pytest.mark.requirement("TRANS-STDIO-05")
@pytest.mark.parametrize("revision", NOT_BATCHING)
async def test_a_line_with_an_array_is_refused(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        one, two = (json.loads(call(revision, n, "echo", {"text": "x"})) for n in (1, 2))
        for batch in ([one, two], [one], []):
            child.write(line(batch))
            answer = await child.read()
            assert answer["error"]["code"] == -32600
            assert "id" not in answer
        child.write(call(revision, 3, "echo", {"text": "alone"}))
        assert text_of(await child.answer(3)) == "alone"
        assert len(await child.finish()) == 5


@pytest.mark.requirement("TRANS-STDIO-05")
@pytest.mark.parametrize("revision", ALL)
async def test_a_line_with_two_messages_is_refused(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        one, two = (call(revision, n, "echo", {"text": "x"}) for n in (1, 2))
        child.write(one.rstrip(b"\n") + two)
        assert (await child.read())["error"]["code"] == -32700
        child.write(two)
        assert text_of(await child.answer(2)) == "x"
        assert len(await child.finish()) == 3


@pytest.mark.requirement("TRANS-STDIO-06")
async def test_a_line_with_a_batch_where_there_are_batches():
    async with raw_process(command("utilities")) as child:
        await opened(child, "2025-03-26")
        batch = [json.loads(call("2025-03-26", n, "echo", {"text": str(n)})) for n in (1, 2)]
        batch.append({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        child.write(line(batch) + call("2025-03-26", 3, "echo", {"text": "single"}))
        frames = [await child.read(), await child.read()]
        (answers,) = [frame for frame in frames if isinstance(frame, list)]
        assert {answer["id"]: text_of(answer) for answer in answers} == {1: "1", 2: "2"}
        (single,) = [frame for frame in frames if isinstance(frame, dict)]
        assert text_of(single) == "single"
        await child.finish()


# --- the limit of a line ---


def padded(revision, id, size, position="behind"):
    """A call of `echo` that is `size` bytes long, its newline not counted; the id in front or behind."""
    frame = json.loads(call(revision, id, "echo", {"text": ""}))
    if position == "behind":
        frame = {"jsonrpc": "2.0", "method": frame["method"], "params": frame["params"], "id": id}
    frame["params"]["arguments"]["text"] = "x" * (size - len(json.dumps(frame)))
    return json.dumps(frame).encode()


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_message_over_the_limit_is_refused_and_the_next_one_answered(carrier, revision):
    async with small_server(carrier, revision) as (send, receive):
        for size in (LIMIT + 1, 2 * LIMIT, 100 * LIMIT):
            send(padded(revision, 1, size, "front"))
            answer = await receive()
            assert answer["error"]["code"] == -32600
            assert answer["id"] == 1  # it stands before everything long
            send(padded(revision, 2, size, "behind"))
            answer = await receive()
            assert answer["error"]["code"] == -32600
            assert answer.get("id", 2) == 2
            send(padded(revision, 3, LIMIT // 2))
            assert set(text_of(await receive())) == {"x"}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_an_answer_over_the_limit_becomes_an_error(carrier, revision):
    async with small_server(carrier, revision) as (send, receive):
        send(call(revision, 1, "big", {"size": 2 * LIMIT}).rstrip())
        answer = await receive()
        assert answer["id"] == 1
        assert answer["error"]["code"] == -32603
        send(call(revision, 2, "big", {"size": 10}).rstrip())
        assert text_of(await receive()) == "x" * 10


class small_server:
    """`send` and `receive` of a server with a small limit, opened, over either carrier."""

    def __init__(self, carrier, revision):
        self.carrier, self.revision = carrier, revision

    async def __aenter__(self):
        if self.carrier == "memory":
            limits = Limits(message_bytes=LIMIT)
            self.inner = server_under_test("memory", self.revision, server="utilities", limits=limits, check=False)
            peer = await self.inner.__aenter__()
            return peer.send, peer.receive
        self.inner = raw_process([sys.executable, str(SERVERS / "small_limits.py")])
        child = await self.inner.__aenter__()
        await opened(child, self.revision)
        return lambda data: child.write(data + b"\n"), child.read

    async def __aexit__(self, *problem):
        await self.inner.__aexit__(*problem)


# --- the end ---


@pytest.mark.requirement("STDIO-014", "STDIO-015")
@pytest.mark.parametrize("revision", ALL)
async def test_the_end_of_input_ends_the_process_and_no_answer_is_lost(revision):
    async with raw_process(command("utilities")) as child:
        ids = list(range(500))
        child.write(opening(revision))
        for id in ids:
            child.write(call(revision, id, "echo", {"text": str(id)}))
        frames = await child.finish()
        assert sorted(frame["id"] for frame in frames[1:]) == ids
        assert await child.stderr() == ""


@pytest.mark.requirement("STDIO-014")
@pytest.mark.parametrize("revision", ALL)
async def test_work_in_threads_is_answered_before_the_process_goes(revision):
    async with raw_process(command("utilities")) as child:
        child.write(opening(revision))
        for id in range(20):
            child.write(call(revision, id, "flood_in_thread", {"count": 20}))
        frames = await child.finish()
        assert sorted(frame["id"] for frame in frames[1:]) == list(range(20))


@pytest.mark.requirement("STDIO-014")
@pytest.mark.parametrize("revision", ALL[-2:])  # both eras; nothing here depends on more
@pytest.mark.parametrize("tool", ["forever", "deaf", "asleep"])
async def test_the_end_of_input_does_not_wait_for_a_handler_that_never_ends(revision, tool):
    """Not one that waits, not one that swallows its cancellation, not one that sleeps in a thread."""
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.write(call(revision, 1, tool, progressToken="t"))
        await child.notice("notifications/progress")
        await child.finish()
        assert child.answers(1) == []


@pytest.mark.requirement("STDIO-014")
@pytest.mark.parametrize("sent", [b"", b"\n", b'{"jsonrpc":"2.0","id":1,"meth', b"\xff\xfe"], ids=repr)
async def test_the_end_of_input_at_any_point(sent):
    async with raw_process(command("utilities")) as child:
        child.write(sent)
        await child.finish()
        assert "Traceback" not in await child.stderr()


@pytest.mark.requirement("STDIO-014")
@pytest.mark.parametrize("revision", ALL)
async def test_a_last_line_without_its_newline_is_answered(revision):
    async with raw_process(command("utilities")) as child:
        child.write(opening(revision) + call(revision, 1, "echo", {"text": "last"}).rstrip(b"\n"))
        await child.finish()
        assert [text_of(answer) for answer in child.answers(1)] == ["last"]


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
async def test_a_signal_lets_requests_in_flight_end(revision, name):
    """`hit` is running when the signal comes: its answer is written, then the process goes with 0."""
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.write(call(revision, 1, "hit", {"name": name}))
        await child.rest()  # our end of its stdin stays open
        assert await child.exit_code() == 0
        assert [text_of(answer) for answer in child.answers(1)] == [f"outlived {name}"]
        assert "Traceback" not in await child.stderr()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
async def test_a_signal_ends_an_idle_process(name):
    import signal

    async with raw_process(command("utilities")) as child:
        await opened(child, ALL[-1])
        child.process.send_signal(signal.Signals[name])
        await child.rest()
        assert await child.exit_code() == 0
        assert await child.stderr() == ""


@pytest.mark.parametrize("revision", ALL)
async def test_a_client_that_closed_our_stdout_ends_the_process(revision):
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.process._transport.get_pipe_transport(1).close()  # the client's reading end
        child.write(call(revision, 1, "big", {"size": 200_000}))
        assert await child.exit_code() == 0
        assert "Traceback" not in await child.stderr()


# --- other things to stand on than pipes ---


@pytest.mark.requirement("STDIO-014")
@pytest.mark.parametrize("revision", ALL)
async def test_input_from_a_regular_file(revision, tmp_path):
    """`interlock run server.py < requests`: no selector can watch a file."""
    path = tmp_path / "requests"
    lines = [call(revision, n, "echo", {"text": "x" * 1000}) for n in range(600)]  # several chunks of 256 KiB
    path.write_bytes(opening(revision) + b"".join(lines))
    with path.open("rb") as file:
        async with raw_process(command("utilities"), stdin=file) as child:
            frames = await child.rest()
            assert await child.exit_code() == 0
            assert sorted(frame["id"] for frame in frames[1:]) == list(range(600))


async def test_input_from_the_null_device():
    with open(os.devnull, "rb") as file:
        async with raw_process(command("utilities"), stdin=file) as child:
            assert await child.rest() == []
            assert await child.exit_code() == 0
            assert await child.stderr() == ""


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005")
@pytest.mark.parametrize("revision", ALL)
async def test_output_into_a_regular_file(revision, tmp_path):
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    lines = [call(revision, n, "big", {"size": 5000}) for n in range(200)]
    requests.write_bytes(opening(revision) + b"".join(lines))
    with requests.open("rb") as source, answers.open("wb") as target:
        async with raw_process(command("utilities"), stdin=source, stdout=target) as child:
            assert await child.exit_code() == 0
    frames = [json.loads(found) for found in answers.read_bytes().splitlines()]
    assert sorted(frame["id"] for frame in frames[1:]) == list(range(200))


@pytest.mark.requirement("TRANS-STDIO-10", "STDIO-005")
@pytest.mark.parametrize("revision", ALL)
async def test_a_client_that_reads_late_loses_nothing(revision):
    """Megabytes of answers wait in the server; it goes on reading requests meanwhile."""
    async with raw_process(command("utilities")) as child:
        child.write(opening(revision))
        for n in range(400):
            child.write(call(revision, n, "big", {"size": 20_000}))
        await child.drain()
        child.close_stdin()
        frames = await child.rest()
        assert await child.exit_code() == 0
        assert sorted(frame["id"] for frame in frames[1:]) == list(range(400))
        assert all(text_of(frame) == "x" * 20_000 for frame in frames[1:])


@pytest.mark.requirement("TRANS-STDIO-07", "STDIO-002")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_process_without_stderr_serves_all_the_same(revision, tmp_path):
    """`2>&-`: what would go there goes nowhere, and never to the client."""
    script = 'exec "$@" 2>&-'
    async with raw_process(["sh", "-c", script, "sh", *command("basic")]) as child:
        await opened(child, revision)
        child.write(call(revision, 1, "noise") + call(revision, 2, "fail", {"how": "bug"}))
        await child.answer(1)
        frames = await child.finish()
        assert sorted(map(str, (frame["id"] for frame in frames))) == ["1", "2", "open"]


@pytest.mark.parametrize("revision", MODERN)
async def test_the_version_travels_with_every_line(revision):
    """One process, two lines, two versions: each is judged by itself."""
    async with raw_process(command("utilities")) as child:
        await opened(child, revision)
        child.write(request(revision, 1, "tools/list", **{VERSION_KEY: "2099-01-01"}))
        assert (await child.answer(1))["error"]["code"] == -32022
        child.write(request(revision, 2, "tools/list"))
        assert "tools" in (await child.answer(2))["result"]
        await child.finish()
