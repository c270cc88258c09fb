"""A client written with FastMCP that uses all of examples/everything.py; prints what it saw.

usage: fastmcp_everything_client.py MODE URL

MODE is what FastMCP's own Client takes: auto, legacy, or a stateless revision. A URL that ends in /sse is spoken to
over the first HTTP transport.
"""

import sys
import warnings
from typing import Any

import anyio
from everything_visit import changes_of_the_session, filled, visit
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from mcp_types import CreateMessageResult, Implementation, PromptReference, ResourceTemplateReference, Root, TextContent
from saw import Saw, plain

warnings.simplefilter("ignore")  # the SDK below deprecates the old verbs; they are what is tested here


class Words:
    async def give_up(self) -> None:
        """Cancelling the caller is enough here."""

    def prompt(self, name: str) -> PromptReference:
        return PromptReference(name=name)

    def template(self, uri: str) -> ResourceTemplateReference:
        return ResourceTemplateReference(uri=uri)


class Verbs:
    """FastMCP's verbs by the names of the SDK's: those that give the whole result."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.list_tools = client.list_tools_mcp
        self.list_prompts = client.list_prompts_mcp
        self.list_resource_templates = client.list_resource_templates_mcp
        self.list_resources = client.list_resources_mcp
        self.set_logging_level = client.set_logging_level
        self.read_resource = client.read_resource_mcp
        self.get_prompt = client.get_prompt_mcp
        self.complete = client.complete_mcp
        self.send_ping = client.ping
        self.subscribe_resource = client.session.subscribe_resource  # FastMCP has none of its own
        self.unsubscribe_resource = client.session.unsubscribe_resource

    async def call_tool(self, name: str, arguments: dict[str, Any], progress_callback: Any = None) -> Any:
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress_callback)


def client_for(mode: str, saw: Saw, url: str) -> Client:
    async def sample(messages, params, context):
        saw.asked.append(plain(params))
        return CreateMessageResult(role="assistant", content=TextContent(text="Paris"), model="m1")

    async def elicit(message, response_type, params, context):
        saw.asked.append(plain(params))
        content = {} if params.mode == "url" else {"content": filled(plain(params))}
        return ElicitResult(action="accept", **content)

    async def roots(context):
        saw.asked.append({"roots": True})
        return [Root(uri="file:///workspace", name="work")]

    async def log(message):
        saw.logs.append(plain(message))

    async def heard(message):
        saw.heard(message)

    return Client(
        url,
        mode=mode,
        client_info=Implementation(name="peer-client", version="4"),
        sampling_handler=sample,
        elicitation_handler=elicit,
        roots=roots,
        log_handler=log,
        message_handler=heard,
        cache=False,
    )


async def main(mode: str, url: str) -> None:
    saw = Saw()
    async with client_for(mode, saw, url) as client:
        saw.note("revision", client.protocol_version)
        saw.note("server", client.server_info)
        saw.note("capabilities", client.server_capabilities)
        verbs = Verbs(client)
        await visit(verbs, saw, Words())
        if mode == "legacy":  # FastMCP has no word for the listen stream
            await changes_of_the_session(verbs, saw)
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
