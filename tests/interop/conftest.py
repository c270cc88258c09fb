"""What the interop tests share: the interpreters of their peers, and connections to their servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interop.environments import PEERS, PINS, RegistryUnreachable, node_project, python_of, script_in, unavailable
from interop.told import served


@pytest.fixture(scope="session")
def peer_python() -> Callable[[str], str]:
    """The interpreter of a peer's environment, by the peer's name; each is looked at once per run."""
    found: dict[str, str | RegistryUnreachable] = {}

    def python(name: str) -> str:
        if name not in found:
            try:
                found[name] = python_of(name, PINS[name])
            except RegistryUnreachable as reason:
                found[name] = reason
        outcome = found[name]
        return unavailable(outcome) if isinstance(outcome, RegistryUnreachable) else outcome

    return python


@pytest.fixture(scope="session")
def typescript() -> Callable[..., list[str]]:
    """The command that runs a script of the TypeScript peers; the files that it reads are put beside it."""

    @cache
    def project() -> tuple[str, Path] | RegistryUnreachable:
        try:
            return node_project()
        except RegistryUnreachable as reason:
            return reason

    def command(script: str, *read: str) -> list[str]:
        outcome = project()
        if isinstance(outcome, RegistryUnreachable):
            unavailable(outcome)
        node, folder = outcome
        for name in read:
            script_in(folder, name)
        return [node, script_in(folder, script)]

    return command


@pytest.fixture(scope="module")
def http_server(
    peer_python: Callable[[str], str], typescript: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, str], str]]:
    """Where the server of a peer is, by the form of its transport; each is started once."""
    found: dict[tuple[str, str], str] = {}

    def command(peer: str, form: str) -> list[str]:
        if peer.startswith("ts"):
            return [*typescript("ts_server.mjs", "over_http.mjs"), peer.removeprefix("ts"), form]
        return [peer_python(peer), str(PEERS / "over_http.py"), f"{peer}_server", form]

    with ExitStack() as running:

        def address(peer: str, form: str) -> str:
            if (peer, form) not in found:
                said = tmp_path_factory.mktemp("said") / form
                found[peer, form] = running.enter_context(served(command(peer, form), said, lasting=True))
            return found[peer, form]

        yield address


@pytest.fixture
def peer() -> str:
    """Whose server it is, where a test does not say: the only one that speaks every revision."""
    return "mcp2"


@pytest.fixture
def dial(peer: str, peer_python: Callable[[str], str]) -> Any:
    """Connect to the server of the peer. No verdict is remembered: every client finds out for itself."""
    command = [peer_python(peer), str(PEERS / f"{peer}_server.py")]

    def connect(revision: str | None, **options: Any) -> Client:
        return Client(command, revision=revision, verdicts=Verdicts(), **options)

    return connect
