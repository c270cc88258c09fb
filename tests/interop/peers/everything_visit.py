"""What the clients of the Python SDKs do with examples/everything.py: all they can. Told by saw.py.

What they call is in everything_visit.json, which ts_everything_client.mjs reads too. The official SDKs 1.x and 2.x call
their verbs alike; where they differ a `Words` says it.
"""

import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

import anyio
from saw import Saw

PLAN: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
WATCHED: str = PLAN["watched"]


class Words(Protocol):
    def prompt(self, name: str) -> Any: ...
    def template(self, uri: str) -> Any: ...
    def give_up(self) -> Awaitable[None]:
        """Withdraw the newest call, where the SDK does not do it for a caller that is cancelled."""
        ...


def filled(asked: dict[str, Any]) -> dict[str, Any]:
    """A form as a user would fill it in: what is proposed, else the first choice, else something."""
    return {name: _value(field) for name, field in asked["requestedSchema"]["properties"].items()}


def _value(field: dict[str, Any]) -> Any:
    if field["type"] == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    return field.get("default", field.get("enum", [PLAN["samples"][field["type"]]])[0])


async def visit(client: Any, saw: Saw, words: Words) -> None:
    for part in (lists, calls, speaking, asked, reads, prompts, completions, gives_up):
        await part(client, saw, words)


async def lists(client: Any, saw: Saw, words: Words) -> None:
    for name, method in (
        ("tools", client.list_tools),
        ("prompts", client.list_prompts),
        ("templates", client.list_resource_templates),
    ):
        await saw.step(name, method())
    pages, cursor = [], None
    while True:
        page = await saw.step("page", client.list_resources(cursor=cursor))
        pages.append([str(resource.uri) for resource in page.resources])
        facts = [resource for resource in page.resources if str(resource.uri) == "more://facts"]
        if facts:
            saw.note("facts", facts[0])
        cursor = saw.record["page"].get("nextCursor")
        if cursor is None:
            break
    saw.note("pages", pages)


async def calls(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in PLAN["tools"]:
        await saw.step(name, client.call_tool(name, arguments))


async def speaking(client: Any, saw: Saw, words: Words) -> None:
    steps: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])

    for name in PLAN["speaking"]:
        await saw.step(name, client.call_tool(name, {}, progress_callback=on_progress))
        saw.note(f"progress of {name}", list(steps))
        steps.clear()
    await saw.step("set level", client.set_logging_level("debug"))
    for name in PLAN["logging"]:
        await saw.step(name, client.call_tool(name, {}))


async def asked(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in PLAN["asking"]:
        before = len(saw.asked)
        await saw.step(name, client.call_tool(name, arguments))
        saw.note(f"asked by {name}", saw.asked[before:])


async def reads(client: Any, saw: Saw, words: Words) -> None:
    for uri in PLAN["read"]:
        await saw.step(uri, client.read_resource(uri))


async def prompts(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in PLAN["prompts"]:
        await saw.step(name, client.get_prompt(name, arguments))


async def completions(client: Any, saw: Saw, words: Words) -> None:
    for name, of, argument, value, known in PLAN["completions"]:
        ref = words.prompt(of["prompt"]) if "prompt" in of else words.template(of["template"])
        await saw.step(f"complete {name}", client.complete(ref, {"name": argument, "value": value}, known))


async def gives_up(client: Any, saw: Saw, words: Words) -> None:
    begun = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: client.call_tool("hold", {"name": "a"}, progress_callback=on_progress))
        await begun.wait()
        await words.give_up()
        group.cancel_scope.cancel()
    await saw.step("was_stopped", client.call_tool("was_stopped", {"name": "a"}))


async def changes_of_the_session(client: Any, saw: Saw) -> None:
    """Change notices of the handshake era. Over HTTP they come on another stream than the answers: waited for."""
    await saw.step("subscribe", client.subscribe_resource(WATCHED))
    for name, arguments in PLAN["changes"]:
        await client.call_tool(name, arguments)
    with anyio.move_on_after(10):
        while "notifications/resources/updated" not in saw.notices:
            await anyio.sleep(0.01)
    await saw.step("unsubscribe", client.unsubscribe_resource(WATCHED))
    await client.call_tool("touch", {"uri": WATCHED})
    await client.send_ping()
