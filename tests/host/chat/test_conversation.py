"""A person, a model and tools in turns."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from interlock import Server
from interlock.client.results import CallResult
from interlock.host.chat import conversation
from interlock.host.chat.content_blocks import text_block
from interlock.host.chat.conversation import (
    Called,
    Calling,
    Cancelled,
    Conversation,
    Finished,
    Progressed,
    Said,
    Shortened,
)
from interlock.host.chat.host_tools import HostTools
from interlock.host.chat.transcript import Transcript, read_transcript
from interlock.host.gate import consent_queue
from interlock.host.host import Host
from interlock.host.models.model import (
    CallPart,
    End,
    ModelBusy,
    ModelError,
    ModelFacts,
    ModelRefused,
    ModelTool,
    TextPart,
    Usage,
)
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import Leave, ScriptedUser
from interlock.wire.errors import LocalError
from interlock.wire.types.content import TextContent


class Table:
    """Tools by their shown names: `server__tool`."""

    def __init__(self, **tools):
        self.tools, self.used, self.notes = tools, [], ""

    async def tools_for(self, said):
        return [ModelTool(name=name, input_schema={"type": "object"}) for name in self.tools]

    def about(self):
        return self.notes

    def origin(self, tool, arguments):
        return tool.partition("__")[0] if tool in self.tools else None

    async def use(self, tool, arguments, *, sources, on_progress):
        self.used.append((tool, dict(arguments), sources))
        found = self.tools[tool]
        found = found(arguments, on_progress) if callable(found) else found
        found = await found if asyncio.iscoroutine(found) else found
        return CallResult([TextContent(text=found)])


def talk(model, table=None, **more):
    events = []
    conversation = Conversation(table or Table(), model, on_event=events.append, **more)
    return conversation, events


async def test_words_are_answered_with_words():
    model = ScriptedModel(["Good morning"])
    conversation, events = talk(model, system="Be kind.")
    assert await conversation.say("Hello") == "Good morning"
    assert events == [Said("Good "), Said("morning"), Finished("endTurn", Usage(1, 2))]
    assert conversation.messages == [
        {"role": "user", "content": [text_block("Hello")]},
        {"role": "assistant", "content": [text_block("Good morning")]},
    ]
    assert model.requests[0].system == "Be kind."
    assert conversation.usage == Usage(1, 2)


async def test_what_servers_say_of_themselves_stands_behind_what_the_host_says():
    model, table = ScriptedModel(otherwise="x"), Table()
    table.notes = "[notes] Keeps notes."
    conversation, _ = talk(model, table, system="Be kind.")
    await conversation.say("Hello")
    assert model.requests[0].system == "Be kind.\n\n[notes] Keeps notes."
    plain, _ = talk(model)
    await plain.say("Hello")
    assert model.requests[1].system is None


async def test_what_it_calls_is_called_and_goes_back_to_it():
    table = Table(notes__add="added", notes__list="one note")
    model = ScriptedModel([["Adding", {"notes__add": {"text": "milk"}}], {"notes__list": {}}, "Done"])
    conversation, events = talk(model, table)
    assert await conversation.say("Add milk") == "Done"
    assert [used[:2] for used in table.used] == [("notes__add", {"text": "milk"}), ("notes__list", {})]
    assert [message["role"] for message in conversation.messages] == ["user", "assistant"] * 3
    result = conversation.messages[2]["content"][0]
    assert (result["toolUseId"], result["content"]) == ("call_1", [text_block("added")])
    assert [tool.name for tool in model.requests[0].tools] == ["notes__add", "notes__list"]
    called = [event for event in events if isinstance(event, Called)]
    assert [(event.server, event.result.text, event.because) for event in called] == [
        ("notes", "added", None),
        ("notes", "one note", None),
    ]


async def test_data_of_servers_is_followed():
    table = Table(mail__read="secret", web__post="posted")
    conversation, _ = talk(ScriptedModel([{"mail__read": {}}, {"web__post": {}, "mail__read": {}}, "Done"]), table)
    await conversation.say("Go")
    assert [used[2] for used in table.used] == [frozenset(), frozenset({"mail"}), frozenset({"mail"})]
    assert conversation.sources == {"mail", "web"}


async def test_calls_of_one_answer_run_beside_each_other_within_the_bound():
    running, most = 0, 0

    async def work(arguments, on_progress):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return str(arguments["n"])

    table = Table(**{f"s__t{n}": work for n in range(6)})
    calls = {f"s__t{n}": {"n": n} for n in range(6)}
    conversation, _ = talk(ScriptedModel([calls, "Done"]), table, at_once=3)
    await conversation.say("Go")
    assert most == 3
    assert [block["content"][0]["text"] for block in conversation.messages[2]["content"]] == list("012345")


async def test_the_time_of_the_user_is_not_the_time_of_the_tool(monkeypatch):
    now = 0.0
    for module in (consent_queue, conversation):
        monkeypatch.setattr(module, "monotonic", lambda: now)

    def passes(seconds):
        nonlocal now
        now += seconds

    server = Server("s")

    @server.tool
    async def work() -> str:
        passes(2.0)
        return "done"

    def think(ask):
        passes(100.0 if ask.deed.kind == "tool" else 0.0)
        return Leave(granted=True)

    told = []
    async with Host({"s": server}, user=ScriptedUser(think)) as host:
        model = ScriptedModel([{"s__work": {}}, "Done"])
        await Conversation(HostTools(host), model, on_event=told.append).say("go")
    assert [event.seconds for event in told if isinstance(event, Called)] == [2.0]


async def test_progress_is_shown():
    def work(arguments, on_progress):
        on_progress(1, 2, "half")
        return "x"

    conversation, events = talk(ScriptedModel([{"s__t": {}}, "Done"]), Table(s__t=work))
    await conversation.say("Go")
    kinds = [type(event) for event in events]
    assert kinds.index(Calling) < kinds.index(Progressed) < kinds.index(Called)
    assert [(e.progress, e.total, e.message) for e in events if isinstance(e, Progressed)] == [(1, 2, "half")]


@pytest.mark.parametrize(
    "error, told", [(LocalError("not allowed"), "not allowed"), (KeyError("x"), "its log says why")]
)
async def test_a_call_that_fails_is_told_to_the_model(error, told):
    def fail(arguments, on_progress):
        raise error

    conversation, events = talk(ScriptedModel([{"s__t": {}}, "I see"]), Table(s__t=fail))
    assert await conversation.say("Go") == "I see"
    result = conversation.messages[2]["content"][0]
    assert result["isError"] is True and told in result["content"][0]["text"]
    assert conversation.sources == set()  # nothing of that server came
    assert next(event for event in events if isinstance(event, Called)).because


async def test_arguments_that_could_not_be_read_call_nothing():
    class Garbled(ScriptedModel):
        async def reply(self, request):
            async for event in super().reply(request):
                is_call = hasattr(event, "arguments")
                yield type(event)(event.id, event.name, {}, "no JSON") if is_call else event

    table = Table(s__t="x")
    conversation, _ = talk(Garbled([{"s__t": {}}, "Sorry"]), table)
    assert await conversation.say("Go") == "Sorry"
    assert table.used == []
    assert conversation.messages[2]["content"][0]["content"] == [text_block("no JSON")]


async def test_a_model_that_never_stops_is_stopped():
    model = ScriptedModel(otherwise={"s__t": {}})
    table = Table(s__t="x")
    conversation, _ = talk(model, table, most_steps=3)
    with pytest.raises(ModelError, match="after 3 steps"):
        await conversation.say("Go")
    assert (len(table.used), [request.tool_choice for request in model.requests]) == (3, ["auto"] * 3 + ["none"])
    assert conversation.messages[-1]["content"][0]["isError"] is True  # and is whole


async def test_cancelling_a_call_tells_it_and_leaves_the_talk_whole():
    begun, ended = asyncio.Event(), []

    async def work(arguments, on_progress):
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    model = ScriptedModel([{"s__t": {}}, "Still here"])
    conversation, events = talk(model, Table(s__t=work))
    task = asyncio.create_task(conversation.say("Go"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True] and events[-1] == Cancelled()
    assert "cancelled" in conversation.messages[-1]["content"][0]["content"][0]["text"]
    assert await conversation.say("And now?") == "Still here"


async def test_cancelled_at_every_point_it_is_taken_by_services():
    async def slow(arguments, on_progress):
        await asyncio.sleep(0)
        return "x"

    for ticks in range(40):
        model = ScriptedModel([["Let me", {"s__t": {}}, {"s__u": {}}], {"s__t": {}}, "It is done"], otherwise="Yes")
        conversation, _ = talk(model, Table(s__t=slow, s__u="y"))
        task = asyncio.create_task(conversation.say("Go"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        finished = not task.cancel()
        await asyncio.wait([task])
        await conversation.say("And now?")
        for before, after in pairwise(conversation.messages):
            results = [block["toolUseId"] for block in after["content"] if block["type"] == "tool_result"]
            assert results == [block["id"] for block in before["content"] if block["type"] == "tool_use"], ticks
        assert all(message["content"] for message in conversation.messages)
    assert finished  # all points were tried


async def test_cancelling_the_model_keeps_what_it_said():
    class Slow:
        facts = ModelFacts(name="slow")
        closed = False

        async def reply(self, request):
            try:
                yield TextPart("Once upon")
                await asyncio.sleep(3600)
                yield End("endTurn")
            finally:
                self.closed = True

    model = Slow()
    conversation, events = talk(model)
    task = asyncio.create_task(conversation.say("Tell"))
    async with asyncio.timeout(20):
        while not events:
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed
    assert conversation.messages[-1] == {"role": "assistant", "content": [text_block("Once upon")]}


async def test_a_model_that_fails_leaves_the_talk_whole():
    conversation, _ = talk(ScriptedModel([ModelBusy("later"), "Here I am"]))
    with pytest.raises(ModelBusy):
        await conversation.say("Hello")
    assert await conversation.say("Hello?") == "Here I am"


def _refused(status, words="no"):
    error = ModelRefused(words)
    error.status = status
    return error


async def test_what_a_model_refuses_is_sent_once_more_without_pictures():
    model = ScriptedModel([_refused(400), "I see", "Yes"])
    conversation, events = talk(model)
    conversation.attach([{"type": "image", "data": "aGk=", "mimeType": "image/png"}])
    assert await conversation.say("Look") == "I see"
    assert Shortened(1, 0) in events and "image" not in str(model.requests[1].messages)
    await conversation.say("Again?")
    assert "image" not in str(model.requests[2].messages)  # and not refused each time


async def test_where_that_was_not_it_nothing_is_lost():
    model = ScriptedModel([_refused(400), _refused(400), _refused(401)])
    conversation, _ = talk(model)
    conversation.attach([{"type": "image", "data": "aGk=", "mimeType": "image/png"}])
    for _ in range(2):
        with pytest.raises(ModelRefused):
            await conversation.say("Look")
    assert len(model.requests) == 3 and "image" in str(conversation.messages)


async def test_what_tools_cost_is_counted():
    model = ScriptedModel(otherwise="ok", facts=ModelFacts(name="small", context=1_000, longest=100))
    conversation, events = talk(model, Table(**{"s__" + "t" * 3_000: "x"}))
    for _ in range(2):
        await conversation.say("word " * 20)
    assert any(isinstance(event, Shortened) and event.dropped for event in events)


@pytest.mark.parametrize("id", ["call_0", "", "x" * 100])
async def test_calls_with_ids_that_repeat_get_their_own(id):
    class Counting(ScriptedModel):
        async def reply(self, request):
            async for event in super().reply(request):
                yield msgspec.structs.replace(event, id=id) if isinstance(event, CallPart) else event

    model = Counting([[{"s__t": {}}, {"s__t": {}}], {"s__t": {}}, "Done"])
    conversation, _ = talk(model, Table(s__t="x"))
    await conversation.say("Go")
    blocks = [block for message in conversation.messages for block in message["content"]]
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len({*used}) == 3 and all(0 < len(each) <= 64 for each in used)
    assert [block["toolUseId"] for block in blocks if block["type"] == "tool_result"] == used


async def test_one_step_at_a_time():
    conversation, _ = talk(ScriptedModel(["a", "b"]))
    with pytest.raises(LocalError, match="nothing yet"):
        await conversation.say()
    task = asyncio.create_task(conversation.say("x"))
    await asyncio.sleep(0)
    with pytest.raises(LocalError, match="one step"):
        await conversation.say("y")
    with pytest.raises(LocalError, match="one step"):
        conversation.attach([text_block("between a call and its result")])
    await task


async def test_what_is_attached_stands_before_what_is_said():
    model = ScriptedModel(["I see"])
    conversation, _ = talk(model)
    conversation.attach([text_block("[resource x]")], "files")
    conversation.add({"role": "assistant", "content": text_block("From a prompt")}, "prompts")
    await conversation.say("Look")
    texts = [message["content"][0]["text"] for message in model.requests[0].messages]
    assert texts == ["[resource x]", "From a prompt", "Look"]
    assert conversation.sources == {"files", "prompts"}


async def test_it_keeps_within_its_budget():
    model = ScriptedModel(otherwise="ok", facts=ModelFacts(name="small", context=300, longest=100))
    conversation, events = talk(model)
    for number in range(12):
        await conversation.say(f"{number} " + "word " * 40)
    assert any(isinstance(event, Shortened) and event.dropped for event in events)
    assert len(model.requests[-1].messages) < 8
    assert model.requests[-1].messages[-1]["content"][0]["text"].startswith("11 ")


@pytest.mark.parametrize("more", [{"system": "word " * 200}, {"tools": 20}, {"notes": "word " * 200}])
async def test_what_stands_beside_the_messages_counts_as_well(more):
    model = ScriptedModel(otherwise="ok", facts=ModelFacts(name="small", context=400, longest=100))
    table = Table(**{f"s__{number}": "x" for number in range(more.pop("tools", 0))})
    table.notes = more.pop("notes", "")
    conversation, events = talk(model, table, **more)
    for _ in range(3):
        await conversation.say("word " * 40)
    assert any(isinstance(event, Shortened) and event.dropped for event in events)


async def test_it_is_saved_and_goes_on(tmp_path):
    path = tmp_path / "talk.jsonl"
    first, _ = talk(ScriptedModel([{"s__t": {}}, "Done"]), Table(s__t="x"), transcript=Transcript(path))
    await first.say("Go")
    second, _ = talk(ScriptedModel(["Again"]), transcript=Transcript(path))
    second.resume(*read_transcript(path))
    assert (second.messages, second.sources) == (first.messages, {"s"})
    assert await second.say("More") == "Again"
    assert len(read_transcript(path)[0]) == 6
    with pytest.raises(LocalError, match="not begun"):
        second.resume([])


async def test_a_talk_that_ended_in_a_call_goes_on_whole():
    conversation, _ = talk(ScriptedModel(["Yes"]))
    used = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
    conversation.resume([{"role": "user", "content": [text_block("x")]}, {"role": "assistant", "content": [used]}])
    assert conversation.messages[-1]["content"][0]["toolUseId"] == "1"
    assert await conversation.say("Are you there?") == "Yes"
