"""testing/script.py: a user, a model and roots, played by a script."""

import pytest

from interlock.testing import Script, UnexpectedQuestion


def asked(script, kind, **params):
    return script.callbacks()[kind](params)


def says(text):
    return [{"role": "user", "content": {"type": "text", "text": text}}]


def test_answers_are_found_by_what_is_asked():
    script = Script().accept("seat", row=7).accept("meal", value="veg").decline("Sure").cancel("Really")
    assert asked(script, "elicit", message="Which meal?") == {"action": "accept", "content": {"value": "veg"}}
    assert asked(script, "elicit", message="Which seat?") == {"action": "accept", "content": {"row": 7}}
    assert asked(script, "elicit", message="Sure?") == {"action": "decline"}
    assert asked(script, "elicit", message="Really?") == {"action": "cancel"}
    assert script.asked[0] == ("form", "Which meal?")
    script.check()


def test_pages_models_and_roots():
    script = Script().visit("example.com").visit("other", action="decline").sample("Paris", "France")
    script.sample("Rome", model="m").roots("file:///a", {"uri": "file:///b", "name": "B"})
    assert asked(script, "elicit_url", message="Go", url="https://example.com/x") == {"action": "accept"}
    assert asked(script, "elicit_url", message="the other", url="") == {"action": "decline"}
    paris = asked(script, "sample", messages=says("Capital of France?"))
    assert (paris["content"], paris["model"]) == ({"type": "text", "text": "Paris"}, "scripted")
    several = [{"role": "user", "content": [{"type": "text", "text": "Italy?"}, {"type": "image"}]}]
    assert asked(script, "sample", messages=several)["model"] == "m"
    assert script.callbacks()["roots"]() == [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]
    script.check()
    assert [kind for kind, _ in script.asked] == ["url", "url", "sample", "sample", "roots"]


def test_each_answer_counts_once():
    script = Script().accept("seat", row=7)
    asked(script, "elicit", message="seat?")
    with pytest.raises(UnexpectedQuestion, match="asked for a form with 'seat\\?', and the script has no answer"):
        asked(script, "elicit", message="seat?")


def test_a_question_of_another_kind_is_unexpected():
    script = Script().accept()
    with pytest.raises(UnexpectedQuestion, match="the model"):
        asked(script, "sample", messages=says("x"))
    with pytest.raises(UnexpectedQuestion, match="the roots"):
        script.callbacks()["roots"]()
    with pytest.raises(AssertionError) as caught:
        script.check()
    assert str(caught.value).splitlines() == [
        "the server asked for the model with 'x', and the script has no answer for that",
        "the server asked for the roots, and the script has no answer for that",
        "the script's answer for a form was never asked for",
    ]


def test_an_answer_nobody_asked_for_is_told():
    with pytest.raises(AssertionError, match="the script's answer for a page about 'x' was never asked for"):
        Script().visit("x").check()
    assert Script().problems() == []


def test_a_client_declares_what_it_is_told_to():
    assert set(Script().callbacks()) == {"elicit", "elicit_url", "sample", "roots"}
    assert set(Script().callbacks(("sampling", "elicitation"))) == {"sample", "elicit"}
    assert Script().callbacks(()) == {}
