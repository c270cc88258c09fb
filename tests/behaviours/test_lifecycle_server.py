"""How a session with a server begins, is kept and ends (LIFE)."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from support.handshake_talk import barrier, call, can, hello, said_to, together
from support.wire_peer import CARRIERS, HANDSHAKE, HERE, MODERN, WAIT, server_under_test

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)
NEWEST_HANDSHAKE = HANDSHAKE[-1]

# --- before the introduction ---

EARLY = {
    "tools/list": {},
    "tools/call": {"name": "echo", "arguments": {}},
    "resources/list": {},
    "resources/read": {"uri": "note://one"},
    "resources/subscribe": {"uri": "note://one"},
    "prompts/get": {"name": "greet", "arguments": {"name": "Ada"}},
    "logging/setLevel": {"level": "info"},
    "example/double": {"number": 1},
    "example/none": {},
    "shutdown": None,
}


@pytest.mark.requirement("LIFE-01")
@every_carrier
@every_revision
async def test_nothing_is_served_before_initialize_but_ping(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        for method, params in EARLY.items():
            assert "error" in await peer.request(method, params), method
        assert await peer.result("ping") == {}
        peer.notify("notifications/initialized")  # means nothing yet
        assert "error" in await peer.request("tools/list", {})
        assert (await peer.open())["protocolVersion"] == revision
        assert "tools" in await peer.result("tools/list", {})


@pytest.mark.requirement("LIFE-01", "LIFE-06")
@every_carrier
@every_revision
async def test_a_server_says_nothing_on_its_own_before_initialize(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        peer.notify("notifications/initialized")
        peer.notify("notifications/example/ring", {"tone": "early"})
        await peer.settle()
        assert peer.heard == []


# --- the introduction ---


@pytest.mark.requirement("LIFE-03", "LIFE-10", "LIFE-15", "LIFE-31", "LIFE-32", "SCH-04")
@every_carrier
@every_revision
async def test_a_supported_version_is_echoed(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        found = await peer.open()
        assert found["protocolVersion"] == revision
        assert found["serverInfo"]["name"] == "basic" and found["serverInfo"]["version"] == "1.2.3"
        assert isinstance(found["capabilities"], dict)


@pytest.mark.requirement("LIFE-30")
@every_carrier
@every_revision
async def test_instructions_are_told_where_there_are_some(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        assert (await peer.open())["instructions"] == "Be kind."
    async with server_under_test(carrier, revision, server="handshake_bare", opened=False) as peer:
        assert "instructions" not in await peer.open()


UNKNOWN_VERSIONS = ["1999-01-01", "2099-01-01", "2025-06-19", "", "1", "latest", "2025-6-18", MODERN[0]]


@pytest.mark.requirement("LIFE-11", "LIFE-12", "LIFE-29", "LIFE-31")
@pytest.mark.parametrize(
    ("carrier", "version"), [*(("memory", version) for version in UNKNOWN_VERSIONS), ("stdio", "2099-01-01")]
)
async def test_an_unknown_version_gets_the_newest_as_a_counter_offer(carrier, version):
    """And the session then is of the offered version; versions are opaque, so nothing is guessed from them."""
    async with server_under_test(carrier, NEWEST_HANDSHAKE, opened=False) as peer:
        found = await peer.result("initialize", hello(version))
        assert found["protocolVersion"] == NEWEST_HANDSHAKE
        peer.notify("notifications/initialized")
        tool = (await peer.result("tools/list", {}))["tools"][0]
        assert tool["title"] == "Echo"


@pytest.mark.requirement("LIFE-11", "LIFE-12", "LIFE-15")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28", "2024-10-07", "2099-01-01"])
@every_carrier
async def test_a_counter_offer_is_the_newest_the_server_has(carrier, version):
    async with server_under_test(carrier, "2025-03-26", server="handshake_old", opened=False) as peer:
        assert (await peer.result("initialize", hello(version)))["protocolVersion"] == "2025-03-26"
        peer.send([peer.frame("ping", id=900)])  # it is that revision which is spoken now: batches exist
        assert await peer.receive() == [{"jsonrpc": "2.0", "id": 900, "result": {}}]


@pytest.mark.requirement("LIFE-10", "LIFE-32")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
@every_carrier
async def test_a_server_of_old_revisions_still_echoes_them(carrier, version):
    async with server_under_test(carrier, version, server="handshake_old", opened=False) as peer:
        assert (await peer.open())["protocolVersion"] == version


@pytest.mark.requirement("LIFE-14", "LIFE-29")
@every_carrier
@every_revision
async def test_a_server_without_any_handshake_revision_says_what_it_has(carrier, revision):
    """modern.md §11: refused with an error that names the supported versions, in message and data."""
    async with server_under_test(carrier, revision, server="handshake_modern", opened=False) as peer:
        error = await peer.error("initialize", hello(revision))
        assert error["data"] == {"supported": [MODERN[0]], "requested": revision}
        assert MODERN[0] in error["message"]


BAD_HELLOS = {
    "no version": {"protocolVersion": ...},
    "no capabilities": {"capabilities": ...},
    "no client info": {"clientInfo": ...},
    "version a number": {"protocolVersion": 20250618},
    "version null": {"protocolVersion": None},
    "version a list": {"protocolVersion": ["2025-06-18"]},
    "capabilities null": {"capabilities": None},
    "capabilities a list": {"capabilities": []},
    "client info a string": {"clientInfo": "me"},
    "client info without name": {"clientInfo": {"version": "1"}},
    "client info without version": {"clientInfo": {"name": "raw"}},
    "client name a number": {"clientInfo": {"name": 1, "version": "1"}},
}


@pytest.mark.requirement("LIFE-02", "LIFE-31", "SCH-03", "SCH-01", "BASE-21")
@every_carrier
@every_revision
async def test_a_malformed_introduction_is_refused_and_can_be_repeated(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        codes = {}
        for name, changes in BAD_HELLOS.items():
            params = {key: value for key, value in hello(revision, **changes).items() if value is not ...}
            error = await peer.error("initialize", params, judged=False)
            codes[name] = error["code"]
            assert "initialize first" not in error["message"], f"{name}: the client did send initialize"
        codes["no params"] = (await peer.error("initialize", judged=False))["code"]
        assert codes == dict.fromkeys(codes, -32602)
        assert "error" in await peer.request("tools/list", {}), "a refused introduction opened the session"
        assert (await peer.open())["protocolVersion"] == revision
        assert "tools" in await peer.result("tools/list", {})


@pytest.mark.requirement("LIFE-15", "LIFE-31", "LIFE-01")
@every_carrier
@every_revision
async def test_a_second_initialize_is_refused_and_changes_nothing(carrier, revision):
    other = next(version for version in HANDSHAKE if version != revision)
    async with server_under_test(carrier, revision, server="handshake_full", opened=False) as peer:
        await peer.open(can(revision))
        before = await peer.result("tools/list", {})
        again = hello(other, capabilities={}, clientInfo={"name": "somebody else", "version": "2"})
        assert (await peer.error("initialize", again))["code"] == -32600
        assert (await peer.error("initialize", hello(revision)))["code"] == -32600
        assert await peer.result("tools/list", {}) == before
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})  # what was declared first still holds
        peer.send(asking)
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert "result" in await peer.response(asking["id"])


@pytest.mark.requirement("LIFE-01", "LIFE-31")
@every_carrier
@every_revision
async def test_two_introductions_in_one_write_open_one_session(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        together(
            peer,
            peer.frame("initialize", hello(revision), id=1),
            peer.frame("initialize", hello(HANDSHAKE[0]), id=2),
        )
        answers = {frame["id"]: frame for frame in [await peer.receive(), await peer.receive()]}
        assert answers[1]["result"]["protocolVersion"] == revision
        assert answers[2]["error"]["code"] == -32600


# --- a hasty client ---


@pytest.mark.requirement("LIFE-01", "LIFE-03")
@every_carrier
@every_revision
async def test_everything_in_one_write_is_answered_in_order(carrier, revision):
    """A client should wait, many do not: what comes behind initialize waits for its end."""
    async with server_under_test(carrier, revision, opened=False) as peer:
        together(
            peer,
            peer.frame("initialize", hello(revision), id=1),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            peer.frame("tools/list", {}, id=2),
            call(peer, "add", {"a": 1, "b": 2}, id=3),
            peer.frame("logging/setLevel", {"level": "error"}, id=4),
            peer.frame("example/none", {}, id=5),
        )
        frames = [await peer.receive() for _ in range(5)]
        assert frames[0]["id"] == 1 and frames[0]["result"]["protocolVersion"] == revision
        answers = {frame["id"]: frame for frame in frames}
        assert "tools" in answers[2]["result"]
        assert answers[3]["result"]["content"][0]["text"] == "3"
        assert answers[4]["result"] == {}
        assert answers[5]["error"]["code"] == -32601
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        await peer.expect("notifications/tools/list_changed")  # `initialized` was not lost on the way


@pytest.mark.requirement("LIFE-01", "LIFE-06")
@every_carrier
@every_revision
async def test_a_question_of_a_hasty_call_waits_for_the_introduction(carrier, revision):
    """The answer to initialize is the first thing the client hears, then the question."""
    async with server_under_test(carrier, revision, server="handshake_full", opened=False) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}}, id=3)
        together(
            peer,
            peer.frame("initialize", hello(revision, capabilities={"roots": {}}), id=1),
            asking,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        )
        assert (await peer.receive())["id"] == 1
        question = await peer.receive()
        assert question["method"] == "roots/list"
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert "result" in await peer.response(3)


@pytest.mark.requirement("LIFE-01")
@every_carrier
@every_revision
async def test_ping_is_answered_while_the_introduction_is_under_way(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        together(peer, peer.frame("initialize", hello(revision), id=1), peer.frame("ping", id=2))
        frames = [await peer.receive(), await peer.receive()]
        assert {frame["id"] for frame in frames} == {1, 2}
        assert all("result" in frame for frame in frames)


@pytest.mark.requirement("LIFE-01")
@every_carrier
@every_revision
async def test_a_cancelled_introduction_leaves_nobody_waiting(carrier, revision):
    """initialize must not be cancelled; whoever does it all the same still gets answers to everything else."""
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        together(
            peer,
            peer.frame("initialize", hello(revision), id=1),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            peer.frame("tools/list", {}, id=2),
        )
        await peer.response(2)  # whoever waits behind a cancelled initialize is answered
        again = await peer.request("initialize", hello(revision), id=3)
        if "error" in again:  # the cancellation was ignored: the session is open
            assert again["error"]["code"] == -32600
        assert "tools" in await peer.result("tools/list", {}, id=4)


# --- before initialized ---


@pytest.mark.requirement("LIFE-06")
@every_carrier
@every_revision
async def test_the_server_asks_nothing_before_initialized(carrier, revision):
    """A call that asks waits; its question goes out as soon as the client is ready."""
    async with server_under_test(
        carrier, revision, server="handshake_full", capabilities=can(revision), initialized=False
    ) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        await barrier(peer)
        assert peer.heard == []
        peer.notify("notifications/initialized")
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert "result" in await peer.response(asking["id"])


@pytest.mark.requirement("LIFE-06")
@every_carrier
@every_revision
async def test_the_server_tells_of_no_change_before_initialized(carrier, revision):
    async with server_under_test(carrier, revision, initialized=False) as peer:
        await peer.result("resources/subscribe", {"uri": "note://one"})
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        await peer.result("tools/call", {"name": "touch", "arguments": {"uri": "note://one"}})
        await barrier(peer)
        assert [frame["method"] for frame in peer.heard if "method" in frame] == []
        peer.notify("notifications/initialized")
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        await peer.expect("notifications/tools/list_changed")


@pytest.mark.requirement("LIFE-06")
@every_carrier
@every_revision
async def test_initialized_twice_is_heard_once(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        peer.notify("notifications/initialized")
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        await peer.expect("notifications/tools/list_changed")
        await barrier(peer)
        assert peer.notices("notifications/tools/list_changed") == [], "a change was told twice"


# --- the version holds for the whole session ---


@pytest.mark.requirement("LIFE-15", "LIFE-31")
@every_carrier
@every_revision
async def test_another_version_in_passing_does_not_change_the_session(carrier, revision):
    """A stateless request on the same connection is answered in its own words; the session keeps its own."""
    async with server_under_test(carrier, revision, check=False) as peer:
        before = await peer.result("tools/list", {})
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN[0],
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        modern = await peer.result("tools/list", {"_meta": meta}, judged=False)
        assert modern["resultType"] == "complete"
        assert await peer.result("tools/list", {}) == before
        assert "resultType" not in before and "ttlMs" not in before


# --- questions and patience ---


@pytest.mark.requirement("LIFE-24", "LIFE-25", "LIFE-26", "LIFE-28")
@every_carrier
@every_revision
async def test_a_question_given_up_is_cancelled(carrier, revision):
    """The author's own timeout; progress of the client does not move it."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        asking = call(peer, "impatient")
        peer.send(asking)
        question = await peer.expect("roots/list")
        for value in range(1, 4):
            told = {"progressToken": question["params"]["_meta"]["progressToken"], "progress": value}
            peer.notify("notifications/progress", told)
        cancelled = await peer.expect("notifications/cancelled")
        assert cancelled["params"]["requestId"] == question["id"]
        assert type(cancelled["params"]["requestId"]) is type(question["id"])
        result = (await peer.response(asking["id"]))["result"]
        assert result["content"][0]["text"] == "gave up"
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        peer.send(late, judged=False)  # ignored
        await barrier(peer)
        assert peer.heard == []


