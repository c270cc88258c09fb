"""What a host is about to do in its user's name: a deed, the verdict on it, and the error when it may not be done.

A deed holds its arguments as bytes. A rule, a person and the server each get a copy decoded from the same bytes, so
that nothing can change after the decision what was decided on. Members keep the order in which they were given: the
fields of a form are shown as its author wrote them. Deeds are compared by the same bytes with sorted names. All but the
arguments is its matter: the same for every call of a tool, so that what depends on nothing else is looked up once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from ...wire.errors import ConnectionClosed, LocalError
from ...wire.escaping import display
from ...wire.exchange import Principal
from ...wire.json.reader import read_own_json
from ...wire.types.tools import ToolAnnotations

__all__ = [
    "KINDS",
    "Decision",
    "Deed",
    "Denied",
    "Kind",
    "Matter",
    "Scope",
    "ServerGone",
    "Verdict",
    "canonical",
    "keep",
    "matter_of",
]

Kind = Literal[
    "launch",
    "definitions",
    "tool",
    "resource",
    "prompt",
    "completion",
    "sampling",
    "sampling_answer",
    "elicitation",
    "open_url",
    "roots",
]
"""`launch` starts a server, `definitions` takes what it offers for good, from `tool` to `completion` something is sent
to it, and the others answer what it asks."""
KINDS: tuple[Kind, ...] = get_args(Kind)
Decision = Literal["allow", "ask", "deny"]
Scope = Literal["once", "session", "always"]

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_put = object.__setattr__
_MOST_MATTERS = 4096
_LONGEST_KEPT = 1024  # characters of a name or a title, which are a server's
_matters: dict[tuple[object, ...], Matter] = {}


def canonical(value: Any) -> bytes:
    """JSON with sorted names and without spaces. Texts stay as they are, in no normal form of Unicode: two that only
    look alike are two."""
    try:
        return _encode_sorted(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise LocalError(f"this cannot be said in JSON: {display(str(error), 200)}") from error


class Matter(msgspec.Struct, frozen=True, eq=False):
    """What a deed is about, whatever its arguments are. Made by `matter_of`: what is kept for one is found by the thing
    itself, which is why equal ones are the same one."""

    kind: Kind
    server: str
    name: str
    sources: frozenset[str]
    hints: ToolAnnotations | None
    principal: Principal | None
    key: tuple[object, ...]

    @property
    def foreign(self) -> frozenset[str]:
        """The other servers whose data may be in the arguments."""
        return self.sources - {self.server} if self.sources else self.sources


def matter_of(
    kind: Kind,
    server: str,
    name: str,
    sources: frozenset[str] = frozenset(),
    hints: ToolAnnotations | None = None,
    principal: Principal | None = None,
) -> Matter:
    """The same for the same, as long as it is remembered."""
    key = (kind, server, name, sources, None if hints is None else msgspec.structs.astuple(hints), principal)
    found = _matters.get(key)
    if found is None:
        if kind not in KINDS:
            raise LocalError(f"a deed is one of {', '.join(KINDS)}, not {kind!r:.40}")
        own = None if hints is None else msgspec.structs.replace(hints)  # whoever changes theirs does not change it
        found = Matter(kind, server, name, sources, own, principal, key)
        keep(_matters, found, key, found, _MOST_MATTERS)
    return found


def keep(table: dict[Any, Any], matter: Matter, key: object, value: object, most: int) -> None:
    """For the next deed about the same. With more than so many, all are found anew; a name of enormous length, which
    may be any address, is not remembered at all, nor is such a title."""
    title = matter.hints.title if matter.hints is not None else ""
    if len(matter.name) <= _LONGEST_KEPT and len(title or "") <= _LONGEST_KEPT:
        if len(table) >= most:
            table.clear()
        table[key] = value


class Deed:
    """One thing to be done, by whom, at which server, with what, and whose data may be in it.

    `sources` names the servers whose data may be in the arguments. `hints` is what the server says of its own tool,
    and so never a ground to allow anything. Without a `principal` it is the one of the gate it goes through.
    """

    __slots__ = ("matter", "payload", "sorted_payload")

    matter: Matter
    payload: bytes
    """The arguments as JSON, in the order in which they were given."""
    sorted_payload: bytes
    """The same with sorted names: equal for equal arguments."""

    def __init__(
        self,
        kind: Kind,
        server: str,
        name: str,
        arguments: Any = None,
        *,
        sources: Iterable[str] = frozenset(),
        hints: ToolAnnotations | None = None,
        principal: Principal | None = None,
    ) -> None:
        _put(self, "matter", matter_of(kind, server, name, frozenset(sources), hints, principal))
        _put(self, "sorted_payload", canonical(arguments))
        _put(self, "payload", _encode(arguments))

    @classmethod
    def of(cls, matter: Matter, arguments: Any) -> Deed:
        """The same for a matter that is known already."""
        deed = cls.__new__(cls)
        _put(deed, "matter", matter)
        _put(deed, "sorted_payload", canonical(arguments))
        _put(deed, "payload", _encode(arguments))
        return deed

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a deed does not change: use edited() or by() instead of setting {name}")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Deed)
            and self.sorted_payload == other.sorted_payload
            and self.matter.key == other.matter.key
        )

    def __hash__(self) -> int:
        return hash((self.matter.key, self.sorted_payload))

    def __repr__(self) -> str:
        """Without the arguments, which may be secret."""
        return f"<{self}, {len(self.payload)} bytes of arguments>"

    def __str__(self) -> str:
        return f"{self.kind} {display(self.name, 200)!r} of {display(self.server, 100)!r}"

    @property
    def kind(self) -> Kind:
        return self.matter.kind

    @property
    def server(self) -> str:
        return self.matter.server

    @property
    def name(self) -> str:
        return self.matter.name

    @property
    def sources(self) -> frozenset[str]:
        return self.matter.sources

    @property
    def hints(self) -> ToolAnnotations | None:
        return self.matter.hints

    @property
    def principal(self) -> Principal | None:
        return self.matter.principal

    @property
    def foreign(self) -> frozenset[str]:
        """The other servers whose data may be in the arguments."""
        return self.matter.foreign

    @property
    def arguments(self) -> Any:
        """A copy of its own for everyone who asks."""
        return read_own_json(self.payload)

    @property
    def digest(self) -> str:
        """Of the arguments."""
        return hashlib.sha256(self.sorted_payload).hexdigest()

    def edited(self, arguments: Any) -> Deed:
        """The same with other arguments."""
        return self.of(self.matter, arguments)

    def by(self, principal: Principal) -> Deed:
        """The same in the name of `principal`."""
        it = self.matter
        deed = Deed.__new__(Deed)
        _put(deed, "matter", matter_of(it.kind, it.server, it.name, it.sources, it.hints, principal))
        _put(deed, "sorted_payload", self.sorted_payload)
        _put(deed, "payload", self.payload)
        return deed


class Verdict(msgspec.Struct, frozen=True):
    """What a policy says of a deed: the decision, a sentence for people, and the rule it comes from."""

    decision: Decision
    because: str
    rule: str = "default"
    scopes: tuple[Scope, ...] = ("once", "session", "always")
    """For how long a person may give leave, when asked."""


class ServerGone(ConnectionClosed):
    """Its server was stopped or removed while it was being done. `sent` says whether it was sent, where it is known."""

    def __init__(self, server: str, how: str, sent: bool | None = None) -> None:
        super().__init__(f"the server {display(server, 60)!r} was {how} before it answered")
        self.sent = sent


class Denied(LocalError):
    """It may not be done, and was not. `deed` is what, `because` why; `hint` says what to do."""

    hint = "allow it when asked, or by a rule of the policy"

    def __init__(self, deed: Deed, because: str, *, hint: str | None = None, rule: str = "default") -> None:
        super().__init__(f"{deed} was not done: {because}")
        self.deed, self.because, self.rule = deed, because, rule
        if hint is not None:
            self.hint = hint
