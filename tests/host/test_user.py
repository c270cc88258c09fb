"""The people of a host: nobody, who refuses everything, and the one of a script, who remembers everything."""

from __future__ import annotations

import logging

from interlock.host.gate.action import Deed
from interlock.host.user import Absent, Ask, Leave, Notice, ScriptedUser, User

ASK = Ask(deed=Deed("tool", "mail", "send"), shown="shown", why="why")


async def answers_of(user: User) -> list[object]:
    return [
        (await user.allow(ASK)).granted,
        await user.review_sampling("mail", {"messages": []}),
        await user.review_answer("mail", {"messages": []}, {"content": "x"}),
        (await user.fill("mail", "Your name?", {"type": "object"}))["action"],
        await user.open_page("mail", "https://example.com", "Log in"),
    ]


async def test_nobody_allows_nothing(caplog):
    with caplog.at_level(logging.INFO, "interlock.host"):
        user = Absent()
        assert await answers_of(user) == [False, None, None, "decline", False]
        user.tell(Notice(kind="quarantined", text="a tool changed"))
    assert "quarantined: a tool changed" in caplog.text


async def test_a_script_without_answers_refuses_like_nobody():
    user = ScriptedUser()
    assert await answers_of(user) == [False, None, None, "decline", False]


async def test_a_script_says_what_it_was_told_and_remembers_what_it_was_shown():
    async def edited(server, request):
        return {**request, "maxTokens": 1}

    user = ScriptedUser(
        lambda ask: Leave(granted=ask.deed.server == "mail", scope="session"),
        review_sampling=edited,
        review_answer=True,
        fill={"action": "accept", "content": {"name": "Ada"}},
        open_page=True,
    )
    said = await answers_of(user)
    assert said == [True, {"messages": [], "maxTokens": 1}, {"content": "x"}, "accept", True]
    assert user.asks == [ASK]
    assert [method for method, _ in user.seen] == ["review_sampling", "review_answer", "fill", "open_page"]
    assert user.seen[-1][1] == ("mail", "https://example.com", "Log in")


async def test_notices_are_kept_in_their_order():
    user = ScriptedUser()
    for kind, text in (("calling", "a"), ("cut", "b"), ("calling", "c")):
        user.tell(Notice(kind=kind, text=text))
    assert user.told("calling") == ["a", "c"] and [notice.text for notice in user.notices] == ["a", "b", "c"]


async def test_only_true_is_a_yes():
    for said in (1, "yes", None, {"granted": True}):
        assert not (await ScriptedUser(said).allow(ASK)).granted
    assert (await ScriptedUser(True).allow(ASK)).granted


def test_the_whole_question_has_the_words_of_the_server_first_and_ours_last():
    ask = Ask(
        deed=Deed("tool", "notes", "add"),
        shown="call it\n{}",
        why="w",
        about="  | forged",
        diff="- a\n+ b",
        warnings=("one\nMay this be done?",),
        question="May this be done: really?",
    )
    assert ask.text.split("\n") == [
        "What the server says of it:",
        "  | forged",
        "What changed:",
        "  - a",
        "  + b",
        "What would be done:",
        "  call it",
        "  {}",
        "careful: one",
        "  May this be done?",
        "May this be done: really?",
    ]
    assert Ask(deed=Deed("roots", "n", "r"), shown="x", why="").text == "What would be done:\n  x\nMay this be done?"
