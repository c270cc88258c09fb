"""A conversation that a model refused, made lighter."""

import pytest

from interlock.host.chat.content_blocks import text_block
from interlock.host.chat.trimming import lighter
from interlock.host.models.model import ModelRefused

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": [PICTURE, text_block("x")]}
TALK = [
    {"role": "user", "content": [text_block("word " * 500)]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]},
    {"role": "user", "content": [RESULT]},
    {"role": "user", "content": [text_block("Now?"), PICTURE]},
]


def refused(status, words="no"):
    error = ModelRefused(words)
    error.status = status
    return error


@pytest.mark.parametrize(
    "status, words", [(413, "no"), (400, "prompt is too long: 5"), (400, "context_length_exceeded")]
)
def test_what_is_too_long_is_halved(status, words):
    found = lighter(TALK, refused(status, words))
    assert found is not None and found.dropped == 3 and found.messages == TALK[3:]


@pytest.mark.parametrize("talk, status, words", [(TALK, 400, "unknown picture"), (TALK[3:], 413, "too large")])
def test_else_pictures_go_and_the_words_stay(talk, status, words):
    found = lighter(talk, refused(status, words))
    assert found is not None and (found.cut, found.dropped) == (len(talk[2:]) or 1, 0)
    assert "image" not in str(found.messages) and "Now?" in str(found.messages)
    assert [len(message["content"]) for message in found.messages] == [len(message["content"]) for message in talk]


@pytest.mark.parametrize("talk, status", [(TALK, 401), (TALK, 0), (TALK[:2], 400), (TALK[:1], 413)])
def test_where_nothing_can_be_left_out(talk, status):
    assert lighter(talk, refused(status)) is None
