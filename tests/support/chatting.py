"""A chat with a real host behind it, at which lines are typed."""

import asyncio
import io
from contextlib import asynccontextmanager

from interlock import Context, Server
from interlock.cli.chat.input_lock import Floor
from interlock.cli.chat.loop import ChatRoom, Watched
from interlock.cli.chat.screen import Screen
from interlock.host.chat.conversation import Conversation
from interlock.host.chat.host_tools import HostTools
from interlock.host.gate.audit import MemoryAudit
from interlock.host.host import Host
from interlock.host.models.offline import PlainModel
from interlock.host.user import Leave, ScriptedUser

__all__ = ["chat", "house", "said"]


def house(begun=None):
    server = Server("house")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def wait(ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        if begun is not None:
            begun.set()
        await asyncio.sleep(3600)
        return "never"

    @server.resource("house://door", name="door")
    def door() -> str:
        return "The door is green."

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}!"

    @server.completion(prompt="greet", argument="name")
    def names(value: str) -> list[str]:
        return [each for each in ("Ann", "Bob B") if each.startswith(value)]

    return server


@asynccontextmanager
async def chat(*lines, model=None, server=None, allow=True, before=None, **options):
    """A room in which these lines are typed; `before` is called with the number of each."""
    screen, book = io.StringIO(), Watched(MemoryAudit())
    typed = iter(lines)

    async def read(shown):
        await asyncio.sleep(0)
        return next(typed, None)

    shown = Screen(screen)
    user = ScriptedUser(lambda ask: Leave(granted=allow is True or ask.deed.kind in ("launch", "definitions")))
    user.tell = shown.tell
    async with Host({"house": server or house()}, user=user, audit=book, **options) as host:
        talk = Conversation(HostTools(host), model or PlainModel(), on_event=shown.happened)
        room = ChatRoom(host, talk, shown, read, book, Floor(lambda: shown.warn("a question waits")))
        room.text = screen.getvalue
        yield room


async def said(*lines, **more):
    async with chat(*lines, **more) as room:
        await room.run()
        return room.text()
