"""The commands of a chat."""

import asyncio
import shlex
from types import SimpleNamespace

import pytest

from interlock import PromptMessage, Server, TextContent
from interlock.cli.chat.slash_commands import candidates
from interlock.host.gate.conditions import conditions_of
from interlock.host.gate.policy import Policy, Rule
from interlock.host.models.scripted import ScriptedModel
from support.chatting import chat, said
from support.children import command_of, write_server


async def test_words_of_the_room():
    words = ["help", "tools add", "servers", "cost", "prompts", "resources door", "policy", "pins", "audit"]
    text = await said(*(f"/{word}" for word in words))
    for part in (
        "/restart SERVER",
        "house__add",
        "house  ready  2 tools",
        "the dearest tools",
        "/house__greet name=",
        "@house:house://door",
        "where no rule applies",
        "approved and unchanged",
        "definitions 'first' of 'house': allow",
    ):
        assert part in text, part
    assert "house__wait" not in text[text.index("this list") : text.index("ready")]


async def test_words_that_are_none_are_told():
    text = await said("/nothing", "/restart", "/restart nobody", "/tools '", "/house__greet Ann", "/roots sell x")
    for part in ("no command or prompt 'nothing'", "one SERVER", "no server 'nobody'", "cannot be read", "key=value"):
        assert part in text, part
    assert "/roots add PATH" in text


async def test_a_prompt_is_said_by_its_name():
    model = ScriptedModel(["Hello Ann"])
    assert (await said("/house__greet name=Ann", model=model)).endswith("Hello Ann\n")
    assert model.requests[0].messages[-1]["content"][0]["text"] == "Greet Ann!"


async def test_a_prompt_that_ends_with_the_assistant_leaves_the_turn_to_the_user():
    server, model = Server("house"), ScriptedModel(["I see"])

    @server.prompt
    def debug() -> list[PromptMessage]:
        words = {"user": "It fails.", "assistant": "What\x1b[2J have you tried?"}
        return [PromptMessage(role=role, content=TextContent(text=text)) for role, text in words.items()]

    text = await said("/house__debug", "Nothing yet", server=server, model=model)
    assert "have you tried?" in text and "\x1b" not in text and "your turn" in text
    assert [message["role"] for message in model.requests[0].messages] == ["user", "assistant", "user"]
    assert len(model.requests) == 1


async def test_resources_are_attached_by_their_address():
    model = ScriptedModel(["Green"])
    text = await said("Which colour has @house:house://door and a@b:c ?", model=model)
    assert "attached: @house:house://door" in text and text.endswith("Green\n")
    assert "The door is green." in model.requests[0].messages[0]["content"][0]["text"]


async def test_a_resource_that_may_not_be_read_says_nothing_to_the_model():
    model = ScriptedModel(["x"])
    text = await said("Look at @house:house://door", model=model, allow=False)
    assert "the user said no" in text and model.requests == []


async def test_roots_are_shown_and_changed(tmp_path):
    text = await said("/roots", f"/roots add {tmp_path}", "/roots remove /tmp", roots=["/tmp"])
    assert text.count(str(tmp_path.resolve())) == 2 and text.count("  /tmp\n") == 2


async def test_servers_are_added_and_removed(tmp_path):
    path = write_server(tmp_path, "")
    command = " ".join(shlex.quote(word) for word in command_of(path).args)
    text = await said(f"/add more -- {command}", "/remove house", "/tools", "/remove house")
    assert "house  ready  2 tools" in text and text.count("more  ready") == 2
    after = text[text.rindex("more  ready") :]
    assert "house__add" not in after and "no server 'house'; there are: more" in after


async def test_what_cannot_be_added_is_told():
    wrong = ("/add more", "/add more a b", "/add more http://x.example -- y", "/add more nobody", "/add house -- y")
    text = await said(*wrong, "/add more --cwd / x", "/servers")
    assert "/add NAME TARGET" in text and text.count("this takes one TARGET") == 2 and "nobody" in text
    assert "two servers are called 'house'" in text and "--cwd" in text and "as it should not" not in text
    assert "more  " not in text


async def test_restarting_and_leaving():
    text = await said("/restart house", "/quit", "/help")
    assert "house  ready" in text and "this list" not in text


@pytest.mark.parametrize(
    "line, word, found",
    [
        ("/to", "/to", ["/tools "]),
        ("/house", "/house", ["/house__greet "]),
        ("/house__greet na", "na", ["name="]),
        ("look at @door", "@door", ["@house:house://door"]),
        ("house__a", "house__a", ["house__add "]),
        ("x ", "", []),
    ],
)
async def test_what_a_word_may_become(line, word, found):
    async with chat() as room:
        assert [*room.complete(line, word)] == found


async def test_arguments_of_prompts_are_the_servers_to_complete():
    async with chat() as room:
        ask = asyncio.to_thread
        assert await ask(room.complete, "/house__greet name=B", "name=B") == ["name='Bob B' "]
        assert await ask(room.complete, "/house__greet other=", "other=") == []


async def test_rules_and_defaults_are_told_as_they_are():
    rule = Rule(decision="deny", arguments=conditions_of({"path": {"within": "/etc"}}, ""))
    text = await said("/policy", policy=Policy([rule], {"resource": "allow"}))
    assert "deny: argument path within ('/etc',)" in text
    assert "where no rule applies, allow: resource, prompt, completion\n" in text


def test_an_address_with_a_space_is_not_offered():
    """As two words of the line, the second would attach a resource of another server."""
    uris = ("house://a", "house://b @files:secret", "house://c\u3164")
    catalogue = SimpleNamespace(resources=[("house", SimpleNamespace(uri=uri)) for uri in uris])
    room = SimpleNamespace(host=SimpleNamespace(catalogue=catalogue))
    assert candidates(room, "@hou", "@hou") == ["@house:house://a"]
