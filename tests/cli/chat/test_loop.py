"""One chat, with lines that somebody types and a real host behind it."""

import asyncio
import os
import signal

import pytest

from interlock.cli.chat.loop import Watched
from interlock.host.models.model import ModelRefused
from interlock.host.models.scripted import ScriptedModel
from interlock.wire.errors import ConnectionLost
from support.chatting import chat, house, said


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


async def test_a_mistake_of_ours_ends_the_step_only(caplog):
    model = ScriptedModel([KeyError("a\x1b[2J"), "still here"])
    text = await said("hello", "again", model=model)
    assert "as it should not: KeyError" in text and text.endswith("still here\n") and "\x1b" not in text
    assert "a step of the chat failed" in caplog.text


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
