"""A client written with FastMCP that uses our test server as its documentation shows; prints what it saw.

usage: fastmcp_client.py MODE STATUS_FILE PYTHON SERVER_FILE

MODE is what FastMCP's own Client takes: auto, legacy, or a stateless revision.
"""

import sys

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from saw import Saw, exit_status, server_command


def client_for(mode: str, saw: Saw, command: tuple[str, list[str]]) -> Client:
    async def elicit(message, response_type, params, context):
        saw.asked.append(message)
        return {"name": "Ada"}

    async def log(message):
        saw.logs.append([message.level, message.data])

    program, arguments = command
    transport = StdioTransport(program, arguments, keep_alive=False)
    return Client(transport, mode=mode, elicitation_handler=elicit, log_handler=log, roots=["file:///home"])


async def verbs(client: Client, saw: Saw) -> None:
    await saw.step("tools", client.list_tools())
    await saw.step("resources", client.list_resources())
    await saw.step("templates", client.list_resource_templates())
    await saw.step("prompts", client.list_prompts())
    await saw.step("read text", client.read_resource("note://one"))
    await saw.step("read nothing", client.read_resource("note://none"))
    await saw.step("greet", client.get_prompt("greet", {"name": "Ada"}))


async def calls(client: Client, saw: Saw) -> None:
    steps = []

    async def on_progress(progress, total, message):
        steps.append([progress, total, message])

    await saw.step("steps", client.call_tool_mcp("steps", {"count": 3}, progress_handler=on_progress))
    saw.note("progress of steps", steps)
    for name, arguments in (("echo", {"text": "hé"}), ("record", {}), ("blocks", {}), ("shout", {})):
        await saw.step(name, client.call_tool_mcp(name, arguments))
    await saw.step("fail tool", client.call_tool_mcp("fail", {"how": "tool"}))
    for method in ("roots/list", "elicitation/create"):
        await saw.step(method, client.call_tool_mcp("question", {"method": method}))


async def gives_up(client: Client, saw: Saw) -> None:
    begun = anyio.Event()

    async def on_progress(progress, total, message):
        begun.set()

    async with anyio.create_task_group() as group:
        arguments = {"name": "cancelled"}
        group.start_soon(lambda: client.call_tool_mcp("forever", arguments, progress_handler=on_progress))
        await begun.wait()
        group.cancel_scope.cancel()
    await saw.step("stopped by cancelling", client.call_tool_mcp("was_stopped", {"name": "cancelled"}))


async def main(mode: str, status: str, python: str, server: str) -> None:
    saw = Saw()
    async with client_for(mode, saw, server_command(status, python, server)) as client:
        saw.note("revision", client.session.protocol_version)
        for part in (verbs, calls, gives_up):
            await part(client, saw)
    saw.note("exit status", exit_status(status))
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
