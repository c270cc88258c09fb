"""Servers that ask the user for something."""

import pytest

from interlock import Client, Context, Server
from interlock.host.callbacks.elicitation import Asker
from interlock.host.user import Absent, ScriptedUser
from interlock.server.execution.rate_limits import Rate
from interlock.wire.errors import InternalError, InvalidParams
from support.open_gate import OpenGate

FORM = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}, "required": ["name"]}
ASK = {"message": "Who are you?", "requestedSchema": FORM}
PAGE = {"mode": "url", "message": "Pay here", "url": "https://pay.example/1", "elicitationId": "e1"}


class Browser:
    def __init__(self, opens=True):
        self.opened, self.opens = [], opens

    async def __call__(self, url):
        self.opened.append(url)
        return self.opens


def asker(user, gate=None, browser=None, **more):
    return Asker("notes", gate or OpenGate(), user, opener=browser or Browser(), **more)


def filled(**content):
    return {"action": "accept", "content": content}


async def test_a_form_is_filled_in_by_the_person_and_names_the_server():
    user = ScriptedUser(fill=filled(name="Ann"))
    assert await asker(user).form(ASK) == filled(name="Ann")
    assert user.seen == [("fill", ("notes", "Who are you?", FORM))]
    assert user.asks == []  # nobody is asked whether to be asked


NOES = [({"action": "decline"}, "decline"), ({"action": "cancel"}, "cancel"), ({}, "decline")]


@pytest.mark.parametrize("said, answer", NOES)
async def test_a_no_is_a_no(said, answer):
    assert await asker(ScriptedUser(fill=said)).form(ASK) == {"action": answer}


async def test_what_does_not_fit_is_asked_again_and_never_sent():
    answers = iter([filled(name="A"), filled(), filled(name="Ann")])
    user = ScriptedUser(fill=lambda *_: next(answers))
    assert await asker(user).form(ASK) == filled(name="Ann")
    assert len(user.told("asked")) == 2
    assert await asker(ScriptedUser(fill=filled(name="A"))).form(ASK) == {"action": "cancel"}


async def test_nobody_and_rules_decline():
    assert await asker(Absent()).form(ASK) == {"action": "decline"}
    user = ScriptedUser(fill=filled(name="Ann"))
    assert await asker(user, OpenGate(elicitation="deny")).form(ASK) == {"action": "decline"}
    assert user.seen == []


@pytest.mark.parametrize("wrong", [{"message": 5}, {"requestedSchema": None}, {"requestedSchema": []}])
async def test_what_is_no_form_is_refused(wrong):
    with pytest.raises(InvalidParams):
        await asker(ScriptedUser()).form({**ASK, **wrong})


async def test_a_page_is_opened_after_the_whole_address_was_agreed_to():
    user, browser = ScriptedUser(open_page=True), Browser()
    gate = OpenGate()
    assert await asker(user, gate, browser).page(PAGE) == {"action": "accept"}
    assert user.seen == [("open_page", ("notes", "https://pay.example/1", "Pay here"))]
    assert browser.opened == ["https://pay.example/1"]
    assert [(deed.kind, deed.name) for deed in gate.deeds] == [("open_url", "pay.example")]


async def test_a_page_that_nobody_agreed_to_is_not_opened():
    for user in (ScriptedUser(), Absent(), ScriptedUser(open_page="yes")):
        browser = Browser()
        assert await asker(user, browser=browser).page(PAGE) == {"action": "decline"}
        assert browser.opened == []


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://a@b/", None])
async def test_addresses_that_are_none_are_never_shown(url):
    user = ScriptedUser(open_page=True)
    with pytest.raises(InvalidParams):
        await asker(user).page({**PAGE, "url": url})
    assert user.seen == []


async def test_warnings_come_before_the_question():
    told = []
    user = ScriptedUser(open_page=lambda *_: told.extend(user.told("page_warning")) or True)
    await asker(user).page({**PAGE, "url": "http://\u0430pple.com/"})
    assert len(told) == 2 and "xn--" in told[0] and "encrypted" in told[1]


async def test_where_no_browser_opens_the_address_is_told():
    user = ScriptedUser(open_page=True)
    assert await asker(user, browser=Browser(False)).page(PAGE) == {"action": "accept"}
    assert "https://pay.example/1" in user.told("asked")[0]


async def test_only_the_end_of_what_was_opened_is_told_and_once():
    user = ScriptedUser(open_page=True)
    one = asker(user)
    await one.page(PAGE)
    for id in ("other", "e1", "e1"):
        one.heard("notifications/elicitation/complete", {"elicitationId": id})
    one.heard("notifications/other", {"elicitationId": "e1"})
    assert len(user.told("asked")) == 1


async def test_questions_are_bounded():
    one = asker(ScriptedUser(fill={"action": "decline"}), rate=Rate(0.001, 2))
    for _ in range(2):
        await one.form(ASK)
    with pytest.raises(InternalError, match="Too many"):
        await one.form(ASK)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_server_asks_through_its_client(revision):
    server = Server("notes")

    @server.tool
    async def greet(ctx: Context) -> str:
        answer = await ctx.elicit("Who are you?", FORM)
        return f"Hello {answer['name']}"

    one = asker(ScriptedUser(fill=filled(name="Ann")))
    async with Client(server, revision=revision, elicit=one.form, elicit_url=one.page) as client:
        assert (await client.call_tool("greet")).text == "Hello Ann"


async def test_a_screen_that_fails_does_not_fail_the_answer(caplog):
    class Broken(ScriptedUser):
        def tell(self, notice):
            raise ZeroDivisionError

    answers = iter([filled(name="x"), filled(name="Ada")])
    user = Broken(fill=lambda *shown: next(answers), open_page=True)
    assert await asker(user).form(ASK) == {"action": "accept", "content": {"name": "Ada"}}
    assert await asker(user, browser=Browser(opens=False)).page(PAGE) == {"action": "accept"}
    assert caplog.text.count("a notice could not be shown") == 2
