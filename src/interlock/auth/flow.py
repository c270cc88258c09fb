"""What a flow of authorization wants done by somebody who has a network, a user and a disk: one small object each.

A flow is a plain generator. It yields a step and is sent what came of it; a step that fails is thrown in where it was
yielded. `yield from` makes a flow of flows, and a test drives one with a `for` loop and no socket.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from ..wire.errors import RemoteError
from ..wire.json.reader import read_members
from .secrets import Hidden

__all__ = ["Ask", "Said", "Prepare", "Visit", "Hold", "Load", "Save", "Step", "Flow", "driven"]

T = TypeVar("T")


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request; what comes back is `Said`, whatever its status.

    `policy` says who wrote the URL: the owner of the client, or a server that named it, which may not send us inwards.
    """

    method: Literal["GET", "POST"] = "GET"
    url: str
    headers: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    json: Any = None
    accept: str = "application/json"
    policy: Literal["typed", "named"] = "named"

    def __repr__(self) -> str:
        """Headers, forms and queries hold secrets."""
        return f"Ask({self.method} {self.url.partition('?')[0]!r})"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered: header names are in small letters."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Said({self.status}, {len(self.body)} bytes)"

    @property
    def media(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def members(self, what: str) -> Hidden[Any]:
        """The body as a JSON object, or `RemoteError`."""
        try:
            return Hidden(read_members(self.body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RemoteError(f"{what}: the answer is no JSON object") from None


class Prepare(msgspec.Struct, frozen=True, kw_only=True):
    """Get ready to hear of a redirect; what comes back is the redirect URI to use, `wanted` if that can be had."""

    wanted: str | None = None


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """Send the user's browser to `url`; what comes back is the URL it was redirected to, with this `state`, as a
    `Secret`: it holds a code."""

    url: str
    state: str

    def __repr__(self) -> str:
        return f"Visit({self.url.partition('?')[0]!r})"


class Hold(msgspec.Struct, frozen=True):
    """From here to the end of the flow this record is ours alone, among all tasks and processes that share it."""

    key: str


class Load(msgspec.Struct, frozen=True):
    """What comes back is the record's bytes, or None."""

    key: str


class Save(msgspec.Struct, frozen=True):
    """Keep these bytes under the key; None: forget them."""

    key: str
    value: bytes | None

    def __repr__(self) -> str:
        return f"Save({self.key!r})"


Step: TypeAlias = Ask | Prepare | Visit | Hold | Load | Save
Flow: TypeAlias = Generator[Step, Any, T]


async def driven(flow: Generator[Step, Any, T], step: Step | None, ask: Callable[[Ask], Awaitable[Said]]) -> T:
    """A flow that has nothing but questions, up to its end; `step` is its first one if it has begun."""
    try:
        step = step or next(flow)
        while True:
            assert isinstance(step, Ask)
            try:
                said = await ask(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(said)
    except StopIteration as end:
        return end.value
    finally:
        flow.close()
