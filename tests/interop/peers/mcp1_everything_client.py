"""A client written with the official Python SDK 1.x that uses all of examples/everything.py; prints what it saw.

usage: mcp1_everything_client.py MODE URL
       mcp1_everything_client.py MODE COMMAND...

MODE is a handshake revision. A URL that ends in /sse is spoken to over the first HTTP transport.
"""

import sys

import anyio
import mcp.types
from everything_visit import changes_of_the_session, filled, visit
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.session import RequestResponder
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
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


class Words:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def give_up(self) -> None:
        """This SDK does not tell the server when a caller gives up: authors who want that send it themselves."""
        newest = self.session._request_id - 1
        params = CancelledNotificationParams(requestId=newest, reason="changed my mind")
        cancelled = CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(ClientNotification(cancelled))

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


def transport(*words: str):
    if len(words) > 1:
        return stdio_client(StdioServerParameters(command=words[0], args=list(words[1:])))
    return sse_client(words[0]) if words[0].endswith("/sse") else streamable_http_client(words[0])


async def main(mode: str, *words: str) -> None:
    mcp.types.LATEST_PROTOCOL_VERSION = mode  # lowered, it offers what an older release did
    saw = Saw()
    async with transport(*words) as (reader, writer, *_), session_on((reader, writer), saw) as session:
        found = await session.initialize()
        saw.note("revision", found.protocolVersion)
        saw.note("server", found.serverInfo)
        saw.note("capabilities", found.capabilities)
        await visit(session, saw, Words(session))
        await changes_of_the_session(session, saw)
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
