"""What is posted over a set of connections, and what must come back: made anew for every set."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from http_messages import (
    check_progress,
    messages_of,
    prepare_posts,
    prepare_session_posts,
    session_of,
    session_post,
)
from messages import HANDSHAKE, STATELESS, Era, WrongAnswer, check_answers, check_hello

STEPS = 10
_NO_SESSION = b"0123456789abcdef0123456789abcdef"  # as long as one, for an application that does not look at it


@dataclass(frozen=True)
class Load:
    """Requests of given numbers, and the check of their responses: of which, the number of the first, and how many."""

    posts: Callable[[range], list[bytes]]
    check: Callable[[list[bytes], int, int], None]


Exchange = Callable[[bytes], bytes]
"""Posts one request and gives its whole response."""
Talk = Callable[[int, Exchange], Load]
"""What a set of connections does first, at this port, and what it posts then."""


def calls(era: Era) -> Talk:
    """Plain calls; of the handshake era in one session for all connections."""

    def begin(port: int, exchange: Exchange) -> Load:
        def check(responses: list[bytes], first: int, count: int) -> None:
            check_answers(messages_of(responses), first, count, era)

        if era is STATELESS:
            return Load(partial(prepare_posts, port), check)
        return Load(partial(prepare_session_posts, port, open_session(port, exchange)), check)

    return begin


def nothing(era: Era) -> Talk:
    """The same requests for an application that answers all of them with the same bytes."""

    def begin(port: int, exchange: Exchange) -> Load:
        if era is STATELESS:
            return Load(partial(prepare_posts, port), _check_fixed)
        return Load(partial(prepare_session_posts, port, _NO_SESSION), _check_fixed)

    return begin


def slow_calls(era: Era) -> Talk:
    """Calls that tell their progress on the way."""

    def begin(port: int, exchange: Exchange) -> Load:
        def check(responses: list[bytes], first: int, count: int) -> None:
            check_answers(messages_of(responses), first, count, era)
            check_progress(responses, STEPS)

        slow = {"tool": "add_slowly", "progress": True}
        if era is STATELESS:
            return Load(partial(prepare_posts, port, **slow), check)
        return Load(partial(prepare_session_posts, port, open_session(port, exchange), **slow), check)

    return begin


def open_session(port: int, exchange: Exchange) -> bytes:
    response = exchange(session_post(port, HANDSHAKE.hello.rstrip()))
    check_hello(messages_of([response])[0], HANDSHAKE)
    session = session_of(response)
    accepted = exchange(session_post(port, HANDSHAKE.after_hello.rstrip(), session))
    if not accepted.startswith(b"HTTP/1.1 202"):
        raise WrongAnswer(f"the session did not begin: {accepted[:160]!r}")
    return session


def _check_fixed(responses: list[bytes], first: int, count: int) -> None:
    if len(responses) != count or len(set(messages_of(responses))) != 1:
        raise WrongAnswer(f"{len(responses)} of {count} calls were answered, not all with the same bytes")
