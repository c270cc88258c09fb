"""An endpoint behind tokens: who asks, before the body is read; whether he may call this tool, before it is called.

The rules are in auth/resource_server/token_verifier.py; here its questions to the issuer become requests, and its
verdicts HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...state.memory import MemoryStore
from ...state.sealing import agreed_key
from ...state.store import State
from ...web.asgi.guard import Guard
from ...web.asgi.message import Headers, HttpRefusal
from ...web.outbound.endpoint import endpoint_of
from ...wire.errors import InternalError, LocalError, NotOpen, StoreError
from ...wire.exchange import Principal
from ...wire.messages import is_batch
from ..authorization_server.app import IssuerApp
from ..flow import Ask, Said, Step, driven
from ..flow_http import asked
from ..jose.dpop_proof import BadProof, Nonces
from ..urls import checked_url, origin_in
from .protection import Protection, metadata_document, metadata_paths
from .token_verifier import Admitted, Judge, Turned, Unsure

__all__ = ["Protector", "ScopesOf", "protector_of"]

ScopesOf = Callable[[str, Principal], tuple[str, ...]]
"""The scopes that a tool needs, as far as it is there for this caller."""
log = logging.getLogger("interlock.http")
_SECONDS = 10.0  # for everything that is asked of the issuer about one request; then 503
_MOST_ASKED = 64  # tokens that the issuer is asked about at once; for further ones 503
_METADATA_AGE = "public, max-age=300"


class Protector:
    """The protection of one endpoint. `store` remembers which proofs were used; several processes share it."""

    def __init__(
        self,
        protection: Protection,
        path: str,
        *,
        name: str | None = None,
        store: State | None = None,
        scopes_of: ScopesOf | None = None,
        allowed_hosts: tuple[str, ...] = (),
        allowed_origins: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._judge, self._clock = Judge(protection, clock), clock
        self._issuer = endpoint_of(protection.issuer, allowed_hosts=protection.allowed_hosts)
        self._store: State = store or MemoryStore()
        self._brought = self._store.shared
        self._agreed = not (protection.nonces and self._store.shared)
        """Are our nonces those of all who share the store?"""
        self._rules = protection
        self._scopes_of = scopes_of
        server = protection.server
        who: Any = {"allowed_hosts": allowed_hosts, "allowed_origins": allowed_origins}
        self.beside = None if server is None else IssuerApp(server, **who)
        """The authorization server that is served by the same application, if one is."""
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        parts = checked_url(protection.resource, "resource")
        self._above = origin_in(parts) + parts.path.removesuffix(path)
        self._asking = 0
        self._each_its_own = protection.introspection is not None  # questions about different tokens
        document = msgspec.json.encode(metadata_document(protection, name))
        headers = (("content-type", "application/json"), ("cache-control", _METADATA_AGE))
        self._documents = {path: HttpRefusal(200, headers, document) for path in metadata_paths(protection)}

    def check_shared(self) -> None:
        """Can several processes serve this together? Each would give codes that the others do not know."""
        if self.beside is not None and not self.beside.server.store.shared:
            raise LocalError(
                "several processes are one authorization server only if they share its store: give the "
                "AuthorizationServer store=SQLiteStore(path) and key=, or run one process"
            )

    @property
    def stores(self) -> tuple[State, ...]:
        """Without them nobody gets a token, or gets in with one."""
        return (self._store,) if self.beside is None else (self._store, self.beside.server.store)

    async def share(self, store: State) -> None:
        """From now on with all who have this store, unless the server brought one of its own that others see.

        Called again where an application begins again: what was opened for it before is closed.
        """
        if not self._brought:
            self._store, self._agreed = store, not self._rules.nonces

    async def _agree(self) -> None:
        name = hashlib.sha256(self._rules.resource.encode()).hexdigest()[:16]
        self._judge.nonces = Nonces(self._clock, key=await agreed_key(self._store, f"{name}/nonce"))
        self._agreed = True

    def serves(self, path: str) -> bool:
        return path in self._documents or (self.beside is not None and self.beside.serves(path))

    def document(self, path: str, verb: str) -> HttpRefusal:
        """The metadata, for who asks at one of its two addresses; everybody may."""
        if verb != "GET":
            return HttpRefusal.saying(405, "Metadata are read by GET", ("allow", "GET"))
        return self._documents[path]

    async def admit(self, headers: Headers, verb: str, place: str) -> Admitted | HttpRefusal:
        """Who asks for `place` (below the point where the app stands), or why he may not."""
        token, proof = (_text(headers, name) for name in (b"authorization", b"dpop"))
        begin = partial(self._judge.judge, token, proof, verb, self._above + place)
        try:
            if not self._agreed:
                await self._agree()
            found = await self._judged(begin)
            if found.proof is not None and not await self._first(found):
                raise self._judge.unproved(BadProof("the proof was used before"))
        except Turned as turned:
            return _refusal(turned)
        except (Unsure, TimeoutError, StoreError, NotOpen) as error:
            log.warning("! a token could not be checked: %s", error)
            told = InternalError("Tokens cannot be checked at the moment: try again")
            return HttpRefusal.saying(503, told, ("retry-after", "5"))
        return found

    async def _judged(self, begin: Callable[[], Generator[Step, Any, Admitted]]) -> Admitted:
        """Most flows end without a question. Of those that need keys one asks, and the others begin anew with them."""
        flow = begin()
        try:
            step = next(flow)
        except StopIteration as end:
            return end.value
        async with asyncio.timeout(_SECONDS):
            if self._each_its_own:
                return await self._shown(flow, step)
            flow.close()
            async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                return await driven(begin(), None, self._ask)

    async def _shown(self, flow: Generator[Step, Any, Admitted], step: Step) -> Admitted:
        """To the issuer, who is asked about so many tokens at once and no more: anybody can make them up."""
        if self._asking >= _MOST_ASKED:
            flow.close()
            raise Unsure(f"the issuer is being asked about {_MOST_ASKED} tokens already")
        self._asking += 1
        try:
            return await driven(flow, step, self._ask)
        finally:
            self._asking -= 1

    async def _ask(self, step: Ask) -> Said:
        return await asked(step, self._issuer)

    async def _first(self, found: Admitted) -> bool:
        """Is this the first use of the proof? Where that cannot be remembered, it is not taken."""
        assert found.proof is not None
        return await self._store.put(f"dpop/{found.proof.once}", b"", until=found.proof.until, expect=0) > 0

    def lacking(self, found: Admitted, body: bytes) -> HttpRefusal | None:
        """May he call the tools that this body calls? All that lacks is said at once (AUTH-045)."""
        if self._scopes_of is None:
            return None
        needed = [scope for name in _called(body) for scope in self._scopes_of(name, found.principal)]
        try:
            self._judge.need(found, tuple(dict.fromkeys(needed)))
        except Turned as turned:
            return _refusal(turned)
        return None


def protector_of(protection: Protection, path: str, handler: Any, guard: Guard) -> Protector:
    """For the endpoint of this handler: its name is told, its store remembers, its tools say what they need."""
    name = getattr(getattr(handler, "info", None), "name", None)
    store = getattr(handler, "store", None)
    scopes_of: ScopesOf | None = getattr(handler, "scopes_of", None)
    who: Any = {"allowed_hosts": guard.named, "allowed_origins": guard.origins.named}
    return Protector(protection, path, name=name, store=store, scopes_of=scopes_of, **who)


class _Call(msgspec.Struct):
    method: str | None = None
    params: Raw | UnsetType = UNSET


class _Named(msgspec.Struct):
    name: str


_calls = msgspec.json.Decoder(_Call)
_batches = msgspec.json.Decoder(list[Raw])
_names = msgspec.json.Decoder(_Named)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _called(body: bytes) -> list[str]:
    """The tools that are called; what cannot be read calls none, and is refused where it is read for good.

    A batch is read member by member, as it is carried out: one that is no call hides none of the others.
    """
    try:
        members = _batches.decode(body) if is_batch(body) else [body]
    except _UNREADABLE:
        return []
    return [name for member in members if (name := _name_in(member)) is not None]


def _name_in(member: bytes | Raw) -> str | None:
    try:
        call = _calls.decode(member)
        if call.method != "tools/call" or call.params is UNSET:
            return None
        return _names.decode(call.params).name
    except _UNREADABLE:
        return None


def _text(headers: Headers, name: bytes) -> str | None:
    """A header that came twice is one that nobody can read: both values, which fit no form."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _refusal(turned: Turned) -> HttpRefusal:
    headers = [("www-authenticate", turned.challenge), ("cache-control", "no-store")]
    if turned.nonce is not None:
        headers.append(("dpop-nonce", turned.nonce))
    return HttpRefusal.saying(turned.status, str(turned), *headers)
