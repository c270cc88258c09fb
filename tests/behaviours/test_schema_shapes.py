"""What a server says and takes, revision by revision: nothing newer leaks, nothing known is lost (SCH)."""

import base64
import json

import pytest

from support.closed_world import leaks, unnamed
from support.handshake_talk import barrier, call, can, hello
from support.schemas import Oracle
from support.wire_peer import CARRIERS, HANDSHAKE, server_under_test

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)
SINCE_2025_06_18 = HANDSHAKE[2:]
NOTE = {"com.example/note": 1}


async def everything(peer):
    """Have the server say all it can: lists, contents, blocks, progress, logs, changes, questions, refusals."""
    said = {}
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        said[method] = await peer.result(method, {})
    for name in ("blocks", "structured"):
        said[name] = await peer.result("tools/call", {"name": name})
    said["steps"] = await peer.result("tools/call", {"name": "steps"}, meta={"progressToken": "t"})
    said["every"] = await peer.result("prompts/get", {"name": "every", "arguments": {"name": "Ada"}})
    for uri in ("note://one", "note://two"):
        said[uri] = await peer.result("resources/read", {"uri": uri})
    await peer.result("resources/subscribe", {"uri": "note://one"})
    await peer.result("tools/call", {"name": "touch", "arguments": {"uri": "note://one"}})
    await peer.expect("notifications/resources/updated")
    await peer.result("tools/call", {"name": "grow"})
    await peer.expect("notifications/tools/list_changed")
    await peer.result("resources/unsubscribe", {"uri": "note://one"})
    await peer.error("resources/read", {"uri": "note://none"})
    await barrier(peer)
    return said


# --- nothing newer leaks ---


@pytest.mark.requirement("LIFE-15", "SCH-01", "SCH-04", "SCH-05", "SCH-06", "SCH-08", "SCH-11", "SCH-15")
@pytest.mark.requirement("SCH-13", "CAP-09", "META-09", "BASE-13")
@every_carrier
@every_revision
async def test_nothing_newer_than_the_revision_leaks(carrier, revision):
    """Every frame of a long conversation, read as if the schema were closed."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        await everything(peer)
        for method in ("roots/list", "sampling/createMessage"):
            await _asked(peer, method)
        assert leaks(peer.transcript) == []


SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
QUESTIONS = {"roots/list": {}, "sampling/createMessage": SAMPLING, "elicitation/create": FORM}
ANSWERS = {
    "roots/list": {"roots": [{"uri": "file:///work"}]},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"},
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
}


async def _asked(peer, method, params=None, answer=None):
    """Let a tool ask; gives the question as it came and what the tool made of the answer."""
    asking = call(peer, "ask", {"method": method, "params": QUESTIONS[method] if params is None else params})
    peer.send(asking)
    question = await peer.expect(method)
    peer.send({"jsonrpc": "2.0", "id": question["id"], "result": answer or ANSWERS[method]})
    result = (await peer.response(asking["id"]))["result"]
    return question, json.loads(result["content"][0]["text"])


@pytest.mark.requirement("LIFE-15")
@every_carrier
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_a_question_is_put_in_the_words_of_the_revision(carrier, revision):
    """`mode` came with 2025-11-25 (§8); inside, every form question has it."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        question, _ = await _asked(peer, "elicitation/create", {"mode": "form", **FORM})
        assert ("mode" in question["params"]) == (revision >= "2025-11-25")
        assert leaks(peer.transcript) == []


@pytest.mark.requirement("LIFE-15")
@every_carrier
@every_revision
async def test_structured_output_that_is_no_object_stays_with_the_newest_revision(carrier, revision):
    """2026-07-28 lets both be anything; before, they are objects or absent. The text copy is always there."""
    async with server_under_test(carrier, revision, server="handshake_arrays") as peer:
        result = await peer.result("tools/call", {"name": "listed"})
        assert result["content"] == [{"type": "text", "text": "[1,2]"}]
        assert isinstance(result.get("structuredContent", {}), dict)
        (tool,) = (await peer.result("tools/list", {}))["tools"]
        assert tool.get("outputSchema", {"type": "object"})["type"] == "object"


