"""A client written with the official Python SDK 2.x that lets our server ask it everything; prints what it saw.

usage: mcp2_asking_client.py MODE URL
       mcp2_asking_client.py MODE COMMAND...

MODE is what the SDK's own Client takes: auto, legacy, or a stateless revision. ts2_asking_client.mjs is its twin.
"""

import sys
import warnings

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from saw import Saw

warnings.simplefilter("ignore")  # the SDK deprecates sampling and roots; they are tested here all the same

FORMS = {
    "Which seat?": {"row": 4, "window": False},
    "Which meal?": {"value": "soup"},
    "Bags?": {"value": 2},
    "Pets?": {"value": 1},
    "Sure?": {"value": True},
    "Whom?": {"value": "Ada"},
    "Who are you?": {"name": "Zoë", "colour": "green", "extras": ["wifi", "bag"], "age": 40, "weight": 61.5},
}
CALLS = [
    ("book", {"flight": "OS 1"}),
    ("noted", {}),
    ("book_in_thread", {"flight": "OS 2"}),
    ("book_parked", {"flight": "OS 3"}),
    ("book_single", {"flight": "OS 4"}),
    ("structured", {"style": "group"}),
    ("card", {}),
    ("think", {}),
    ("visit", {}),
]


class User:
    def __init__(self, saw: Saw) -> None:
        self.saw = saw
        self.action = "accept"

    def callbacks(self) -> dict:
        names = {"elicitation": self.elicit, "sampling": self.sample, "list_roots": self.roots}
        return {f"{name}_callback": callback for name, callback in names.items()}

    async def elicit(self, context, params) -> ElicitResult:
        self.saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        if self.action != "accept" or params.mode == "url":
            return ElicitResult(action=self.action)
        return ElicitResult(action="accept", content=FORMS[params.message])

    async def sample(self, context, params) -> CreateMessageResult:
        self.saw.asked.append(params.model_dump(by_alias=True, exclude_none=True, mode="json"))
        said = TextContent(text="Paris")
        return CreateMessageResult(role="assistant", content=said, model="m1", stop_reason="endTurn")

    async def roots(self, context) -> ListRootsResult:
        self.saw.asked.append({})
        return ListRootsResult(roots=[Root(uri="file:///home", name="home")])


async def is_asked(client: Client, user: User, saw: Saw) -> None:
    saw.note("revision", client.protocol_version)
    for name, arguments in CALLS:
        await saw.step(name, client.call_tool(name, arguments))
    await saw.step("prompt", client.get_prompt("greeting"))
    await saw.step("resource", client.read_resource("asking://who"))
    await many_at_once(client, saw)
    for user.action in ("decline", "cancel"):
        await saw.step(user.action, client.call_tool("book_single", {"flight": "OS 5"}))
    if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        await answers_by_hand(client, saw)


async def many_at_once(client: Client, saw: Saw) -> None:
    async def book(flight: str) -> None:
        found = await client.call_tool("book_single", {"flight": flight})
        saw.record.setdefault("many", {})[flight] = found.content[0].text

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(book, f"OS {number}")


async def answers_by_hand(client: Client, saw: Saw) -> None:
    """One round without the SDK's own driver, and what a server must not take."""
    call = client.session.call_tool
    arguments = {"flight": "OS 7"}
    asked = await saw.step("by hand", call("book_single", arguments, allow_input_required=True))
    state, answers = asked.request_state, {"sure": ElicitResult(action="accept", content={"value": True})}
    for name, given, kept in (
        ("changed state", arguments, ("A" if state[0] != "A" else "B") + state[1:]),
        ("other arguments", {"flight": "OS 8"}, state),
        ("right state", arguments, state),
        ("state used again", arguments, state),
    ):
        await saw.step(name, call("book_single", given, input_responses=answers, request_state=kept))


async def main(mode: str, *words: str) -> None:
    saw = Saw()
    user = User(saw)
    target = words[0] if len(words) == 1 else StdioServerParameters(command=words[0], args=list(words[1:]))
    async with Client(target, mode=mode, cache=None, **user.callbacks()) as client:
        await is_asked(client, user, saw)
    async with Client(target, mode=mode, cache=None) as mute:
        for name, arguments in (("book_single", {"flight": "OS 6"}), ("sampled", {}), ("rooted", {})):
            await saw.step(f"mute {name}", mute.call_tool(name, arguments))
    saw.print()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
