"""JSON-RPC as the newest revision has it, on the server's side: basic/index, basic/patterns, schema.ts."""

import json

import pytest

from interlock import Context, Server
from interlock.wire.errors import Refused
from support.corpus import cases
from support.modern_peer import REFUSALS, REQUESTS, connected, hears, modern, same
from support.schemas import Oracle
from support.wire_peer import MODERN, server_under_test

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")

ASKING = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
QUESTIONS = ("roots/list", "sampling/createMessage", "elicitation/create")
DEFINED_CODES = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022}


async def use_everything(peer):
    """Every kind of answer and of notification that a modern server has."""
    for method, params in REQUESTS:
        await peer.result(method, params)
    for method, params, _ in REFUSALS:
        await peer.request(method, params, judged=False)
    meta = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
    await peer.result("tools/call", {"name": "steps", "arguments": {"count": 3}}, meta=meta)
    await peer.result("tools/call", {"name": "shout"}, meta=meta)
    for question in QUESTIONS:
        await peer.request("tools/call", {"name": "question", "arguments": {"method": question}})


@modern
@pytest.mark.requirement("JSONRPC-002", "JSONRPC-007", "JSONRPC-014")
async def test_every_message_is_a_jsonrpc_object_of_one_kind(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        await use_everything(peer)
        frames = [json.loads(line) for line in peer.raw]
        assert {frame["jsonrpc"] for frame in frames} == {"2.0"}
        answers = [frame for frame in frames if "method" not in frame]
        assert all(("result" in frame) != ("error" in frame) for frame in answers)
        assert all(isinstance(frame["result"], dict) for frame in answers if "result" in frame)
        notices = [frame for frame in frames if "method" in frame]
        assert {frame["method"] for frame in notices} == {"notifications/progress", "notifications/message"}
        assert not any("id" in frame for frame in notices)


@modern
@pytest.mark.requirement("JSONRPC-017")
@pytest.mark.parametrize("method", QUESTIONS)
async def test_the_server_never_sends_a_request(carrier, revision, method):
    """Not even when a handler wants to ask and the client declared that it could answer."""
    async with server_under_test(carrier, revision, capabilities=ASKING) as peer:
        await peer.request("tools/call", {"name": "question", "arguments": {"method": method}})
        await peer.settle()
        assert not [frame for frame in peer.transcript.frames("server") if "id" in frame and "method" in frame]


IDS = [0, 1, -7, 2**53 + 1, 2**63 - 1, "1", "", " ", "null", "é😀", 'a"\\\n', "k" * 200]


@modern
@pytest.mark.requirement("JSONRPC-006", "JSONRPC-009")
async def test_an_answer_repeats_the_id_with_its_type(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for id in IDS:
            for method in ("server/discover", "tools/list", "no/such/method"):
                peer.send(peer.frame(method, {}, id=id))
                answer = await peer.receive()
                assert same(answer["id"], id), answer


@modern
@pytest.mark.requirement("JSONRPC-005", "JSONRPC-006")
async def test_a_number_and_a_text_that_look_alike_are_two_requests(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for id in (77, "77"):
            peer.send(peer.frame("tools/call", {"name": "echo", "arguments": {"text": repr(id)}}, id=id))
        for id in ("77", 77):
            answer = await hears(peer, lambda frame, id=id: same(frame.get("id"), id))
            assert answer["result"]["content"][0]["text"] == repr(id)


@modern
@pytest.mark.requirement("JSONRPC-005")
async def test_an_id_in_use_is_not_used_twice(carrier, revision):
    """What runs under the id goes on; nobody could tell the answers apart otherwise."""
    async with server_under_test(carrier, revision, check=False) as peer:
        forever = {"name": "forever", "arguments": {"name": "x"}}
        peer.send(peer.frame("tools/call", forever, id="busy", meta={"progressToken": "p"}))
        await peer.expect("notifications/progress")
        assert (await peer.error("tools/call", forever, id="busy", judged=False))["code"] == -32600
        stopped = await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": "x"}})
        assert stopped["content"][0]["text"] == "False"


@modern
@pytest.mark.requirement("JSONRPC-003", "JSONRPC-004", "JSONRPC-009")
async def test_an_id_of_another_type_is_refused_without_an_id(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        for id in ("null", "1.5", "true", "[1]", '{"a":1}'):
            frame = json.dumps(peer.frame("tools/list", {}, id="ID")).replace('"ID"', id)
            peer.send(frame.encode())
            answer = await peer.receive()
            assert answer["error"]["code"] == -32600, id
            assert "id" not in answer  # the schema of this revision knows no null there


@modern
@pytest.mark.requirement("JSONRPC-009", "JSONRPC-010", "JSONRPC-011", "ERR-010", "ERR-011")
async def test_refusals(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for number, (method, params, code) in enumerate(REFUSALS):
            answer = await peer.request(method, params, id=f"asked {number}", judged=False)
            assert answer.keys() == {"jsonrpc", "id", "error"}
            assert answer["error"].keys() <= {"code", "message", "data"}
            assert same(answer["error"]["code"], code), (method, params, answer)
            assert isinstance(answer["error"]["message"], str) and answer["error"]["message"]


@modern
@pytest.mark.requirement("ERR-011")
async def test_a_log_level_that_does_not_exist_is_refused(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for level in ("loud", "warn", "", "WARNING", 5, None, ["info"]):
            meta = {"io.modelcontextprotocol/logLevel": level}
            assert (await peer.error("tools/list", {}, meta=meta, judged=False))["code"] == -32602, level


GATED = [
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "note://one"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
]


@modern
@pytest.mark.requirement("ERR-010")
async def test_what_was_not_advertised_does_not_exist(carrier, revision):
    """Whatever the params are: the method is judged before them (modern.md §4, steps 6 and 8)."""
    async with server_under_test(carrier, revision, server="lean") as peer:
        for method, params in GATED:
            for each in (params, {}, {"uri": 5, "name": 5, "cursor": 5, "ref": 5}):
                assert (await peer.error(method, each, judged=False))["code"] == -32601, (method, each)


@modern
@pytest.mark.requirement("ERR-001", "ERR-002", "ERR-004")
async def test_only_defined_codes_are_used(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        await use_everything(peer)
        for case in cases(revision):
            if case.line.strip():  # blank lines are the business of the framing
                peer.send(case.line)
        await peer.settle()
        codes = {frame["error"]["code"] for frame in peer.transcript.frames("server") if "error" in frame}
        assert codes >= {-32700, -32600, -32601, -32602, -32021, -32022}
        assert codes <= DEFINED_CODES


@modern
@pytest.mark.requirement("ERR-005")
async def test_the_codes_of_the_specification_mean_what_it_says(carrier, revision):
    """-32021 only for a capability that the client lacks, -32022 only for a version, -32020 never without headers."""
    async with server_under_test(carrier, revision) as peer:
        for method, params, _ in REFUSALS:
            code = (await peer.error(method, params, judged=False))["code"]
            assert code not in (-32020, -32021, -32022)
        lacking = await peer.error("tools/call", {"name": "question", "arguments": {"method": QUESTIONS[2]}})
        assert (lacking["code"], lacking["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
        version = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
        assert (await peer.error("tools/list", {}, meta=version))["code"] == -32022


@modern
@pytest.mark.requirement("ERR-006")
async def test_the_retired_codes_are_not_used(carrier, revision):
    async with server_under_test(carrier, revision, server="changing") as peer:
        missing = await peer.error("resources/read", {"uri": "note://none"})
        assert (missing["code"], missing["data"]) == (-32602, {"uri": "note://none"})
        # An author who wrote for 2025-11-25 raises this; the code is retired, the refusal is not lost.
        answer = await peer.request("tools/call", {"name": "refuse", "arguments": {"kind": "url"}})
        assert "error" in answer or answer["result"]["isError"]
        assert answer.get("error", {}).get("code") not in (-32042, -32002)


@modern
@pytest.mark.requirement("ERR-008", "JSONRPC-012")
async def test_an_author_chooses_codes_outside_of_the_reserved_range(carrier, revision):
    async with server_under_test(carrier, revision, server="changing") as peer:
        error = await peer.error("tools/call", {"name": "refuse", "arguments": {"kind": "own"}})
        assert error == {"code": 7, "message": "of my own", "data": {"why": "own"}}


ENDLESS = [
    ("x" * 5000, {}, {}),
    ("tools/call", {"name": "x\n" * 5000}, {}),
    ("tools/call", {"name": "add", "arguments": "x\n" * 5000}, {}),
    ("prompts/get", {"name": "x\n" * 5000}, {}),
    ("prompts/get", {"name": "greet", "arguments": {"x\n" * 5000: 1}}, {}),
    ("resources/read", {"uri": "x:" + "y" * 5000}, {}),
    ("completion/complete", {"ref": {"type": "x\n" * 5000}, "argument": {}}, {}),
    ("tools/list", {"cursor": "x" * 5000}, {}),
    ("subscriptions/listen", {"notifications": "x\n" * 5000}, {}),
    ("tools/list", {}, {"io.modelcontextprotocol/logLevel": "x\n" * 5000}),
    ("tools/list", {}, {"io.modelcontextprotocol/protocolVersion": "x\n" * 5000}),
]


@modern
@pytest.mark.requirement("JSONRPC-013")
async def test_a_message_stays_one_short_sentence(carrier, revision):
    """However long and broken what it is about."""
    async with server_under_test(carrier, revision) as peer:
        for method, params, meta in ENDLESS:
            told = (await peer.error(method, params, meta=meta, judged=False))["message"]
            assert "\n" not in told and len(told) < 400, f"{method[:40]}: {told[:200]}"


NOTIFICATIONS = [
    {"method": "notifications/no/such"},
    {"method": "notifications/initialized"},
    {"method": "notifications/roots/list_changed"},
    {"method": "notifications/cancelled", "params": {"requestId": "nobody"}},
    {"method": "notifications/cancelled", "params": {"requestId": [1]}},
    {"method": "notifications/cancelled"},
    {"method": "notifications/progress", "params": {"progressToken": "nobody", "progress": 1}},
    {"method": "notifications/example/ring", "params": {"tone": 5}},
    {"method": "notifications/example/ring", "params": [1]},
    {"method": "notifications/example/ring", "params": None},
    {"method": "tools/call", "params": {"name": "fail", "arguments": {"how": "bug"}}},
    {"method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}}},
    {"method": "server/discover"},
    {"method": ""},
]


@modern
@pytest.mark.requirement("JSONRPC-015")
async def test_a_notification_is_never_answered(carrier, revision):
    """Not if it is unknown, not if it is broken, not if its name is that of a request."""
    async with server_under_test(carrier, revision) as peer:
        for frame in NOTIFICATIONS:
            peer.send({"jsonrpc": "2.0", **frame}, judged=False)
            if isinstance(frame.get("params"), dict):
                params = {**frame["params"], "_meta": peer.envelope()}
                peer.send({"jsonrpc": "2.0", "method": frame["method"], "params": params}, judged=False)
            await peer.settle()
            assert peer.heard == [], frame


@pytest.mark.requirement("JSONRPC-015")
async def test_the_name_of_a_request_makes_no_notification_of_it(caplog):
    """No id, no request; and nothing fails loudly in the log because params were never read as that request's."""
    async with server_under_test("memory", MODERN[0]) as peer:
        for method, params in REQUESTS:
            peer.notify(method, {**params, "_meta": peer.envelope()}, judged=False)
        await peer.settle()
        assert peer.heard == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@modern
@pytest.mark.requirement("JSONRPC-018")
async def test_a_response_to_nothing_is_dropped(carrier, revision):
    """A client must not send any; a server does not fall over one that does."""
    async with server_under_test(carrier, revision) as peer:
        for id in (1, "x"):
            peer.send({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}}, judged=False)
            peer.send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}}, judged=False)
        await peer.settle()
        assert peer.heard == []


@modern
@pytest.mark.requirement("JSONRPC-016")
async def test_text_travels_as_utf8(carrier, revision):
    text = "é 中 😀 \U0010ffff \u2028 \u0085 \ufeff \0"
    async with server_under_test(carrier, revision) as peer:
        frame = peer.frame("tools/call", {"name": "echo", "arguments": {"text": text}}, id="é")
        peer.send(json.dumps(frame, ensure_ascii=False).encode("utf-8"), judged=True)
        answer = await peer.response("é")
        assert answer["result"]["content"][0]["text"] == text
        for line in peer.raw:
            assert not line.startswith(b"\xef\xbb\xbf")
            line.decode("utf-8")


@modern
@pytest.mark.requirement("JSONRPC-016", "JSONRPC-020")
@pytest.mark.parametrize("broken", [b"\xff", b"\xc3(", b"\xed\xa0\x80", "é".encode("latin-1")])
async def test_what_is_no_utf8_is_refused_and_the_next_message_is_read(carrier, revision, broken):
    async with server_under_test(carrier, revision, check=False) as peer:
        frame = json.dumps(peer.frame("tools/call", {"name": "echo", "arguments": {"text": "@"}}))
        peer.send(frame.encode().replace(b"@", broken))
        answer = await peer.receive()
        assert answer["error"]["code"] == -32700
        await peer.result("tools/list", {})


# RFC 8259 §4 and §6 leave duplicate names and the range of numbers to the receiver.
LEFT_TO_THE_RECEIVER = {
    "the version twice, the last counts",
    "an id beyond any double",
    "an exponent too big, in params",
    "a negative exponent too big, in params",
}


@modern
@pytest.mark.requirement("JSONRPC-020", "JSONRPC-009")
async def test_every_bad_line_gets_the_answer_it_deserves(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        oracle = Oracle.load(revision)
        objections = []
        for case in cases(revision):
            if case.label.removesuffix(" (modern)") in LEFT_TO_THE_RECEIVER:
                continue
            if carrier == "memory" and not case.line.strip():
                continue  # lines exist only where there is framing
            peer.send(case.line)
            await peer.settle()
            told, peer.heard[:] = list(peer.heard), []
            answer = told[0] if told else None
            objection = case.objection(answer) if len(told) < 2 else f"{len(told)} answers"
            if objection:
                objections.append(f"{case.label}: {objection}")
            if answer is not None and "error" in answer:
                oracle.check_frame(answer, sender="server")  # results may be those of the older era
        assert not objections, "\n".join(objections)


@modern
@pytest.mark.requirement("JSONRPC-019", "SCHEMA-007")
async def test_what_belongs_to_a_request_comes_before_its_answer(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        meta = {"progressToken": "mine", "io.modelcontextprotocol/logLevel": "warning"}
        await peer.result("tools/call", {"name": "steps", "arguments": {"count": 3}}, meta=meta)
        told = peer.notices("notifications/progress")
        assert [(each["progressToken"], each["progress"]) for each in told] == [("mine", 1), ("mine", 2), ("mine", 3)]
        await peer.result("tools/call", {"name": "shout"}, meta=meta)
        logged = peer.notices("notifications/message")
        assert [(each["level"], each["data"]) for each in logged] == [
            ("warning", {"said": "warning"}),
            ("error", {"said": "error"}),
        ]


async def test_an_error_that_cannot_be_encoded_is_still_an_error():
    """An author's `data` may be anything; the client gets its code and message all the same (JSONRPC-010)."""
    server = Server("odd")

    @server.tool
    async def odd(ctx: Context) -> str:
        raise Refused("odd", {"data": object()}, code=7)

    async with connected(server, MODERN[0]) as peer:
        error = await peer.error("tools/call", {"name": "odd"})
        assert (error["code"], error["message"]) == (7, "odd")
