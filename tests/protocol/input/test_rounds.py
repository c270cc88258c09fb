"""protocol/input/rounds.py: a state is taken back only as it was given, and a round ends when all is asked."""

import asyncio
import json

import pytest
from msgspec import Raw

from interlock.protocol.input.rounds import STATE_REFUSED, Questions, Round
from interlock.state.sealing import Seal
from interlock.wire.errors import InvalidParams, LocalError
from interlock.wire.exchange import Principal, Question
from support.doubles import turns
from support.rounds import Rounds, accept, form
from support.virtual_time import virtual_time


async def asks(exchange):
    answer = await exchange.ask(form("Sure?", "sure"))
    return {"content": [], "said": answer["action"]}


REFUSED = {"code": -32602, "message": STATE_REFUSED}
YES = {"sure": accept()}


async def test_the_state_comes_back():
    rounds = Rounds(asks)
    asked = await rounds()
    assert (await rounds(YES, asked["requestState"]))["said"] == "accept"


@pytest.mark.parametrize(
    "who",
    [Principal("issuer", "bob"), Principal("other", "ada"), Principal("issuer", "ada", "another client")],
)
async def test_another_user_cannot_use_it(who):
    rounds = Rounds(asks)
    asked = await rounds()
    assert await rounds(YES, asked["requestState"], who=who) == REFUSED


async def test_another_request_cannot_use_it():
    rounds = Rounds(asks)
    state = (await rounds(arguments={"a": 1, "b": [2, {"x": 1, "y": 2}]}))["requestState"]
    assert await rounds(YES, state, arguments={"a": 2}) == REFUSED
    same = {"b": [2, {"y": 2, "x": 1}], "a": 1}  # the same arguments, written another way
    assert (await rounds(YES, state, arguments=same))["said"] == "accept"


