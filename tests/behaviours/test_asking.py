"""One author line, `await ctx.elicit(...)`, in every revision: the same answer, the same single act, or one refusal."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlock import Client, Context, Server
from interlock.wire.errors import BadResult, CannotAsk, InvalidParams, MethodNotFound, Refused, RemoteError
from support.http_socket import served
from support.servers import asking
from support.talking import reply, start, talking, text
from support.wire_peer import ALL, CARRIERS, server_under_test

WITH_ELICITATION = ("2025-06-18", "2025-11-25", "2026-07-28")
WITHOUT = tuple(revision for revision in ALL if revision not in WITH_ELICITATION)
NEWEST = ALL[-1]
FILE = Path(asking.__file__)

over_carriers = pytest.mark.parametrize("carrier", CARRIERS)


def over(revisions):
    """Every carrier with every revision it carries: HTTP has the newest alone yet."""
    pairs = [(carrier, revision) for revision in revisions for carrier in CARRIERS]
    pairs += [("http", NEWEST)] if NEWEST in revisions else []
    return pytest.mark.parametrize(("carrier", "revision"), pairs)


over_all = over(ALL)
over_asking = over(WITH_ELICITATION)
over_asking_revisions = pytest.mark.parametrize("revision", WITH_ELICITATION)

ENTERED = {
    "Which seat?": {"row": 7},
    "Which meal?": {"value": "veg"},
    "Bags?": {"value": 2},
    "Pets?": {"value": 1},
    "Sure?": {"value": True},
    "Whom?": {"value": "Ada"},
}


class Person:
    """A user who answers everything, and what they were asked."""

    def __init__(self, action="accept"):
        self.asked = []
        self.action = action

    def elicit(self, params):
        self.asked.append(params["message"])
        accepted = {"content": ENTERED[params["message"]]} if self.action == "accept" else {}
        return {"action": self.action, **accepted}

    def visit(self, params):
        self.asked.append(params["url"])
        return {"action": self.action}

    def sample(self, params):
        self.asked.append(params["messages"][0]["content"]["text"])
        return {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "test"}


@asynccontextmanager
async def asked_by(carrier, revision, person, **more):
    """A client of that revision whose questions go to `person`, and a real server over that carrier."""
    options = {"elicit": person.elicit, "sample": person.sample, "roots": ["file:///home/ada"], **more}
    async with target_of(carrier) as target, Client(target, revision=revision, **options) as client:
        await client.call_tool("noted")
        yield client


@asynccontextmanager
async def target_of(carrier):
    if carrier == "http":
        async with served(asking.server.asgi()) as port:
            yield f"http://127.0.0.1:{port}/mcp"
    else:
        yield asking.server if carrier == "memory" else [sys.executable, str(FILE)]


# --- the same in every revision -----------------------------------------------------------------------------


@pytest.mark.requirement("MRTR-001", "MRTR-002", "MRTR-019", "MRTR-020", "ELIC-01", "JSONRPC-001")
@over_asking
async def test_one_function_gives_one_answer_and_acts_once(carrier, revision):
    person, progress = Person(), []
    async with asked_by(carrier, revision, person) as client:
        result = await client.call_tool("book", {"flight": "OS 1"}, on_progress=lambda *told: progress.append(told))
        assert result.text == "OS 1, row 7, veg, 2 bags, 1 pets, receipt 1, True"
        noted = (await client.call_tool("noted")).structured
        assert noted["acts"] == ["paid"]
        assert sorted(person.asked) == sorted(ENTERED.keys() - {"Whom?"})
        assert progress and {told[:2] for told in progress} == {(1, 2)}


@over_asking
async def test_a_handler_in_a_thread_asks_the_same_way(carrier, revision):
    person = Person()
    async with asked_by(carrier, revision, person) as client:
        assert (await client.call_tool("book_in_thread", {"flight": "OS 1"})).text == "OS 1, row 7, receipt 1, True"
        assert (await client.call_tool("noted")).structured["acts"] == ["paid"]


@over_asking
async def test_a_parked_run_runs_once(carrier, revision):
    person, progress = Person(), []
    async with asked_by(carrier, revision, person) as client:
        result = await client.call_tool(
            "book_parked", {"flight": "OS 1"}, on_progress=lambda *told: progress.append(told)
        )
        assert result.text == "OS 1, row 7, 2 bags, 1 pets"
        assert (await client.call_tool("noted")).structured["runs"] == ["book"]
        assert [told[:2] for told in progress] == [(1, 2)]  # said in the round that was open then


@pytest.mark.parametrize("style", ["plain", "group", "gather", "timeout"])
@over_asking
async def test_whatever_authors_wrap_around_a_question(carrier, revision, style):
    person = Person()
    async with asked_by(carrier, revision, person) as client:
        assert (await client.call_tool("structured", {"style": style})).text == f"{style} 3 finally"
        assert sorted(person.asked) == ["Bags?", "Pets?"]
        acts = (await client.call_tool("noted")).structured["acts"]
        assert set(acts) == {"cleaned"}  # `finally` runs in every round


@pytest.mark.parametrize("asks", ["replay", "park"])
@over_asking_revisions
async def test_who_asks_until_an_answer_will_do_asks_again_in_every_revision(revision, asks):
    """Under one key: the first answer, given for ever, would keep the function and its whole server busy for ever."""
    server, entered = Server("again", version="1"), iter([1, 2, 9])

    @server.tool(asks=asks)
    async def enough(ctx: Context) -> str:
        found = [await ctx.elicit("How many?", int, key="many")]
        while found[-1] < 5:
            found.append(await ctx.elicit("How many?", int, key="many"))
        return str(found)

    def elicit(params):
        return {"action": "accept", "content": {"value": next(entered)}}

    async with Client(server, revision=revision, elicit=elicit) as client:
        assert (await client.call_tool("enough")).text == "[1, 2, 9]"


@over_carriers
async def test_a_run_that_swallows_its_end_is_asked_again_all_the_same(carrier):
    async with asked_by(carrier, NEWEST, Person()) as client:
        assert (await client.call_tool("structured", {"style": "swallows"})).text == "swallows 3 finally"


@pytest.mark.requirement("MRTR-002", "MRTR-001")
@over_all
async def test_sampling_and_roots_in_all_five(carrier, revision):
    person = Person()
    async with asked_by(carrier, revision, person) as client:
        assert (await client.call_tool("think")).text == "Paris (test) file:///home/ada"
        assert (await client.call_tool("sampled")).text == "Paris"
        assert (await client.call_tool("rooted")).text == "file:///home/ada"


@pytest.mark.requirement("MRTR-002")
@over_asking
async def test_prompts_and_resources_ask_too(carrier, revision):
    async with asked_by(carrier, revision, Person()) as client:
        prompt = await client.get_prompt("greeting")
        assert prompt.messages[0].content.text == "Greet Ada"
        assert (await client.read_resource("asking://who"))[0].text == "Ada"


@pytest.mark.requirement("ELIC-25", "ELICIT-019")
@over(("2025-11-25", "2026-07-28"))
async def test_a_page_to_open(carrier, revision):
    person = Person()
    async with asked_by(carrier, revision, person, elicit_url=person.visit) as client:
        assert (await client.call_tool("visit")).text == "agreed"
        assert person.asked == ["https://example.com/sign-in"]


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("ELICIT-026", "ELICIT-027", "ELIC-20")
@pytest.mark.parametrize("action", ["decline", "cancel"])
@over_asking
async def test_a_user_who_says_no_is_told_to_the_model(carrier, revision, action):
    person = Person(action)
    async with asked_by(carrier, revision, person) as client:
        result = await client.call_tool("book", {"flight": "OS 1"})
        assert result.is_error and "The user" in result.text
        assert person.asked == ["Which seat?"]


@pytest.mark.requirement("MRTR-007", "ELICIT-008", "ELIC-09")
@over_all
async def test_what_a_client_cannot_answer_is_refused_before_anything_is_asked(carrier, revision):
    person = Person()
    async with asked_by(carrier, revision, person, elicit=None, sample=None, roots=None) as client:
        for tool in ("book", "book_in_thread", "book_parked"):
            with pytest.raises((CannotAsk, MethodNotFound)):
                await client.call_tool(tool, {"flight": "OS 1"})
        for tool in ("sampled", "rooted", "visit"):
            with pytest.raises((CannotAsk, MethodNotFound)):
                await client.call_tool(tool)
        assert person.asked == []


@over_carriers
@pytest.mark.parametrize("revision", WITHOUT)
async def test_a_revision_without_elicitation_refuses_it(carrier, revision):
    async with asked_by(carrier, revision, Person()) as client:
        with pytest.raises(Refused, match="elicitation/create"):
            await client.call_tool("book", {"flight": "OS 1"})


@pytest.mark.requirement("ELICIT-008", "ELIC-08", "ELIC-09", "ELICIT-007")
@over_asking
async def test_forms_alone_mean_no_pages(carrier, revision):
    async with asked_by(carrier, revision, Person()) as client:
        with pytest.raises((CannotAsk, MethodNotFound), match=r"elicitation\.url"):
            await client.call_tool("visit")
        assert (await client.call_tool("can", {"what": "elicitation.form"})).text == "true"
        assert (await client.call_tool("can", {"what": "elicitation.url"})).text == "false"


# --- the rounds of the newest revision, frame by frame ------------------------------------------------------

BOOK = {"name": "book", "arguments": {"flight": "OS 1"}}
SEAT = {"action": "accept", "content": {"row": 7}}


@asynccontextmanager
async def raw(carrier="memory", capabilities=None):
    async with server_under_test(carrier, NEWEST, server="asking") as peer:
        peer.capabilities = {"elicitation": {}} if capabilities is None else capabilities
        yield peer


@pytest.mark.requirement("MRTR-004", "MRTR-005", "MRTR-006", "MRTR-008", "RESULT-003")
@over_carriers
async def test_questions_asked_together_travel_together(carrier):
    async with raw(carrier) as peer:
        given = {"seat": SEAT}
        first = await peer.result("tools/call", BOOK)
        assert first["resultType"] == "input_required"
        assert list(first["inputRequests"]) == ["seat"]
        asked = first["inputRequests"]["seat"]
        assert asked["method"] == "elicitation/create" and "id" not in asked and "jsonrpc" not in asked
        state = first["requestState"]
        second = await peer.result("tools/call", {**BOOK, "inputResponses": given, "requestState": state})
        (meal,) = second["inputRequests"]
        assert second["requestState"] != state
        given = {meal: {"action": "accept", "content": {"value": "veg"}}}
        third = await peer.result(
            "tools/call", {**BOOK, "inputResponses": given, "requestState": second["requestState"]}
        )
        assert len(third["inputRequests"]) == 2
        assert "io.modelcontextprotocol/serverInfo" in third["_meta"]


@pytest.mark.requirement("MRTR-003", "RESULT-003")
async def test_no_other_method_asks():
    async with raw() as peer:
        for method in ("tools/list", "prompts/list", "resources/list", "server/discover"):
            assert (await peer.result(method, {}))["resultType"] == "complete"


@pytest.mark.requirement("MRTR-030", "MRTR-031")
@over_carriers
async def test_without_a_state_answers_match_by_key_alone(carrier):
    async with raw(carrier) as peer:
        asked = await peer.result(
            "tools/call", {**BOOK, "inputResponses": {"seat": SEAT, "other": {"a": 1}}}, judged=False
        )
        assert "seat" not in asked["inputRequests"]  # it was answered; what nobody asked is ignored
        again = await peer.result("tools/call", {**BOOK, "inputResponses": {"wrong": SEAT}})
        assert list(again["inputRequests"]) == ["seat"]


UNFIT = {"action": "accept", "content": {"row": "seven"}}


@pytest.mark.requirement("MRTR-028", "MRTR-029", "ELICIT-041")
@pytest.mark.parametrize(
    "answers", [[], 7, "x", {"seat": 12345}, {"seat": {"action": "yes"}}, {"seat": None}, {"seat": UNFIT}]
)
@over_carriers
async def test_malformed_answers_are_an_error(carrier, answers):
    async with raw(carrier) as peer:
        told = await peer.error("tools/call", {**BOOK, "inputResponses": answers}, judged=False)
        assert told["code"] == -32602


@pytest.mark.requirement("MRTR-009", "MRTR-010", "MRTR-011", "MRTR-015")
@over_carriers
async def test_a_state_that_is_not_ours_or_not_for_this_is_refused_in_one_text(carrier):
    async with raw(carrier) as peer:
        state = (await peer.result("tools/call", BOOK))["requestState"]
        texts = set()
        wrong = [state[:-1], state + "x", state + "-TAMPERED", "", "x", state.swapcase(), state[::-1]]
        wrong += [state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :] for at in range(len(state))]
        for each in wrong:
            told = await peer.error("tools/call", {**BOOK, "inputResponses": {"seat": SEAT}, "requestState": each})
            assert told["code"] == -32602
            texts.add(told["message"])
        for other in (
            {**BOOK, "arguments": {"flight": "OS 2"}},
            {**BOOK, "name": "book_in_thread"},
            {"name": "sampled", "arguments": {}},
        ):
            told = await peer.error("tools/call", {**other, "requestState": state})
            texts.add(told["message"])
        assert len(texts) == 1
        other = await peer.error("prompts/get", {"name": "greeting", "requestState": state})
        assert {other["message"]} == texts
        whole = await peer.result("tools/call", {**BOOK, "inputResponses": {"seat": SEAT}, "requestState": state})
        assert whole["resultType"] == "input_required"  # the right one still works


@pytest.mark.requirement("MRTR-016")
@over_carriers
async def test_a_state_that_counts_once_counts_once(carrier):
    params = {"name": "book_single", "arguments": {"flight": "OS 1"}}
    sure = {"sure": {"action": "accept", "content": {"value": True}}}
    async with raw(carrier) as peer:
        state = (await peer.result("tools/call", params))["requestState"]
        retry = {**params, "inputResponses": sure, "requestState": state}
        assert (await peer.result("tools/call", retry))["content"][0]["text"] == "OS 1, True"
        assert (await peer.error("tools/call", retry))["code"] == -32602


@pytest.mark.requirement("MRTR-018")
async def test_a_client_that_never_comes_back_leaves_nothing_behind():
    async with raw() as peer:
        server = sys.modules["support.servers.asking"].server  # the one this peer talks to
        for _ in range(20):
            await peer.result("tools/call", BOOK)
        assert len(server.asker.parking) == 0
        parked = {"name": "book_parked", "arguments": {"flight": "OS 1"}}
        for _ in range(3):
            await peer.result("tools/call", parked)
        assert len(server.asker.parking) == 3
        server.stop_listening()
        assert len(server.asker.parking) == 0


@pytest.mark.requirement("MRTR-018")
async def test_a_run_that_waits_does_not_outlive_the_connection_it_waits_on():
    parked = {"name": "book_parked", "arguments": {"flight": "OS 1"}}
    async with raw() as one:
        server = sys.modules["support.servers.asking"].server
        await one.result("tools/call", parked)
        assert len(server.asker.parking) == 1
    assert len(server.asker.parking) == 0


@over_carriers
async def test_a_ticket_is_good_once(carrier):
    params = {"name": "book_parked", "arguments": {"flight": "OS 1"}}
    async with raw(carrier) as peer:
        asked = await peer.result("tools/call", params)
        retry = {**params, "requestState": asked["requestState"]}
        again = await peer.result("tools/call", retry)  # nothing answered: the same question, another ticket
        assert list(again["inputRequests"]) == ["seat"] and again["requestState"] != asked["requestState"]
        assert (await peer.error("tools/call", retry))["code"] == -32602
        wrong = {**params, "requestState": again["requestState"], "inputResponses": {"seat": 7}}
        for _ in range(2):  # a wrong answer does not use it up
            told = await peer.error("tools/call", wrong, judged=False)
            assert told["code"] == -32602 and "malformed" in told["message"]
        right = {**params, "requestState": again["requestState"], "inputResponses": {"seat": SEAT}}
        assert len((await peer.result("tools/call", right))["inputRequests"]) == 2
        assert (await peer.error("tools/call", right))["code"] == -32602


@over_carriers
@over_asking_revisions
async def test_a_thread_that_asks_is_free_again_when_its_call_is_given_up(carrier, revision):
    """There are 32 threads: were they kept, the last call would wait for ever."""
    asked = asyncio.Event()

    async def never(params):
        asked.set()
        await asyncio.Event().wait()

    async with asked_by(carrier, revision, Person(), elicit=never) as client:
        for _ in range(40):
            asked.clear()
            call = start(client.call_tool("book_in_thread", {"flight": "OS 1"}))
            await asked.wait()
            call.cancel()
            await asyncio.wait([call])
        assert (await client.call_tool("plain_thread")).text == "free"


# --- the client's half --------------------------------------------------------------------------------------


def input_required(**members):
    return {"resultType": "input_required", **members}


QUESTION = {
    "who": {
        "method": "elicitation/create",
        "params": {
            "message": "Whom?",
            "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
        },
    }
}


@pytest.mark.requirement("MRTR-020", "MRTR-022", "MRTR-023", "MRTR-024", "MRTR-025", "MRTR-027", "ELICIT-011")
@over_carriers
async def test_a_retry_says_the_same_and_the_answers_and_the_state_as_it_was(carrier):
    odd = 'état "\\ \n\u2028 …'
    async with talking(carrier, NEWEST, elicit=Person().elicit) as (client, peer):
        call = start(client.call_tool("book", {"a": 1}, meta={"com.example/x": 1}))
        first = await peer.expect("tools/call")
        reply(peer, first, input_required(inputRequests=QUESTION, requestState=odd))
        second = await peer.expect("tools/call")
        assert second["id"] != first["id"]
        assert second["params"]["requestState"] == odd
        assert second["params"]["inputResponses"] == {"who": {"action": "accept", "content": {"value": "Ada"}}}
        for member in ("name", "arguments"):
            assert second["params"][member] == first["params"][member]
        assert second["params"]["_meta"]["com.example/x"] == 1
        reply(peer, second, input_required(inputRequests=QUESTION))
        third = await peer.expect("tools/call")
        assert "requestState" not in third["params"]
        reply(peer, third, {"resultType": "complete", **text("done")})
        assert (await call).text == "done"


@pytest.mark.requirement("MRTR-021")
@over_carriers
async def test_a_state_without_a_question_is_sent_back_at_once(carrier):
    async with talking(carrier, NEWEST) as (client, peer):
        call = start(client.call_tool("book"))
        reply(peer, await peer.expect("tools/call"), input_required(requestState="later"))
        second = await peer.expect("tools/call")
        assert second["params"]["requestState"] == "later" and "inputResponses" not in second["params"]
        reply(peer, second, {"resultType": "complete", **text("done")})
        assert (await call).text == "done"


@pytest.mark.requirement("MRTR-026")
@over_carriers
async def test_what_one_call_was_asked_stays_with_it(carrier):
    async with talking(carrier, NEWEST, elicit=Person().elicit) as (client, peer):
        one = start(client.call_tool("one"))
        first = await peer.expect("tools/call")
        two = start(client.call_tool("two"))
        other = await peer.expect("tools/call")
        reply(peer, first, input_required(inputRequests=QUESTION, requestState="mine"))
        retry = await peer.expect("tools/call")
        assert retry["params"]["name"] == "one"
        assert not {"inputResponses", "requestState"} & other["params"].keys()
        reply(peer, other, {"resultType": "complete", **text("two")})
        reply(peer, retry, {"resultType": "complete", **text("one")})
        assert [(await one).text, (await two).text] == ["one", "two"]


# well-formed but for what was not declared
PAGE = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://example.com/"}}
TALK = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}


@pytest.mark.requirement("RESULT-006", "SAMP-004")
@pytest.mark.parametrize(
    "result",
    [
        input_required(),
        input_required(inputRequests={}),
        input_required(inputRequests=[], requestState="x"),
        input_required(requestState=7),
        input_required(inputRequests={"a": 7}),
        input_required(inputRequests={"a": {"method": "tools/call", "params": {}}}),
        input_required(inputRequests={"a": {"method": "roots/list", "params": {}}}),
        input_required(inputRequests={"a": PAGE}),
        *(
            input_required(inputRequests={**QUESTION, "b": {"method": "sampling/createMessage", "params": params}})
            for params in ({}, {**TALK, "tools": []}, {**TALK, "toolChoice": {"mode": "none"}})
        ),
        {"resultType": "later"},
    ],
)
@over_carriers
async def test_what_was_not_declared_or_makes_no_sense_is_not_answered(carrier, result):
    person = Person()
    async with talking(carrier, NEWEST, elicit=person.elicit, sample=person.sample, check=False) as (client, peer):
        call = start(client.call_tool("book"))
        reply(peer, await peer.expect("tools/call"), result, judged=False)
        with pytest.raises(BadResult):
            await call
        assert person.asked == []


@over_carriers
async def test_a_server_that_asks_on_and_on_is_given_up(carrier):
    async with talking(carrier, NEWEST) as (client, peer):
        call = start(client.call_tool("book"))
        for _ in range(16):
            reply(peer, await peer.expect("tools/call"), input_required(requestState="again"))
        with pytest.raises(RemoteError, match="16 rounds"):
            await call


@over_carriers
async def test_only_what_may_ask_may_ask(carrier):
    async with talking(carrier, NEWEST) as (client, peer):
        call = start(client.list_tools())
        reply(peer, await peer.expect("tools/list"), input_required(requestState="x"), judged=False)
        with pytest.raises(BadResult):
            await call


async def test_a_callback_that_fails_fails_the_call_and_nothing_is_sent():
    def fails(params):
        raise InvalidParams("no")

    async with talking("memory", NEWEST, elicit=fails) as (client, peer):
        call = start(client.call_tool("book"))
        reply(peer, await peer.expect("tools/call"), input_required(inputRequests=QUESTION))
        with pytest.raises(InvalidParams):
            await call
        assert [frame["method"] for frame in peer.heard if "method" in frame] == []
