"""One typed error for each failure, with all that is known about it (design: errors).

What went wrong is said where it happened. What only the client knows is added here: that it was the opening that
failed, and what a server process wrote to its stderr before.
"""

from __future__ import annotations

from typing import Any

from ..wire.errors import (
    AuthorizationFailed,
    CallTimeout,
    ConnectionEnded,
    HandshakeFailed,
    HttpStatus,
    InterlockError,
    LocalError,
    PeerClosed,
    Refused,
    RemoteError,
    SpawnFailed,
)

__all__ = ["explained", "name_withheld", "opening_error"]


def opening_error(error: InterlockError) -> InterlockError:
    """What an opening failed with. A server that refuses to begin, or begins with nonsense, is one failure."""
    if isinstance(error, HandshakeFailed | HttpStatus | AuthorizationFailed) or not isinstance(
        error, RemoteError | Refused
    ):
        return error
    failed = HandshakeFailed(f"the server was reached, and did not begin as MCP servers do: {error}")
    failed.__cause__ = error
    failed.hint = vars(error).get("hint", failed.hint)  # what was found out on the way says more
    return failed


def name_withheld(error: InterlockError, channel: Any) -> InterlockError:
    """The same error of an opening, with the variables that the process was not given: one of them may be the cause."""
    withheld = getattr(channel, "withheld", None)
    if withheld is not None and not error.withheld and isinstance(error, ConnectionEnded | CallTimeout):
        error.withheld = withheld(error.stderr)
        if error.withheld and not isinstance(error, PeerClosed):  # that one shows it itself
            error.add_note(error.describe_withheld())
    return error


def explained(error: InterlockError, channel: Any) -> InterlockError:
    """The same error, with what the process behind `channel` said last, where there is one and it may matter."""
    tail = getattr(channel, "stderr_tail", None)
    ours = isinstance(error, LocalError) and not isinstance(error, TimeoutError)
    if tail is None or error.stderr or ours or isinstance(error, Refused | SpawnFailed):
        return error
    error.stderr = tail()
    if error.stderr and not isinstance(error, PeerClosed):  # that one says it itself
        error.add_note(f"--- the last lines of the server's stderr ---\n{error.stderr}")
    return error
