"""transport/stdio/process_tree.py: nobody of a tree survives, nobody outside of it is touched."""

import asyncio
import os
import signal
import subprocess
import sys

from interlock.transport.stdio.process_tree import descendants, end_tree, kill_group

# Starts itself `depth` times, each in a session of its own if told so; says its pids, then waits for ever.
TREE = """
import os, signal, subprocess, sys, time
depth, apart, stubborn = int(sys.argv[1]), sys.argv[2] == "apart", sys.argv[3] == "stubborn"
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
pids = [os.getpid()]
if depth:
    child = subprocess.Popen([sys.executable, "-S", "-c", sys.argv[4], str(depth - 1), *sys.argv[2:]],
        stdout=subprocess.PIPE, start_new_session=apart)
    pids += map(int, child.stdout.readline().split())
print(*pids, flush=True)
signal.pause()
while True:
    signal.pause()
"""


class Tree:
    """A tree of processes, seen by the one who started it."""

    def __init__(self, depth=0, apart=False, stubborn=False):
        words = [str(depth), "apart" if apart else "together", "stubborn" if stubborn else "obedient"]
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", TREE, *words, TREE], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdout
        self.pids = [int(word) for word in self.process.stdout.readline().split()]
        self.pid = self.process.pid
        self.exited = asyncio.Event()
        self.fd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self.fd, self._has_exited)

    def _has_exited(self):
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)
        self.process.wait()
        self.process.stdout.close()
        self.exited.set()

    async def end(self, close=0.05, terminate=0.05):
        await end_tree(self.pid, self.exited, close, terminate)

    async def gone(self):
        """All of them are gone; waits for the kernel, the test is bounded."""
        await self.exited.wait()
        while any(alive(pid) for pid in self.pids):
            await asyncio.sleep(0.01)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


async def test_one_that_goes_by_itself_is_not_signalled():
    tree = Tree()
    tree.process.send_signal(signal.SIGKILL)  # stands for an exit of its own
    await tree.end(close=60)
    assert tree.process.returncode == -signal.SIGKILL


async def test_one_that_stays_is_told_to_terminate():
    tree = Tree()
    await tree.end(terminate=60)
    assert tree.process.returncode == -signal.SIGTERM


async def test_one_that_ignores_it_is_killed():
    tree = Tree(stubborn=True)
    await tree.end()
    await tree.exited.wait()
    assert tree.process.returncode == -signal.SIGKILL


async def test_the_whole_group_goes():
    tree = Tree(depth=2, stubborn=True)
    assert len(tree.pids) == 3
    await tree.end()
    await tree.gone()


async def test_those_who_left_the_group_go_too():
    tree = Tree(depth=2, apart=True, stubborn=True)
    await tree.end()
    await tree.gone()


async def test_those_who_left_the_group_of_an_obedient_leader_go_too():
    # The leader exits on TERM; its stubborn child in another session would be an orphan for ever.
    tree = Tree(depth=1, apart=True)
    await tree.end(terminate=60)
    await tree.gone()


async def test_a_group_is_killed_without_asking():
    tree = Tree(depth=1, stubborn=True)
    kill_group(tree.pid)
    await tree.gone()
    kill_group(tree.pid)  # nobody is there any more, and that is fine


async def test_a_stranger_is_left_alone():
    stranger, tree = Tree(), Tree(depth=1)
    await tree.end(terminate=60)
    await tree.gone()
    assert alive(stranger.pid)
    kill_group(stranger.pid)
    await stranger.gone()


async def test_descendants_are_found_through_generations_and_sessions():
    tree = Tree(depth=3, apart=True)
    found = descendants(tree.pid)
    assert set(found) == set(tree.pids[1:])
    assert all(found.values())
    assert tree.pid not in found
    await tree.end()
    await tree.gone()


def test_nobody_descends_from_one_that_is_not_there():
    assert descendants(2**22 + 1) == {}


async def test_a_reused_pid_is_never_signalled(monkeypatch):
    # Somebody else got the pid of a stray meanwhile: its start time tells.
    bystander = Tree()
    tree = Tree()
    from interlock.transport.stdio import process_tree

    monkeypatch.setattr(process_tree, "descendants", lambda pid: {bystander.pid: "0"})
    await tree.end(terminate=60)
    assert alive(bystander.pid)
    monkeypatch.undo()
    kill_group(bystander.pid)
    await bystander.gone()


async def test_without_proc_the_group_has_to_do(monkeypatch):
    tree = Tree(depth=1)
    listdir = os.listdir

    def no_proc(path):
        if path == "/proc":
            raise FileNotFoundError(path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", no_proc)
    assert descendants(tree.pid) == {}
    await tree.end(terminate=60)
    monkeypatch.undo()
    await tree.gone()
