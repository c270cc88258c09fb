"""JSON-RPC as MCP uses it, spoken to a server: ids, responses, errors, notifications (BASE)."""

import json

import pytest

from support.handshake_talk import answered, barrier, call, can, said_to, together
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, server_under_test

STANDARD_CODES = {-32700, -32600, -32601, -32602, -32603}

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)

# --- wrong lines ---

# What came, the code it gets (None: silence), and the id of the answer. The whole corpus is in test_bad_input.
WRONG_LINES = {
    "no JSON": (b"hello", -32700, None),
    "cut short": (b'{"jsonrpc":"2.0","id":1,', -32700, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', -32700, None),
    "a number": (b"1", -32600, None),
    "an object of something else": (b'{"type":"ping"}', -32600, None),
    "jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":70,"method":"ping"}', -32600, 70),
    "jsonrpc 1.0, string id": (b'{"jsonrpc":"1.0","id":"s","method":"ping"}', -32600, "s"),
    "jsonrpc a number": (b'{"jsonrpc":2.0,"id":71,"method":"ping"}', -32600, 71),
    "jsonrpc missing": (b'{"id":72,"method":"ping"}', -32600, 72),
    "method a number": (b'{"jsonrpc":"2.0","id":73,"method":1}', -32600, 73),
    "method null": (b'{"jsonrpc":"2.0","id":74,"method":null}', -32600, 74),
    "id null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "id a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "id a whole fraction": (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, None),
    "id true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "id an object": (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    "id an array": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    "id null on a notification": (b'{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}', -32600, None),
    "unknown method": (b'{"jsonrpc":"2.0","id":75,"method":"foo/bar"}', -32601, 75),
    "params an array": (b'{"jsonrpc":"2.0","id":76,"method":"tools/call","params":[1]}', (-32602, -32600), 76),
    "params a string": (b'{"jsonrpc":"2.0","id":77,"method":"tools/list","params":"x"}', (-32602, -32600), 77),
    "params null": (b'{"jsonrpc":"2.0","id":78,"method":"ping","params":null}', (-32602, -32600), 78),
    "params of an author's method": (
        b'{"jsonrpc":"2.0","id":79,"method":"example/double","params":[2]}',
        (-32602, -32600),
        79,
    ),
    "a notification with an array": (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}', None, None),
    "a notification of 1.0": (b'{"jsonrpc":"1.0","method":"notifications/initialized"}', None, None),
    "a request that lost its id": (b'{"jsonrpc":"2.0","method":"tools/list","params":{}}', None, None),
    "a result for nobody": (b'{"jsonrpc":"2.0","id":999,"result":{}}', None, None),
    "an error for nobody": (b'{"jsonrpc":"2.0","id":999,"error":{"code":1,"message":""}}', None, None),
    "an error without an id": (b'{"jsonrpc":"2.0","error":{"code":1,"message":""}}', None, None),
    "an error with id null": (b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}', None, None),
    "a result with id null": (b'{"jsonrpc":"2.0","id":null,"result":{}}', None, None),
    "result and error": (b'{"jsonrpc":"2.0","id":999,"result":{},"error":{"code":1,"message":""}}', None, None),
}


@pytest.mark.requirement("BASE-01", "BASE-02", "BASE-03", "BASE-06", "BASE-07", "BASE-08", "BASE-09")
@pytest.mark.requirement("BASE-12", "BASE-14", "BASE-21", "BASE-22", "BASE-25", "SCH-02")
@every_carrier
@every_revision
async def test_a_wrong_line_gets_the_answer_it_deserves(carrier, revision):
    """One and the same connection survives all of them."""
    async with server_under_test(carrier, revision, check=False) as peer:
        for label, (line, code, id) in WRONG_LINES.items():
            said = await said_to(peer, line)
            if code is None:
                assert said == [], label
                continue
            (answer,) = said
            assert answer["error"]["code"] in (code if isinstance(code, tuple) else (code,)), label
            assert answer.get("id") == id and type(answer.get("id")) is type(id), label
            assert answer.get("id", 0) is not None or revision < "2025-11-25", "id null instead of none"
            assert "result" not in answer and isinstance(answer["error"]["message"], str), label


# --- ids ---