@pytest.mark.requirement("LIFE-15", "SCH-15")
@every_carrier
@every_revision
async def test_progress_has_a_message_only_where_there_is_one(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        await peer.result("tools/call", {"name": "steps"}, meta={"progressToken": "t"})
        (told,) = peer.notices("notifications/progress")
        assert told["progressToken"] == "t" and told["progress"] == 1 and told["total"] == 2
        assert told.get("message") == ("half way" if revision >= "2025-03-26" else None)


# --- nothing known is lost ---

# Where a member stands in what the server said, and the revision that brought it (handshake.md §4-§6).
MEMBERS = {
    "initialize serverInfo/name": "2024-11-05",
    "initialize serverInfo/version": "2024-11-05",
    "initialize serverInfo/title": "2025-06-18",
    "initialize serverInfo/description": "2025-11-25",
    "initialize serverInfo/icons": "2025-11-25",
    "initialize serverInfo/websiteUrl": "2025-11-25",
    "initialize instructions": "2024-11-05",
    "tools/list tools/0/description": "2024-11-05",
    "tools/list tools/0/annotations/readOnlyHint": "2025-03-26",
    "tools/list tools/0/annotations/title": "2025-03-26",
    "tools/list tools/0/title": "2025-06-18",
    "tools/list tools/0/_meta": "2025-06-18",
    "tools/list tools/0/icons": "2025-11-25",
    "tools/list tools/1/outputSchema": "2025-06-18",
    "prompts/list prompts/0/description": "2024-11-05",
    "prompts/list prompts/0/title": "2025-06-18",
    "prompts/list prompts/0/_meta": "2025-06-18",
    "prompts/list prompts/0/icons": "2025-11-25",
    "prompts/list prompts/0/arguments/0/required": "2024-11-05",
    "prompts/list prompts/0/arguments/0/title": "2025-06-18",
    "resources/list resources/0/mimeType": "2024-11-05",
    "resources/list resources/0/size": "2024-11-05",
    "resources/list resources/0/annotations/priority": "2024-11-05",
    "resources/list resources/0/annotations/lastModified": "2025-06-18",
    "resources/list resources/0/title": "2025-06-18",
    "resources/list resources/0/_meta": "2025-06-18",
    "resources/list resources/0/icons": "2025-11-25",
    "resources/templates/list resourceTemplates/0/uriTemplate": "2024-11-05",
    "resources/templates/list resourceTemplates/0/annotations/audience": "2024-11-05",
    "resources/templates/list resourceTemplates/0/annotations/lastModified": "2025-06-18",
    "resources/templates/list resourceTemplates/0/title": "2025-06-18",
    "resources/templates/list resourceTemplates/0/_meta": "2025-06-18",
    "resources/templates/list resourceTemplates/0/icons": "2025-11-25",
    "note://one contents/0/text": "2024-11-05",
    "note://one contents/0/_meta": "2025-06-18",
    "note://two contents/0/blob": "2024-11-05",
    "structured structuredContent/answer": "2025-06-18",
    "blocks content/0/annotations/audience": "2024-11-05",
    "blocks content/0/annotations/lastModified": "2025-06-18",
    "blocks content/0/_meta": "2025-06-18",
    "blocks content/1/_meta": "2025-06-18",
    "blocks content/3/resource/text": "2024-11-05",
    "blocks content/3/resource/_meta": "2025-06-18",
    "blocks content/3/_meta": "2025-06-18",
    "blocks content/5/uri": "2025-06-18",
    "blocks content/5/title": "2025-06-18",
    "blocks content/5/size": "2025-06-18",
    "blocks content/5/_meta": "2025-06-18",
    "blocks content/5/icons": "2025-11-25",
    "every description": "2024-11-05",
    "every messages/0/content/annotations/priority": "2024-11-05",
    "every messages/0/content/annotations/lastModified": "2025-06-18",
    "every messages/0/content/_meta": "2025-06-18",
    "every messages/5/content/uri": "2025-06-18",
    "every messages/5/content/icons": "2025-11-25",
    "every messages/6/content/_meta": "2025-06-18",
}
MISSING = object()


def _at(value, path):
    for step in path.split("/"):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else MISSING
        else:
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
    return value


@pytest.mark.requirement("LIFE-15", "SCH-01", "SCH-04", "SCH-09", "META-10", "LIFE-30")
@every_carrier
@every_revision
async def test_each_member_appears_from_its_revision_on(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full", opened=False) as peer:
        first = await peer.open(can(revision))
        said = await everything(peer) | {"initialize": first}
        wrong = []
        for place, since in MEMBERS.items():
            where, _, path = place.partition(" ")
            if (_at(said[where], path) is not MISSING) != (revision >= since):
                wrong.append(f"{place}: since {since}")
        assert wrong == []


@pytest.mark.requirement("SCH-05", "SCH-06", "SCH-07", "SCH-08", "SCH-09", "LIFE-15")
@every_carrier
@every_revision
async def test_blocks_a_revision_has_no_type_for_are_described_in_text(carrier, revision):
    """§15.3: audio and links become text blocks that still say what and where; the order stays."""
    types = ["text", "image", "audio", "resource", "resource", "resource_link"]
    types[2] = "audio" if revision >= "2025-03-26" else "text"
    types[5] = "resource_link" if revision >= "2025-06-18" else "text"
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        content = (await peer.result("tools/call", {"name": "blocks"}))["content"]
        prompt = await peer.result("prompts/get", {"name": "every", "arguments": {"name": "Ada"}})
        messages = [message["content"] for message in prompt["messages"]]
        for blocks in (content, messages[:-1]):
            assert [block["type"] for block in blocks] == types
            assert blocks[0]["text"] == "hi"
            assert (blocks[1]["data"], blocks[1]["mimeType"]) == ("aGk=", "image/png")
            if types[2] == "audio":
                assert (blocks[2]["data"], blocks[2]["mimeType"]) == ("aGk=", "audio/wav")
            else:
                assert "audio" in blocks[2]["text"]
            assert blocks[3]["resource"]["uri"] == "note://one" and blocks[3]["resource"]["text"] == "hi"
            assert blocks[4]["resource"]["blob"] == "aGk="
            if types[5] == "resource_link":
                assert (blocks[5]["uri"], blocks[5]["name"]) == ("note://one", "one")
            else:
                assert "note://one" in blocks[5]["text"]


@pytest.mark.requirement("LIFE-15")
@every_carrier
@every_revision
async def test_structured_output_always_has_a_text_copy(carrier, revision):
    """Where structuredContent is dropped, the text is all there is (§15.3)."""
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        result = await peer.result("tools/call", {"name": "structured"})
        assert json.loads(result["content"][0]["text"]) == {"answer": 42}
        expected = {"answer": 42} if revision >= "2025-06-18" else None
        assert result.get("structuredContent") == expected


@pytest.mark.requirement("SCH-16", "SCH-06")
@every_carrier
@every_revision
async def test_bytes_travel_as_base64(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        (contents,) = (await peer.result("resources/read", {"uri": "note://two"}))["contents"]
        assert base64.b64decode(contents["blob"], validate=True) == bytes(range(256))
        assert "text" not in contents
        blocks = (await peer.result("tools/call", {"name": "blocks"}))["content"]
        assert base64.b64decode(blocks[1]["data"], validate=True) == b"hi"


@pytest.mark.requirement("SCH-11")
@every_carrier
@every_revision
async def test_roles_are_user_and_assistant(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        prompt = await peer.result("prompts/get", {"name": "every", "arguments": {"name": "Ada"}})
        assert [message["role"] for message in prompt["messages"]] == ["user"] * 6 + ["assistant"]


@pytest.mark.requirement("SCH-11", "SCH-08")
@pytest.mark.parametrize("how", ["system", "two blocks", "no contents"])
@every_revision
async def test_what_an_author_got_wrong_does_not_reach_the_wire(revision, how):
    """The transcript would not pass the schema; the author's mistake is an internal error, not the client's."""
    async with server_under_test("memory", revision, server="handshake_full") as peer:
        answer = await peer.request("prompts/get", {"name": "broken", "arguments": {"how": how}})
        assert answer.get("error", {}).get("code") == -32603, answer


# --- what a server takes ---


@pytest.mark.requirement("SCH-02", "META-09")
@pytest.mark.parametrize("token", [7, "7", 0, -1, "", "é", 2**53 + 1])
@every_revision
async def test_a_progress_token_comes_back_as_it_was_sent(revision, token):
    async with server_under_test("memory", revision) as peer:
        arguments = {"name": "steps", "arguments": {"count": 1}}
        await peer.result("tools/call", arguments, meta={"progressToken": token})
        (told,) = peer.notices("notifications/progress")
        assert told["progressToken"] == token and type(told["progressToken"]) is type(token)


@pytest.mark.requirement("SCH-02")
@pytest.mark.parametrize("token", [2**63, 2**64, 2**70, -(2**63) - 1])
@every_revision
async def test_a_huge_progress_token_is_echoed_or_refused_but_breaks_nothing(revision, token):
    async with server_under_test("memory", revision) as peer:
        arguments = {"name": "steps", "arguments": {"count": 1}}
        answer = await peer.request("tools/call", arguments, meta={"progressToken": token})
        if "error" in answer:
            assert answer["error"]["code"] == -32602
        else:
            assert answer["result"] == {"content": [{"type": "text", "text": "done"}]}
            assert [told["progressToken"] for told in peer.notices("notifications/progress")] == [token]


@pytest.mark.requirement("SCH-02", "META-09")
@every_carrier
@every_revision
async def test_a_progress_token_of_another_kind_is_refused(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for token in (1.5, True, [], {}):
            params = {"name": "echo", "arguments": {}, "_meta": {"progressToken": token}}
            assert (await peer.error("tools/call", params, judged=False))["code"] == -32602, token


@pytest.mark.requirement("SCH-23", "CAP-08", "SCH-03", "BASE-10")
@every_carrier
@every_revision
async def test_extra_members_are_ignored_everywhere(carrier, revision):
    extra = {"x-one": 1, "xTwo": {"deep": [None]}, "": True}
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        info = {"name": "raw", "version": "1", **extra}
        params = hello(revision, capabilities={"sampling": extra, **extra}, clientInfo=info, **extra)
        frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params, **extra}
        peer.send(frame, judged=False)
        assert (await peer.response(1))["result"]["protocolVersion"] == revision
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized", "params": extra, **extra})
        for method, members in (
            ("ping", {}),
            ("tools/list", {}),
            ("tools/call", {"name": "echo", "arguments": {"text": "hi"}}),
            ("resources/read", {"uri": "note://one"}),
            ("resources/subscribe", {"uri": "note://one"}),
            ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
            ("logging/setLevel", {"level": "info"}),
        ):
            answer = await peer.request(method, {**members, **extra, "_meta": {"x-three": 3}})
            assert "result" in answer, (method, answer)


NEWER_MEMBERS = {
    "title": ("2025-06-18", [5, None, {}]),
    "description": ("2025-11-25", [5, None]),
    "icons": ("2025-11-25", ["https://example.com/i.png", ["i.png"], None]),
    "websiteUrl": ("2025-11-25", [5, None]),
}


@pytest.mark.requirement("SCH-23", "SCH-01")
@pytest.mark.parametrize(
    ("revision", "member"),
    [(revision, name) for revision in HANDSHAKE for name in NEWER_MEMBERS if revision < NEWER_MEMBERS[name][0]],
)
async def test_a_member_the_revision_does_not_know_is_ignored_whatever_it_holds(revision, member):
    """Before its revision, `icons` of a clientInfo is an extra member like any other."""
    for value in NEWER_MEMBERS[member][1]:
        async with server_under_test("memory", revision, opened=False) as peer:
            info = {"name": "raw", "version": "1", member: value}
            found = await peer.result("initialize", hello(revision, clientInfo=info))
            assert found["protocolVersion"] == revision


@pytest.mark.requirement("SCH-19")
@every_carrier
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_fractions_in_an_elicited_form_arrive(carrier, revision):
    """§14: the generated schema narrows numbers to integers, the specification does not."""
    filled = {"action": "accept", "content": {"ratio": 3.14, "count": 3, "name": "Ada", "sure": False}}
    async with server_under_test(
        carrier, revision, server="handshake_full", capabilities=can(revision), check=False
    ) as peer:
        _, answer = await _asked(peer, "elicitation/create", FORM, filled)
        assert answer == filled


# --- which methods exist ---

OLD_REQUESTS = {
    "ping": {},
    "tools/list": {},
    "tools/call": {"name": "blocks"},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "note://one"},
    "resources/subscribe": {"uri": "note://one"},
    "resources/unsubscribe": {"uri": "note://one"},
    "prompts/list": {},
    "prompts/get": {"name": "every", "arguments": {"name": "Ada"}},
    "logging/setLevel": {"level": "info"},
}
TASKS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
OF_THE_SERVER = ("sampling/createMessage", "roots/list", "elicitation/create")
NEWEST = ("server/discover", "subscriptions/listen", "tasks/update")


@pytest.mark.requirement("SCH-12", "LIFE-15")
@every_carrier
@every_revision
async def test_the_methods_of_the_revision_are_served_and_no_others(carrier, revision):
    """Tasks are not declared, so they are refused even where the revision has them; the rest was never here."""
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        for method, params in OLD_REQUESTS.items():
            assert "result" in await peer.request(method, params), method
        for method in (*TASKS, *OF_THE_SERVER, *NEWEST, "exit", "initialized"):
            params = {"taskId": "t"} if method in TASKS else {}
            assert (await peer.error(method, params, judged=False))["code"] in (-32601, -32602), method
        for method in (*OF_THE_SERVER, "server/discover"):
            assert (await peer.error(method, {}, judged=False))["code"] == -32601, method
        listening = {"notifications": {"toolsListChanged": True}}
        assert (await peer.error("subscriptions/listen", listening, judged=False))["code"] == -32601


@pytest.mark.requirement("SCH-12")
@every_revision
async def test_the_schema_knows_no_request_that_was_forgotten_here(revision):
    """The table above against the official schema: completion and tasks are the ones not offered yet."""
    oracle = Oracle.load(revision)
    assert set(oracle.requests("client")) - {"initialize", "completion/complete", *TASKS} == set(OLD_REQUESTS)


@pytest.mark.requirement("SCH-13", "LIFE-15", "LIFE-16")
@every_carrier
@every_revision
async def test_a_question_goes_out_only_where_the_revision_has_it(carrier, revision):
    """Elicitation came with 2025-06-18; declaring it earlier changes nothing."""
    declared = {"roots": {}, "sampling": {}, "elicitation": {}}
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=declared) as peer:
        for method in QUESTIONS:
            if method == "elicitation/create" and revision < "2025-06-18":
                params = {"method": method, "params": FORM}
                error = await peer.error("tools/call", {"name": "ask", "arguments": params})
                assert error["code"] == -32601
            else:
                _, answer = await _asked(peer, method)
                assert answer == ANSWERS[method]
        sent = {frame["method"] for frame in peer.transcript.frames("server") if "method" in frame}
        assert ("elicitation/create" in sent) == (revision >= "2025-06-18")


@pytest.mark.requirement("SCH-14")
@every_carrier
@every_revision
async def test_the_client_may_tell_of_changed_roots(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        peer.notify("notifications/roots/list_changed")
        await barrier(peer)
        assert await peer.result("example/heard", {}) == {"heard": ["roots"]}


# --- the introduction ---


@pytest.mark.requirement("SCH-04", "LIFE-03", "CAP-09")
@pytest.mark.parametrize("server", ["basic", "handshake_full", "handshake_bare", "handshake_strict"])
@every_revision
async def test_initialize_is_answered_with_all_it_must_hold_and_nothing_else(revision, server):
    async with server_under_test("memory", revision, server=server, opened=False) as peer:
        found = await peer.open()
        assert {"protocolVersion", "capabilities", "serverInfo"} <= found.keys()
        assert found["protocolVersion"] == revision
        assert isinstance(found["serverInfo"]["name"], str) and isinstance(found["serverInfo"]["version"], str)
        assert unnamed(Oracle.load(revision), "InitializeResult", found) == []
