"""server/failures.py: words for the other side, or a reference to the log."""

import asyncio
import contextlib
import gc
import logging
import weakref

import pytest

from interlock.server.failures import ends_the_run, failure_text, reference_to
from interlock.wire.errors import CannotAsk, Refused, ResourceNotFound, ToolError
from interlock.wire.exchange import ENDED


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class UnspeakableToolError(ToolError):
    def __str__(self):
        raise RuntimeError("no words")


class DeadlyToolError(ToolError):
    def __str__(self):
        raise SystemExit(1)


class Odd(BaseException):
    """Of nobody's family."""


def told(error):
    return failure_text(error, "tool", "t")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret"),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        Odd("secret"),
        Unspeakable(),
        UnspeakableToolError(),
        DeadlyToolError(),
        ExceptionGroup("secret", [ValueError("secret"), ToolError("told")]),
        BaseExceptionGroup("secret", [SystemExit("secret")]),
        RecursionError("secret"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_bug_is_a_reference_and_a_traceback_in_the_log(error, caplog):
    with caplog.at_level(logging.ERROR, "interlock.server"):
        text = told(error)
    reference = text.removeprefix("The tool t failed unexpectedly (reference ").removesuffix(")")
    assert len(reference) == 8 and int(reference, 16) >= 0 and "secret" not in text
    [record] = caplog.records
    assert reference in record.getMessage() and record.exc_info[1] is error
    assert "Traceback" in caplog.text or type(error).__name__ in caplog.text


async def test_words_meant_for_the_model_reach_it(caplog):
    assert told(ToolError("out of paper")) == "out of paper"
    assert told(ToolError("half \ud800")) == "half \\ud800"
    assert not caplog.records


async def test_a_group_of_one_is_that_one():
    assert told(ExceptionGroup("g", [ExceptionGroup("h", [ToolError("inner")])])) == "inner"
    with pytest.raises(CannotAsk):
        told(ExceptionGroup("g", [CannotAsk("no")]))


async def test_a_group_of_words_is_all_of_them(caplog):
    assert told(
        ExceptionGroup("g", [ToolError("one"), ExceptionGroup("h", [ToolError("two"), ToolError("three")])])
    ) == ("one\ntwo\nthree")
    assert not caplog.records


async def test_a_refusal_stands_for_a_group_of_words_and_refusals(caplog):
    with pytest.raises(CannotAsk, match="first"):
        told(
            ExceptionGroup("g", [ToolError("said no"), ExceptionGroup("h", [CannotAsk("first"), CannotAsk("second")])])
        )
    assert not caplog.records
    assert "reference" in told(ExceptionGroup("g", [CannotAsk("first"), ValueError("secret")]))


async def test_a_refusal_goes_on():
    with pytest.raises(Refused):
        told(Refused("no", code=5))


async def test_a_cancellation_of_the_authors_own_is_a_failure(caplog):
    assert "reference" in told(asyncio.CancelledError())
    assert "reference" in told(GeneratorExit())
    assert len(caplog.records) == 2


async def test_the_cancellation_of_the_run_goes_on():
    async def run():
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            told(error)

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_end_of_a_run_that_asks_goes_on_though_its_task_is_not_cancelled():
    with pytest.raises(asyncio.CancelledError):
        told(asyncio.CancelledError(ENDED))


def test_what_is_thrown_away_with_its_loop_goes_on(caplog):
    async def run():
        try:
            await asyncio.sleep(3600)
        except BaseException as error:
            told(error)

    coroutine = run()
    loop = asyncio.new_event_loop()
    try:
        loop.call_soon(loop.stop)
        task = loop.create_task(coroutine)
        loop.run_forever()
    finally:
        task._log_destroy_pending = False
        loop.close()
    del task
    coroutine.close()
    assert not caplog.records


def test_a_reference_is_fresh_each_time(caplog):
    assert reference_to(ValueError(), "prompt", "p") != reference_to(ValueError(), "prompt", "p")
    assert "prompt p failed" in caplog.messages[0]


def test_a_failure_without_words_is_told_as_one():
    assert told(ToolError()) == told(ToolError("")) == "The tool t failed"


def test_a_resource_that_a_tool_looked_for_in_vain_is_its_failure():
    assert told(ResourceNotFound("No such book\x1b")) == "The tool t failed: No such book\\x1b"
    with pytest.raises(ResourceNotFound):
        failure_text(ResourceNotFound("No such book"), "resource", "a:b")


def test_what_is_raised_again_is_freed_when_it_was_handled():
    seen = []

    def made():
        error = CannotAsk("no")
        seen.append(weakref.ref(error))
        return error

    gc.disable()
    try:
        with contextlib.suppress(CannotAsk):
            failure_text(made(), "tool", "t")
        assert [ref() for ref in seen] == [None]
    finally:
        gc.enable()


async def test_outside_of_every_task_the_run_is_over():
    """What a loop calls back, such as a coroutine that is closed there, belongs to no task."""
    loop = asyncio.get_running_loop()
    found, seen = loop.create_future(), []
    loop.call_soon(lambda: found.set_result(0))
    loop.call_soon(lambda: seen.append(ends_the_run(asyncio.CancelledError())))
    await found
    await asyncio.sleep(0)
    assert seen == [True]
    assert not ends_the_run(asyncio.CancelledError()), "in a task that nobody cancelled an author raised it"
