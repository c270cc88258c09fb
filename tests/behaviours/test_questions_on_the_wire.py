"""Forms, pages, sampling and roots as they stand on the wire: what our server asks and what our client answers."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager

import pytest

from interlock import Client
from interlock.wire.errors import BadResult, LocalError
from support.idle import until_idle
from support.servers import asking
from support.talking import reply, settled, start, talking
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, server_under_test

NEWEST = ALL[-1]
WITH_ELICITATION = ("2025-06-18", "2025-11-25", "2026-07-28")
CALLED_BACK = ("2025-06-18", "2025-11-25")
RICH = ("2025-11-25", "2026-07-28")
EVERYTHING = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}

over_carriers = pytest.mark.parametrize("carrier", CARRIERS)
over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_asking = pytest.mark.parametrize("revision", WITH_ELICITATION)
over_rich = pytest.mark.parametrize("revision", RICH)

SEAT = {"action": "accept", "content": {"row": 7}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "small"}


# --- our server asks ----------------------------------------------------------------------------------------


def declared(revision, **changes):
    """Everything that a client of that revision could declare."""
    able = {**EVERYTHING, **changes}
    if revision not in RICH:
        able |= {"sampling": {}}
        able = {name: value for name, value in able.items() if name != "elicitation"} | (
            {"elicitation": {}} if revision in WITH_ELICITATION else {}
        )
    return {name: value for name, value in able.items() if value is not None}


class Asked:
    """A raw client whose calls come to a question; how it travels is the revision's business."""

    def __init__(self, peer):
        self.peer = peer

    async def question(self, tool, arguments=None):
        """The params of the one question that a tool asks."""
        self.call = {"name": tool, "arguments": arguments or {}}
        if self.peer.revision == NEWEST:
            result = await self.peer.result("tools/call", self.call)
            self.state = result["requestState"]
            [(self.key, asked)] = result["inputRequests"].items()
        else:
            self.calling = self.peer.frame("tools/call", self.call)
            self.peer.send(self.calling)
            asked = self.asked = await self.peer.receive()
        self.method = asked["method"]
        return {name: value for name, value in asked.get("params", {}).items() if name != "_meta"}

    async def answer(self, result, judged=True):
        """What became of the call."""
        if self.peer.revision == NEWEST:
            inputs = {"inputResponses": {self.key: result}, "requestState": self.state}
            return await self.peer.request("tools/call", {**self.call, **inputs}, judged=judged)
        self.peer.send({"jsonrpc": "2.0", "id": self.asked["id"], "result": result}, judged=judged)
        return await self.peer.response(self.calling["id"])


@asynccontextmanager
async def asked_by_ours(carrier, revision, **changes):
    able = declared(revision, **changes)
    async with server_under_test(carrier, revision, server="asking", capabilities=able) as peer:
        yield Asked(peer)


@pytest.mark.requirement("ELIC-10", "ELIC-13", "ELICIT-009", "ELICIT-012")
@over_carriers
@over_asking
async def test_a_form_has_a_message_its_mode_and_a_flat_schema(carrier, revision):
    async with asked_by_ours(carrier, revision) as peer:
        asked = await peer.question("book", {"flight": "OS 1"})
        assert asked["message"] == "Which seat?"
        assert asked.get("mode") == (None if revision == "2025-06-18" else "form")
        assert asked["requestedSchema"] == {
            "type": "object",
            "properties": {"row": {"type": "integer"}, "window": {"type": "boolean", "default": True}},
            "required": ["row"],
        }
        await peer.answer({"action": "decline"})


