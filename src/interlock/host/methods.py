"""What a host can be asked to do at its servers; each of it goes through the gate, and nothing goes past it.

What a deed holds is what is sent. Between the decision and the sending a server may have to be started, or was brought
back: then it is looked at first, and what is not the same any more is not called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from math import inf
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec import UNSET

from ..client.client import Client
from ..client.completion_cache import Completion, params_of_completion
from ..client.methods import Timeout
from ..client.request import OnProgress, patience_of
from ..client.results import CallResult, PromptResult
from ..wire.channel import Patience
from ..wire.errors import ConnectionEnded, LocalError
from ..wire.escaping import display
from ..wire.types.content import ResourceContents
from ..wire.types.prompts import Prompt
from ..wire.types.tools import Tool
from .catalogue.catalogue import Catalogue, Entry
from .catalogue.names import exposed
from .catalogue.refresher import Shelving
from .catalogue.search_tools import OwnTools
from .catalogue.selection import Offered, Selection
from .gate.action import Deed, Denied, Matter, ServerGone, matter_of
from .gate.gate import Gate
from .gate.result_cap import SCHEME
from .servers.managed_server import Member, State, Unavailable, member_in

__all__ = ["Verbs"]

T = TypeVar("T")
I = TypeVar("I", Tool, Prompt)  # noqa: E741
_PATIENCE = Patience()
_RETRIES = 3  # of a call that did not leave
_MOST_USED = 4096  # tools that are remembered as they were called; with more, all are looked up anew


class _Used(msgspec.Struct, frozen=True):
    """A tool that was called, as it stands in the catalogue of that version."""

    version: int
    entry: Entry[Tool]
    matter: Matter


class Verbs:
    """Every verb takes `timeout=` as a `Client` does, and `sources=`: the names of the servers whose data may be in
    what is sent, by whoever put it together (docs/host_policy.md)."""

    def __init__(
        self, gate: Gate, members: dict[str, Member], catalogue: Catalogue, shelving: Shelving, budget: int | None
    ) -> None:
        self.gate, self.members, self.catalogue = gate, members, catalogue
        self._shelving = shelving
        self._selection = Selection(catalogue)
        self._own = OwnTools(catalogue, self._selection, gate.cap)
        self._budget = budget
        self._used: dict[str, _Used] = {}

    @property
    def missing(self) -> dict[str, State]:
        """Servers that cannot be called now, and how they stand: for whoever wonders where something is."""
        there = ("ready", "idle")
        return {name: member.state for name, member in self.members.items() if member.state not in there}

    # --- tools ------------------------------------------------------------------------------------

    def turn(self, text: str = "", *, budget: int | None = None, wanted: Iterable[str] = ()) -> Offered:
        """The tools that a model is told of, for a turn that is about `text`: all of them within the budget of tokens,
        else those that matter most and three that find the rest; with one more, results that were cut are read on."""
        tokens = self._budget if budget is None else budget
        return self._selection.turn(text, tokens, wanted, results=self.gate.cap.count > 0)

    async def use_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        sources: Iterable[str] = (),
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult:
        """What a model called, by any name it was told: also the host's own. Whatever happens is an answer for it."""
        call = partial(self.call_tool, sources=sources, timeout=timeout, on_progress=on_progress)
        return await self._own.use(name, arguments, call)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        sources: Iterable[str] = (),
        timeout: Timeout = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult:
        """Run a tool, by the name that models see. Raises `Denied` where it may not be, and what a `Client` raises."""
        known = self._used.get(name)
        if known is None or known.version != self.catalogue.version:
            known = await self._found(name)
        entry, matter = known.entry, known.matter
        if sources:
            matter = matter_of("tool", matter.server, matter.name, frozenset(sources), matter.hints, matter.principal)
        ask = partial(_call_tool, matter.name, timeout, on_progress)
        return await self._sent(Deed.of(matter, arguments or {}), timeout, ask, entry)

    async def _found(self, name: str) -> _Used:
        """In the catalogue as it is now: when it changes, everything is looked up anew."""
        version, tools = self.catalogue.version, self.catalogue.tools
        entry = tools.get(name) or await self._nobody(tools, name, "tool")
        tool = entry.item
        hints = None if tool.annotations is UNSET else tool.annotations
        matter = matter_of("tool", entry.server, tool.name, hints=hints, principal=self.gate.principal)
        if len(self._used) >= _MOST_USED:
            self._used.clear()
        found = self._used[name] = _Used(version, entry, matter)
        return found

    # --- resources, prompts, completions ----------------------------------------------------------

    async def read_resource(
        self, server: str, uri: str, *, sources: Iterable[str] = (), timeout: Timeout = None
    ) -> list[ResourceContents]:
        """What is there, of that server. The whole of a result that was cut is read under its own address, from any
        server's name: it is kept here."""
        if uri.startswith(f"{SCHEME}://"):
            return [self.gate.cap.read(uri)]
        deed = Deed("resource", self._known(server), uri, {"uri": uri}, sources=sources, principal=self.gate.principal)
        return await self._sent(deed, timeout, lambda client, sent: client.read_resource(sent["uri"], timeout=timeout))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        sources: Iterable[str] = (),
        timeout: Timeout = None,
    ) -> PromptResult:
        """A prompt, by the name under which the catalogue has it."""
        entry = self.catalogue.prompts.get(name) or await self._nobody(self.catalogue.prompts, name, "prompt")
        deed = Deed(
            "prompt", entry.server, entry.name, dict(arguments or {}), sources=sources, principal=self.gate.principal
        )
        ask = partial(Client.get_prompt, timeout=timeout)
        return await self._sent(deed, timeout, lambda client, sent: ask(client, entry.name, sent), entry)

    async def complete(
        self,
        server: str,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        template: str | None = None,
        known: Mapping[str, str] | None = None,
        sources: Iterable[str] = (),
        timeout: Timeout = None,
    ) -> Completion:
        """As `Client.complete`, at that server; `prompt` is its own name there."""
        params = params_of_completion(argument, value, prompt, template, known)
        deed = Deed(
            "completion",
            self._known(server),
            prompt or template or "",
            params,
            sources=sources,
            principal=self.gate.principal,
        )
        return await self._sent(deed, timeout, lambda client, sent: _complete(client, sent, timeout))

    # --- how --------------------------------------------------------------------------------------

    def _forget_used(self, server: str) -> None:
        """What it offers is something else now, or nothing."""
        self._used = {name: used for name, used in self._used.items() if used.entry.server != server}

    def _sent(
        self,
        deed: Deed,
        timeout: Timeout,
        ask: Callable[[Client, Any], Awaitable[T]],
        entry: Entry[Tool] | Entry[Prompt] | None = None,
    ) -> Awaitable[T]:
        patience = _PATIENCE if timeout is None else patience_of(timeout)
        member = self.members[deed.matter.server]
        if member.state == "removed":
            raise Unavailable(member.name, member.state, member.cause)  # nobody is asked about it any more
        send = partial(self._asked, deed, member, patience, ask, entry, self.catalogue.version)
        return self.gate.through(deed, send, deadline=inf if patience.total is None else patience.total)

    async def _asked(
        self,
        deed: Deed,
        member: Member,
        patience: Patience,
        ask: Callable[[Client, Any], Awaitable[T]],
        entry: Entry[Tool] | Entry[Prompt] | None,
        version: int,
        sent: Any,
    ) -> T:
        """Clients of a host repeat nothing by themselves: what provably did not leave is sent again from here, when it
        is known what is on the other end now. `version` is of the catalogue that `entry` was found in."""
        retries = 0
        member.enter()  # from here on it is not stopped for idleness
        try:
            while True:
                client = self._at_hand(member) or await self._reached(member, patience)
                if entry is not None and self.catalogue.version != version:
                    self._check_same(deed, entry)
                try:
                    return await ask(client, sent)
                except ConnectionEnded as ended:
                    retries += 1
                    if member.state == "removed":
                        raise ServerGone(member.name, member.state, ended.sent) from ended
                    if ended.sent is not False or retries > _RETRIES or member.state == "stopped":
                        raise
        finally:
            member.leave()

    def _at_hand(self, member: Member) -> Client | None:
        """Its client, if nothing has to be waited for."""
        return member.client if member.state == "ready" and member.name not in self._shelving.unknown else None

    async def _reached(self, member: Member, patience: Patience) -> Client:
        while True:
            await member.connected(patience)
            await self._shelving.known(member.name)
            if (client := self._at_hand(member)) is not None:
                return client

    def _check_same(self, deed: Deed, entry: Entry[Tool] | Entry[Prompt]) -> None:
        """What was decided on must still be what is there."""
        there = self.catalogue.tools if deed.kind == "tool" else self.catalogue.prompts
        now = there.get(entry.exposed)
        if now is not entry and (now is None or now.server != entry.server or now.item != entry.item):
            raise Denied(deed, "the server describes it in another way now", hint="look at what changed and approve it")

    async def _nobody(self, entries: dict[str, Entry[I]], name: str, kind: Literal["tool", "prompt"]) -> NoReturn:
        """Nothing of this name may be used: what is there all the same, and who is not."""
        await self._deny_quarantined(name, kind)
        near = ", ".join(get_close_matches(name[:100], [*entries][:5_000], 3))
        away = ", ".join(f"{display(server, 60)} is {state}" for server, state in self.missing.items())
        told = f"{f'; near it are: {near}' if near else ''}{f'; not there: {away}' if away else ''}"
        raise LocalError(f"no server offers a {kind} {display(name, 100)!r}{told}")

    async def _deny_quarantined(self, name: str, kind: Literal["tool", "prompt"]) -> None:
        """What is there and not approved is denied by the gate, and in its book, as everything is."""
        items = [(server, each.item) for server in self.members for each in self.gate.quarantined(server)]
        hidden = exposed((server, item.name) for server, item in items if item.kind == kind).get(name)
        if hidden is not None:
            await self.gate.through(Deed(kind, *hidden, principal=self.gate.principal), _never)

    def _known(self, server: str) -> str:
        return member_in(self.members, server).name


def _call_tool(
    name: str, timeout: Timeout, on_progress: OnProgress | None, client: Client, sent: Any
) -> Awaitable[CallResult]:
    return client.call_tool(name, sent, timeout=timeout, on_progress=on_progress)


def _complete(client: Client, sent: Any, timeout: Timeout) -> Awaitable[Completion]:
    """With what was decided on, and not with what the caller has by now."""
    ref, argument = sent["ref"], sent["argument"]
    known = sent.get("context", {}).get("arguments")
    return client.complete(
        argument["name"],
        argument["value"],
        prompt=ref.get("name"),
        template=ref.get("uri"),
        known=known,
        timeout=timeout,
    )


async def _never(sent: Any) -> None:
    raise LocalError("what is in quarantine is not sent")
