"""protocol/input/validation.py: an answer is read strictly, whatever it is an answer to."""

import pytest

from interlock.protocol.input.validation import check_answer, check_words, needs_of
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import CannotAsk, InvalidParams, LocalError
from interlock.wire.exchange import Question

ELICIT = Question("elicitation/create", {})
SAMPLE = Question("sampling/createMessage", {})
ROOTS = Question("roots/list", {})
TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (ELICIT, {"action": "accept", "content": {"a": 1}}),
        (ELICIT, {"action": "decline"}),
        (ELICIT, {"action": "cancel", "content": None, "_meta": {}}),
        (SAMPLE, {"role": "assistant", "content": TEXT, "model": "m", "stopReason": "endTurn"}),
        (SAMPLE, {"role": "user", "content": [TEXT], "model": "m"}),
        (ROOTS, {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b", "_meta": {}}]}),
        (ROOTS, {"roots": []}),
    ],
)
def test_what_is_an_answer(question, answer):
    assert check_answer(question, answer) == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (ELICIT, b"12345"),
        (ELICIT, b"null"),
        (ELICIT, b"{"),
        (ELICIT, b"\xff"),
        (ELICIT, {}),
        (ELICIT, {"action": "yes"}),
        (ELICIT, {"action": "accept", "content": []}),
        (SAMPLE, {"role": "system", "content": TEXT, "model": "m"}),
        (SAMPLE, {"role": "user", "content": "x", "model": "m"}),
        (SAMPLE, {"role": "user", "content": TEXT}),
        (ROOTS, {}),
        (ROOTS, {"roots": {}}),
        (ROOTS, {"roots": [{"name": "x"}]}),
        (ROOTS, {"roots": ["file:///a"]}),
    ],
)
def test_what_is_none(question, answer):
    with pytest.raises(InvalidParams, match=question.method):
        check_answer(question, answer)


def test_a_question_may_look_closer():
    def no(answer):
        raise InvalidParams("not that")

    with pytest.raises(InvalidParams, match="not that"):
        check_answer(Question("roots/list", {}, check=no), {"roots": []})


@pytest.mark.parametrize(
    ("method", "params", "needs"),
    [
        ("elicitation/create", {}, ("elicitation.form",)),
        ("elicitation/create", {"mode": "url"}, ("elicitation.url",)),
        ("elicitation/create", {"mode": 7}, ("elicitation.?",)),
        ("sampling/createMessage", {}, ()),
        ("sampling/createMessage", {"tools": []}, ("sampling.tools",)),
        ("sampling/createMessage", {"toolChoice": {}}, ("sampling.tools",)),
        ("roots/list", {}, ()),
    ],
)
def test_what_a_question_needs(method, params, needs):
    assert needs_of(Question(method, params)) == needs


def form(**fields):
    return Question("elicitation/create", {"requestedSchema": {"type": "object", "properties": fields}})


def sampling(*content):
    return Question("sampling/createMessage", {"messages": [{"role": "user", "content": each} for each in content]})


SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a"]}}
NEW = [form(a={"type": "string"}, b=SEVERAL), sampling([TEXT]), sampling(TEXT, {"type": "tool_result"})]


@pytest.mark.parametrize("question", NEW)
def test_words_that_came_with_2025_11_25(question):
    for name, revision in REVISIONS.items():
        if name >= "2025-11-25":
            check_words(revision, question)
        else:
            with pytest.raises(CannotAsk, match="protocol revision has no"):
                check_words(revision, question)


@pytest.mark.parametrize("question", [ROOTS, form(a={"type": "string"}), sampling(TEXT, {"type": "image"}), SAMPLE])
def test_words_of_every_revision(question):
    for revision in REVISIONS.values():
        check_words(revision, question)


def test_a_block_that_no_sampling_message_ever_holds_is_the_authors_mistake():
    for revision in REVISIONS.values():
        with pytest.raises(LocalError, match="resource_link"):
            check_words(revision, sampling({"type": "resource_link"}))