@pytest.mark.requirement("ELIC-14", "ELIC-15", "ELIC-16", "ELICIT-012", "ELICIT-013")
@pytest.mark.parametrize("form", ["texts", "numbers", "choices", "titled", "several"])
@over_carriers
@over_asking
async def test_every_kind_of_field_is_asked_as_it_was_written(carrier, revision, form):
    """The official schema judges each question; what a revision has no word for is refused instead."""
    async with asked_by_ours(carrier, revision) as peer:
        if form == "several" and revision not in RICH:
            call = {"name": "fill_in", "arguments": {"form": form}}
            assert "choice of several" in (await peer.peer.error("tools/call", call))["message"]
            return
        asked = await peer.question("fill_in", {"form": form})
        assert asked["requestedSchema"]["properties"] == asking.SCHEMAS[form]
        await peer.answer({"action": "cancel"})


@pytest.mark.requirement("ELIC-13", "ELIC-16", "ELICIT-012", "ELICIT-013")
@pytest.mark.parametrize("form", ["nested", "format"])
@over_carriers
@over_asking
async def test_a_form_that_no_form_may_be_is_never_asked(carrier, revision, form):
    async with asked_by_ours(carrier, revision) as peer:
        answer = await peer.peer.request("tools/call", {"name": "fill_in", "arguments": {"form": form}})
        assert answer.get("error", {}).get("code") == -32603 or answer["result"]["isError"]
        assert peer.peer.heard == []


UNFIT = [
    {"action": "accept", "content": {"row": "seven"}},
    {"action": "accept", "content": {}},
    {"action": "accept", "content": {"row": 7, "more": {"a": 1}}},
    {"action": "accept"},
    {"action": "reject"},
    {"action": "yes"},
    {"content": {"row": 7}},
]


@pytest.mark.requirement("ELIC-18", "ELIC-19", "ELIC-49", "ELICIT-041")
@pytest.mark.parametrize("answer", UNFIT)
@over_carriers
@over_asking
async def test_an_answer_that_does_not_fit_is_an_error(carrier, revision, answer):
    async with asked_by_ours(carrier, revision) as peer:
        await peer.question("book", {"flight": "OS 1"})
        assert (await peer.answer(answer, judged=False))["error"]["code"] == -32602


@pytest.mark.requirement("ELIC-20", "ELICIT-026", "ELICIT-027")
@over_carriers
@over_asking
async def test_accepting_declining_and_cancelling_are_three_things(carrier, revision):
    said = []
    for action in ("accept", "decline", "cancel"):
        async with asked_by_ours(carrier, revision) as peer:
            await peer.question("fill_in", {"form": "numbers"})
            answer = {"action": action} | ({"content": {"age": 36}} if action == "accept" else {})
            result = (await peer.answer(answer))["result"]
            said.append((result.get("isError", False), result["content"][0]["text"]))
    assert said[0][0] is False and '"age":36' in said[0][1].replace(" ", "")
    assert [each[0] for each in said[1:]] == [True, True]
    assert "declined" in said[1][1] and "dismissed" in said[2][1]


@pytest.mark.requirement("ELIC-21", "ELIC-22", "ELIC-23", "ELIC-25", "ELICIT-015", "ELICIT-016", "ELICIT-019")
@over_carriers
@over_rich
async def test_a_page_has_its_address_and_agreeing_is_all_that_accepting_means(carrier, revision):
    ids = []
    async with asked_by_ours(carrier, revision) as peer:
        for _ in range(5):
            asked = await peer.question("visit")
            ids.append(asked.pop("elicitationId", None))
            assert asked == {"mode": "url", "message": "Sign in there", "url": "https://example.com/sign-in"}
            answer = await peer.answer({"action": "accept"})
            assert answer["result"]["content"][0]["text"] == "agreed"
        assert peer.peer.notices("notifications/elicitation/complete") == []
    assert len(set(ids)) == (5 if revision == "2025-11-25" else 1)
    assert all(ids) if revision == "2025-11-25" else not any(ids)


