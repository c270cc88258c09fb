"""Ending a process and everything it started: by its group, by descent for those that left the group, and by a mark in
their environment for those that also lost their parent (a daemon that forked twice)."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal

__all__ = ["MARK_VARIABLE", "descendants", "end_marked", "end_strays", "end_tree", "kill_group", "new_mark"]

MARK_VARIABLE = "INTERLOCK_SERVER_MARK"
"""In the environment of a child, inherited by whatever it starts: a mark for each Interlock process above it."""
_MAX_SCANS = 10  # of all processes for those with a mark: one that is being killed may still start others


async def end_tree(
    pid: int,
    exited: asyncio.Event,
    close_seconds: float,
    terminate_seconds: float,
    known: dict[int, str] | None = None,
) -> None:
    """Wait for an exit of its own, then TERM, then KILL. `exited` is set by whoever watches the process.

    `known` are descendants seen before it was asked to go: once their parent is gone nothing says whose they were.
    """
    strays = {**(known or {}), **descendants(pid)}
    if not await _within(exited, close_seconds):
        strays |= descendants(pid)
        _signal_all(pid, strays, signal.SIGTERM)
        if not await _within(exited, terminate_seconds):
            strays |= descendants(pid)
            _signal_all(pid, strays, signal.SIGKILL)
            await _within(exited, 5.0)
    end_strays(strays)


def end_strays(strays: dict[int, str]) -> None:
    """KILL those that are still the processes they were."""
    _signal_all(0, strays, signal.SIGKILL)


def new_mark() -> tuple[str, str]:
    """A mark that no other process has, and the value of `MARK_VARIABLE` that carries it."""
    mark = secrets.token_hex(16)
    return mark, f"{os.environ.get(MARK_VARIABLE, '')} {mark}".strip()


def end_marked(mark: str) -> None:
    """KILL whatever has the mark, unless it gave up its environment or belongs to another user."""
    ended: set[int] = set()
    for _ in range(_MAX_SCANS):
        found = {pid: started for pid, started in _find_marked(mark).items() if pid not in ended}
        if not found:
            return
        end_strays(found)
        ended |= set(found)


def kill_group(pid: int) -> None:
    """KILL what is left of the group this process leads."""
    _signal_all(pid, {}, signal.SIGKILL)


def descendants(pid: int) -> dict[int, str]:
    """Living descendants by pid, each with its start time, so that a reused pid is never mistaken for one."""
    children: dict[int, list[tuple[int, str]]] = {}
    for name in _proc_pids():
        found = _stat(name)
        if found is not None:
            children.setdefault(found[0], []).append((name, found[1]))
    tree: dict[int, str] = {}
    front = [pid]
    while front:
        for child, started in children.get(front.pop(), []):
            if child not in tree:
                tree[child] = started
                front.append(child)
    return tree


async def _within(exited: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await exited.wait()
    except TimeoutError:
        pass
    return exited.is_set()


def _signal_all(leader: int, others: dict[int, str], number: int) -> None:
    if leader:
        try:
            os.killpg(leader, number)
        except (OSError, AttributeError):
            pass  # nobody left in the group
    for pid, started in others.items():
        found = _stat(pid)
        if found is not None and found[1] == started:
            try:
                os.kill(pid, number)
            except OSError:
                pass


def _proc_pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []  # no /proc on this platform: the group has to do


def _find_marked(mark: str) -> dict[int, str]:
    """Living processes with the mark by pid, each with its start time."""
    found: dict[int, str] = {}
    for pid in _proc_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                has_mark = mark.encode() in file.read()
        except OSError:
            continue  # gone, or of another user
        facts = _stat(pid) if has_mark else None
        if facts is not None:
            found[pid] = facts[1]
    return found


def _stat(pid: int) -> tuple[int, str] | None:
    """(parent, start time) of a process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[19].decode()
