"""A client written with the official Python SDK 2.x that uses everything our test server has; prints what it saw.

usage: mcp2_client.py MODE STATUS_FILE PYTHON SERVER_FILE
       mcp2_client.py MODE STATUS_FILE URL

MODE is what the SDK's own Client takes (auto, legacy, a stateless revision), or an older handshake revision.
"""

import sys
import warnings

import anyio
import mcp.client.session
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from saw import Saw, exit_status, server_command

warnings.simplefilter("ignore")  # the SDK deprecates the old verbs; they are what is tested here


def client_for(mode: str, saw: Saw, target: StdioServerParameters | str) -> Client:
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        # The SDK always offers its newest handshake revision: lowered, it offers what an older release did.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = mode
        mode = "legacy"

    async def sample(context, params):
        saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        answer = TextContent(text="hello")
        return CreateMessageResult(role="assistant", content=answer, model="m1", stop_reason="endTurn")

    async def elicit(context, params):
        saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///home", name="home")])

    async def log(params):
        saw.logs.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def heard(message):
        saw.heard(message)

    return Client(
        target,
        mode=mode,
        client_info=Implementation(name="peer-client", version="2"),
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="warning",
        message_handler=heard,
        cache=None,
    )


async def introduced(client: Client, saw: Saw) -> None:
    saw.note("revision", client.protocol_version)
    saw.note("server", client.server_info)
    saw.note("capabilities", client.server_capabilities)
    saw.note("instructions", client.instructions)


async def lists(client: Client, saw: Saw) -> None:
    await saw.step("tools", client.list_tools())
    await saw.step("resources", client.list_resources())
    await saw.step("templates", client.list_resource_templates())
    await saw.step("prompts", client.list_prompts())


async def calls(client: Client, saw: Saw) -> None:
    call = client.call_tool
    await saw.step("echo", call("echo", {"text": "hé\u2028\x85\n😀"}))
    await saw.step("add", call("add", {"a": 1, "b": 2}))
    await saw.step("add wrongly", call("add", {"a": "x"}))
    await saw.step("record", call("record"))
    await saw.step("blocks", call("blocks"))
    await saw.step("who", call("who"))
    await saw.step("noise", call("noise"))
    await saw.step("unknown tool", call("nothing"))
    for how in ("tool", "bug", "exit", "group"):
        await saw.step(f"fail {how}", call("fail", {"how": how}))
    big = "x" * 1_000_000
    found = await saw.step("big", call("echo", {"text": big}))
    saw.note("big", found is not None and found.content[0].text == big)


async def reads(client: Client, saw: Saw) -> None:
    await saw.step("read text", client.read_resource("note://one"))
    await saw.step("read bytes", client.read_resource("note://bytes"))
    await saw.step("read nothing", client.read_resource("note://none"))
    await saw.step("greet", client.get_prompt("greet", {"name": "Ada"}))
    await saw.step("greet nobody", client.get_prompt("greet"))
    await saw.step("unknown prompt", client.get_prompt("nothing"))
    await saw.step("complete", client.complete(PromptReference(name="greet"), {"name": "name", "value": "A"}))


async def told(client: Client, saw: Saw) -> None:
    steps = []

    async def on_progress(progress, total, message):
        steps.append([progress, total, message])

    for name in ("steps", "add_in_thread"):
        arguments = {"count": 3} if name == "steps" else {"a": 1, "b": 2}
        await saw.step(name, client.call_tool(name, arguments, progress_callback=on_progress))
        saw.note(f"progress of {name}", list(steps))
        steps.clear()
    await saw.step("shout", client.call_tool("shout"))
    await saw.step("set level", client.set_logging_level("error"))
    await saw.step("shout at error", client.call_tool("shout"))
    await saw.step("ping", client.send_ping())


async def questions(client: Client, saw: Saw) -> None:
    for method in ("roots/list", "sampling/createMessage", "elicitation/create"):
        await saw.step(method, client.call_tool("question", {"method": method}))


async def changes(client: Client, saw: Saw) -> None:
    """Change notices: on a listen stream where there is one, to the session elsewhere."""
    if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        await saw.step("listen", _listen(client, saw))
        return
    await saw.step("subscribe", client.subscribe_resource("note://one"))
    await client.call_tool("touch", {"uri": "note://one"})
    await client.call_tool("grow")
    await saw.step("unsubscribe", client.unsubscribe_resource("note://one"))
    await client.call_tool("touch", {"uri": "note://one"})
    await saw.step("roots changed", client.send_roots_list_changed())


async def _listen(client: Client, saw: Saw) -> list[str]:
    listening = client.listen(tools_list_changed=True, resource_subscriptions=["note://one"])
    async with listening as stream:
        saw.note("honoured", stream.honored)
        found = []
        await client.call_tool("touch", {"uri": "note://one"})
        found.append(await anext(stream) == ResourceUpdated(uri="note://one"))
        await client.call_tool("grow")
        found.append(await anext(stream) == ToolsListChanged())
    return found


async def gives_up(client: Client, saw: Saw) -> None:
    """Cancel one call and let the next one run into a timeout, while the server works on."""
    begun = anyio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    async with anyio.create_task_group() as group:
        forever = client.call_tool
        group.start_soon(lambda: forever("forever", {"name": "cancelled"}, progress_callback=on_progress))
        await begun.wait()
        group.cancel_scope.cancel()
    await saw.step("stopped by cancelling", client.call_tool("was_stopped", {"name": "cancelled"}))
    await saw.step("timeout", forever("forever", {"name": "late"}, 0.3, on_progress))
    await saw.step("stopped by timeout", client.call_tool("was_stopped", {"name": "late"}))
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(_one_of_many, client, saw, number)


async def _one_of_many(client: Client, saw: Saw, number: int) -> None:
    found = await client.call_tool("add", {"a": number, "b": 1})
    saw.record.setdefault("many", {})[str(number)] = found.content[0].text


def target_of(status: str, *words: str) -> StdioServerParameters | str:
    if len(words) == 1:
        return words[0]  # the address of a server that runs already
    program, arguments = server_command(status, *words)
    return StdioServerParameters(command=program, args=arguments)


async def main(mode: str, status: str, *words: str) -> None:
    saw = Saw()
    async with client_for(mode, saw, target_of(status, *words)) as client:
        for part in (introduced, lists, calls, reads, told, questions, changes, gives_up):
            await part(client, saw)
    saw.note("exit status", exit_status(status))
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
