"""protocol/input/sampling.py: what was used is answered, by the next message and by nothing else."""

import pytest

from interlock.protocol.input.sampling import what_is_wrong, what_is_wrong_in, what_is_wrong_with

TEXT = {"type": "text", "text": "?"}
ASKED = {"role": "user", "content": TEXT}


def use(*ids):
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "add", "input": {}} for id in ids]}


def told(*ids, role="user", more=()):
    results = [{"type": "tool_result", "toolUseId": id, "content": []} for id in ids]
    return {"role": role, "content": [*results, *more]}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        [ASKED],
        [ASKED, use("1"), told("1")],
        [ASKED, use("1", "2"), told("2", "1"), use("3"), told("3"), ASKED],
    ],
)
def test_what_may_be_asked(messages):
    assert what_is_wrong(messages) is None


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([5], "no object"),
        ([ASKED, use("1")], "no tool_result"),
        ([ASKED, use("1"), ASKED, told("1")], "next message"),
        ([ASKED, use("1", "2"), told("1")], "next message"),
        ([ASKED, told("1")], "belongs to no"),
        ([ASKED, use("1"), told("1", "2")], "belongs to no"),
        ([ASKED, use("1"), told("1", more=[TEXT])], "other content"),
        ([ASKED, use("1"), told("1", role="assistant")], "user"),
    ],
)
def test_what_may_not(messages, why):
    assert why in what_is_wrong(messages)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": 5}, "no id"),
        ({"name": None}, "no id or no name"),
        ({"input": "x"}, "no object"),
        ({"type": None}, "no type"),
        ({"type": ["text"]}, "no type"),
    ],
)
def test_what_is_used_has_its_members(change, why):
    block = {"type": "tool_use", "id": "1", "name": "add", "input": {}} | change
    assert why in what_is_wrong([ASKED, {"role": "assistant", "content": [block]}, told("1")])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"toolUseId": 5}, "belongs to"),
        ({"content": "x"}, "no list"),
        ({"content": None}, "no list"),
        ({"content": [5]}, "no list"),
        ({"content": [{"type": "text", "text": 5}]}, "no text"),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "!"}]}, "no base64"),
    ],
)
def test_what_came_back_has_its_members(change, why):
    block = {"type": "tool_result", "toolUseId": "1", "content": [TEXT]} | change
    assert why in what_is_wrong([ASKED, use("1"), {"role": "user", "content": [block]}])


ASKING = {"messages": [ASKED], "maxTokens": 5}


@pytest.mark.parametrize("more", [{}, {"maxTokens": 0}, {"maxTokens": 5.0}, {"messages": []}, {"anything": 1}])
def test_what_a_client_may_be_asked(more):
    assert what_is_wrong_in({**ASKING, **more}) is None


@pytest.mark.parametrize("most", [None, "5", 5.5, True, [], float("nan"), float("inf")])
def test_how_much_may_be_sampled_is_an_integer(most):
    assert "maxTokens" in what_is_wrong_in({**ASKING, "maxTokens": most})
    assert "maxTokens" in what_is_wrong_in({"messages": [ASKED]})


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (None, "no list"),
        ({}, "no list"),
        ("hi", "no list"),
        ([5], "no role"),
        ([{"content": TEXT}], "no role"),
        ([{"role": "system", "content": TEXT}], "no role"),
        ([{"role": [], "content": TEXT}], "no role"),
        ([{"role": "user"}], "no content"),
        ([{"role": "user", "content": "hi"}], "no content"),
        ([ASKED, use("1")], "no tool_result"),
    ],
)
def test_messages_that_no_client_samples(messages, why):
    assert why in what_is_wrong_in({**ASKING, "messages": messages})


# --- what is inside ---

IMAGE = {"type": "image", "data": "iVBORw0K", "mimeType": "image/png"}


@pytest.mark.parametrize(
    "block", [TEXT, IMAGE, {**IMAGE, "type": "audio"}, {**IMAGE, "data": ""}, {"type": "of later"}]
)
def test_a_block_that_holds_what_it_says(block):
    assert what_is_wrong_with({"content": block}) is None
    assert what_is_wrong([{"role": "user", "content": [TEXT, block]}]) is None


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ({"type": "text"}, "no text"),
        ({"type": "text", "text": 5}, "no text"),
        *(({**IMAGE, "data": data}, "no base64") for data in ("!!!", "abc", "YQ==YQ==", "é", 5, None, "YQ", "Y Q==")),
        ({**IMAGE, "type": "audio", "data": "!"}, "no base64"),
        ({**IMAGE, "mimeType": None}, "what kind"),
    ],
)
def test_a_block_that_does_not(block, why):
    for content in (block, [TEXT, block]):
        assert why in what_is_wrong_with({"content": content})
        assert why in what_is_wrong([{"role": "user", "content": content}])
        assert why in what_is_wrong_in({"messages": [{"role": "user", "content": content}], "maxTokens": 5})