@pytest.mark.requirement("BASE-06", "BASE-11", "BASE-26")
@pytest.mark.parametrize("id", [7, "7", 0, -1, "", "a b", 2**53 + 1, "é", "null"])
@every_revision
async def test_an_id_comes_back_as_it_was_sent(revision, id):
    async with server_under_test("memory", revision) as peer:
        for method in ("ping", "tools/list", "resources/read"):
            params = {"uri": "note://one"} if method == "resources/read" else {}
            answer = await peer.request(method, params, id=id)
            assert answer["id"] == id and type(answer["id"]) is type(id)
            assert isinstance(answer["result"], dict)
        refused = await peer.request("example/none", {}, id=id)
        assert refused["id"] == id and type(refused["id"]) is type(id)


@pytest.mark.requirement("BASE-06")
@every_carrier
@every_revision
async def test_seven_and_the_string_seven_are_two_requests(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        together(peer, call(peer, "echo", {"text": "number"}, id=7), call(peer, "echo", {"text": "string"}, id="7"))
        number, string = await peer.response(7), (await answered(peer, "7"))
        assert number["result"]["content"][0]["text"] == "number"
        assert string["result"]["content"][0]["text"] == "string"


@pytest.mark.requirement("BASE-04", "BASE-21")
@every_carrier
@every_revision
async def test_an_id_in_flight_cannot_be_used_again(carrier, revision):
    """The second request is refused, the first is not disturbed by it."""
    async with server_under_test(carrier, revision, check=False) as peer:
        peer.send(call(peer, "forever", {"name": "a"}, id=50, meta={"progressToken": "t"}))
        await peer.expect("notifications/progress")
        refused = await peer.request("tools/list", {}, id=50)
        assert refused["error"]["code"] == -32600
        assert (await peer.request("ping", id="50"))["result"] == {}  # the string is another id
        peer.notify("notifications/cancelled", {"requestId": 50})
        await barrier(peer)
        gone = await peer.result("tools/call", {"name": "was_stopped", "arguments": {"name": "a"}})
        assert gone["content"][0]["text"] == "True"


@pytest.mark.requirement("BASE-04", "BASE-02", "BASE-03", "SCH-02")
@every_carrier
@every_revision
async def test_the_server_never_uses_an_id_twice(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        used = []
        for _ in range(5):
            asking = call(peer, "ask", {"method": "roots/list", "params": {}})
            peer.send(asking)
            question = await peer.expect("roots/list")
            used.append(question["id"])
            peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
            await peer.response(asking["id"])
        assert all(type(id) in (int, str) for id in used)
        assert len(set(used)) == 5


@pytest.mark.requirement("BASE-05", "BASE-07")
@every_carrier
@every_revision
async def test_equal_ids_of_both_directions_do_not_meet(carrier, revision):
    """A request of ours under the id of the server's question, both in flight, both answered."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}}, id="outer")
        peer.send(asking)
        question = await peer.expect("roots/list")
        crossing = await peer.result("tools/list", {}, id=question["id"])
        assert "tools" in crossing
        again = call(peer, "ask", {"method": "roots/list", "params": {}}, id=question["id"] + 1)
        peer.send(again)
        second = await peer.expect("roots/list")
        assert second["id"] == again["id"], "the ids were meant to meet"
        peer.send({"jsonrpc": "2.0", "id": second["id"], "result": {"roots": [], "x-two": 2}})
        assert "x-two" in _text(await peer.response(again["id"]))
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [], "x-one": 1}})
        assert "x-one" in _text(await peer.response("outer"))


def _text(answer):
    return answer["result"]["content"][0]["text"]


# --- responses of the client ---


@pytest.mark.requirement("BASE-10", "SCH-23", "META-10")
@every_carrier
@every_revision
async def test_unknown_members_of_a_result_reach_whoever_asked(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        question = await peer.expect("roots/list")
        roots = [{"uri": "file:///work", "_meta": {"com.example/note": 1}, "x-color": "red"}]
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots, "x-more": [1]}})
        assert json.loads(_text(await peer.response(asking["id"]))) == {"roots": roots, "x-more": [1]}


BROKEN_RESPONSES = {
    "both": {"result": {"roots": []}, "error": {"code": -1, "message": "no"}},
    "result null": {"result": None},
    "result a list": {"result": [1]},
    "result a string": {"result": "yes"},
    "error a string": {"error": "no"},
    "error without code": {"error": {"message": "no"}},
    "error without message": {"error": {"code": -1}},
    "code a string": {"error": {"code": "-1", "message": "no"}},
    "code a fraction": {"error": {"code": -1.5, "message": "no"}},
}


@pytest.mark.requirement("BASE-07", "BASE-08", "BASE-09", "BASE-26")
@pytest.mark.parametrize("broken", BROKEN_RESPONSES)
@every_revision
async def test_a_broken_response_is_no_answer_and_fails_only_its_question(revision, broken):
    async with server_under_test(
        "memory", revision, server="handshake_full", capabilities=can(revision), check=False
    ) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"], **BROKEN_RESPONSES[broken]}, judged=False)
        answer = await peer.response(asking["id"])
        assert "error" in answer or answer["result"]["isError"] is True, answer
        assert not [frame for frame in peer.heard if "error" in frame], "a response was answered"
        await peer.result("tools/list", {})


@pytest.mark.requirement("BASE-07")
@every_carrier
@every_revision
async def test_a_response_with_neither_member_is_no_answer(carrier, revision):
    """It fails its question, or it is ignored and the question can still be answered; it never is an answer."""
    async with server_under_test(
        carrier, revision, server="handshake_full", capabilities=can(revision), check=False
    ) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"]}, judged=False)
        await barrier(peer)
        failed = any(frame.get("id") == asking["id"] for frame in peer.heard)
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        answer = await answered(peer, asking["id"])
        if failed:
            assert "error" in answer or answer["result"]["isError"] is True
        else:
            assert json.loads(_text(answer)) == {"roots": []}


@pytest.mark.requirement("BASE-05", "BASE-06")
@every_carrier
@every_revision
async def test_a_response_of_the_wrong_type_or_number_is_for_nobody(carrier, revision):
    async with server_under_test(
        carrier, revision, server="handshake_full", capabilities=can(revision), check=False
    ) as peer:
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        id = (await peer.expect("roots/list"))["id"]
        for stranger in (str(id), id + 1000, asking["id"] + 1000):
            peer.send({"jsonrpc": "2.0", "id": stranger, "result": {"roots": [], "x": "wrong"}}, judged=False)
        peer.send({"jsonrpc": "2.0", "id": id, "result": {"roots": []}})
        answer = await peer.response(asking["id"])
        assert json.loads(_text(answer)) == {"roots": []}


# --- what a server answers ---


@pytest.mark.requirement("BASE-11", "BASE-26", "BASE-07")
@every_carrier
@every_revision
async def test_nothing_to_return_is_an_empty_object(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for method, params in (
            ("ping", None),
            ("ping", {}),
            ("logging/setLevel", {"level": "info"}),
            ("resources/subscribe", {"uri": "note://one"}),
            ("resources/unsubscribe", {"uri": "note://one"}),
        ):
            answer = await peer.request(method, params)
            assert answer == {"jsonrpc": "2.0", "id": answer["id"], "result": {}}


REFUSALS = {
    "unknown method": ("example/none", {}, -32601),
    "a method as JSON-RPC reserves it": ("rpc.discover", {}, -32601),
    "unknown tool": ("tools/call", {"name": "none", "arguments": {}}, -32602),
    "tool without a name": ("tools/call", {"arguments": {}}, -32602),
    "arguments that are no object": ("tools/call", {"name": "echo", "arguments": [1]}, -32602),
    "unknown prompt": ("prompts/get", {"name": "none"}, -32602),
    "missing prompt argument": ("prompts/get", {"name": "greet"}, -32602),
    "unknown resource": ("resources/read", {"uri": "note://none"}, -32002),
    "resource without its uri": ("resources/read", {}, -32602),
    "bad cursor": ("tools/list", {"cursor": "none"}, -32602),
    "bad level": ("logging/setLevel", {"level": "loud"}, -32602),
    "level missing": ("logging/setLevel", {}, -32602),
    "not offered": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}},
        -32601,
    ),
    "params of an author's method": ("example/double", {"number": "two"}, -32602),
}


@pytest.mark.requirement("BASE-08", "BASE-09", "BASE-21", "BASE-22", "LIFE-29")
@every_carrier
@every_revision
async def test_refusals_have_their_standard_code(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for case, (method, params, code) in REFUSALS.items():
            error = await peer.error(method, params, judged=False)
            assert type(error["code"]) is int and isinstance(error["message"], str), case
            assert error["code"] == code, case


@pytest.mark.requirement("BASE-21")
@every_carrier
@every_revision
async def test_a_missing_resource_is_named_in_the_error(carrier, revision):
    """Deviation §16.3: the code is -32002, never -32001, and the data holds the uri."""
    async with server_under_test(carrier, revision) as peer:
        error = await peer.error("resources/read", {"uri": "note://none"})
        assert error["code"] == -32002 and error["data"]["uri"] == "note://none"


@pytest.mark.requirement("BASE-21")
@every_carrier
@every_revision
async def test_a_tool_that_fails_is_a_result_not_a_code(carrier, revision):
    """Deviation §16.5: `isError`, never -32003; what went wrong inside stays inside."""
    async with server_under_test(carrier, revision) as peer:
        for how in ("tool", "bug", "exit", "group", "other"):
            result = await peer.result("tools/call", {"name": "fail", "arguments": {"how": how}})
            assert result["isError"] is True, how
            assert "secret detail" not in json.dumps(result)
            if how == "tool":
                assert result["content"] == [{"type": "text", "text": "out of paper"}]
        # an author's own CancelledError ends its call, not the connection
        answer = await peer.request("tools/call", {"name": "fail", "arguments": {"how": "cancel"}})
        assert answer.get("error", {}).get("code", -32603) == -32603


@pytest.mark.requirement("BASE-21")
@every_carrier
@every_revision
async def test_wrong_arguments_are_no_code_of_their_own(carrier, revision):
    """Deviation §16.6: -32602 in the older revisions, a result for the model in 2025-11-25; never -32004."""
    async with server_under_test(carrier, revision) as peer:
        answer = await peer.request("tools/call", {"name": "add", "arguments": {"a": "one", "b": 2}})
        if revision == "2025-11-25" or "result" in answer:
            assert answer["result"]["isError"] is True
        else:
            assert answer["error"]["code"] == -32602


@pytest.mark.requirement("BASE-23")
@every_revision
async def test_error_messages_are_one_short_sentence(revision):
    long = "n" * 100_000
    async with server_under_test("memory", revision) as peer:
        provoked = [
            *REFUSALS.values(),
            (long, {}, 0),
            ("tools/call", {"name": long}, 0),
            ("tools/call", {"name": "echo\n" * 100}, 0),
            ("prompts/get", {"name": long}, 0),
            ("tools/list", {"cursor": long}, 0),
            ("logging/setLevel", {"level": long}, 0),
            ("resources/read", {"uri": long}, 0),
            ("prompts/get", {"name": "greet", "arguments": {long: 1}}, 0),
            ("resources/read", {"uri": {long: 1}}, 0),
            ("example/double", {"number": long}, 0),
        ]
        for method, params, _ in provoked:
            message = (await peer.error(method, params, judged=False))["message"]
            assert 0 < len(message) <= 300, f"{method:.40}: {len(message)} characters"
            assert "\n" not in message and message == message.strip(), repr(message)[:200]


@pytest.mark.requirement("BASE-24")
@every_carrier
@every_revision
async def test_no_refusal_of_ours_uses_the_code_of_url_elicitation(carrier, revision):
    """Every error the server can be provoked to stays within the codes of the revision (§11)."""
    async with server_under_test(carrier, revision) as peer:
        codes = set()
        for method, params, _ in REFUSALS.values():
            codes.add((await peer.error(method, params, judged=False))["code"])
        for line in (b"{", b"[]", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"1"):
            codes |= {frame["error"]["code"] for frame in await said_to(peer, line)}
        assert codes <= STANDARD_CODES | {-32002}
        assert {-32700, -32600, -32601, -32602, -32002} <= codes


@pytest.mark.requirement("BASE-24", "SCH-20", "ELIC-34", "ELIC-35")
@every_carrier
async def test_url_elicitation_required_reaches_a_client_that_can_open_urls(carrier):
    able = {"elicitation": {"form": {}, "url": {}}}
    async with server_under_test(carrier, "2025-11-25", server="handshake_full", capabilities=able) as peer:
        error = await peer.error("tools/call", {"name": "connect_first", "arguments": {"how": "well"}})
        assert error["code"] == -32042
        assert error["data"]["elicitations"][0]["elicitationId"] == "e-1"
        assert error["data"]["elicitations"][0]["mode"] == "url"


@pytest.mark.requirement("BASE-24", "SCH-20", "LIFE-15", "LIFE-16", "ELIC-33")
@pytest.mark.parametrize("revision", ALL)
async def test_url_elicitation_required_never_reaches_a_client_that_cannot(revision):
    """-32042 exists in 2025-11-25 only and is sent only to peers with url mode (§11, §14, §15.4)."""
    for declared in ({}, {"elicitation": {}}, {"elicitation": {"form": {}}}):
        async with server_under_test("memory", revision, server="handshake_full", capabilities=declared) as peer:
            answer = await peer.request("tools/call", {"name": "connect_first", "arguments": {"how": "well"}})
            assert answer.get("error", {}).get("code") != -32042, answer
            told = json.dumps(answer)
            assert "Connect your account" in told, "the author's text is lost"


@pytest.mark.requirement("SCH-20", "BASE-24", "ELIC-34")
async def test_url_elicitation_required_without_elicitations_is_not_sent():
    able = {"elicitation": {"url": {}}}
    async with server_under_test("memory", "2025-11-25", server="handshake_full", capabilities=able) as peer:
        answer = await peer.request("tools/call", {"name": "connect_first", "arguments": {"how": "badly"}})
        if answer.get("error", {}).get("code") == -32042:
            assert isinstance(answer["error"]["data"]["elicitations"], list)


@pytest.mark.requirement("BASE-09", "BASE-21")
@every_revision
async def test_a_code_an_author_chose_is_kept(revision):
    async with server_under_test("memory", revision, server="handshake_full") as peer:
        error = await peer.error("tools/call", {"name": "refuse", "arguments": {"code": 12345}})
        assert error == {"code": 12345, "message": "because"}


@pytest.mark.requirement("BASE-10")
@every_revision
async def test_the_result_of_an_authors_method_keeps_all_its_members(revision):
    """ttlMs, cacheScope and resultType mean nothing in these revisions: here they are the author's."""
    async with server_under_test("memory", revision, server="handshake_full") as peer:
        result = await peer.result("example/members", {}, judged=False)
        assert result["answer"] == 42
        assert result.get("ttlMs") == 5 and result.get("cacheScope") == "shelf"


# --- notifications ---


@pytest.mark.requirement("BASE-13", "BASE-14", "SCH-14")
@every_carrier
@every_revision
async def test_notifications_are_heard_and_never_answered(carrier, revision):
    async with server_under_test(carrier, revision, check=False) as peer:
        for method, params in (
            ("notifications/example/ring", {"tone": "low"}),
            ("notifications/example/ring", {"tone": 5}),  # malformed for its handler
            ("notifications/nothing", {}),
            ("notification/progress", {"progress": 1}),  # deviation §16.16: the prefix is another one
            ("notifications/progress", {"progress": 1}),  # deviation §16.15: no token
            ("notifications/initialized", None),
            ("exit", None),
            ("shutdown", None),
            ("tools/call", {"name": "echo"}),
        ):
            peer.notify(method, params, judged=False)
        await barrier(peer)
        assert peer.heard == []
        assert await peer.result("example/heard", judged=False) == {"heard": ["low"]}


# --- the minimum ---


@pytest.mark.requirement("BASE-15", "BASE-16", "BASE-01", "LIFE-03", "CAP-01")
@every_carrier
@every_revision
async def test_a_server_without_features_still_speaks_the_base_protocol(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_bare", opened=False) as peer:
        found = await peer.open()
        assert found["capabilities"] == {}
        assert await peer.result("ping") == {}
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": "echo"}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "note://one"}),
            ("resources/subscribe", {"uri": "note://one"}),
            ("resources/unsubscribe", {"uri": "note://one"}),
            ("prompts/list", {}),
            ("prompts/get", {"name": "greet"}),
            ("logging/setLevel", {"level": "info"}),
            ("completion/complete", _completion()),
        ):
            assert (await peer.error(method, params))["code"] == -32601, method


def _completion():
    return {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}


# --- UTF-8 ---


@pytest.mark.requirement("BASE-01")
@every_carrier
@every_revision
async def test_text_of_every_plane_survives(carrier, revision):
    text = 'é 中 \U0001f600 \u2028 \x00 " \\ \n \t \x7f \uffff'
    async with server_under_test(carrier, revision) as peer:
        result = await peer.result("tools/call", {"name": "echo", "arguments": {"text": text}})
        assert result["content"][0]["text"] == text
        peer.raw[-1].decode("utf-8")
        assert b"\n" not in peer.raw[-1]
