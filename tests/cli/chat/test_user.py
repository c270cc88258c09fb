"""The person at the terminal, as a host asks them."""

import asyncio
import io
import sys

import pytest

from interlock.cli.chat.screen import Screen
from interlock.cli.chat.user import TerminalUser
from interlock.host.callbacks.elicitation import Asker
from interlock.host.gate.action import Deed
from interlock.host.user import Ask, Leave, Notice
from support.open_gate import OpenGate
from support.typing_person import Typist, at_terminal

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REQUEST = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Sum\x1b[2J up"}}],
    "maxTokens": 10,
    "systemPrompt": "Be brief",
    "tools": [{"name": "add"}],
}
ANSWER = {"role": "assistant", "content": {"type": "text", "text": "Mi\x07lk"}, "model": "m"}


def ask(**more):
    deed = Deed("tool", "notes", "add", {"a": 1})
    scopes = ("once", "session", "always")
    return Ask(**{"deed": deed, "shown": "ALL OF IT", "why": "a rule", "scopes": scopes, **more})


@pytest.mark.parametrize(
    "lines, leave",
    [
        (["y"], Leave(granted=True)),
        (["YES "], Leave(granted=True)),
        (["s"], Leave(granted=True, scope="session")),
        (["always"], Leave(granted=True, scope="always")),
        (["n"], Leave(granted=False)),
        ([], Leave(granted=False)),
        (["", "what?", "yup", "y"], Leave(granted=True)),
        ([""] * 9, Leave(granted=False)),
        ([None], Leave(granted=False)),
        (["yup"], Leave(granted=False)),
        (["yes please"], Leave(granted=False)),
        (["y n"], Leave(granted=False)),
        (["sure"], Leave(granted=False)),
        (["all"], Leave(granted=False)),
    ],
)
async def test_leave_is_given_only_by_a_clear_word(lines, leave):
    person, _, _ = at_terminal(*lines)
    assert await person.allow(ask()) == leave


async def test_only_scopes_on_offer_can_be_taken():
    person, _, typist = at_terminal("a", "s", "y")
    assert await person.allow(ask(scopes=("once",))) == Leave(granted=True)
    assert "[a]" not in typist.asked[0]


async def test_everything_about_it_is_shown():
    person, stream, _ = at_terminal("n")
    await person.allow(ask(about="adds", warnings=("it deletes",), diff="-a\n+b"))
    assert stream.getvalue() == (
        "\nWhat the server says of it:\nadds\nWhat changed:\n  -a\n  +b\nWhat would be done:\n  ALL OF IT\n"
        "careful: it deletes\nMay this be done?\n"
    )


@pytest.fixture
def editor(monkeypatch, tmp_path):
    def use(script):
        path = tmp_path / "editor.py"
        path.write_text(script)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"{sys.executable} {path}")

    return use


CHANGE = "import json,sys; f=sys.argv[1]; d=json.load(open(f)); d['a']=2; json.dump(d, open(f,'w'))"


async def test_an_editor_that_cannot_be_named_sends_nothing(monkeypatch):
    monkeypatch.setenv("VISUAL", "vi 'open quote")
    person, stream, _ = at_terminal("e")
    assert await person.allow(ask()) == Leave(granted=False)
    assert "could not be edited" in stream.getvalue()


async def test_arguments_are_edited_in_the_own_editor(editor):
    editor(CHANGE)
    person, stream, _ = at_terminal("e", "y")
    assert await person.allow(ask()) == Leave(granted=True, arguments={"a": 2})
    assert '  | {\n  |   "a": 2\n  | }\nSend this instead?\n' in stream.getvalue()
    person, _, _ = at_terminal("e", "n")
    assert not (await person.allow(ask())).granted


@pytest.mark.parametrize(
    "script",
    [
        "import sys; open(sys.argv[1],'w').write('[1]')",
        "raise SystemExit(3)",
        "import sys; open(sys.argv[1],'w').write('{')",
    ],
)
async def test_what_cannot_be_used_is_a_no(editor, script):
    editor(script)
    person, _, _ = at_terminal("e", "y")
    assert not (await person.allow(ask())).granted


