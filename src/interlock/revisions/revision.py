"""What one revision says, as data. Rows read like the specification's changelog: `previous.evolve(...)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from ..wire.errors import Refused, ResourceNotFound, refusal

__all__ = ["Era", "Revision"]


class Era(Enum):
    HANDSHAKE = "initialize once, then talk both ways"
    STATELESS = "every request says everything, the server never calls back"


class Revision(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One row. Sets say what exists; `unknown` says which members of the newest nouns do not."""

    name: str
    era: Era
    requests: frozenset[str]
    """Methods a client may call."""
    questions: Mapping[str, str]
    """Methods a server may call on the client (or put into inputRequests) → the capability each needs."""
    client_notices: frozenset[str]
    server_notices: frozenset[str]
    server_capabilities: frozenset[str]
    client_capabilities: frozenset[str]
    unknown: frozenset[str]
    """`Noun.member` pairs that this revision does not have; they are dropped on the way out."""
    blocks: frozenset[str]
    """Types of content blocks; others are rewritten as text on the way out."""
    codes: Mapping[type[Refused], int]
    """Error codes that differ from the newest revision's."""
    retired: Mapping[int, int] = {}
    """Codes this revision must not use → what stands for them."""
    reserved: range = range(0)
    """Codes that nobody may give a meaning of his own; an author's is told as an internal error."""
    classes: Mapping[int, type[Refused]]
    """What a code of a peer means here."""
    deprecated: frozenset[str] = frozenset()
    """Methods of features that still work and should not be built upon any more."""
    any_output: bool = False
    """May structured output be any JSON value, not only an object?"""
    no_such_needs: frozenset[str] = frozenset()
    """Client capabilities that mean nothing here, whatever a client declares."""
    tells_arguments: bool = False
    """Are arguments that do not fit a tool's schema for the model to mend (a result), or an error of the protocol?"""
    rich_questions: bool = False
    """May a form offer a choice of several, and a sampling message hold several blocks and tools' blocks?"""
    batches: bool = False
    own_issuer: bool = False
    """Is a server its own authorization server when it names none (2025-03-26 alone)?"""
    polling: bool = False
    """May a server send a client away from its stream, to come back for the rest?"""

    def evolve(
        self,
        name: str,
        *,
        add: Iterable[str] = (),
        drop: Iterable[str] = (),
        ask: Mapping[str, str] | None = None,
        reveal: Iterable[str] = (),
        blocks: Iterable[str] = (),
        server_can: Iterable[str] = (),
        client_can: Iterable[str] = (),
        server_tells: Iterable[str] = (),
        no_notices: Iterable[str] = (),
        client_drops: Iterable[str] = (),
        means: Mapping[int, type[Refused]] | None = None,
        **changes: Any,
    ) -> Revision:
        """The next revision: this one and what it changed."""
        gone = frozenset(no_notices)
        return msgspec.structs.replace(
            self,
            name=name,
            requests=(self.requests - frozenset(drop)) | frozenset(add),
            questions={**self.questions, **(ask or {})},
            client_notices=self.client_notices - gone - frozenset(client_drops),
            server_notices=(self.server_notices | frozenset(server_tells)) - gone,
            server_capabilities=self.server_capabilities | frozenset(server_can),
            client_capabilities=self.client_capabilities | frozenset(client_can),
            unknown=self.unknown - frozenset(reveal),
            blocks=self.blocks | frozenset(blocks),
            **{"classes": {**self.classes, **(means or {})}, **changes},
        )

    def code_of(self, error: Refused) -> int:
        """The code under which this revision knows an error."""
        code = self.codes.get(type(error), error.code)
        code = self.retired.get(code, code)
        return -32603 if code in self.reserved and code not in self.classes else code

    def refusal(self, code: int, message: str, data: Any = None) -> Refused:
        """A peer's error object as an exception, by this revision's meaning of the code."""
        kind = self.classes.get(code)
        if kind is ResourceNotFound and code == -32001 and not (isinstance(data, dict) and "uri" in data):
            kind = None  # a summary in circulation uses -32001 for it; its uri is the only proof
        return refusal(code, message, data, {code: kind} if kind else {})
