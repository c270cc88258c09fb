"""client/sync/client.py: the same verbs, blocking, from anywhere."""

import asyncio
import gc
import inspect
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock import Client, Context, Server, SyncClient
from interlock.client.sync.client import SyncStream
from interlock.wire.errors import ConnectionClosed, LocalError, NotOpen, SpawnFailed
from support.children import command_of, write_server


def a_server():
    server = Server("s", version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Name?", str, key="name"))

    @server.tool
    async def steps(ctx: Context) -> str:
        await ctx.progress(1, 2)
        await ctx.progress(2, 2)
        return "done"

    @server.tool
    async def say(ctx: Context) -> str:
        await ctx.log("info", "hello")
        return "said"

    return server


def verbs(kind):
    found = {name: member for name, member in inspect.getmembers(kind) if not name.startswith("_")}
    return {name for name, member in found.items() if callable(member)}, set(found)


# --- the same verbs ---


def test_every_verb_and_fact_is_there_with_the_same_arguments():
    mine, all_mine = verbs(SyncClient)
    theirs, all_theirs = verbs(Client)
    assert mine == theirs and all_mine == all_theirs
    for name in theirs - {"open", "close"}:
        own, other = inspect.signature(getattr(SyncClient, name)), inspect.signature(getattr(Client, name))
        assert own == other, name
        assert not inspect.iscoroutinefunction(getattr(SyncClient, name)), name
        assert getattr(SyncClient, name).__doc__ == getattr(Client, name).__doc__
    assert inspect.signature(SyncClient).parameters == inspect.signature(Client).parameters


def test_every_verb_has_its_line_for_type_checkers():
    lines = inspect.getsource(SyncClient)
    assert [name for name in sorted(verbs(Client)[0]) if f"    {name} = _" not in lines] == ["close", "open"]


def test_it_calls_and_knows():
    with SyncClient(a_server(), name="me") as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).structured == 3
        assert [tool.name for tool in client.list_tools()] == ["add", "ask", "steps", "say"]
        assert client.request("tools/list")["tools"]
        client.ping()
        assert client.server_info.name == "s" and client.revision and client.instructions is None
        assert client.capabilities.can("tools")


async def test_it_works_where_a_loop_runs():
    with SyncClient(a_server()) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


def test_it_works_from_many_threads_and_all_clients_share_one_loop():
    with SyncClient(a_server()) as one, SyncClient(a_server()) as two, ThreadPoolExecutor(8) as threads:

        def sum_up(number):
            return (one, two)[number % 2].call_tool("add", {"a": number, "b": 1}).text

        assert [*threads.map(sum_up, range(200))] == [str(number + 1) for number in range(200)]
        assert sum(thread.name == "interlock-loop" for thread in threading.enumerate()) == 1


# --- opening and closing ---


def test_a_client_that_is_not_open_says_so():
    client = SyncClient(a_server())
    with pytest.raises(NotOpen, match="use `with`"):
        client.list_tools()
    client.close()
    client.close()
    with pytest.raises(NotOpen, match="closed"):
        client.open()
    with pytest.raises(NotOpen, match="closed"):
        client.list_tools()


def test_opening_that_fails_leaves_nothing_behind():
    with pytest.raises(SpawnFailed), SyncClient(["/no/such/program"]):
        pass
    assert "interlock-loop" not in [thread.name for thread in threading.enumerate()]


def test_opening_may_be_tried_again(tmp_path):
    client = SyncClient(["/no/such/program"])
    for _ in range(2):
        with pytest.raises(SpawnFailed):
            client.open()
    client.close()


def test_closing_ends_what_other_threads_wait_for():
    server, waiting = a_server(), threading.Event()

    @server.tool
    async def hang() -> str:
        waiting.set()
        await asyncio.Event().wait()
        return ""

    client = SyncClient(server)
    client.open()
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(client.call_tool, "hang")
        assert waiting.wait(20)
        client.close()
        assert isinstance(call.exception(20), ConnectionClosed)


