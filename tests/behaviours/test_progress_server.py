"""What a server of ours tells about its progress: handshake PROG, modern PROGRESS."""

import itertools

import pytest

from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN, server_under_test

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PROGRESS = "notifications/progress"
WITH_MESSAGES = ALL[1:]  # 2025-03-26 added `message`

TOKENS = [5, "5", 0, "0", -1, 2**53 + 1, "", " ", "é\U0001f600", 'a"\\\n', "t" * 200]


async def progress_of(peer, tool, token="t", **arguments):
    """Call a tool with a token; its progress in order, all of it from before the answer."""
    peer.heard.clear()
    result = await peer.result("tools/call", {"name": tool, "arguments": arguments}, meta={"progressToken": token})
    assert not result.get("isError"), result
    return peer.notices(PROGRESS)


def values(told):
    return [params["progress"] for params in told]


def strictly_increasing(numbers):
    return all(one < other for one, other in itertools.pairwise(numbers))


# --- values ---


@pytest.mark.requirement("PROG-04", "PROG-14", "PROGRESS-003")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_progress_only_grows_whatever_the_author_says(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        told = await progress_of(peer, "wobble")  # no total: PROG-04 holds there too
        assert values(told) == [1, 2, 2.5, 3]
        assert all("total" not in params for params in told)


@pytest.mark.requirement("PROG-04", "PROG-14", "PROGRESS-003")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_what_json_has_no_number_for_is_never_sent(carrier, revision):
    """NaN and the infinities would become `null`, which no schema allows."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        told = await progress_of(peer, "no_numbers")
        assert all(isinstance(params["progress"], int | float) for params in told), told
        assert all(isinstance(params.get("total", 0), int | float) for params in told), told
        assert strictly_increasing(values(told))
        assert values(told)[-1] == 2  # the honest value after the odd ones still gets through


@pytest.mark.requirement("PROG-05", "PROGRESS-004")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_fractions_travel(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        told = await progress_of(peer, "fractions")
        assert [(params["progress"], params["total"]) for params in told] == [(0.2, 1.0), (0.75, 1.0)]


@pytest.mark.requirement("PROG-06", "PROGRESS-005")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_the_message_is_sent_where_the_revision_has_it(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        first, second = await progress_of(peer, "fractions")
        assert "message" not in first
        if revision in WITH_MESSAGES:
            assert second["message"] == "three quarters – fast fertig"
        else:
            assert "message" not in second


@pytest.mark.requirement("PROG-03", "PROG-07", "PROGRESS-007")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_handler_without_progress_needs_none(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        assert await progress_of(peer, "echo", text="x") == []


@pytest.mark.requirement("PROG-07", "PROG-08", "PROGRESS-006")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_resources_and_prompts_report_it_too(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        await peer.result("resources/read", {"uri": "slow://one"}, meta={"progressToken": "r"})
        await peer.result("prompts/get", {"name": "slow_prompt"}, meta={"progressToken": "p"})
        told = [(params["progressToken"], params["progress"]) for params in peer.notices(PROGRESS)]
        assert told == [("r", 1), ("p", 1)]


# --- tokens ---


@pytest.mark.requirement("PROG-01", "PROG-08")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_the_token_comes_back_as_it_is(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        for token in TOKENS:
            told = await progress_of(peer, "fractions", token=token)
            assert [(type(params["progressToken"]), params["progressToken"]) for params in told] == [
                (type(token), token)
            ] * 2


@pytest.mark.requirement("PROG-01")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_token_of_another_kind_is_refused(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        for token in (1.5, True, False, [], {}, ["t"], {"t": 1}):
            call = {"name": "fractions", "arguments": {}}
            error = await peer.error("tools/call", call, meta={"progressToken": token}, judged=False)
            assert error["code"] == -32602, token
        assert peer.heard == []


@pytest.mark.requirement("PROG-07", "PROGRESS-006")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_no_token_no_progress(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        await progress_of(peer, "fractions", token="earlier")
        peer.heard.clear()
        for meta in (None, {}, {"com.example/progressToken": "other"}):
            await peer.result("tools/call", {"name": "fractions", "arguments": {}}, meta=meta)
        await peer.settle()
        assert peer.heard == []


@pytest.mark.requirement("PROG-07", "PROG-09", "PROGRESS-006", "PROGRESS-009")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_requests_at_once_keep_their_own_tokens(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        frames = {}
        for number in range(20):
            arguments = {"name": "flood", "arguments": {"count": number}}
            frames[number] = peer.frame("tools/call", arguments, meta={"progressToken": number})
        for frame in frames.values():
            peer.send(frame)
        for frame in frames.values():
            await peer.response(frame["id"])
        await peer.settle()
        for number in frames:
            told = [params for params in peer.notices(PROGRESS) if params["progressToken"] == number]
            assert [params["progress"] for params in told] == list(range(1, number + 1))
            assert all(params["total"] == number for params in told)


@pytest.mark.requirement("PROG-01", "PROG-02")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_tokens_of_our_own_questions_are_apart(carrier, revision):
    async with server_under_test(carrier, revision, capabilities={"roots": {}}) as peer:
        arguments = {"name": "question", "arguments": {"method": "roots/list"}}
        calls = [peer.frame("tools/call", arguments) for _ in range(5)]
        for call in calls:
            peer.send(call)
        asked = [await peer.expect("roots/list") for _ in calls]
        tokens = [
            question["params"]["_meta"]["progressToken"]
            for question in asked
            if "progressToken" in question.get("params", {}).get("_meta", {})
        ]
        assert all(type(token) in (int, str) for token in tokens)
        assert len(set(tokens)) == len(tokens)
        assert len({question["id"] for question in asked}) == len(asked)
        for question in asked:
            peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        for call in calls:
            await peer.response(call["id"])


# --- progress that a client tells us ---


ODD_PROGRESS = [
    {"progressToken": "unknown", "progress": 1},
    {"progressToken": 987654, "progress": 1, "total": 2},
    {"progress": 1},
    {"progressToken": None, "progress": 1},
    {"progressToken": [], "progress": 1},
    {"progressToken": True, "progress": 1},
    {"progressToken": 1},
    {"progressToken": 1, "progress": "half"},
    {},
]


@pytest.mark.requirement("PROG-09", "PROG-14")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_progress_for_nothing_we_asked_is_ignored(carrier, revision):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        for params in ODD_PROGRESS:
            peer.notify(PROGRESS, params, judged=False)
        await peer.settle()
        assert peer.heard == []


@pytest.mark.requirement("PROG-09")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_progress_on_our_question_does_not_answer_it(carrier, revision):
    async with server_under_test(carrier, revision, capabilities={"roots": {}}) as peer:
        call = peer.frame("tools/call", {"name": "question", "arguments": {"method": "roots/list"}})
        peer.send(call)
        question = await peer.expect("roots/list")
        token = question.get("params", {}).get("_meta", {}).get("progressToken", "none")
        peer.notify(PROGRESS, {"progressToken": token, "progress": 1})
        for params in ODD_PROGRESS:
            peer.notify(PROGRESS, params, judged=False)
        await peer.settle()
        assert peer.heard == []
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        answer = await peer.response(call["id"])
        assert "roots" in answer["result"]["content"][0]["text"]


# --- how much ---


@pytest.mark.requirement("PROG-10", "PROG-04", "PROGRESS-009", "PROGRESS-003")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("tool", ["flood", "flood_in_thread"])
async def test_a_tight_loop_is_throttled_and_its_last_value_still_arrives(carrier, revision, tool):
    async with server_under_test(carrier, revision, server="utilities") as peer:
        told = await progress_of(peer, tool, count=10_000)
        assert 1 < len(told) <= 1000
        assert strictly_increasing(values(told))
        assert values(told)[-1] == 10_000
        await peer.settle()
        assert len(peer.notices(PROGRESS)) == len(told)  # nothing that was held comes later


@pytest.mark.requirement("PROG-10", "PROGRESS-009")
@pytest.mark.parametrize("revision", ALL)
async def test_each_request_has_its_own_allowance(revision):
    """A flood of one request must not silence another."""
    async with server_under_test("memory", revision, server="utilities") as peer:
        await progress_of(peer, "flood", token="loud", count=10_000)
        told = await progress_of(peer, "fractions", token="calm")
        assert values(told) == [0.2, 0.75]


# --- the end ---


@pytest.mark.requirement("PROG-11", "PROG-07", "PROGRESS-008", "PROGRESS-006")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", ALL)
async def test_nothing_is_told_after_the_answer(carrier, revision):
    """`leaky` leaves something behind that tries, once the answer is long out."""
    async with server_under_test(carrier, revision, server="utilities") as peer:
        assert values(await progress_of(peer, "leaky")) == [1]
        peer.heard.clear()
        await peer.result("tools/call", {"name": "release", "arguments": {}})
        noted = await peer.result("tools/call", {"name": "noted", "arguments": {}})
        assert "leaked" in noted["content"][0]["text"]
        await peer.settle()
        assert peer.heard == []


@pytest.mark.requirement("PROG-11", "PROGRESS-008")
@pytest.mark.parametrize("revision", ALL)
async def test_the_answer_is_the_last_word(revision):
    """In the order of the wire, also when many requests run at once."""
    async with server_under_test("memory", revision, server="utilities") as peer:
        tools = [("flood", {"count": 200}), ("wobble", {}), ("flood_in_thread", {"count": 20})] * 5
        frames = [
            peer.frame("tools/call", {"name": tool, "arguments": arguments}, meta={"progressToken": number})
            for number, (tool, arguments) in enumerate(tools)
        ]
        for frame in frames:
            peer.send(frame)
        waiting = {frame["id"]: number for number, frame in enumerate(frames)}
        over = set()
        while waiting:
            said = await peer.receive()
            if said.get("method") == PROGRESS:
                assert said["params"]["progressToken"] not in over
            else:
                over.add(waiting.pop(said["id"]))


# --- streams of change notices ---


@pytest.mark.requirement("PROGRESS-010")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("revision", MODERN)
async def test_progress_does_not_ride_on_a_listen_stream(carrier, revision):
    """On one pipe a stream is told by the id in `_meta`: a request's progress must not carry one."""
    async with server_under_test(carrier, revision) as peer:
        wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}}
        listen = peer.frame("subscriptions/listen", wanted, meta={"progressToken": "of the listen request"})
        peer.send(listen)
        await peer.expect("notifications/subscriptions/acknowledged")
        told = await progress_of(peer, "steps", token="of the call", count=3)
        assert values(told) == [1, 2, 3]
        assert all(SUBSCRIPTION not in params.get("_meta", {}) for params in told)
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        changed = await peer.expect("notifications/tools/list_changed")
        assert changed["params"]["_meta"][SUBSCRIPTION] == listen["id"]
        assert {params["progressToken"] for params in peer.notices(PROGRESS)} == {"of the call"}
        peer.notify("notifications/cancelled", {"requestId": listen["id"]})
        await peer.settle()