@pytest.mark.requirement("ELIC-22", "ELICIT-015")
@pytest.mark.parametrize(
    "url", ["", "example.com", "javascript:alert(1)", "file:///etc", "https://", "https://a:b@c.d"]
)
@over_carriers
@over_rich
async def test_what_is_no_page_is_never_asked(carrier, revision, url):
    async with asked_by_ours(carrier, revision) as peer:
        answer = await peer.peer.request("tools/call", {"name": "visit_badly", "arguments": {"url": url}})
        assert answer.get("error", {}).get("code") == -32603 or answer["result"]["isError"]
        assert peer.peer.heard == []


@pytest.mark.requirement("ELIC-09", "ELICIT-008", "SAMP-07", "SAMP-003", "ROOTS-18", "ROOTS-006", "MRTR-007")
@pytest.mark.parametrize(
    ("tool", "arguments", "lacking"),
    [
        ("visit", {}, {"elicitation": {"form": {}}}),
        ("fill_in", {"form": "texts"}, {"elicitation": {"url": {}}}),
        ("think_with", {"tools": True}, {"sampling": {}}),
        ("sampled", {}, {"sampling": None}),
        ("rooted", {}, {"roots": None}),
    ],
)
@over_carriers
@over_rich
async def test_what_a_client_did_not_declare_is_not_asked(carrier, revision, tool, arguments, lacking):
    async with asked_by_ours(carrier, revision, **lacking) as peer:
        told = await peer.peer.error("tools/call", {"name": tool, "arguments": arguments})
        assert told["code"] == (-32021 if revision == NEWEST else -32601)
        assert peer.peer.heard == []


@pytest.mark.requirement("ROOTS-18")
@over_carriers
@over_handshake
async def test_roots_are_not_asked_for_where_there_are_none(carrier, revision):
    async with asked_by_ours(carrier, revision, roots=None) as peer:
        assert (await peer.peer.error("tools/call", {"name": "rooted", "arguments": {}}))["code"] == -32601
        assert peer.peer.heard == []


@pytest.mark.requirement("SAMP-34", "SAMP-09", "SAMP-10", "SAMP-006", "SAMP-007", "SAMP-011", "SAMP-35")
@over_carriers
@over_all
async def test_sampling_says_what_it_must_and_nothing_of_other_contexts(carrier, revision):
    async with asked_by_ours(carrier, revision) as peer:
        asked = await peer.question("sampled")
        assert peer.method == "sampling/createMessage"
        assert asked == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
            "maxTokens": 10,
        }
        answer = await peer.answer({**SAMPLED, "stopReason": "a word of its own"})
        assert answer["result"]["content"][0]["text"] == "Paris"


@pytest.mark.requirement("SAMP-35", "SAMP-27", "SAMP-011")
@pytest.mark.parametrize("lacking", ["role", "content", "model"])
@over_carriers
@over_all
async def test_a_sample_that_lacks_something_is_an_error(carrier, revision, lacking):
    async with asked_by_ours(carrier, revision) as peer:
        await peer.question("sampled")
        answer = {name: value for name, value in SAMPLED.items() if name != lacking}
        assert (await peer.answer(answer, judged=False))["error"]["code"] == -32602


SINCE = {"text": "2024-11-05", "image": "2024-11-05", "audio": "2025-03-26"}


@pytest.mark.requirement("SAMP-36", "SAMP-37")
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", ["text", "image", "audio", "resource"])
@over_all
async def test_messages_hold_the_blocks_of_their_revision(revision, kind, several):
    """Asked as its author wrote it, or not at all; the official schema judges what is asked."""
    arguments = {"kind": kind, "several": several}
    async with asked_by_ours("memory", revision) as peer:
        if revision < SINCE.get(kind, "never") or (several and revision not in RICH):
            answer = await peer.peer.request("tools/call", {"name": "think_with", "arguments": arguments})
            assert "error" in answer or answer["result"]["isError"]
            assert peer.peer.heard == []
            return
        content = (await peer.question("think_with", arguments))["messages"][0]["content"]
        assert isinstance(content, list) is several
        blocks = {**SAMPLED, "content": [SAMPLED["content"]]} if several else SAMPLED
        assert (await peer.answer(blocks))["result"]["content"][0]["text"] == "Paris"


