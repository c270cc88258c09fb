"""Everything that is not what a client should send, to a server of ours: one answer or none, and it lives on.

After each wrong line comes a canary, a request that is right: what was said before its answer belongs to the
wrong line, and its answer shows that the connection has not suffered.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import random
import re

import pytest

from interlock.transport.jsonrpc.serve import serve_channel
from interlock.transport.memory import memory_pair
from support.corpus import ACCEPT, REJECT, cases
from support.mutations import all_mutations, methods
from support.raw_process import call, command, opening, raw_process
from support.schemas import Oracle
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, WirePeer, fresh, server_under_test

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
BOTH_ERAS = ("2025-11-25", *MODERN)

# Frames the schema forbids and this server serves all the same. Each row: where in the frame, and why.
TOLERATED = {
    r"[cC]apabilities/(elicitation/(form|url)|sampling/(context|tools)|roots/listChanged) is": (
        "what stands below a capability is read by the feature that needs it: there and not false counts as yes"
    ),
    r"[cC]apabilities/experimental( has one more|/key is)": (
        "values that are no objects circulate (handshake.md §16.11); nothing here reads them"
    ),
    r"[cC]apabilities/tasks(/\S+)? is": "the experimental tasks of 2025-11-25 are not offered, so nobody asks for them",
    r"clientInfo/icons/0/theme is": "identity is for display only; an unknown theme concerns no server",
    r"params/inputResponses": "answers to questions nobody asked are ignored (2026-07-28 patterns/mrtr)",
    r"params/requestState is": "this server hands out no state, so it reads none",
    r"params/(_meta|_meta/progressToken|arguments|cursor|notifications/resourceSubscriptions) is null": (
        "null for an optional member is read as missing: many clients write out what they do not have"
    ),
    r"params/(capabilities/(elicitation|experimental|roots|sampling)|clientInfo/[a-zU]+) is null": (
        "the same in initialize; a name or version that is null is missing, and refused"
    ),
    r"params/task(/ttl)? is": "tasks are not declared: the member is one of the unknown ones, which are ignored",
}


def text_of(answer):
    return answer["result"]["content"][0]["text"]


class Canary:
    """Sends a line, then a right request; gives what was said in between."""

    def __init__(self, peer):
        self.peer = peer
        self.numbers = itertools.count(1)

    async def after(self, line, *, expected=False):
        """With `expected` an answer is waited for even when it comes after the canary's."""
        peer = self.peer
        peer.heard.clear()
        peer.channel.send(line)
        number = f"canary-{next(self.numbers)}"
        frame = peer.frame("tools/call", {"name": "echo", "arguments": {"text": number}}, id=number)
        peer.channel.send(json.dumps(frame).encode())
        assert text_of(await peer.response(number)) == number, f"after {line[:200]!r}"
        if expected and not peer.heard:
            peer.heard.append(await peer.receive())
        return list(peer.heard)


def code_of(answer):
    return 0 if "result" in answer else answer["error"]["code"]


# --- the corpus ---


@pytest.mark.requirement("BASE-03", "BASE-12", "BASE-14", "BASE-21", "BASE-22", "BASE-25", "TRANS-STDIO-04")
@pytest.mark.requirement("JSONRPC-009", "JSONRPC-015", "JSONRPC-016", "JSONRPC-020")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_every_case_of_the_corpus(carrier, revision):
    objections = []
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for case in cases(revision):
            if carrier == "memory" and not case.line.strip():
                continue  # blank lines are a matter of lines
            said = await canary.after(case.line, expected=None not in case.codes)
            objection = case.objection(said[0] if said else None)
            if objection or len(said) > 1:
                objections.append(f"{case.label}: {objection or said}")
    assert not objections, "\n".join(objections)


