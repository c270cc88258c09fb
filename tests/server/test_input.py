"""server/input.py: questions as the wire wants them, answers as authors want them."""

import pytest

from interlock.server.elicitation_form import form_of
from interlock.server.input import (
    Declined,
    Root,
    ask_form,
    ask_roots,
    ask_sample,
    ask_url,
    read_form,
    read_roots,
    read_sample,
    read_url,
)
from interlock.wire.errors import InvalidParams, LocalError, ToolError

AGE = form_of(int)


def test_a_form():
    question = ask_form("How old?", AGE, "age")
    assert question.method == "elicitation/create" and question.key == "age"
    assert question.params["mode"] == "form" and question.params["requestedSchema"] == AGE.schema
    assert question.needs == ("elicitation.form",)
    assert read_form("How old?", AGE, {"action": "accept", "content": {"value": 36}}) == 36


def test_what_stands_for_a_form_says_all_of_it():
    first = ask_form("How old?", AGE, "age").identity
    assert first == ask_form("How old?", form_of(int), "another key").identity != b""
    assert len({first, ask_form("How old", AGE, None).identity, ask_form("How old?", form_of(str), None).identity}) == 3


def test_a_form_looks_at_its_answer():
    check = ask_form("How old?", AGE, None).check
    check({"action": "decline"})
    check({"action": "accept", "content": {"value": 36}})
    for content in (None, {}, {"value": "old"}):
        with pytest.raises(InvalidParams):
            check({"action": "accept", "content": content})


@pytest.mark.parametrize(("action", "word"), [("decline", "declined"), ("cancel", "dismissed")])
def test_a_no_is_an_error_the_model_may_read(action, word):
    for read in (lambda answer: read_form("How old?", AGE, answer), lambda answer: read_url("Go", answer)):
        with pytest.raises(Declined, match=word) as caught:
            read({"action": action})
        assert isinstance(caught.value, ToolError) and caught.value.action == action


def test_a_page():
    question = ask_url("Sign in", "https://example.com/in?x=1", None)
    assert question.params == {"mode": "url", "message": "Sign in", "url": "https://example.com/in?x=1"}
    assert question.needs == ("elicitation.url",)
    read_url("Sign in", {"action": "accept"})


@pytest.mark.parametrize("url", ["", "x", "javascript:alert(1)", "file:///etc", "https://", "https://a:b@example.com"])
def test_what_is_no_page(url):
    with pytest.raises(LocalError):
        ask_url("Go", url, None)


def test_a_sample():
    question = ask_sample("Hello?", 10, {"system_prompt": "Be brief", "temperature": None}, None)
    assert question.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello?"}}],
        "maxTokens": 10,
        "systemPrompt": "Be brief",
    }
    assert question.needs == ("sampling",)
    assert ask_sample([], 1, {"tools": []}, None).needs == ("sampling", "sampling.tools")
    assert ask_sample([], 1, {"tool_choice": {}}, None).needs == ("sampling", "sampling.tools")


def test_what_a_model_said():
    said = read_sample({"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"})
    assert (said.text, said.model, said.stop_reason) == ("Hi", "m", None)
    blocks = [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1"}, {"type": "text", "text": "b"}]
    assert read_sample({"role": "assistant", "content": blocks, "model": "m", "stopReason": "x"}).text == "ab"


def test_roots():
    assert ask_roots("r").params == {}
    assert read_roots({"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]}) == [
        Root("file:///a"),
        Root("file:///b", "b"),
    ]


@pytest.mark.parametrize("value", [True, -0.1, 1.5, "high", None])
def test_a_priority_is_a_share(value):
    with pytest.raises(LocalError, match="costPriority"):
        ask_sample("?", 1, {"model_preferences": {"costPriority": value}}, None)
    liked = {"costPriority": 0, "speedPriority": 1, "intelligencePriority": 0.5, "hints": [{"name": "x"}]}
    assert ask_sample("?", 1, {"model_preferences": liked}, None).params["modelPreferences"] == liked


def test_messages_that_nobody_could_sample():
    with pytest.raises(LocalError, match="tool_use"):
        ask_sample([{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}], 1, {}, None)
