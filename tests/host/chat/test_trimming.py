"""A conversation kept under its budget."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.host.chat.content_blocks import text_block
from interlock.host.chat.trimming import cost_of, trim
from support.properties import many


def user(text):
    return {"role": "user", "content": [text_block(text)]}


def model(text, *calls):
    used = [{"type": "tool_use", "id": id, "name": "t", "input": {}} for id in calls]
    return {"role": "assistant", "content": [text_block(text), *used]}


def results(*given):
    blocks = [{"type": "tool_result", "toolUseId": id, "content": [text_block(text)]} for id, text in given]
    return {"role": "user", "content": blocks}


def cost(messages):
    return sum(map(cost_of, messages))


TALK = [
    user("one"),
    model("calling", "1"),
    results(("1", "x" * 4000)),
    model("done"),
    user("two"),
    model("calling", "2"),
    results(("2", "y" * 4000)),
    model("done"),
    user("three"),
]


def test_what_fits_stays_as_it_is():
    assert trim(TALK, cost(TALK)).messages == TALK
    assert trim([], 0).messages == []


def test_the_oldest_results_are_cut_first():
    found = trim(TALK, cost(TALK) - 500)
    assert (found.cut, found.dropped) == (1, 0)
    assert "dropped" in found.messages[2]["content"][0]["content"][0]["text"]
    assert found.messages[3:] == TALK[3:]


def test_then_whole_turns_go():
    found = trim(TALK, 60)
    assert (found.cut, found.messages[-1]) == (2, user("three"))
    assert found.messages[0] == user("two") and found.dropped == 4


def test_the_newest_turn_stays_whatever_it_costs():
    newest = [user("now"), model("calling", "3"), results(("3", "z" * 9000))]
    assert trim([*TALK, *newest], 10).messages == newest


def test_a_long_turn_loses_what_it_read_first_and_not_what_it_read_last():
    turn = [user("go"), model("", "1"), results(("1", "x" * 9000)), model("", "2"), results(("2", "y" * 9000))]
    found = trim(turn, 3_000)
    assert (found.cut, found.dropped, cost(found.messages) < 3_000) == (1, 0, True)
    assert [found.messages[index] == turn[index] for index in range(5)] == [True, True, False, True, True]


def test_pictures_do_not_cost_their_bytes():
    picture = {"role": "user", "content": [{"type": "image", "data": "A" * 1_000_000, "mimeType": "image/png"}]}
    assert cost_of(picture) < 2_000


turns = st.lists(st.tuples(st.text(max_size=30), st.lists(st.text(max_size=300), max_size=3)), min_size=1, max_size=6)


@given(turns, st.integers(0, 2_000))
@many(100)
def test_what_is_left_is_whole_and_fits_where_it_can(turns, budget):
    messages = []
    for number, (said, held) in enumerate(turns):
        ids = [f"{number}.{index}" for index in range(len(held))]
        messages += [user(said), model("", *ids)]
        messages += [results(*zip(ids, held, strict=True))] if ids else []
    found = trim(messages, budget)
    assert found.messages[0]["content"][0]["type"] == "text" and found.messages[0]["role"] == "user"
    used = [block["id"] for each in found.messages for block in each["content"] if block["type"] == "tool_use"]
    answered = [b["toolUseId"] for each in found.messages for b in each["content"] if b["type"] == "tool_result"]
    assert used == answered
    assert len(found.messages) + found.dropped == len(messages)
    spoken = [m for m in found.messages if m["role"] == "user" and m["content"][0]["type"] == "text"]
    assert cost(found.messages) <= budget or len(spoken) == 1