@pytest.mark.parametrize("revision", ALL)
async def test_the_corpus_in_one_write(revision):
    """All lines at once over a real pipe: as many answers as there must be, none beside them."""
    async with raw_process(command("basic")) as child:
        child.write(opening(revision))
        await child.answer("open")
        known = cases(revision)
        writing = asyncio.ensure_future(send_all(child, [case.line for case in known]))
        child_frames = await child.rest()
        await writing
        assert await child.exit_code() == 0
        least = sum(None not in case.codes for case in known)
        most = sum(case.codes != (None,) for case in known)
        assert least <= len(child_frames) - 1 <= most


async def send_all(child, lines):
    for line in lines:
        child.write(line + b"\n")
        await child.drain()
    child.close_stdin()


# --- JSON values ---


def with_value(revision, id, value):
    """A request that would be answered with a result, and `value` at a place nobody reads."""
    if revision in HANDSHAKE:
        return b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":%s}}' % (id, value)
    meta = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}'
    frame = b'{"jsonrpc":"2.0","id":%d,"method":"server/discover","params":{' + meta + b',"x":%s}}'
    return frame % (id, revision.encode(), value)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_json_values_that_must_be_read(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for id, value in enumerate(ACCEPT, start=1000):
            (answer,) = await canary.after(with_value(revision, id, value), expected=True)
            assert (answer["id"], code_of(answer)) == (id, 0), value[:80]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_json_values_that_must_be_refused(carrier, revision):
    objections = []
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for id, value in enumerate(REJECT, start=1000):
            (answer,) = await canary.after(with_value(revision, id, value), expected=True)
            if code_of(answer) != PARSE or answer.get("id", id) != id:
                objections.append(f"{value[:80]!r}: {answer}")
    assert not objections, "\n".join(objections)


@pytest.mark.parametrize("revision", ALL)
async def test_json_values_reach_the_author_as_they_are(revision):
    """Texts, arrays and objects; numbers lose at most what a double cannot hold."""
    async with server_under_test("memory", revision, server="utilities", check=False) as peer:
        for id, value in enumerate(ACCEPT, start=1000):
            frame = peer.frame("utilities/mirror", {"value": "@"}, id=id)
            peer.channel.send(json.dumps(frame).encode().replace(b'"@"', value))
            answer = await peer.response(id)
            assert same(answer["result"]["value"], json.loads(value)), value[:80]


def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return one == pytest.approx(other)
    return one == other


# --- mutations ---


def id_of(frame):
    """The id an answer to this frame carries; None where it must carry none."""
    id = frame.get("id") if isinstance(frame, dict) else None
    return id if type(id) in (int, str) else None


def objection(mutation, frame, said, oracle):
    """What is wrong with what the server said to a mutation; None if nothing is."""
    answers = [part for each in said for part in (each if isinstance(each, list) else [each])]
    accepted = [each for each in answers if each.get("method") == ACKNOWLEDGED]
    answers = [each for each in answers if "method" not in each]
    for answer in answers:
        oracle.check_frame(answer, sender="server", allow_missing_id=True)
    count = len(answers) + len(accepted)
    if count > 1 or (len(said) != count and not any(isinstance(each, list) for each in said)):
        return f"{len(said)} messages"
    if mutation.reply == "forbidden" and count:
        return "an answer to what is never answered"
    if mutation.reply == "required" and not count:
        return "no answer"
    return objection_to_answer(mutation, frame, answers[0] if answers else None, bool(accepted))


def objection_to_answer(mutation, frame, answer, accepted):
    if answer is not None:
        if code_of(answer) in (PARSE, INTERNAL):
            return f"the wrong code: {answer['error']}"
        if answer.get("id") != id_of(frame) and not isinstance(frame, list) and not mutation.limited:
            return f"the id {answer.get('id')!r}"
    served = accepted or (answer is not None and "result" in answer)
    if served and mutation.expectation == "invalid" and mutation.reply == "required" and not tolerated(mutation):
        return "served, although the schema forbids it and no row of TOLERATED allows it"
    return None


def tolerated(mutation):
    return [pattern for pattern in TOLERATED if re.search(pattern, mutation.label)]


def ours(revision):
    """All mutations but those of `initialize`, which need a connection each.

    Nearly half of the newest revision's damage lies in answers to questions, which nobody here has asked: a
    tenth of those will do.
    """
    found = [each for each in all_mutations(revision) if not each.label.startswith("initialize:")]
    answers = [each for each in found if "params/inputResponses" in each.label]
    return [each for each in found if "params/inputResponses" not in each.label] + answers[::10]


@pytest.mark.requirement("BASE-07", "BASE-08", "BASE-09", "BASE-12", "BASE-14", "BASE-25")
@pytest.mark.requirement("JSONRPC-009", "JSONRPC-010", "JSONRPC-011", "JSONRPC-015")
@pytest.mark.parametrize("revision", ALL)
async def test_every_mutation(revision):
    oracle = Oracle.load(revision)
    objections = []
    async with server_under_test("memory", revision, check=False) as peer:
        canary = Canary(peer)
        for mutation in ours(revision):
            frame = json.loads(mutation.frame_bytes)
            said = await canary.after(mutation.frame_bytes, expected=mutation.reply == "required")
            found = objection(mutation, frame, said, oracle)
            if found:
                objections.append(f"{mutation.label}: {found}")
            for each in said:  # a listen request lasts: end it, or its id stays taken
                if isinstance(each, dict) and each.get("method") == ACKNOWLEDGED:
                    listening = each["params"]["_meta"][SUBSCRIPTION]
                    peer.notify("notifications/cancelled", {"requestId": listening})
    assert len(all_mutations(revision)) >= 2000
    assert not objections, "\n".join(objections)


@contextlib.asynccontextmanager
async def connected(server, revision):
    """A new connection to a server there is already, nothing said on it yet."""
    near, far = memory_pair()
    duplex = serve_channel(server, far)
    await duplex.open()
    peer = WirePeer(near, revision, "client")
    await near.open(peer)
    try:
        yield peer
    finally:
        await near.close()
        await duplex.close()


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_every_mutation_of_initialize(revision):
    """A refused one leaves the connection as it was: the next, right one succeeds."""
    oracle = Oracle.load(revision)
    objections = []
    server = fresh("support.servers.basic").server
    for mutation in all_mutations(revision):
        if not mutation.label.startswith("initialize:"):
            continue
        async with connected(server, revision) as peer:
            frame = json.loads(mutation.frame_bytes)
            peer.channel.send(mutation.frame_bytes)
            canary = await peer.request("tools/list", id="canary")  # while initialize runs, it waits
            if mutation.reply == "required" and not peer.heard:
                peer.heard.append(await peer.receive())
            said = list(peer.heard)
            found = objection(mutation, frame, said, oracle)
            if "error" in canary:  # nothing was opened, so it still can be
                await peer.open()
            peer.notify("notifications/initialized")
            await peer.result("tools/list")
        if found:
            objections.append(f"{mutation.label}: {found}")
    assert not objections, "\n".join(objections)


def test_every_tolerance_is_used():
    """A row nothing falls under is no longer true, or never was."""
    labels = [
        each.label
        for revision in ALL
        for each in all_mutations(revision)
        if each.expectation == "invalid" and each.reply == "required"
    ]
    unused = [pattern for pattern in TOLERATED if not any(re.search(pattern, label) for label in labels)]
    assert unused == []


# --- requests in the guise of notifications ---


@pytest.mark.requirement("BASE-14", "JSONRPC-015")
@pytest.mark.parametrize("revision", ALL)
async def test_a_request_without_its_id_is_ignored(revision, caplog):
    """No answer, no run, and no traceback in the log: a peer's mistake is no failure of ours."""
    caplog.set_level(logging.WARNING, logger="interlock")
    requests = [name for name in methods(revision) if not name.startswith("notifications/")]
    async with server_under_test("memory", revision, server="utilities", check=False) as peer:
        for method in [*requests, "server/discover", "subscriptions/listen", "acme/none"]:
            params = {"name": "forever", "arguments": {"name": "ghost"}, "uri": "slow://one", "notifications": {}}
            frame = peer.frame(method, params)
            del frame["id"]
            peer.send(frame, judged=False)
        await peer.settle()
        assert peer.heard == []
        noted = await peer.result("tools/call", {"name": "noted", "arguments": {}})
        assert "ghost" not in noted["content"][0]["text"]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


# --- depth ---

LEVELS = 5000
DEEP_VALUES = {
    "arrays": b"[" * LEVELS + b"]" * LEVELS,
    "objects": b'{"a":' * LEVELS + b"0" + b"}" * LEVELS,
    "both in turn": b'[{"a":' * (LEVELS // 2) + b"0" + b"}]" * (LEVELS // 2),
    "arrays with strings of brackets": b'["]]]]",' * LEVELS + b"0" + b"]" * LEVELS,
}
PLACES = {
    "params": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":%s}',
    "a member of params": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","x":%s}}',
    "arguments": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{"text":%s}}}',
    "_meta": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","_meta":{"x":%s}}}',
    "the id": b'{"jsonrpc":"2.0","id":%s,"method":"tools/call"}',
    "the method": b'{"jsonrpc":"2.0","id":9,"method":%s}',
    "an unknown member": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"},"x":%s}',
    "the whole line": b"%s",
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_five_thousand_levels(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for (place, frame), (kind, value) in itertools.product(PLACES.items(), DEEP_VALUES.items()):
            for text in (value, value[: len(value) // 2]):  # whole, and cut in the middle
                said = await canary.after(frame % text, expected=True)
                # Where Python reads that deep, an array is a batch and each bad element of it gets its own error.
                (answers,) = said if isinstance(said[0], list) else (said,)
                for answer in answers:
                    assert code_of(answer) in (PARSE, INVALID, PARAMS), f"{kind} as {place}: {answer}"
                    assert answer.get("id", 9) == 9


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_five_thousand_levels_in_a_batch(carrier):
    async with server_under_test(carrier, "2025-03-26", check=False) as peer:
        canary = Canary(peer)
        for value in DEEP_VALUES.values():
            deep = PLACES["a member of params"] % value
            good = b'{"jsonrpc":"2.0","id":10,"method":"ping"}'
            (said,) = await canary.after(b"[%s,%s]" % (deep, good), expected=True)
            answers = said if isinstance(said, list) else [said]
            assert {answer.get("id"): code_of(answer) for answer in answers}.get(10, 0) == 0
            assert any(code_of(answer) in (PARSE, INVALID) for answer in answers)


@pytest.mark.requirement("BASE-14", "JSONRPC-015")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_notification_or_response_too_deep_is_not_answered(carrier, revision):
    """It is JSON, and what it is can be read: never answered, whatever is wrong inside (BASE-14)."""
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for value in (b"[" * 200 + b"]" * 200, b'{"a":' * 200 + b"0" + b"}" * 200):
            for line in (
                b'{"jsonrpc":"2.0","method":"notifications/acme","params":{"x":%s}}',
                b'{"jsonrpc":"2.0","id":4711,"result":{"x":%s}}',
            ):
                assert await canary.after(line % value) == [], line


# --- answers to our own questions ---

BAD_ANSWERS = {
    "no object": b'"result":[]',
    "null": b'"result":null',
    "a text": b'"result":"roots"',
    "an error that is a text": b'"error":"no"',
    "an error without a code": b'"error":{"message":"no"}',
    "an error with a text as code": b'"error":{"code":"1","message":"no"}',
    "result and error": b'"result":{"roots":[]},"error":{"code":1,"message":"no"}',
    "too deep": b'"result":{"roots":[],"x":' + b"[" * 200 + b"]" * 200 + b"}",
}


@pytest.mark.requirement("BASE-05", "BASE-07", "BASE-08", "BASE-26")
@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=list(BAD_ANSWERS))
async def test_a_bad_answer_to_our_question_ends_the_question(revision, answer):
    """The tool that asked learns of it. Nothing is sent back: the client would take it for its own id."""
    async with server_under_test("memory", revision, capabilities={"roots": {}}, check=False) as peer:
        asking = peer.frame("tools/call", {"name": "question", "arguments": {"method": "roots/list"}}, id="asking")
        peer.send(asking)
        question = await peer.expect("roots/list")
        peer.channel.send(b'{"jsonrpc":"2.0","id":%d,%s}' % (question["id"], answer))
        told = await peer.response("asking")
        assert "error" in told or told["result"]["isError"]
        await peer.settle()
        assert peer.heard == []


# --- long ids ---

DIGITS = b"7" * 400


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_numbers_of_four_hundred_digits(carrier, revision):
    """As id refused and echoed; as anything else no reason to stumble."""
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for method in ("tools/call", "tools/list", "ping", "initialize", "server/discover", "acme/none"):
            for sign in (b"", b"-"):
                line = json.dumps(peer.frame(method, {"name": "echo"}, id="@")).encode()
                (answer,) = await canary.after(line.replace(b'"@"', sign + DIGITS), expected=True)
                assert code_of(answer) == INVALID
                assert answer["id"] == int(sign + DIGITS)
        for method, params in {
            "notifications/cancelled": {"requestId": "@"},
            "notifications/progress": {"progressToken": "@", "progress": 1},
            "notifications/progress ": {"progressToken": 1, "progress": "@"},
        }.items():
            line = json.dumps({"jsonrpc": "2.0", "method": method.strip(), "params": params}).encode()
            assert await canary.after(line.replace(b'"@"', DIGITS)) == []
        assert await canary.after(b'{"jsonrpc":"2.0","id":%s,"result":{}}' % DIGITS) == []
        line = json.dumps(peer.frame("tools/call", {"name": "echo"}, id=5, meta={"progressToken": "@"})).encode()
        (answer,) = await canary.after(line.replace(b'"@"', DIGITS), expected=True)
        assert (answer["id"], code_of(answer)) in [(5, PARAMS), (5, 0)]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_ids_at_and_over_the_limit_of_letters(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        canary = Canary(peer)
        for length, codes in ((512, (0,)), (513, (INVALID,)), (100_000, (INVALID,))):
            line = json.dumps(peer.frame("tools/call", {"name": "echo"}, id="i" * length)).encode()
            (answer,) = await canary.after(line, expected=True)
            assert code_of(answer) in codes
            assert answer.get("id", "i" * length) == "i" * length


# --- noise ---


def noise(count, seed=0):
    """Lines of what a confused program writes: bytes, log lines, half messages. None is blank."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        kind = chance.randrange(4)
        if kind == 0:
            line = chance.randbytes(chance.randrange(1, 60)).replace(b"\n", b"")
        elif kind == 1:
            line = f"[{chance.randrange(10**6)}] INFO something happened: {chance.random()}".encode()
        elif kind == 2:
            line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"na'[: chance.randrange(1, 60)]
        else:
            line = bytes(chance.choices(b'{}[]",:0123456789.eE+-\\ntrufalse', k=chance.randrange(1, 40)))
        if line.strip():
            made += 1
            yield line


@pytest.mark.parametrize("revision", BOTH_ERAS)
async def test_a_hundred_thousand_lines_of_noise_over_stdio(revision):
    """Each gets one error; the good request behind them its answer."""
    count = 100_000
    async with raw_process(command("basic")) as child:
        child.write(opening(revision))
        await child.answer("open")
        good = call(revision, "good", "echo", {"text": "still here"}).rstrip(b"\n")
        writing = asyncio.ensure_future(send_all(child, [*noise(count), good]))
        await child.rest()
        await writing
        assert [text_of(answer) for answer in child.answers("good")] == ["still here"]
        errors = [frame for frame in child.frames if "error" in frame]
        assert len(errors) == count
        assert {frame["error"]["code"] for frame in errors} <= {PARSE, INVALID}
        assert not any("id" in frame for frame in errors)
        assert await child.exit_code() == 0
