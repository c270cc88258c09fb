"""client/callbacks.py: exactly what there is a callback for is declared and answered."""

import pytest

from interlock.client.callbacks import Answers
from interlock.wire.errors import LocalError, MethodNotFound
from interlock.wire.exchange import Question


def declined(params):
    return {"action": "decline"}


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        ({}, {}),
        ({"elicit": declined}, {"elicitation": {}}),
        ({"sample": declined}, {"sampling": {}}),
        ({"roots": []}, {"roots": {}}),
        ({"roots": list}, {"roots": {}}),
        ({"experimental": {"a": {"b": 1}}}, {"experimental": {"a": {"b": 1}}}),
        ({"extensions": {"com.example/x": {}}}, {"extensions": {"com.example/x": {}}}),
        ({"experimental": {}, "extensions": {}}, {}),
    ],
)
def test_what_is_declared(given, declared):
    assert Answers(**given).capabilities() == declared


@pytest.mark.parametrize(
    "given", [{"elicit": 7}, {"elicit_url": "x"}, {"sample": []}, {"roots": "file:///a"}, {"roots": 7}]
)
def test_what_cannot_answer_is_refused_at_once(given):
    with pytest.raises(LocalError, match=next(iter(given))):
        Answers(**given).capabilities()


def test_an_extension_has_a_proper_identifier():
    with pytest.raises(LocalError, match="extension identifier"):
        Answers(extensions={"nope": {}}).capabilities()


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list", "tools/call"])
async def test_what_is_not_offered_does_not_exist(method):
    with pytest.raises(MethodNotFound, match=method):
        await Answers().answer(Question(method, {}))


DECLINED = {"action": "decline"}
SAID = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}


@pytest.mark.parametrize(
    ("method", "name", "answer"),
    [("elicitation/create", "elicit", DECLINED), ("sampling/createMessage", "sample", SAID)],
)
async def test_a_callback_gets_the_params_and_gives_the_result(method, name, answer):
    seen = []

    def plain(params):
        seen.append(params)
        return answer

    async def waiting(params):
        seen.append(params)
        return answer

    assert await Answers(**{name: plain}).answer(Question(method, {"a": 1})) == answer
    assert await Answers(**{name: waiting}).answer(Question(method, {"a": 2})) == answer
    assert seen == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("value", [None, "accept", [1], 7])
async def test_a_callback_that_gives_no_mapping_is_a_mistake_of_its_author(value):
    with pytest.raises(LocalError, match="mapping"):
        await Answers(elicit=lambda params: value).answer(Question("elicitation/create", {}))
    with pytest.raises(LocalError, match=r'like \{"role": "assistant"'):
        await Answers(sample=lambda params: value).answer(Question("sampling/createMessage", {}))


async def later():
    return ["file:///late"]


@pytest.mark.parametrize(
    ("roots", "told"),
    [
        ([], []),
        (["file:///a"], [{"uri": "file:///a"}]),
        ([{"uri": "file:///a", "name": "A"}], [{"uri": "file:///a", "name": "A"}]),
        (("file:///a", {"uri": "file:///b"}), [{"uri": "file:///a"}, {"uri": "file:///b"}]),
        (lambda: ["file:///now"], [{"uri": "file:///now"}]),
        (later, [{"uri": "file:///late"}]),
    ],
)
async def test_roots_are_a_list_or_who_knows_it(roots, told):
    assert await Answers(roots=roots).answer(Question("roots/list", {})) == {"roots": told}


async def test_an_error_of_a_callback_is_passed_on():
    def fails(params):
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await Answers(sample=fails).answer(Question("sampling/createMessage", {}))


FORM = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@pytest.mark.parametrize(
    "answer",
    [{}, {"action": "yes"}, {"action": "accept"}, {"action": "accept", "content": {"age": "old"}}, {"content": {}}],
)
async def test_an_answer_that_is_none_is_our_own_mistake(answer):
    with pytest.raises(LocalError, match="elicitation/create"):
        await Answers(elicit=lambda params: answer).answer(Question("elicitation/create", {"requestedSchema": FORM}))


async def test_pages_and_forms_have_callbacks_of_their_own():
    answers = Answers(elicit=lambda params: {"action": "cancel"}, elicit_url=lambda params: {"action": "accept"})
    assert answers.capabilities()["elicitation"] == {"url": {}, "form": {}}
    assert await answers.answer(Question("elicitation/create", {"mode": "url"})) == {"action": "accept"}
    assert await answers.answer(Question("elicitation/create", {"mode": "form"})) == {"action": "cancel"}
    assert Answers(elicit_url=dict).capabilities()["elicitation"] == {"url": {}}
    with pytest.raises(MethodNotFound):
        await Answers(elicit_url=dict).answer(Question("elicitation/create", {}))


@pytest.mark.parametrize(
    ("mode", "given", "told"),
    [
        ("form", {"action": "accept", "content": {"a": 1}}, {"action": "accept", "content": {"a": 1}}),
        ("form", {"action": "decline", "content": {"a": 1}}, {"action": "decline"}),
        ("form", {"action": "cancel", "content": None, "_meta": {}}, {"action": "cancel", "_meta": {}}),
        ("url", {"action": "accept", "content": {"a": 1}}, {"action": "accept"}),
    ],
)
async def test_only_a_form_that_was_accepted_keeps_its_content(mode, given, told):
    answers = Answers(elicit=lambda params: given, elicit_url=lambda params: given)
    assert await answers.answer(Question("elicitation/create", {"mode": mode})) == told


@pytest.mark.parametrize(
    "root", ["", "/a", "https://a", "file:a", "file:///a/../b", "file:///%2E%2e", {"uri": None}, {}]
)
async def test_a_root_is_a_file_without_detours(root):
    with pytest.raises(LocalError, match="root"):
        await Answers(roots=lambda: ["file:///fine", root]).answer(Question("roots/list", {}))
    with pytest.raises(LocalError, match="root"):  # a list is checked when the client is made
        Answers(roots=["file:///fine", root]).capabilities()


PROPOSING = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "default": "Graz"},
        "age": {"type": "integer", "default": "old"},
        "sure": {"type": "boolean", "default": False},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ({"action": "accept"}, {"city": "Graz", "sure": False}),
        ({"action": "accept", "content": {}}, {"city": "Graz", "sure": False}),
        ({"action": "accept", "content": {"city": "Linz"}}, {"city": "Linz", "sure": False}),
        ({"action": "accept", "content": {"sure": True, "age": 7}}, {"city": "Graz", "sure": True, "age": 7}),
        ({"action": "decline"}, None),
    ],
)
async def test_what_was_left_alone_has_the_value_that_was_proposed(given, content):
    question = Question("elicitation/create", {"message": "?", "requestedSchema": PROPOSING})
    answer = await Answers(elicit=lambda params: given).answer(question)
    assert answer.get("content") == content


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {"type": "string"}}}])
async def test_a_form_that_proposes_nothing_changes_nothing(schema):
    question = Question("elicitation/create", {"message": "?", "requestedSchema": schema})
    given = {"action": "accept", "content": {"a": "x"}}
    assert await Answers(elicit=lambda params: given).answer(question) == given