# --- the end ---


@pytest.mark.requirement("LIFE-17")
@every_carrier
@every_revision
async def test_shutdown_is_answered_as_a_courtesy(carrier, revision):
    """Deviation §16.1: `{}`, work in flight is finished, and the session goes on until the transport closes."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        question = await peer.expect("roots/list")
        assert await peer.result("shutdown") == {}
        peer.notify("exit")
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert "isError" not in (await peer.response(asking["id"]))["result"]
        assert await peer.result("ping") == {}
        assert peer.end is None


@pytest.mark.requirement("LIFE-17", "BASE-22")
@every_carrier
@every_revision
async def test_there_is_no_shutdown_in_strict_mode(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_strict") as peer:
        assert (await peer.error("shutdown"))["code"] == -32601
        assert (await peer.error("exit"))["code"] == -32601
        assert "tools" in await peer.result("tools/list", {})


@pytest.mark.requirement("LIFE-17")
@every_carrier
@every_revision
async def test_exit_is_no_request(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        assert (await peer.error("exit"))["code"] == -32601


@pytest.mark.requirement("LIFE-17")
@every_revision
async def test_shutdown_with_odd_params_harms_nothing(revision):
    async with server_under_test("memory", revision) as peer:
        assert await peer.result("shutdown", {"reason": "done"}) == {}
        (refused,) = await said_to(peer, b'{"jsonrpc":"2.0","id":77,"method":"shutdown","params":[1]}')
        assert refused["error"]["code"] in (-32600, -32602)


@pytest.mark.requirement("LIFE-17")
@every_revision
async def test_closing_the_transport_ends_what_was_running(revision):
    """The connection's end is the only farewell there is: runs are cancelled, nothing is left behind."""
    async with server_under_test("memory", revision) as peer:
        peer.send(call(peer, "forever", {"name": "end"}, id=50, meta={"progressToken": "t"}))
        await peer.expect("notifications/progress")
        basic = sys.modules["support.servers.basic"]
        assert basic.started == ["end"] and basic.stopped == []
    assert basic.stopped == ["end"]


