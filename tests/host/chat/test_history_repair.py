"""Calls and their results, put together again."""

from itertools import pairwise

from interlock.host.chat.content_blocks import text_block
from interlock.host.chat.history_repair import calls_in, paired


def said(text, *ids):
    used = [{"type": "tool_use", "id": id, "name": "t", "input": {}} for id in ids]
    return {"role": "assistant", "content": [text_block(text), *used]}


def told(*ids):
    blocks = [{"type": "tool_result", "toolUseId": id, "content": [text_block(id)]} for id in ids]
    return {"role": "user", "content": blocks}


USER = {"role": "user", "content": [text_block("Hi")]}
WHOLE = [USER, said("a", "1", "2"), told("1", "2"), said("b", "3"), told("3"), said("c"), USER, said("d", "4")]


def _shape(messages):
    return [[block.get("toolUseId") or block.get("id") or block["text"] for block in m["content"]] for m in messages]


def test_what_is_whole_stays_as_it_is():
    assert paired(WHOLE, "gone") == WHOLE
    assert [call.id for call in calls_in(WHOLE[1])] == ["1", "2"]


def test_every_line_may_be_lost():
    for lost in range(len(WHOLE)):
        found = paired([*WHOLE[:lost], *WHOLE[lost + 1 :]], "gone")
        for before, after in pairwise(found):
            results = [block["toolUseId"] for block in after["content"] if block["type"] == "tool_result"]
            assert results == [call.id for call in calls_in(before)], lost


def test_a_lost_result_is_told_before_what_comes_next():
    assert _shape(paired([said("a", "1", "2"), told("2"), said("b", "3"), USER], "gone")) == [
        ["a", "1", "2"],
        ["1", "2"],
        ["b", "3"],
        ["3", "Hi"],
    ]
    found = paired([said("a", "1"), said("b")], "gone")
    assert _shape(found) == [["a", "1"], ["1"], ["b"]] and found[1]["content"][0]["isError"]
