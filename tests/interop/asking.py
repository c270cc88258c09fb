"""What the tests of questions share: our server, and what either side must have seen.

Each peer has a client and a server of the same words (peers/*_asking_client.*, *_asking_server.*), so that one set of
expectations serves them all.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interlock.protocol.input.rounds import STATE_REFUSED
from interlock.wire.errors import CannotAsk
from interop.spoken import outcome
from interop.told import our_server
from support.wire_peer import HANDSHAKE, MODERN

OUR_SERVER = our_server(str(Path(__file__).parents[1] / "support" / "servers" / "asking.py"))
BEFORE_PAGES = HANDSHAKE[:-1]


# --- a client of theirs, asked by our server -------------------------------------------------------


def check_story(saw: dict[str, Any], *, stateless: bool) -> None:
    """Every answer reached the line that asked, whatever the era."""
    assert {name: text_of(saw[name]) for name in ANSWERED} == ANSWERED
    assert saw["card"]["structuredContent"] == CARD | {"note": None}
    assert saw["prompt"]["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ada"}}]
    assert [each["text"] for each in saw["resource"]["contents"]] == ["Ada"]
    assert saw["many"] == {f"OS {number}": f"OS {number}, True" for number in range(10)}
    _check_acts(saw["noted"]["structuredContent"], stateless)
    _check_refusals(saw, stateless)
    if stateless:
        _check_what_was_done_by_hand(saw)
    check_asked(saw["asked"])


ANSWERED = {
    "book": "OS 1, row 4, soup, 2 bags, 1 pets, receipt 1, True",
    "book_in_thread": "OS 2, row 4, receipt 1, True",
    "book_parked": "OS 3, row 4, 2 bags, 1 pets",
    "book_single": "OS 4, True",
    "structured": "group 3 finally",
    "think": "Paris (m1) file:///home",
    "visit": "agreed",
}
CARD = {"name": "Zoë", "colour": "green", "extras": ["wifi", "bag"], "age": 40, "weight": 61.5}
MESSAGES = [
    *("Which seat?", "Which meal?", "Bags?", "Pets?", "Sure?"),  # book
    *("Which seat?", "Sure?"),  # book_in_thread
    *("Which seat?", "Bags?", "Pets?"),  # book_parked
    "Sure?",  # book_single
    *("Bags?", "Pets?"),  # structured
    "Who are you?",  # card
    "Sign in there",  # visit
    *("Whom?", "Whom?"),  # prompt, resource
    *["Sure?"] * 10,  # many at once
    *("Sure?", "Sure?"),  # decline, cancel
]


def text_of(step: dict[str, Any]) -> str:
    assert not step.get("isError") and "error" not in step, step
    [block] = step["content"]
    return block["text"]


def _check_acts(noted: dict[str, list[str]], stateless: bool) -> None:
    """Paid once in both eras; run again for each of the four rounds in the one, and never in the other."""
    assert noted == {"acts": ["paid"], "runs": ["book"] * (5 if stateless else 1)}


def _check_refusals(saw: dict[str, Any], stateless: bool) -> None:
    for action, told in (("decline", "declined"), ("cancel", "dismissed")):
        assert saw[action]["isError"] is True
        assert told in saw[action]["content"][0]["text"]
    for tool, capability in (("book_single", "elicitation"), ("sampled", "sampling"), ("rooted", "roots")):
        error = saw[f"mute {tool}"]["error"]
        assert capability in error["message"]
        if stateless:
            assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {capability: {}}})


def _check_what_was_done_by_hand(saw: dict[str, Any]) -> None:
    """The state holds for one call with these arguments, as it came, and once (`single_use`)."""
    assert saw["by hand"]["inputRequests"]["sure"]["params"]["message"] == "Sure?"
    assert text_of(saw["right state"]) == "OS 7, True"
    for step in ("changed state", "other arguments", "state used again"):
        error = saw[step]["error"]
        assert (error["code"], STATE_REFUSED in error["message"]) == (-32602, True)


def check_asked(asked: list[dict[str, Any]]) -> None:
    """Each question once, in order, in the shape that the peer's own types have for it."""
    assert [each["message"] for each in asked if "message" in each] == MESSAGES
    [sampling] = [each for each in asked if "messages" in each]
    assert sampling["maxTokens"] == 10
    assert sampling["messages"][0]["content"] == {"type": "text", "text": "Capital of France?"}
    assert len([each for each in asked if each.keys() <= {"_meta"}]) == 1  # roots
    [page] = [each for each in asked if each.get("mode") == "url"]
    assert page["url"] == "https://example.com/sign-in"
    [form] = [each["requestedSchema"] for each in asked if each.get("message") == "Who are you?"]
    assert list(form["properties"]) == [*CARD, "note"]
    assert form["required"] == ["name", "colour", "extras", "age"]
    assert form["properties"]["weight"] == {"type": "number", "default": 70.5}


