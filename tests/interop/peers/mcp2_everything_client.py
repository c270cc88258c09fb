"""A client written with the official Python SDK 2.x that uses all of examples/everything.py; prints what it saw.

usage: mcp2_everything_client.py MODE URL
       mcp2_everything_client.py MODE COMMAND...

MODE is what the SDK's own Client takes (auto, legacy, a stateless revision), or an older handshake revision. A URL that
ends in /sse is spoken to over the first HTTP transport.
"""

import sys
import warnings
from typing import Any

import anyio
import mcp.client.session
from everything_visit import PLAN, WATCHED, changes_of_the_session, filled, visit
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
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


class Words:
    async def give_up(self) -> None:
        """Cancelling the caller is enough here."""

    def prompt(self, name: str) -> PromptReference:
        return PromptReference(name=name)

    def template(self, uri: str) -> ResourceTemplateReference:
        return ResourceTemplateReference(uri=uri)


def client_for(mode: str, saw: Saw, target: Any) -> Client:
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
    if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        await changes_of_the_session(client, saw)
        return
    async with client.listen(
        tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=[WATCHED]
    ) as stream:
        expected = ToolsListChanged(), PromptsListChanged(), ResourceUpdated(uri=WATCHED)
        for (name, arguments), wanted in zip(PLAN["changes"], expected, strict=True):
            await client.call_tool(name, arguments)
            saw.note(f"listened to {name}", await anext(stream) == wanted)


def target_of(*words: str) -> Any:
    if len(words) > 1:
        return StdioServerParameters(command=words[0], args=list(words[1:]))
    return sse_client(words[0]) if words[0].endswith("/sse") else words[0]


async def main(mode: str, *words: str) -> None:
    saw = Saw()
    async with client_for(mode, saw, target_of(*words)) as client:
        saw.note("revision", client.protocol_version)
        saw.note("server", client.server_info)
        saw.note("capabilities", client.server_capabilities)
        await visit(client, saw, Words())
        await changes(client, saw)
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