@pytest.mark.requirement("SAMP-07", "SAMP-003")
@over_carriers
@over_rich
async def test_tools_are_offered_to_a_client_that_takes_them(carrier, revision):
    async with asked_by_ours(carrier, revision) as peer:
        asked = await peer.question("think_with", {"tools": True})
        assert [tool["name"] for tool in asked["tools"]] == ["add"] and asked["toolChoice"] == {"mode": "auto"}
        await peer.answer(SAMPLED)


USE = {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}, "_meta": {"com.example/x": 1}}
USED = {"role": "assistant", "content": [USE], "model": "small", "stopReason": "toolUse"}


async def looped(peer, arguments=None):
    """What a loop of tools asks after the model has used one, or what became of the call."""
    first = await peer.question("loop", arguments)
    assert first["modelPreferences"] == {"speedPriority": 0.5}
    if peer.peer.revision == NEWEST:
        answer = await peer.answer(USED)
        return answer.get("result", {}).get("inputRequests", {}).get("told", {}).get("params"), answer
    peer.peer.send({"jsonrpc": "2.0", "id": peer.asked["id"], "result": USED})
    peer.asked = told = await peer.peer.receive()
    return (told.get("params"), told)


@pytest.mark.requirement(
    *("SAMP-11", "SAMP-12", "SAMP-13", "SAMP-38", "SAMP-33", "SAMP-008", "SAMP-009", "SAMP-020", "SCH-10"),
)
@over_carriers
@over_rich
async def test_what_a_model_used_is_told_back_with_its_result(carrier, revision):
    async with asked_by_ours(carrier, revision) as peer:
        asked, answer = await looped(peer)
        _, used, told = asked["messages"]
        assert used == {"role": "assistant", "content": [USE]}, "its _meta too"
        result = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "2"}]}
        assert told == {"role": "user", "content": [result]}
        if revision != NEWEST:
            assert (await peer.answer(SAMPLED))["result"]["content"][0]["text"] == "Paris"
        else:
            assert answer["result"]["resultType"] == "input_required"


@pytest.mark.requirement("SAMP-11", "SAMP-12", "SAMP-13", "SAMP-008", "SAMP-009", "SCH-10")
@pytest.mark.parametrize("breaking", ["id", "mixed", "missing", "content"])
@over_carriers
@over_rich
async def test_a_broken_loop_is_never_asked(carrier, revision, breaking):
    async with asked_by_ours(carrier, revision) as peer:
        asked, answer = await looped(peer, {"breaking": breaking})
        assert asked is None
        assert answer.get("error", {}).get("code") == -32603 or answer["result"]["isError"]


@pytest.mark.requirement("SCH-10")
@pytest.mark.parametrize(
    "change", [{"id": None}, {"name": None}, {"input": None}, {"input": []}, {"type": None}], ids=str
)
@over_carriers
@over_rich
async def test_a_tool_use_that_lacks_a_member_reaches_no_handler(carrier, revision, change):
    used = {name: value for name, value in {**USE, **change}.items() if value is not None}
    async with asked_by_ours(carrier, revision) as peer:
        await peer.question("loop")
        assert (await peer.answer({**USED, "content": [used]}, judged=False))["error"]["code"] == -32602


@pytest.mark.requirement("SAMP-33")
@pytest.mark.parametrize("priority", [-0.1, 1.1, 2])
@over_carriers
@over_all
async def test_a_priority_out_of_its_range_is_never_asked(carrier, revision, priority):
    async with asked_by_ours(carrier, revision) as peer:
        answer = await peer.peer.request("tools/call", {"name": "loop", "arguments": {"priority": priority}})
        assert answer.get("error", {}).get("code") == -32603 or answer["result"]["isError"]
        assert peer.peer.heard == []


# --- our client answers -------------------------------------------------------------------------------------

