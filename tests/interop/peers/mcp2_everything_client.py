"""A client written with the official Python SDK 2.x that uses all of examples/everything.py; prints what it saw.

usage: mcp2_everything_client.py MODE URL
       mcp2_everything_client.py MODE COMMAND...

MODE is what the SDK's own Client takes (auto, legacy, a stateless revision), or an older handshake revision.
"""

import sys
import warnings

import anyio
import mcp.client.session
from everything_visit import filled, visit
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from saw import Saw, plain

warnings.simplefilter("ignore")  # the SDK deprecates the old verbs; they are what is tested here

WATCHED = "test://watched-resource"


class Words:
    def prompt(self, name: str) -> PromptReference:
        return PromptReference(name=name)

    def template(self, uri: str) -> ResourceTemplateReference:
        return ResourceTemplateReference(uri=uri)


def client_for(mode: str, saw: Saw, target: StdioServerParameters | str) -> Client:
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        # The SDK always offers its newest handshake revision: lowered, it offers what an older release did.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = mode
        mode = "legacy"

    async def sample(context, params):
        saw.asked.append(plain(params))
        return CreateMessageResult(role="assistant", content=TextContent(text="Paris"), model="m1")

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
        saw.heard(message)

    return Client(
        target,
        mode=mode,
        client_info=Implementation(name="peer-client", version="2"),
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="debug",
        message_handler=heard,
        cache=None,
    )


async def changes(client: Client, saw: Saw) -> None:
    """Change notices: on a listen stream where there is one, to the session elsewhere."""
    triggers = ("test_trigger_tool_change", {}), ("test_trigger_prompt_change", {}), ("touch", {"uri": WATCHED})
    if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        await saw.step("subscribe", client.subscribe_resource(WATCHED))
        for name, arguments in triggers:
            await client.call_tool(name, arguments)
        await saw.step("unsubscribe", client.unsubscribe_resource(WATCHED))
        await client.call_tool("touch", {"uri": WATCHED})
        await client.send_ping()
        return
    async with client.listen(
        tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=[WATCHED]
    ) as stream:
        expected = ToolsListChanged(), PromptsListChanged(), ResourceUpdated(uri=WATCHED)
        for (name, arguments), wanted in zip(triggers, expected, strict=True):
            await client.call_tool(name, arguments)
            saw.note(f"listened to {name}", await anext(stream) == wanted)


async def main(mode: str, *words: str) -> None:
    saw = Saw()
    target = words[0] if len(words) == 1 else StdioServerParameters(command=words[0], args=list(words[1:]))
    async with client_for(mode, saw, target) as client:
        saw.note("revision", client.protocol_version)
        saw.note("server", client.server_info)
        saw.note("capabilities", client.server_capabilities)
        await visit(client, saw, Words())
        await changes(client, saw)
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
