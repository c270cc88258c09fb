"""What the other side is told when author code fails: words meant for it, or a reference to what the log holds.

Three channels, always: the caller reads the text of a `ToolError` or a reference, the log gets the traceback under the
same reference, and nothing of the inside travels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from os import urandom
from typing import Any, cast

from ..wire.errors import Refused, ResourceNotFound, ToolError
from ..wire.escaping import display
from ..wire.exchange import ENDED

__all__ = ["ends_the_run", "failure_text", "reference_to"]

log = logging.getLogger("interlock.server")
_ENDS = (asyncio.CancelledError, GeneratorExit)
_ENDED = (ENDED,)


def failure_text(error: BaseException, kind: str, name: str) -> str:
    """What to tell about a failed tool, prompt or resource.

    Raises again what is no failure of the function: a refusal, and the end of the run itself.
    """
    found = _only(error)
    if kind == "tool" and isinstance(found, ResourceNotFound):  # which the tool looked for, not its caller
        return f"The tool {name} failed: {display(str(found))}"
    if isinstance(found, Refused) or ends_the_run(found):
        try:
            raise found
        finally:
            del error, found  # its traceback holds this frame, which must not hold it: nobody would free the circle
    words = _words(found)
    if words == "":
        words = f"The {kind} {name} failed"
    if words is None:
        words = f"The {kind} {name} failed unexpectedly (reference {reference_to(error, kind, name)})"
    return words


def reference_to(error: BaseException, kind: str, name: str) -> str:
    """Log the traceback under a fresh reference."""
    reference = urandom(4).hex()
    log.error("! %s %s failed (reference %s)", kind, name, reference, exc_info=error)
    return reference


def _only(error: BaseException) -> BaseException:
    """What stands for a group: a `TaskGroup` wraps even the only thing that went wrong. Of several that all are words
    for the caller a refusal does, the first: two questions asked together cannot be asked for the same reason."""
    parts = [*_leaves(error)]
    refusals = [each for each in parts if isinstance(each, Refused)]
    if refusals and all(isinstance(each, Refused | ToolError) for each in parts):
        return refusals[0]
    return parts[0] if len(parts) == 1 else error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(each)


def _words(error: BaseException) -> str | None:
    """The words meant for the model, if the failure is made of such words alone."""
    if isinstance(error, BaseExceptionGroup):
        parts = [_words(each) for each in cast("BaseExceptionGroup[Any]", error).exceptions]
        return "\n".join(part for part in parts if part) if all(part is not None for part in parts) else None
    if not isinstance(error, ToolError):
        return None
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # it may raise anything, as may the code that raised it
        return None  # words that cannot be had: a bug like any other


def ends_the_run(error: BaseException) -> bool:
    """True when the edge cancelled this run, or its loop threw it away; an author may raise the same types himself."""
    if not isinstance(error, _ENDS):
        return False
    if error.args == _ENDED:
        return True
    try:
        task = asyncio.current_task(asyncio.get_running_loop())
    except RuntimeError:
        return True  # no loop runs: the coroutine is being closed
    return task is None or (isinstance(error, asyncio.CancelledError) and task.cancelling() > 0)