def test_ctrl_c_cancels_the_call_and_the_client_goes_on():
    server, cancelled = a_server(), threading.Event()
    main = threading.main_thread().ident

    @server.tool
    async def interrupted() -> str:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    with SyncClient(server) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("interrupted")
        assert cancelled.wait(20)
        assert client.call_tool("add", {"a": 1, "b": 1}).text == "2"


def test_one_that_is_forgotten_is_closed():
    client = SyncClient(a_server())
    client.open()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "interlock-loop"]
    with pytest.warns(ResourceWarning, match="not closed"):
        del client
        gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_the_end_of_the_interpreter_closes_it(tmp_path):
    words = [*command_of(write_server(tmp_path, "")).args]
    program = f"""
from interlock import SyncClient
client = SyncClient({words!r}, revision="2025-11-25")
client.open()
print(client.call_tool("pid").text)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert not Path("/proc", done.stdout.strip()).exists()  # closed and waited for, not only killed


# --- callbacks ---


def test_a_plain_callback_may_block_while_others_call():
    free = threading.Event()

    def elicit(params):
        assert free.wait(20)
        return {"action": "accept", "content": {"value": "Ada"}}

    with SyncClient(a_server(), elicit=elicit) as client, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.call_tool, "ask")
        assert client.call_tool("add", {"a": 1, "b": 1}).text == "2"
        free.set()
        assert asked.result(20).text == "Ada"


def test_progress_and_notifications_of_a_call_reach_plain_functions():
    heard = []
    with SyncClient(a_server()) as client:
        client.call_tool("steps", on_progress=lambda *told: heard.append(told[:2]))
    assert heard == [(1, 2), (2, 2)]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_callback_that_is_waited_for_must_not_call_its_client(kind):
    told = []

    def plain(params):
        for call in (client.list_tools, client.close):
            with pytest.raises(LocalError) as error:
                call()
            told.append(str(error.value))
        return {"action": "decline"}

    async def awaiting(params):
        return plain(params)

    with SyncClient(a_server(), elicit=plain if kind == "plain" else awaiting) as client:
        client.call_tool("ask")
        assert len(told) == 2 and all("waited for" in each or "async callback" in each for each in told)
        assert client.list_tools()


def test_another_client_may_be_called_from_a_callback():
    with SyncClient(a_server()) as other:

        def elicit(params):
            return {"action": "accept", "content": {"value": other.call_tool("add", {"a": 2, "b": 2}).text}}

        with SyncClient(a_server(), elicit=elicit) as client:
            assert client.call_tool("ask").text == "4"


def test_news_may_lead_to_calls():
    server, found, told = a_server(), [], threading.Event()

    def hear(method, params):
        found.append((method, client.call_tool("add", {"a": 1, "b": 1}).text))
        told.set()

    with SyncClient(server, on_notification=hear, revision="2025-11-25") as client:
        client.request("logging/setLevel", {"level": "debug"})
        client.call_tool("say")
        assert told.wait(20)
    assert found == [("notifications/message", "2")]


# --- streams ---


def test_a_stream_is_read_by_a_plain_loop():
    closed = threading.Event()

    async def numbers(self):
        try:
            for number in range(1000):
                yield number
        finally:
            closed.set()

    with SyncClient(a_server()) as client:
        with client._do(numbers, (), {}) as stream:
            assert isinstance(stream, SyncStream)
            assert [next(stream), next(stream)] == [0, 1]
        assert closed.is_set()
        assert [*client._do(numbers, (), {})] == [*range(1000)]


def test_changes_are_heard_by_a_plain_loop():
    server = a_server()
    with SyncClient(server) as client, client.listen(tools=True) as changes, ThreadPoolExecutor(1) as threads:
        heard = threads.submit(next, changes)
        client.call_tool("add", {"a": 1, "b": 1})
        server.remove_tool("add")
        assert heard.result(20).kind == "tools"
        assert changes.honoured.tools
        assert "add" not in [tool.name for tool in client.list_tools()]