# --- a server of theirs, answered by our client -----------------------------------------------------


class User:
    """Answers what servers ask, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.action = "accept"

    def options(self) -> dict[str, Any]:
        roots = [{"uri": "file:///a", "name": "A"}, "file:///b"]
        return {"elicit": self.elicit, "elicit_url": self.open_page, "sample": self.sample, "roots": roots}

    async def elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        if self.action != "accept":
            return {"action": self.action}
        forms = {"Which seat?": {"seat": "4A"}, "Which meal at 4A?": {"meal": "soup"}, "Whom?": {"who": "Ada"}}
        return {"action": "accept", "content": forms.get(params["message"], CARD | {"window": False})}

    async def open_page(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        return {"action": self.action}

    def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        said = {"type": "text", "text": "hi"}
        return {"role": "assistant", "model": "m1", "content": said, "stopReason": "endTurn"}

    def messages(self) -> list[str]:
        """What was asked since the last time, sampling as `None`."""
        asked, self.asked = self.asked, []
        return [each.get("message") for each in asked]


async def visit_the_forms(client: Client, user: User) -> None:
    for action, told in (("decline", "decline -"), ("cancel", "cancel -"), ("accept", "accept 4A")):
        user.action = action
        assert (await client.call_tool("ask_seat")).text == told
    assert user.asked[0]["requestedSchema"]["properties"]["seat"]["type"] == "string"
    assert user.messages() == ["Which seat?"] * 3
    assert (await client.call_tool("ask_twice", {"flight": "OS 1"})).text == "OS 1 4A soup"
    assert user.messages() == ["Which seat?", "Which meal at 4A?"]  # each once, in two rounds


async def visit_with_many_at_once(client: Client, user: User) -> None:
    """Each call gets the answers to its own questions."""
    flights = [f"OS {number}" for number in range(10)]
    results = await asyncio.gather(*(client.call_tool("ask_twice", {"flight": flight}) for flight in flights))
    assert [result.text for result in results] == [f"{flight} 4A soup" for flight in flights]
    assert sorted(user.messages()) == ["Which meal at 4A?"] * 10 + ["Which seat?"] * 10


async def visit_the_other_kinds(client: Client, user: User) -> None:
    card = await client.call_tool("ask_card")
    assert card.structured == CARD | {"window": False}
    form = user.asked[0]["requestedSchema"]
    assert set(form["properties"]) == {*CARD, "window"}
    assert form["properties"]["weight"]["default"] == 70.5
    user.asked.clear()
    assert (await client.call_tool("ask_together")).text == "4A, m1 hi endTurn, file:///a=A file:///b=-"
    [sampling] = [each for each in user.asked if "messages" in each]
    assert (sampling["maxTokens"], sampling["systemPrompt"]) == (7, "Be brief")
    assert sorted(map(str, user.messages())) == ["None", "Which seat?"]


async def visit_a_page(client: Client, user: User) -> None:
    if client.revision in BEFORE_PAGES:
        assert (await outcome(client, "ask_url")).is_error
        assert user.messages() == []  # nobody was bothered with what the revision does not have
        return
    for user.action in ("decline", "accept"):
        assert (await client.call_tool("ask_url")).text == user.action
    assert {(each["mode"], each["url"]) for each in user.asked} == {("url", "https://example.com/sign-in")}
    assert user.messages() == ["Sign in"] * 2


async def visit_a_prompt_and_a_resource(client: Client, user: User) -> None:
    """Both keep something for the second round, which must come back as it was."""
    [message] = (await client.get_prompt("greeting")).messages
    assert getattr(message.content, "text", None) == "Greet Ada, asked once"
    [contents] = await client.read_resource("asking://one")
    assert contents.text == "one Ada, asked once"
    assert user.messages() == ["Whom?"] * 2


async def visit_with_less_than_is_needed(target: Any) -> None:
    """What we did not declare is not asked: their server says what it misses, and we say it to the caller."""
    for declared, tool, capability in (
        ({}, "ask_seat", "elicitation"),
        ({"elicit": User().elicit, "roots": []}, "ask_together", "sampling"),
    ):
        async with Client(target, revision=MODERN[-1], verdicts=Verdicts(), **declared) as client:
            with pytest.raises(CannotAsk) as refused:
                await client.call_tool(tool)
            assert capability in refused.value.data["requiredCapabilities"]