FORM = {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]}
ELICITING = {"message": "Which seat?", "requestedSchema": FORM}
PAGE = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": 'odd "\\ é'}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
TOOLS = [{"name": "add", "inputSchema": {"type": "object"}}]


async def told_by_ours(carrier, revision, method, params, **callbacks):
    """How our client answers a question: `result` or `error`, as the server sees it."""
    async with talking(carrier, revision, check=False, **callbacks) as (client, peer):
        if revision != NEWEST:
            return await peer.request(method, params, judged=False)
        call = start(client.call_tool("t"))
        asked = {"resultType": "input_required", "inputRequests": {"q": {"method": method, "params": params}}}
        reply(peer, await peer.expect("tools/call"), asked, judged=False)
        retry = start(peer.expect("tools/call"))
        await asyncio.wait((call, retry), return_when=asyncio.FIRST_COMPLETED)
        if call.done():
            retry.cancel()
            return {"error": call.exception()}
        reply(peer, second := await retry, {"content": []})
        await call
        return {"result": second["params"]["inputResponses"]["q"]}


def capabilities_of(request):
    params = request["params"]
    return params.get("capabilities", params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities"))


@pytest.mark.requirement(
    *("ELIC-01", "ELIC-08", "ELICIT-007", "SAMP-01", "SAMP-005", "ROOTS-01", "ROOTS-001", "ROOTS-008", "META-021"),
    *("SCHEMA-002", "SAMP-06", "SAMP-002"),
)
@over_carriers
@over_all
async def test_what_there_is_a_callback_for_is_declared_and_nothing_else(carrier, revision):
    """No sampling.tools; in the newest revision on every request again, and without listChanged of roots."""
    forms = {"elicitation": {}} if revision in WITH_ELICITATION else {}
    both = {"elicitation": {"form": {}, "url": {}}} if revision in RICH else forms
    given = [
        ({}, {}),
        ({"sample": dict}, {"sampling": {}}),
        ({"roots": ["file:///a"]}, {"roots": {} if revision == NEWEST else {"listChanged": True}}),
        ({"elicit": dict}, forms),
        ({"elicit": dict, "elicit_url": dict}, both),
    ]
    for callbacks, expected in given:
        async with talking(carrier, revision, **callbacks) as (client, peer):
            call = start(client.call_tool("t"))
            reply(peer, await peer.expect("tools/call"), {"content": []})
            await call
            requests = [frame for frame in peer.transcript.frames("client") if "id" in frame]
            said = [capabilities_of(frame) for frame in requests]
            assert said == [expected, expected if revision == NEWEST else None], callbacks


@pytest.mark.requirement("ELIC-12", "ELIC-18", "ELICIT-011", "ELICIT-018")
@pytest.mark.parametrize("mode", [{}, {"mode": "form"}])
@over_carriers
@over_asking
async def test_a_question_without_a_mode_is_a_form(carrier, revision, mode):
    callbacks = {"elicit": lambda _: SEAT, "elicit_url": lambda _: {"action": "cancel"}}
    told = await told_by_ours(carrier, revision, "elicitation/create", {**ELICITING, **mode}, **callbacks)
    assert told["result"] == SEAT


@pytest.mark.requirement("ELIC-19", "ELIC-25", "ELICIT-018")
@pytest.mark.parametrize("action", ["decline", "cancel"])
@over_carriers
@over_asking
async def test_only_a_form_that_was_accepted_has_content(carrier, revision, action):
    answer = {"action": action, "content": {"row": 7}}
    told = await told_by_ours(carrier, revision, "elicitation/create", ELICITING, elicit=lambda _: answer)
    assert told["result"] == {"action": action}
    if revision in RICH:
        accepted = {"action": "accept", "content": {"row": 7}}
        told = await told_by_ours(carrier, revision, "elicitation/create", PAGE, elicit_url=lambda _: accepted)
        assert told["result"] == {"action": "accept"}


@pytest.mark.requirement("ELIC-18", "ELIC-49", "ELICIT-018", "ELICIT-041")
@pytest.mark.parametrize("answer", UNFIT)
@over_carriers
@over_asking
async def test_an_unfit_answer_of_a_callback_never_leaves_the_client(carrier, revision, answer):
    told = await told_by_ours(carrier, revision, "elicitation/create", ELICITING, elicit=lambda _: answer)
    if revision == NEWEST:
        assert isinstance(told["error"], LocalError)
    else:
        assert told["error"]["code"] == -32603


@pytest.mark.requirement("ELIC-36", "ELIC-08")
@over_carriers
async def test_a_mode_that_was_not_declared_is_refused(carrier):
    asked = []
    told = await told_by_ours(carrier, "2025-11-25", "elicitation/create", PAGE, elicit=asked.append)
    assert told["error"]["code"] == -32602
    told = await told_by_ours(carrier, "2025-11-25", "elicitation/create", ELICITING, elicit_url=asked.append)
    assert told["error"]["code"] == -32602
    assert asked == []


@pytest.mark.requirement("ELIC-24")
@over_carriers
async def test_the_id_of_a_page_is_handed_on_as_it_is(carrier):
    seen = []

    def visit(params):
        seen.append(params)
        return {"action": "accept"}

    await told_by_ours(carrier, "2025-11-25", "elicitation/create", PAGE, elicit_url=visit)
    assert seen == [PAGE]


@pytest.mark.requirement("ELIC-54", "ELIC-55", "ELICIT-034", "ELICIT-035")
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
@over_rich
async def test_the_client_itself_opens_no_page(revision, action, monkeypatch):
    """Neither before the callback is asked nor after: whoever has the user's consent opens it."""
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    server = await asyncio.start_server(lambda reader, writer: (opened.append("hit"), writer.close()), "127.0.0.1", 0)
    async with server:
        page = {**PAGE, "url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"}
        told = await told_by_ours(
            "memory", revision, "elicitation/create", page, elicit_url=lambda _: {"action": action}
        )
        assert told["result"] == {"action": action}
        await until_idle()
    assert opened == []


@pytest.mark.requirement("ELIC-29")
@over_carriers
async def test_news_of_a_page_that_nobody_knows_changes_nothing(carrier):
    async with talking(carrier, "2025-11-25", elicit_url=dict) as (client, peer):
        for _ in range(2):
            peer.notify("notifications/elicitation/complete", {"elicitationId": "unknown"})
        await settled(client, peer)
        assert peer.heard == []


@pytest.mark.requirement("SAMP-06", "SAMP-08", "SAMP-002")
@pytest.mark.parametrize("more", [{"tools": TOOLS}, {"toolChoice": {"mode": "none"}}, {"tools": []}])
@over_carriers
async def test_sampling_with_tools_is_refused_by_a_client_that_declared_none(carrier, more):
    asked = []
    params = {**SAMPLING, **more}
    told = await told_by_ours(carrier, "2025-11-25", "sampling/createMessage", params, sample=asked.append)
    assert told["error"]["code"] == -32602
    assert asked == []


TEXT = {"type": "text", "text": "x"}


@pytest.mark.requirement("SAMP-34", "SAMP-011", "SAMP-27")
@pytest.mark.parametrize(
    "broken",
    [
        *({"messages": ...}, {"maxTokens": ...}, {"maxTokens": "5"}, {"maxTokens": 1.5}, {"maxTokens": None}),
        *({"messages": None}, {"messages": "hi"}, {"messages": {}}, {"messages": [5]}, {"maxTokens": True}),
        *({"messages": [{"role": "user"}]}, {"messages": [{"content": TEXT}]}),
        {"messages": [{"role": "system", "content": TEXT}]},
    ],
)
@over_carriers
@over_all
async def test_sampling_without_what_it_must_say_never_reaches_the_model(carrier, revision, broken):
    """Refused as the mistake of the server; said as it must be, the same is answered."""
    asked = []

    def sample(params):
        asked.append(params)
        return SAMPLED

    params = {name: value for name, value in {**SAMPLING, **broken}.items() if value is not ...}
    told = await told_by_ours(carrier, revision, "sampling/createMessage", params, sample=sample)
    if revision == NEWEST:
        assert isinstance(told["error"], BadResult)
    else:
        assert told["error"]["code"] == -32602
    assert asked == []
    told = await told_by_ours(carrier, revision, "sampling/createMessage", SAMPLING, sample=sample)
    assert told["result"] == SAMPLED and asked == [SAMPLING]


RESULT = {"type": "tool_result", "toolUseId": "u1", "content": []}


@pytest.mark.requirement("SAMP-11", "SAMP-12", "SAMP-13", "SAMP-16", "SAMP-17", "SAMP-27", "SAMP-008", "SAMP-009")
@pytest.mark.parametrize(
    "blocks",
    [[], [RESULT, {"type": "text", "text": "x"}], [{**RESULT, "toolUseId": "u2"}], {"type": "text", "text": "x"}],
)
@over_carriers
@over_rich
async def test_messages_of_a_broken_loop_are_refused(carrier, revision, blocks):
    asked = []
    messages = [*SAMPLING["messages"], {"role": "assistant", "content": [USE]}, {"role": "user", "content": blocks}]
    params = {**SAMPLING, "messages": messages}
    told = await told_by_ours(carrier, revision, "sampling/createMessage", params, sample=asked.append)
    if revision == NEWEST:
        assert isinstance(told["error"], BadResult)
    else:
        assert told["error"]["code"] == -32602
    assert asked == []


@pytest.mark.requirement("SCH-10")
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(("use", {name: None}) for name in ("type", "id", "name", "input")),
        *(("result", {name: None}) for name in ("type", "toolUseId", "content")),
        *(("use", {"input": "x"}), ("use", {"id": 1}), ("result", {"content": "x"}), ("result", {"content": {}})),
    ],
)
@over_carriers
@over_rich
async def test_blocks_of_tools_that_lack_a_member_reach_no_model(carrier, revision, kind, change):
    """Whole ones do, as they came; and a model's own tool_use without a member does not leave the client."""
    asked, answers = [], [USED]

    def sample(params):
        asked.append(params)
        return answers[-1]

    sample.declares = {"tools": {}}

    def changed(block, wanted):
        members = {**block, **(change if kind == wanted else {})}
        return {name: value for name, value in members.items() if value is not None}

    async def told(use, result):
        loop = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        params = {**SAMPLING, "messages": [*SAMPLING["messages"], *loop], "tools": TOOLS}
        return params, await told_by_ours(carrier, revision, "sampling/createMessage", params, sample=sample)

    _, refused = await told(changed(USE, "use"), changed(RESULT, "result"))
    assert "result" not in refused and asked == []
    params, answer = await told(USE, RESULT)
    assert answer["result"] == USED and asked == [params]
    if kind == "use":
        answers.append({**USED, "content": [changed(USE, "use")]})
        _, answer = await told(USE, RESULT)
        assert "result" not in answer and len(asked) == 2


