"""transport/event_loop.py: a loop that ends with its work."""

import asyncio
import gc
from contextlib import contextmanager

import pytest

from interlock.transport.event_loop import run_main, set_aside


def test_it_runs_to_the_end_and_leaves_no_loop():
    loops = []

    async def main():
        loops.append(asyncio.get_running_loop())

    run_main(main())
    assert loops[0].is_closed()


def test_what_is_left_is_cancelled():
    seen = []

    async def rest():
        try:
            await asyncio.sleep(1000)
        finally:
            seen.append("cancelled")

    async def main():
        main.task = asyncio.ensure_future(rest())
        await asyncio.sleep(0)

    run_main(main())
    assert seen == ["cancelled"]


def test_a_task_that_does_not_end_does_not_keep_it_and_is_told_once(caplog):
    async def deaf():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    async def main():
        main.task = asyncio.ensure_future(deaf())
        await asyncio.sleep(0)

    run_main(main())
    del main.task
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "! 1 tasks did not let themselves be cancelled: the process ends without them"
    ]


def test_an_end_that_a_cancellation_began_is_cancelled_too():
    seen = []

    async def orderly():
        try:
            await asyncio.sleep(1000)
        finally:
            try:
                await asyncio.sleep(1000)
            finally:
                seen.append("gone")

    async def main():
        main.task = asyncio.ensure_future(orderly())
        await asyncio.sleep(0)

    run_main(main())
    assert seen == ["gone"]


def test_an_error_of_the_work_is_raised():
    async def main():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_main(main())


def test_the_loop_may_be_another():
    made = []

    def new_loop():
        made.append(asyncio.new_event_loop())
        return made[0]

    async def main():
        assert asyncio.get_running_loop() is made[0]

    run_main(main(), new_loop)
    assert made[0].is_closed()


def test_a_watcher_is_there_from_the_beginning_to_the_end():
    said = []

    class Watcher:
        @contextmanager
        def watch(self, loop):
            said.append(loop.is_running())
            yield
            said.append(loop.is_closed())

    async def work():
        said.append("work")

    run_main(work(), watcher=Watcher())
    assert said == [False, "work", False]


@pytest.fixture
def usual():
    """The collector as Python's first versions with all of this had it, whatever runs these tests."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.parametrize("clean", [True, False])
def test_what_is_there_at_the_beginning_is_set_aside_until_the_end(usual, clean):
    seen = []

    async def main():
        set_aside(clean=clean)
        seen.extend([gc.get_freeze_count(), gc.get_threshold()])

    run_main(main())
    assert seen[0] > 0 and seen[1] == (10_000, 10, 10)
    assert gc.get_freeze_count() == 0 and gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("young", [0, 300, 50_000])
def test_what_the_author_has_chosen_stays_so(usual, young):
    gc.freeze()
    gc.set_threshold(young, 5, 5)
    before = gc.get_freeze_count()

    async def main():
        set_aside()
        assert gc.get_freeze_count() <= before and gc.get_threshold() == (young, 5, 5)

    run_main(main())
    assert 0 < gc.get_freeze_count() <= before and gc.get_threshold() == (young, 5, 5)
