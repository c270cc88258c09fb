"""Reading what a service sends without trusting it."""

import pytest

from interlock.host.models.model import ModelError
from interlock.host.models.parsing import block_text, call_of, json_of, members_of, number_in


def test_an_event_is_an_object():
    assert json_of(b'{"a": 1}') == {"a": 1}
    assert json_of(b"") == {}
    for data in (b"[1]", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(ModelError, match="no JSON object"):
            json_of(data)


def test_half_a_character_does_not_end_an_answer():
    assert json_of(b'{"a": "x\\ud83d"}') == {"a": "x\ufffd"}
    assert json_of(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    assert call_of("1", "t", '{"a": "\\uDE00"}').arguments == {"a": "\ufffd"}


@pytest.mark.parametrize("text, arguments", [("", {}), (" {} ", {}), ('{"a": [1]}', {"a": [1]})])
def test_arguments_are_an_object(text, arguments):
    assert call_of("1", "t", text).arguments == arguments
    assert call_of("1", "t", text).wrong is None


@pytest.mark.parametrize("text", ["[1]", "{", '"x"', "null", "\x1b[2J"])
def test_arguments_that_are_none_are_told(text):
    call = call_of("1", "t", text)
    assert call.arguments == {}
    assert "no JSON object" in call.wrong
    assert "\x1b" not in call.wrong


def test_members_of_anything():
    assert members_of({"a": {"b": 1}}, "a") == {"b": 1}
    assert members_of(5) == members_of({"a": 5}, "a") == members_of(None, "a") == {}


@pytest.mark.parametrize("value", [None, -1, True, 1.5, "7", []])
def test_what_counts_nothing_counts_as_nothing(value):
    assert number_in({"n": value}, "n") == 0
    assert number_in({"n": 7}, "n") == 7


def test_where_only_text_can_stand():
    assert block_text({"type": "text", "text": "x"}) == "x"
    assert "audio/wav" in block_text({"type": "audio", "mimeType": "audio/wav", "data": ""})


def test_a_call_with_an_argument_twice_is_told():
    call = call_of("1", "t", '{"path": "/tmp", "path": "/etc"}')
    assert call.arguments == {} and "'path' occurs twice" in (call.wrong or "")