NO_IMAGE = {"type": "image", "data": "!!!", "mimeType": "image/png"}


@pytest.mark.requirement("SAMP-27")
@over_carriers
@over_all
async def test_data_that_is_no_base64_passes_neither_side(carrier, revision):
    """Not to the model, not back from it, and no handler gets it."""
    asked = []

    def sample(params):
        asked.append(params)
        return {**SAMPLED, "content": NO_IMAGE}

    broken = {**SAMPLING, "messages": [{"role": "user", "content": NO_IMAGE}]}
    assert "result" not in await told_by_ours(carrier, revision, "sampling/createMessage", broken, sample=sample)
    assert asked == []
    assert "result" not in await told_by_ours(carrier, revision, "sampling/createMessage", SAMPLING, sample=sample)
    assert len(asked) == 1
    async with asked_by_ours(carrier, revision) as peer:
        await peer.question("sampled")
        assert (await peer.answer({**SAMPLED, "content": NO_IMAGE}, judged=False))["error"]["code"] == -32602


@pytest.mark.requirement("SAMP-35", "SAMP-27")
@pytest.mark.parametrize("lacking", ["role", "content", "model"])
@over_carriers
@over_all
async def test_a_sample_that_lacks_something_never_leaves_the_client(carrier, revision, lacking):
    answer = {name: value for name, value in SAMPLED.items() if name != lacking}
    told = await told_by_ours(carrier, revision, "sampling/createMessage", SAMPLING, sample=lambda _: answer)
    assert "result" not in told


