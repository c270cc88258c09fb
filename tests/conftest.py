"""Async tests, each on a loop of its own, bounded in time, leaving nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import pytest

from interlock.client.client import _SHARED_VERDICTS
from support import warm
from support.leaks import adopt_orphans, no_leaks
from support.manifest import Listener
from support.watchdog import watched

_MAY_STAY = ("interlock-handler", "asyncio_", "asyncio-waitpid-")
_DEBUG_ONLY = "Error on transport creation for incoming connection"  # a failed handshake, told in development mode only
DEADLINE = 240.0  # seconds after which a test counts as hung; nothing is measured with it
HUNG, INSTALLS = 300.0, 900.0  # the same for what does not come back to its loop; of tests that may have to install


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with watched(INSTALLS if "interop" in item.path.parts else HUNG):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A port may come again with another server at it: what was found out about the last one is not true any more."""
    _SHARED_VERDICTS._found.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_bounded(pyfuncitem.obj, arguments))
    finally:
        try:
            loop.run_until_complete(_clean_up())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
    return True


async def _clean_up() -> None:
    """Like the end of `asyncio.run`, but a task that never ends fails one test instead of hanging them all."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        _, deaf = await asyncio.wait(rest, timeout=10)
        assert not deaf, f"tasks that do not end: {deaf}"
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.get_running_loop().shutdown_default_executor()


async def _bounded(test: Any, arguments: dict[str, Any]) -> None:
    unhandled: list[str] = []
    loop = asyncio.get_running_loop()

    def keep(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context["message"] != _DEBUG_ONLY:
            unhandled.append(str(context.get("exception") or context["message"]))

    loop.set_exception_handler(keep)
    async with asyncio.timeout(DEADLINE) as deadline:
        await test(**arguments)
    assert not deadline.expired(), "the test swallowed the end of its time"
    await _tasks_gone()
    left = [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
    assert not unhandled, f"exceptions nobody retrieved: {unhandled}"


async def _tasks_gone() -> None:
    end = asyncio.get_running_loop().time() + 10
    while len(asyncio.all_tasks()) > 1 and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Synchronous or not: a test ends the processes that it started, and closes what it opened."""
    with no_leaks():
        yield


@pytest.fixture(autouse=True)
def no_threads_left() -> Any:
    """Handler threads may idle; anything else that a test started must be gone."""
    before = set(threading.enumerate())
    yield
    started = [thread for thread in threading.enumerate() if thread not in before]
    foreign = [thread for thread in started if not thread.name.startswith(_MAY_STAY)]
    for thread in foreign:
        thread.join(10)  # one that has told its news may still be on its last step
    left = [thread.name for thread in foreign if thread.is_alive()]
    assert not left, f"threads left behind: {left}"


@pytest.fixture(scope="session", autouse=True)
def process_wide() -> None:
    """Before the first test, so that no test is blamed for it: libuv keeps a pipe from its first loop on."""
    adopt_orphans()
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.new_event_loop().close()


@pytest.fixture(scope="session", autouse=True)
def warm_servers(request: pytest.FixtureRequest) -> Any:
    """Where one is wanted: before the first test, so that no test is blamed for its socket."""
    wanted = any(_params(item).get("carrier") == "stdio" for item in request.session.items)
    with warm.nursery() if wanted and hasattr(os, "pidfd_open") else contextlib.nullcontext():
        yield


# --- a share of the cases, where all of them say the same again -------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells do with jobs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Listener(), Listener.__name__)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, help="of a test's many cases run every so-manieth, one at least")
    parser.addoption("--all-cases", action="store_true", help="run over stdio what runs over memory, case by case")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Which cases are left out, so that all tests fit into the time that somebody waits for them."""
    kept = {item.nodeid for item in _every(items, config.getoption("--every"), _function)}
    if not config.getoption("--all-cases"):
        # A process per case: the carrier is shown by one case in each revision, what it carries by all over memory.
        piped = [item for item in items if _params(item).get("carrier") == "stdio"]
        once = {item.nodeid for item in _every(piped, len(items), lambda item: f"{_function(item)} {_revision(item)}")}
        kept -= {item.nodeid for item in piped} - once
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def _every(items: list[pytest.Item], step: int, name_of: Callable[[pytest.Item], str]) -> Iterator[pytest.Item]:
    """Of those with the same name every so-manieth, from a place that differs by name, so that all kinds take turns."""
    named: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        named[name_of(item)].append(item)
    for name, several in named.items():
        yield from several[crc32(name.encode()) % min(step, len(several)) :: step]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _revision(item: pytest.Item) -> str:
    return str(_params(item).get("revision"))


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}
