"""The examples as their users run them: as processes, over stdio or HTTP; and what their tests share."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import interlock
from interlock import Client, Refused
from interlock.protocol.client.probe import Verdicts

from .warm_channel import warm_or_cold
from .wire_peer import MODERN

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCE = str(Path(interlock.__file__).resolve().parents[1])
SECONDS = 30.0  # until something that never comes is reported


def command(example: str, **variables: str | os.PathLike[str]) -> list[str]:
    """Said in the command itself, so that a child loads the very code that is tested."""
    given = [f"{name}={os.fspath(value)}" for name, value in variables.items()]
    return ["env", f"PYTHONPATH={SOURCE}", *given, sys.executable, "-m", "interlock", "run", str(EXAMPLES / example)]


def process(example: str, **variables: str | os.PathLike[str]) -> Any:
    """The same for a client that need not see it start."""
    given = {name: os.fspath(value) for name, value in variables.items()}
    return warm_or_cold(EXAMPLES / example, command(example, **variables), given)


def script(example: str, argument: str | os.PathLike[str]) -> list[str]:
    """The example run by Python itself, with an argument."""
    return ["env", f"PYTHONPATH={SOURCE}", sys.executable, str(EXAMPLES / example), os.fspath(argument)]


def loaded(example: str) -> ModuleType:
    """The example in this process, afresh: what one test does to it no other sees."""
    spec = importlib.util.spec_from_file_location(f"example_{example.removesuffix('.py')}", EXAMPLES / example)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ears:
    """Hears what a server says unasked: give it to a client as `on_notification`."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []
        self._more = asyncio.Event()

    def __call__(self, method: str, params: dict[str, Any]) -> None:
        self.all.append((method, params))
        self._more.set()

    async def until(self, method: str, **members: Any) -> dict[str, Any]:
        """Wait for a notification with these members; what came before it is forgotten."""
        async with asyncio.timeout(SECONDS):
            while True:
                while self.all:
                    name, params = self.all.pop(0)
                    if name == method and members.items() <= params.items():
                        return params
                self._more.clear()
                await self._more.wait()


def connect(target: Any, revision: str | None, **options: Any) -> Client:
    """No verdict is remembered: every client finds out for itself."""
    return Client(target, revision=revision, verdicts=Verdicts(), **options)


@asynccontextmanager
async def watching(client: Client, ears: Ears, *uris: str, lists: tuple[str, ...] = ()) -> AsyncIterator[None]:
    """Subscribe as the revision does it. `lists` are kinds of lists to hear of (`toolsListChanged`)."""
    if client.revision not in MODERN:  # where lists are told of unasked
        for uri in uris:
            await client.request("resources/subscribe", {"uri": uri})
        yield
        for uri in uris:
            await client.request("resources/unsubscribe", {"uri": uri})
        return
    wanted = {"resourceSubscriptions": list(uris)} | dict.fromkeys(lists, True)
    listen = client.request("subscriptions/listen", {"notifications": wanted}, on_notification=ears)
    listening = asyncio.ensure_future(listen)
    try:
        await ears.until("notifications/subscriptions/acknowledged")
        yield
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def refusal(call: Any) -> str:
    """The words in which a call was refused, as a result or as an error: revisions differ in that."""
    try:
        result = await call
    except Refused as refused:
        return refused.message
    assert result.is_error, result
    return result.text


def answering(**content: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A user who fills in every form like this."""
    return lambda params: {"action": "accept", "content": content}