@pytest.mark.requirement("ROOTS-03", "ROOTS-04", "ROOTS-002")
@over_carriers
@over_all
async def test_roots_are_files_with_or_without_a_name(carrier, revision):
    roots = ["file:///home/ada", {"uri": "file:///srv/a..b", "name": "Shared"}]
    told = await told_by_ours(carrier, revision, "roots/list", {}, roots=roots)
    assert told["result"] == {"roots": [{"uri": "file:///home/ada"}, roots[1]]}


@pytest.mark.requirement("ROOTS-03", "ROOTS-06", "ROOTS-08", "ROOTS-002", "ROOTS-003")
@pytest.mark.parametrize(
    "root",
    [
        *("https://example.com/", "/home/ada", "", "file:/home", "file:home", {}, {"uri": 5}),
        *("file:///a/../etc", "file:///a/%2e%2e/etc", "file:///a/..", "file:///a\\..\\b"),
    ],
)
@over_carriers
@over_all
async def test_what_is_no_root_or_takes_detours_never_leaves_the_client(carrier, revision, root):
    told = await told_by_ours(carrier, revision, "roots/list", {}, roots=lambda: [root])
    if revision == NEWEST:
        assert isinstance(told["error"], LocalError)
    else:
        assert told["error"]["code"] == -32603


