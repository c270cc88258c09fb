"""Async tests, each on a loop of its own, bounded in time, leaving nothing behind."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from typing import Any

import pytest

_MAY_STAY = ("interlock-handler", "asyncio_", "asyncio-waitpid-")
DEADLINE = 15.0  # seconds after which a test counts as hung; nothing is measured with it


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
    loop.set_exception_handler(lambda _, context: unhandled.append(str(context.get("exception") or context["message"])))
    before = _descriptors()
    async with asyncio.timeout(DEADLINE) as deadline:
        await test(**arguments)
    assert not deadline.expired(), "the test swallowed the end of its time"
    await _tasks_gone()
    left = [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
    assert not unhandled, f"exceptions nobody retrieved: {unhandled}"
    after = _descriptors()
    assert after <= before, f"descriptors left open: {before} before, {after} after"


async def _tasks_gone() -> None:
    for _ in range(200):
        if len(asyncio.all_tasks()) == 1:
            return
        await asyncio.sleep(0.005)


def _descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


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
