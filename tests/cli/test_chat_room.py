"""One chat, with lines that somebody types and a real host behind it."""

import asyncio
import io
import os
import signal
from contextlib import asynccontextmanager

import pytest

from interlock import Context, Server
from interlock.cli.chat_room import ChatRoom, Watched
from interlock.cli.chat_screen import Screen
from interlock.host.audit import MemoryAudit
from interlock.host.conversation import Conversation
from interlock.host.host import Host
from interlock.host.host_tools import HostTools
from interlock.host.models.model import ModelRefused
from interlock.host.models.plain import PlainModel
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import Leave, ScriptedUser
from interlock.wire.errors import ConnectionLost


def house(begun=None):
    server = Server("house")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def wait(ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        if begun is not None:
            begun.set()
        await asyncio.sleep(3600)
        return "never"

    @server.resource("house://door", name="door")
    def door() -> str:
        return "The door is green."

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}!"

    @server.completion(prompt="greet", argument="name")
    def names(value: str) -> list[str]:
        return [each for each in ("Ann", "Bob B") if each.startswith(value)]

    return server


@asynccontextmanager
async def chat(*lines, model=None, server=None, allow=True, before=None, **options):
    """A room in which these lines are typed; `before` is called with the number of each."""
    screen, book = io.StringIO(), Watched(MemoryAudit())
    typed = iter(lines)

    async def read(shown):
        await asyncio.sleep(0)
        return next(typed, None)

    shown = Screen(screen)
    user = ScriptedUser(lambda ask: Leave(granted=allow is True or ask.deed.kind in ("launch", "definitions")))
    user.tell = shown.tell
    async with Host({"house": server or house()}, user=user, audit=book, **options) as host:
        talk = Conversation(HostTools(host), model or PlainModel(), on_event=shown.happened)
        room = ChatRoom(host, talk, shown, read, book)
        room.text = screen.getvalue
        yield room


async def said(*lines, **more):
    async with chat(*lines, **more) as room:
        await room.run()
        return room.text()


async def test_a_line_is_said_and_what_happens_is_shown():
    text = await said("add a=1 b=2")
    assert '> house: house__add { "a": 1, "b": 2 }' in text
    assert text.index("running") < text.index("< done") < text.index("It says: 3")


async def test_a_no_is_shown_and_nothing_runs():
    text = await said("add a=1 b=2", allow=False)
    assert "the user said no" in text and "It says" not in text


async def test_an_error_of_the_model_ends_the_step_only():
    text = await said("one", "two", model=ScriptedModel([ModelRefused("wrong key"), "Here"]))
    assert "wrong key" in text and text.endswith("Here\n")


async def test_ctrl_c_stops_the_step_and_not_the_program():
    begun = asyncio.Event()
    async with chat("wait", "add a=1 b=2", server=house(begun)) as room:
        running = asyncio.create_task(room.run())
        async with asyncio.timeout(60):
            await begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await running
        text = room.text()
    assert text.index("stopping") < text.index("cancelled: what was under way") < text.index("It says: 3")


async def test_ctrl_c_at_the_prompt_does_nothing():
    async with chat() as room:
        room._interrupted()
        assert "nothing is under way" in room.text()


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


async def test_a_book_whose_newest_lines_can_be_seen():
    class Full:
        def write(self, entry):
            raise ConnectionLost("no room")

        def close(self):
            self.closed = True

    book = Watched(Full())
    with pytest.raises(ConnectionLost):
        book.write("x")
    assert [*book.entries] == []
    book.close()