async def test_sampling_is_seen_and_edited(editor):
    person, stream, _ = at_terminal("y", "y")
    assert await person.review_sampling("notes", REQUEST) == REQUEST
    assert await person.review_answer("notes", REQUEST, ANSWER) == ANSWER
    for text in ("'notes'", "Be brief", "user: Sum\\x1b[2J up", '"name": "add"', "10 tokens", "Mi\\x07lk"):
        assert text in stream.getvalue()
    editor(CHANGE)
    person, _, _ = at_terminal("e", "y")
    assert (await person.review_answer("notes", REQUEST, ANSWER))["a"] == 2
    person, _, _ = at_terminal("n", "")
    assert await person.review_sampling("notes", REQUEST) is None
    assert await person.review_answer("notes", REQUEST, ANSWER) is None


async def test_a_form_is_looked_at_once_more_before_it_is_sent():
    person, stream, _ = at_terminal("Ann", "c", "Bob", "y")
    assert await person.fill("notes", "Who?", FORM) == {"action": "accept", "content": {"name": "Bob"}}
    assert "'notes'" in stream.getvalue() and '"name": "Ann"' in stream.getvalue()
    for lines, action in ((["Ann", "n"], "decline"), (["/decline"], "decline"), ([], "cancel"), (["Ann"], "decline")):
        person, _, _ = at_terminal(*lines)
        assert (await person.fill("notes", "Who?", FORM))["action"] == action


async def test_a_form_is_sent_only_after_a_clear_yes():
    for word in ("yup", "yes please", "send", ""):
        person, _, _ = at_terminal("Ann", word)
        assert (await person.fill("notes", "Who?", FORM))["action"] == "decline"


async def test_a_page_is_opened_only_after_a_yes():
    for lines, opened in ((["y"], True), (["n"], False), ([], False), ([""] * 9, False), (["yup"], False)):
        person, stream, _ = at_terminal(*lines)
        assert await person.open_page("notes", "https://pay.example/x?y=1", "Pay") is opened
        assert "https://pay.example/x?y=1" in stream.getvalue()
        assert "at the host pay.example" in stream.getvalue()


async def test_what_to_be_careful_of_stands_in_the_question_about_a_page():
    person, stream, _ = at_terminal("n")
    assert not await person.open_page("notes", "http://192.0.2.1/", "careful: it is fine\nOpen this page?")
    lines = stream.getvalue().splitlines()
    assert [line[:8] for line in lines[-3:-1]] == ["careful:", "careful:"] and "192.0.2.1?" in lines[-1]


async def test_a_warning_about_a_page_is_shown_once():
    person, stream, _ = at_terminal("n")
    asker = Asker("notes", OpenGate(), person)
    page = {"mode": "url", "url": "http://pay.example/", "message": "Pay", "elicitationId": "1"}
    assert await asker.page(page) == {"action": "decline"}
    assert stream.getvalue().count("it is not encrypted") == 1


async def test_one_question_at_a_time():
    person, stream, typist = at_terminal("y", "n")
    first, second = await asyncio.gather(person.allow(ask(shown="ONE")), person.allow(ask(shown="TWO")))
    assert (first.granted, second.granted) == (True, False)
    assert stream.getvalue().index("ONE") < stream.getvalue().index("TWO")
    assert len(typist.asked) == 2


async def test_without_a_terminal_nobody_is_asked():
    person = TerminalUser(Screen(io.StringIO()), None)
    assert not (await person.allow(ask())).granted
    assert await person.review_sampling("n", REQUEST) is None
    assert (await person.fill("n", "Who?", FORM))["action"] == "decline"
    assert not await person.open_page("n", "https://x.example/", "")
    person.tell(Notice(kind="server", text="x"))


async def test_what_was_typed_before_a_question_was_there_is_no_answer_to_it():
    stream, typist = io.StringIO(), Typist("y", "y", "y")  # all three typed ahead

    person = TerminalUser(Screen(stream), typist, forget=typist.lines.clear)
    assert not (await person.allow(ask())).granted
    typist.lines += ["y"]
    assert await person.review_sampling("notes", REQUEST) is None
    typist.lines += ["y"]
    assert not await person.open_page("notes", "https://a.example/", "")
    typist.lines += ["Ann", "y"]
    assert (await person.fill("notes", "?", FORM))["action"] == "cancel"
