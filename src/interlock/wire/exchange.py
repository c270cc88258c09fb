"""The one join of all rooms: a request on its way to an answer.

A server is a `Handler`. A connection to a server is a `Handler`. A `Filter` takes one and gives one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw

from .channel import Outlet, Patience
from .errors import CannotAsk
from .meta import NO_META, RequestMeta
from .types.capabilities import ClientCapabilities
from .types.common import Implementation

if TYPE_CHECKING:
    from .once import Acts

__all__ = [
    "Exchange",
    "Timer",
    "Handler",
    "Work",
    "Filter",
    "Params",
    "Result",
    "Lasting",
    "Among",
    "BadArguments",
    "Peer",
    "HeaderLines",
    "Principal",
    "LOCAL",
    "ANONYMOUS",
    "Question",
    "Silenced",
    "ENDED",
]

Params = Mapping[str, Any]
Result = dict[str, Any]
"""The members of a result in the newest revision's words; values may be plain data, nouns or raw bytes."""


class Lasting(dict[str, Any]):
    """A result that stays true until it is replaced (a list page): edges keep its encoded forms with it.

    Everybody who asks gets the same one, so nobody changes it: who stands around a server changes a copy.
    """

    __slots__ = ("forms",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        super().__init__(members)
        self.forms: dict[Any, Raw] = {}

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this result is shared by all who ask for it: change a copy, {**result}")

    __setitem__ = __delitem__ = pop = popitem = clear = __ior__ = _refuse
    update = setdefault = _refuse  # pyright: ignore[reportAssignmentType] - they are overloads


class Among(dict[str, Any]):
    """Structured output that is an object by chance: its tool may give other JSON values too, and declares so.

    Revisions that know only objects wrap what such a tool gives, always: its listed schema cannot say it otherwise.
    """

    __slots__ = ()


class BadArguments(dict[str, Any]):
    """The result of a tool call whose arguments do not fit the tool's schema, for the model to mend. Revisions in
    which that is an error of the protocol refuse the call with its text instead."""

    __slots__ = ()


class Principal(msgspec.Struct, frozen=True):
    """Who is accountable for a request. Part of every session, stream, cache and seal key."""

    issuer: str
    subject: str
    client: str = ""


LOCAL = Principal("interlock", "local")  # stdio and memory: whoever owns the process
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
ANONYMOUS = Principal("interlock", "anonymous")  # HTTP without authorization


class HeaderLines(Protocol):
    """The headers of a request, as its carrier keeps them."""

    def as_text(self) -> dict[str, str]: ...


class Peer(msgspec.Struct, eq=False):
    """Who asks, as far as this one request tells."""

    info: Implementation | None = None
    capabilities: ClientCapabilities = msgspec.field(default_factory=ClientCapabilities)
    principal: Principal = LOCAL
    log_level: str | None = None
    lines: HeaderLines | None = None
    """Over HTTP; `headers` reads them when somebody wants to see them."""
    log_meter: Any = None
    """Counts the log messages sent to it; None before the first one (protocol/throttling.py)."""

    @property
    def name(self) -> str:
        return self.info.name if self.info else "unknown"

    @property
    def version(self) -> str:
        return self.info.version if self.info else "unknown"

    @property
    def headers(self) -> Mapping[str, str]:
        """Of this very request, their names in small letters; none where the carrier has no headers."""
        return _NO_HEADERS if self.lines is None else MappingProxyType(self.lines.as_text())

    def can(self, path: str) -> bool:
        """Did the client declare `sampling`, `elicitation.url`, …?"""
        return self.capabilities.can(path)


class Question(msgspec.Struct, frozen=True):
    """Something only the client's side can answer: elicitation, sampling or roots."""

    method: str
    params: dict[str, Any]
    needs: tuple[str, ...] = ()
    """The client capabilities without which it must not be asked."""
    key: str | None = None
    """Names it in every round; derived from the question itself where nobody chose one."""
    check: Callable[[Result], None] | None = None
    """Raises `InvalidParams` for an answer that does not fit, beyond its shape."""
    identity: bytes = b""
    """What stands for its method and params, where somebody has it ready: the same for equal ones and for no others."""


ENDED = "this run was ended: its client is asked"
"""What a `CancelledError` says that ends a run for no other reason; its task need not be cancelled for it."""


class Timer(Protocol):
    """Bounds a run. It stands still while the other side is asked: their time is not the run's."""

    deadline: float

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Exchange:
    """One request. What is said through `notify` and `ask` rides with it and cannot pick a wrong stream.

    This base speaks to nobody; the edges and the callers derive the ones that do.
    """

    __slots__ = (
        *("_done", "home", "live", "meta", "method", "outlet", "params", "patience", "peer", "raw"),
        *("redact", "timer"),
    )

    timer: Timer | None
    """None, or not there at all, unless the run is bounded."""
    redact: Callable[[Any], Any]
    """What is done to log messages instead of the usual (redaction.py); not there where nobody says."""
    home: Any
    """What the server that answers it keeps for its handlers; that server sets it."""
    outlet: Any
    """What carries it: the connection, or over HTTP this request alone; None where that does not matter."""

    def __init__(
        self,
        method: str,
        params: Any,
        *,
        peer: Peer,
        raw: Raw | None = None,
        meta: RequestMeta = NO_META,
        patience: Patience | None = None,
        outlet: Outlet | None = None,
    ) -> None:
        self.method = method
        self.params = params
        """The typed params of the method's row, or a mapping on the calling side."""
        self.raw = raw
        """The params as they came, for whoever forwards or extends them."""
        self.peer = peer
        self.meta = meta
        self.patience = patience
        """How long a caller is ready to wait; None where nobody said."""
        self.outlet = outlet
        self.live = True
        """False once the answer was given or the request cancelled: nothing may be said for it any more."""
        self._done: Acts | None = None

    @property
    def deadline(self) -> float | None:
        """When the run is stopped, by `time.monotonic()`; None where nothing bounds it."""
        timer: Timer | None = getattr(self, "timer", None)
        return None if timer is None else timer.deadline

    def silence(self) -> None:
        self.live = False

    async def notify(self, method: str, params: Params) -> None:
        """Progress and log messages, on this request's own stream."""

    async def release_stream(self, retry_ms: int) -> bool:
        """Let go of this request's stream; its client comes back for the answer after so long. False: it cannot."""
        return False

    async def ask(self, question: Question) -> Result:
        """Elicitation, sampling, roots: whatever only the other side can answer."""
        raise CannotAsk(f"Nobody here can answer {question.method}")

    async def once(self, key: str, act: Callable[[], Any]) -> bytes:
        """What `act` gave, as JSON: done once under this key, for all who ask for it at the same time too."""
        return await self._acts().once(self, key, act)

    def begin_once(self, key: str) -> bytes | None:
        """What was done under this key already, as JSON; None: do it now and say so with `end_once`."""
        return self._acts().begin(key)

    def end_once(self, key: str, result: bytes | None) -> None:
        """It was done, with this result; None: it failed, and counts as not done."""
        self._acts().end(key, result)

    def _acts(self) -> Acts:
        """Made for the few requests that have any."""
        if self._done is None:
            from .once import Acts

            self._done = Acts()
        return self._done


Handler = Callable[[Exchange], Awaitable[Result]]


class Silenced(Protocol):
    """What falls silent when its run is cancelled."""

    def silence(self) -> None: ...


Work = tuple[Coroutine[Any, Any, bytes], Silenced | None]
"""What leads to the bytes of an answer, and the exchange that falls silent when it is cancelled."""
Filter = Callable[[Handler], Handler]