@pytest.mark.requirement("ROOTS-06")
@over_carriers
@over_handshake
async def test_roots_that_cannot_be_told_are_our_internal_error(carrier, revision):
    def fails():
        raise OSError("secret")

    told = await told_by_ours(carrier, revision, "roots/list", {}, roots=fails)
    assert told["error"]["code"] == -32603 and not re.search("secret", str(told))


@pytest.mark.requirement("ROOTS-02", "ROOTS-04")
@over_carriers
@over_handshake
async def test_roots_that_changed_are_told_and_asked_for_anew(carrier, revision):
    """The one who has the roots says when they changed; nothing is kept of the old ones."""
    roots = ["file:///a"]
    async with talking(carrier, revision, roots=lambda: roots) as (client, peer):
        assert (await peer.result("roots/list"))["roots"] == [{"uri": "file:///a"}]
        roots.append("file:///b")
        await client.roots_changed()
        await peer.expect("notifications/roots/list_changed")
        assert (await peer.result("roots/list"))["roots"] == [{"uri": "file:///a"}, {"uri": "file:///b"}]


@pytest.mark.requirement("ROOTS-008")
@over_carriers
async def test_nothing_tells_that_roots_changed_in_the_newest_revision(carrier):
    roots = ["file:///a"]
    async with talking(carrier, NEWEST, roots=roots) as (client, peer):
        roots.append("file:///b")
        await client.roots_changed()
        call = start(client.call_tool("t"))
        reply(peer, await peer.expect("tools/call"), {"content": []})
        await call
        assert not [frame for frame in peer.transcript.frames("client") if "id" not in frame]
    async with Client(asking.server, revision=NEWEST, roots=roots) as client:
        assert (await client.call_tool("rooted")).text == "file:///a file:///b"