@contextmanager
def _process(server):
    """A server started by nobody of ours, so that nothing of ours closes it."""
    command = [sys.executable, "-m", "interlock", "run", str(HERE / "servers" / f"{server}.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def _end(process, *frames):
    """Write the frames, close stdin; the exit code and what was said. A server that stays is an error."""
    written = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    said, _ = process.communicate(written, timeout=WAIT)
    return process.returncode, [json.loads(line) for line in said.splitlines()]


def _opening(revision, **more):
    return (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(revision, **more)},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )


@pytest.mark.requirement("LIFE-21")
@every_revision
def test_a_server_exits_when_its_stdin_ends(revision):
    """With code 0, and what came before the end is still answered."""
    with _process("basic") as process:
        code, said = _end(process, *_opening(revision), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert code == 0
    assert [frame["id"] for frame in said] == [1, 2] and all("result" in frame for frame in said)


@pytest.mark.requirement("LIFE-21")
def test_a_server_exits_when_its_stdin_ends_before_anything_was_said():
    with _process("basic") as process:
        assert _end(process) == (0, [])


@pytest.mark.requirement("LIFE-21")
def test_a_server_exits_in_the_middle_of_work():
    """A question that nobody will answer any more holds nothing up."""
    asking = {"name": "ask", "arguments": {"method": "roots/list", "params": {}}}
    with _process("handshake_full") as process:
        for frame in (
            *_opening(NEWEST_HANDSHAKE, capabilities={"roots": {}}),
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asking},
        ):
            process.stdin.write(json.dumps(frame).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("method") != "roots/list":
            pass
        code, _ = _end(process)
    assert code == 0
