"""client/sync/loop_thread.py: one loop in a thread, shared, ended with its last user."""

import asyncio
import subprocess
import sys
import threading

import pytest

from interlock.client.sync.loop_thread import LoopThread, shared_loop
from interlock.wire.errors import ConnectionClosed, LocalError


async def nothing():
    return threading.current_thread().name


def test_it_lives_from_the_first_user_to_the_last():
    loop = LoopThread()
    loop.join(1, nothing)
    loop.join(2, nothing)
    assert loop.run(nothing()) == "interlock-loop" and not loop.is_here
    loop.leave(1)
    loop.leave(1)
    assert loop.run(nothing()) == "interlock-loop"
    loop.leave(2)
    assert not [thread for thread in threading.enumerate() if thread.name == "interlock-loop"]
    with pytest.raises(LocalError, match="has ended"):
        loop.run(nothing())
    loop.join(3, nothing)
    assert loop.run(nothing()) == "interlock-loop"
    loop.leave(3)


def test_what_still_runs_when_it_ends_is_cancelled_and_told():
    loop = LoopThread()
    loop.join(1, nothing)
    running, told = threading.Event(), []

    async def endless():
        running.set()
        await asyncio.Event().wait()

    def wait():
        with pytest.raises(ConnectionClosed) as error:
            loop.run(endless())
        told.append(error.value)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert running.wait(20)
    loop.leave(1)
    waiting.join(20)
    assert len(told) == 1


def test_what_interrupts_the_wait_cancels_the_work():
    loop = LoopThread()
    loop.join(1, nothing)
    cancelled = threading.Event()
    main = threading.main_thread().ident

    async def work():
        import signal

        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        loop.run(work())
    assert cancelled.wait(20)
    loop.leave(1)


def test_it_knows_its_own_thread():
    loop = LoopThread()
    loop.join(1, nothing)

    async def look():
        loop.leave(1)  # from inside: it ends without waiting for itself
        return loop.is_here

    assert loop.run(look()) is False  # it is not the thread of that loop any more
    assert shared_loop() is shared_loop()


PROGRAM = """
import os, sys
from interlock.client.sync.loop_thread import shared_loop
from interlock.wire.errors import LocalError
async def closing(): print("closed", flush=True)
async def nothing(): pass
loop = shared_loop()
loop.join(1, closing)
loop.run(nothing())
pid = os.fork()
if not pid:
    try:
        loop.run(nothing())
    except LocalError as error:
        print("fork:", "forked process" in str(error), flush=True)
    assert shared_loop() is not loop
    sys.exit(0)
os.waitpid(pid, 0)
"""


def test_what_is_open_is_closed_at_exit_by_its_owner_and_not_by_a_fork():
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM]  # newer ones warn of forks with threads
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("fork: True\nclosed\n", "")