@pytest.mark.parametrize(
    "arguments", [b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":1e999}'], ids=["bytes", "half a character", "number"]
)
def test_arguments_that_cannot_be_read_are_refused(arguments):
    rules = Rounds(asks).asker.rules
    for more in (b"", b',"more":1'):
        raw = Raw(b'{"name":"t","arguments":' + arguments + more + b"}")
        with pytest.raises(InvalidParams):
            _ = Round(rules, "tools/call", None, {}, Principal("issuer", "ada"), raw).request


async def test_it_expires():
    rounds = Rounds(asks, seconds=60)
    state = (await rounds())["requestState"]
    rounds.now += 59
    assert (await rounds(YES, state))["said"] == "accept"
    rounds.now += 1
    assert await rounds(YES, state) == REFUSED


async def test_all_rounds_together_have_an_end():
    rounds = Rounds(asks, seconds=60, total_seconds=100)
    state = (await rounds())["requestState"]
    rounds.now += 50
    state = (await rounds({}, state))["requestState"]
    rounds.now += 49
    again = (await rounds({}, state))["requestState"]
    rounds.now += 1
    assert await rounds(YES, again) == REFUSED


async def test_servers_that_share_keys_do_not_share_states():
    state = (await Rounds(asks, audience="staging")())["requestState"]
    assert await Rounds(asks, audience="production")(YES, state) == REFUSED


async def test_a_state_is_of_one_method():
    rounds = Rounds(asks)
    state = (await rounds())["requestState"]
    assert await rounds(YES, state, method="prompts/get") == REFUSED
    assert (await rounds(YES, state))["said"] == "accept"


async def test_absent_arguments_are_none():
    rounds = Rounds(asks)
    work = rounds.begin(arguments={})
    asked = json.loads(await work)["result"]
    bare = rounds.bare(YES, asked["requestState"])
    assert json.loads(await bare)["result"]["said"] == "accept"


async def test_all_that_a_request_says_counts():
    rounds = Rounds(asks)
    more = {"name": "t", "arguments": {"n": 1}, "task": {"b": 1, "a": 2}}
    asked = json.loads(await rounds.of(more))["result"]
    other = [{"name": "t", "arguments": {"n": 1}}, {**more, "task": {}}, {**more, "arguments": {}}, {**more, "x": 1}]
    for params in other:
        assert json.loads(await rounds.of(params, YES, asked["requestState"]))["error"] == REFUSED
    same = {"task": {"a": 2, "b": 1}, "arguments": {"n": 1}, "name": "t"}
    assert json.loads(await rounds.of(same, YES, asked["requestState"]))["result"]["said"] == "accept"


async def test_what_differs_between_rounds_does_not_count_beside_members_of_others_either():
    """Each round has its own progress token; absent arguments are none."""
    rounds = Rounds(asks)
    asked = json.loads(await rounds.of({"name": "t", "task": {}, "_meta": {"progressToken": 1}}))["result"]
    later = {"name": "t", "task": {}, "_meta": {"progressToken": 2}, "arguments": {}}
    assert json.loads(await rounds.of(later, YES, asked["requestState"]))["result"]["said"] == "accept"


async def test_numbers_nobody_can_read_are_refused():
    told = await Rounds(asks)(arguments=Raw(b'{"n":1e400}'))
    assert told["code"] == -32602


async def test_keys_rotate_and_are_gone():
    old, new = bytes(32), bytes(range(32))
    state = (await Rounds(asks)())["requestState"]
    assert (await Rounds(asks, sealer=Seal([new, old]))(YES, state))["said"] == "accept"
    assert await Rounds(asks, sealer=Seal([new]))(YES, state) == REFUSED


async def test_a_sealed_text_that_is_no_state_is_refused():
    seal = Seal([bytes(32)])
    for payload in (b"", b"{}", b"[]", b'{"until":1}', b"\xff"):
        assert await Rounds(asks)(YES, seal.seal(payload)) == REFUSED


async def test_a_state_that_grows_too_large_is_an_internal_error():
    async def collects(exchange):
        await exchange.ask(form("One?", "one"))
        await exchange.ask(form("Two?", "two"))
        return {}

    rounds = Rounds(collects, state_bytes=2000)
    asked = await rounds()
    told = await rounds({"one": accept(long="x" * 3000)}, asked["requestState"])
    assert told["code"] == -32603 and "2000" in told["message"]
    assert await rounds(YES, "s1." + "x" * 3000) == REFUSED


async def test_a_state_over_the_bound_is_not_even_opened():
    """Also one of ours, of a time when more was allowed."""
    state = (await Rounds(asks)())["requestState"]
    assert (await Rounds(asks, state_bytes=len(state))(YES, state))["said"] == "accept"
    assert await Rounds(asks, state_bytes=len(state) - 1)(YES, state) == REFUSED


async def test_single_use():
    rounds = Rounds(asks, single_use=lambda method, params: True)
    state = (await rounds())["requestState"]
    assert (await rounds(YES, state))["said"] == "accept"
    assert await rounds(YES, state) == REFUSED


FORM = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("question", "wrong", "right"),
    [
        (form("N?", "k"), [7, None, [], {"action": "no"}, {"content": {}}], accept()),
        (
            Question("elicitation/create", {"message": "N?", "requestedSchema": FORM}, (), "k"),
            [accept(), accept(n="1"), accept(n=0), {"action": "accept"}],
            accept(n=1),
        ),
        (
            Question("elicitation/create", {"message": "N?", "requestedSchema": FORM}, (), "k"),
            [{"action": "accept", "content": [1]}],
            {"action": "decline"},
        ),
        (
            Question("sampling/createMessage", {"messages": [], "maxTokens": 1}, (), "k"),
            [{"role": "assistant", "content": {}}, accept()],
            {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
        ),
        (Question("roots/list", {}, (), "k"), [{"roots": [1]}, {}], {"roots": []}),
    ],
)
async def test_a_malformed_answer_does_not_use_up_a_state_that_counts_once(question, wrong, right):
    runs = []

    async def asks_it(exchange):
        runs.append(1)
        return {"got": await exchange.ask(question)}

    rounds = Rounds(asks_it, single_use=lambda method, params: True)
    state = (await rounds())["requestState"]
    for answer in wrong:
        told = await rounds({"k": answer, "unknown": 7}, state)
        assert told["code"] == -32602 and told != REFUSED
    assert runs == [1]  # nothing ran for them: a state that is shown again and again does nothing twice
    assert (await rounds({"k": right}, state))["got"] == right
    assert await rounds({"k": right}, state) == REFUSED
    assert runs == [1, 1]


async def test_what_is_not_answered_at_all_uses_it_up():
    rounds = Rounds(asks, single_use=lambda method, params: True)
    state = (await rounds())["requestState"]
    asked = await rounds({}, state)
    assert asked["resultType"] == "input_required"
    assert await rounds(YES, state) == REFUSED
    assert (await rounds(YES, asked["requestState"]))["said"] == "accept"


# --- keys and the end of a round ---


async def test_a_key_of_its_own_for_every_question():
    questions = Questions(0, lambda: None)
    one, digest = questions.key_of(form("One?"))
    two, _ = questions.key_of(form("Two?"))
    assert questions.key_of(form("One?"))[0] == one  # as long as nobody has asked it
    questions.digests[one] = digest
    again, _ = questions.key_of(form("One?"))
    assert len({one, two, again}) == 3 and again.startswith(one)
    questions.digests[again] = digest
    assert questions.key_of(form("One?"))[0] not in (one, two, again)
    fresh = Questions(0, lambda: None)
    assert fresh.key_of(form("Two?"))[0] == two  # the same whatever else was asked before
    assert fresh.key_of(form("One?"))[0] == one


def test_the_number_of_a_question_is_found_without_counting_from_the_first():
    """A client may send the answers to thousands ahead: what they cost must not grow with their square."""
    looks = []

    class Digests(dict):
        def __contains__(self, key):
            looks.append(key)
            return super().__contains__(key)

    questions = Questions(0, lambda: None, digests=Digests())
    for _ in range(1000):
        key, digest = questions.key_of(form("More?", "a"))
        questions.digests[key] = digest
    assert key == "a#1000" and len(looks) < 4000


async def test_one_key_for_two_questions_is_a_mistake():
    async def confuses(exchange):
        async with asyncio.TaskGroup() as group:
            group.create_task(exchange.ask(form("One?", "k")))
            group.create_task(exchange.ask(form("Two?", "k")))

    told = await Rounds(confuses)()
    assert told["code"] == -32603


async def test_a_round_ends_some_turns_after_the_last_question():
    ends = []
    questions = Questions(0, lambda: ends.append(1))
    questions.add("a", "d", form("A?"))
    await asyncio.sleep(0)
    questions.add("b", "d", form("B?"))
    await turns(4)
    assert ends == []
    await turns(10)
    assert ends == [1]


async def test_an_act_under_way_holds_the_end_up():
    ends = []
    questions = Questions(0, lambda: ends.append(1))
    questions.acts("pay")
    questions.add("a", "d", form("A?"))
    await turns(5)
    assert ends == []
    with pytest.raises(LocalError, match="under way"):
        questions.acts("pay")
    questions.acted("pay")
    await turns(10)
    assert ends == [1]


@virtual_time
async def test_a_grace_waits_for_more():
    ends = []
    questions = Questions(0.01, lambda: ends.append(1))
    questions.add("a", "d", form("A?"))
    await turns(5)
    assert ends == []
    questions.stop()
    await asyncio.sleep(0.03)
    assert ends == []
    questions.add("b", "d", form("B?"))
    while not ends:
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("size", [0, 1, 900, 1024, 5000])
def test_a_question_is_told_from_another_however_long_it_is(size):
    one, same, other = (form("x" * size + end, "k") for end in ("A", "A", "B"))
    asked = [Questions(0, lambda: None).key_of(question) for question in (one, same, other)]
    assert asked[0] == asked[1] != asked[2]


def test_no_question_is_kept_for_another_run():
    gone = []

    class Said(bytes):
        def __del__(self):
            gone.append(bytes(self))

    asked = Question("elicitation/create", {"message": "Pay 10?"}, identity=Said(b"form{}Pay 10?"))
    key, digest = Questions(0, lambda: None).key_of(asked)
    del asked
    assert gone == [b"form{}Pay 10?"]
    assert Questions(0, lambda: None).key_of(Question("elicitation/create", {}, identity=gone[0])) == (key, digest)
