"""A client written with the official Python SDK 1.x that uses everything our test server has; prints what it saw.

usage: mcp1_client.py MODE STATUS_FILE PYTHON SERVER_FILE

MODE is auto, or a handshake revision older than the one the SDK offers by itself.
"""

import sys
from datetime import timedelta

import anyio
import mcp.types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.session import RequestResponder
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    CreateMessageResult,
    ElicitResult,
    Implementation,
    InitializeResult,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)
from saw import Saw, exit_status, server_command


def session_on(streams, saw: Saw) -> ClientSession:
    async def sample(context, params):
        saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        answer = TextContent(type="text", text="hello")
        return CreateMessageResult(role="assistant", content=answer, model="m1", stopReason="endTurn")

    async def elicit(context, params):
        saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file:///home", name="home")])

    async def log(params):
        saw.logs.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def heard(message):
        if not isinstance(message, RequestResponder):  # what the server asks has callbacks of its own
            saw.heard(getattr(message, "root", message))

    return ClientSession(
        *streams,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        logging_callback=log,
        message_handler=heard,
        client_info=Implementation(name="peer-client", version="1"),
    )


async def introduced(session: ClientSession, saw: Saw) -> None:
    found: InitializeResult = await session.initialize()
    saw.note("revision", found.protocolVersion)
    saw.note("server", found.serverInfo)
    saw.note("capabilities", found.capabilities)
    saw.note("instructions", found.instructions)


async def lists(session: ClientSession, saw: Saw) -> None:
    await saw.step("tools", session.list_tools())
    await saw.step("resources", session.list_resources())
    await saw.step("templates", session.list_resource_templates())
    await saw.step("prompts", session.list_prompts())


async def calls(session: ClientSession, saw: Saw) -> None:
    call = session.call_tool
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


async def reads(session: ClientSession, saw: Saw) -> None:
    await saw.step("read text", session.read_resource("note://one"))
    await saw.step("read bytes", session.read_resource("note://bytes"))
    await saw.step("read nothing", session.read_resource("note://none"))
    await saw.step("greet", session.get_prompt("greet", {"name": "Ada"}))
    await saw.step("greet nobody", session.get_prompt("greet"))
    await saw.step("unknown prompt", session.get_prompt("nothing"))
    reference = PromptReference(type="ref/prompt", name="greet")
    await saw.step("complete", session.complete(reference, {"name": "name", "value": "A"}))


async def told(session: ClientSession, saw: Saw) -> None:
    steps = []

    async def on_progress(progress, total, message):
        steps.append([progress, total, message])

    for name in ("steps", "add_in_thread"):
        arguments = {"count": 3} if name == "steps" else {"a": 1, "b": 2}
        await saw.step(name, session.call_tool(name, arguments, progress_callback=on_progress))
        saw.note(f"progress of {name}", list(steps))
        steps.clear()
    await saw.step("set level to warning", session.set_logging_level("warning"))
    await saw.step("shout", session.call_tool("shout"))
    await saw.step("set level", session.set_logging_level("error"))
    await saw.step("shout at error", session.call_tool("shout"))
    await saw.step("ping", session.send_ping())


async def questions(session: ClientSession, saw: Saw) -> None:
    for method in ("roots/list", "sampling/createMessage", "elicitation/create"):
        await saw.step(method, session.call_tool("question", {"method": method}))


async def changes(session: ClientSession, saw: Saw) -> None:
    await saw.step("subscribe", session.subscribe_resource("note://one"))
    await session.call_tool("touch", {"uri": "note://one"})
    await session.call_tool("grow")
    await saw.step("unsubscribe", session.unsubscribe_resource("note://one"))
    await session.call_tool("touch", {"uri": "note://one"})
    await saw.step("roots changed", session.send_roots_list_changed())


async def gives_up(session: ClientSession, saw: Saw) -> None:
    """Cancel one call, let the next one run into a timeout, which this SDK does not tell the server."""
    begun = anyio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    async with anyio.create_task_group() as group:
        forever = session.call_tool
        group.start_soon(lambda: forever("forever", {"name": "cancelled"}, progress_callback=on_progress))
        await begun.wait()
        await _withdraw(session, session._request_id - 1)  # the newest one
        group.cancel_scope.cancel()
    await saw.step("stopped by cancelling", session.call_tool("was_stopped", {"name": "cancelled"}))
    late = session._request_id
    await saw.step("timeout", forever("forever", {"name": "late"}, timedelta(seconds=0.3), on_progress))
    await saw.step("stopped by timeout", session.call_tool("was_stopped", {"name": "late"}))
    await _withdraw(session, late)
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(_one_of_many, session, saw, number)


async def _withdraw(session: ClientSession, request: int) -> None:
    """This SDK does not tell the server when a caller gives up: authors who want that send it themselves."""
    params = CancelledNotificationParams(requestId=request, reason="changed my mind")
    cancelled = CancelledNotification(method="notifications/cancelled", params=params)
    await session.send_notification(ClientNotification(cancelled))


async def _one_of_many(session: ClientSession, saw: Saw, number: int) -> None:
    found = await session.call_tool("add", {"a": number, "b": 1})
    saw.record.setdefault("many", {})[str(number)] = found.content[0].text


async def main(mode: str, status: str, python: str, server: str) -> None:
    if mode != "auto":
        # The SDK always offers its newest revision: lowered, it offers what an older release did.
        mcp.types.LATEST_PROTOCOL_VERSION = mode
    saw = Saw()
    program, arguments = server_command(status, python, server)
    launched = stdio_client(StdioServerParameters(command=program, args=arguments))
    async with launched as streams, session_on(streams, saw) as session:
        for part in (introduced, lists, calls, reads, told, questions, changes, gives_up):
            await part(session, saw)
    saw.note("exit status", exit_status(status))
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
