"""A client written with the official Python SDK 1.x that uses all of examples/everything.py; prints what it saw.

usage: mcp1_everything_client.py MODE COMMAND...

MODE is a handshake revision.
"""

import sys

import anyio
import mcp.types
from everything_visit import filled, visit
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.session import RequestResponder
from mcp.types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)
from saw import Saw, plain

WATCHED = "test://watched-resource"


class Words:
    def prompt(self, name: str) -> PromptReference:
        return PromptReference(type="ref/prompt", name=name)

    def template(self, uri: str) -> ResourceTemplateReference:
        return ResourceTemplateReference(type="ref/resource", uri=uri)


def session_on(streams, saw: Saw) -> ClientSession:
    async def sample(context, params):
        saw.asked.append(plain(params))
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="m1")

    async def elicit(context, params):
        saw.asked.append(plain(params))
        content = {} if params.mode == "url" else {"content": filled(plain(params))}
        return ElicitResult(action="accept", **content)

    async def roots(context):
        saw.asked.append({"roots": True})
        return ListRootsResult(roots=[Root(uri="file:///workspace", name="work")])

    async def log(params):
        saw.logs.append(plain(params))

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


async def changes(session: ClientSession, saw: Saw) -> None:
    await saw.step("subscribe", session.subscribe_resource(WATCHED))
    for name, arguments in (
        ("test_trigger_tool_change", {}),
        ("test_trigger_prompt_change", {}),
        ("touch", {"uri": WATCHED}),
    ):
        await session.call_tool(name, arguments)
    await saw.step("unsubscribe", session.unsubscribe_resource(WATCHED))
    await session.call_tool("touch", {"uri": WATCHED})
    await session.send_ping()


async def main(mode: str, *words: str) -> None:
    mcp.types.LATEST_PROTOCOL_VERSION = mode  # lowered, it offers what an older release did
    saw = Saw()
    command = StdioServerParameters(command=words[0], args=list(words[1:]))
    async with stdio_client(command) as streams, session_on(streams, saw) as session:
        found = await session.initialize()
        saw.note("revision", found.protocolVersion)
        saw.note("server", found.serverInfo)
        saw.note("capabilities", found.capabilities)
        await visit(session, saw, Words())
        await changes(session, saw)
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
