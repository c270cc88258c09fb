"""The third role: many servers, one user, and nothing that acts without leave.

    async with Host(config="mcp.json", user=somebody) as host:
        tools = host.turn("what is new?").tools
        result = await host.use_tool(name, arguments)

A host starts its servers and outlives all that they do, shows what they offer as one catalogue, and sends every request
to any of them through one gate (host/gate/gate.py): pins, policy, consent, call, cap, audit. It is used on the loop
that started it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from ..client.config.entries import Config, read_config
from ..client.era_cache import EraCache
from ..client.request import seconds_of
from ..client.subscriptions import Change
from ..wire.errors import LocalError
from ..wire.escaping import display
from ..wire.exchange import LOCAL, Principal
from ..wire.types.common import LogLevel
from .callbacks.callbacks import Questions
from .callbacks.roots import Places, Rooting
from .callbacks.sampling import Context, SamplingBounds
from .callbacks.url_check import Opener, open_in_browser
from .catalogue.catalogue import Catalogue
from .catalogue.listing import Bounds, Offer, part_of
from .catalogue.names import Identity, exposed
from .catalogue.refresher import Shelving
from .catalogue.token_estimate import of_tool, tokens
from .events import CatalogueChange, Events, Following, OnEvent
from .gate.action import Kind
from .gate.audit import Audit, FileAudit
from .gate.gate import Gate
from .gate.permissions import Kept, Leaves
from .gate.pins import Definition, Definitions, Item, Pins
from .gate.policy import Policy
from .gate.policy_file import read_policy
from .gate.record_lock import files_in
from .gate.result_cap import Cap
from .launch.launch import Launch
from .methods import Verbs
from .models.model import Model
from .servers.logs import ServerLogs
from .servers.managed_server import Hooks, Member, MemberChange, Seat, member_in
from .servers.manager import MOST_SERVERS, Roster, same_name
from .user import Absent, Notice, NoticeKind, User

__all__ = ["Host"]

log = logging.getLogger("interlock.host")
Configs = str | PathLike[str] | Mapping[str, Any] | Config


class Host(Verbs):
    """Many servers for one user.

    `servers` are by name whatever a `Client` takes, or a `Seat` with more about it; `config` names files (or their
    contents) in the shape that other hosts use. `home` is a folder for what must last: approved definitions, leaves
    given for always, the audit, the eras of servers that are slow to tell. Without it all of that ends with the host.
    Without a `user`, every action that the policy does not allow is denied. `models` answer what servers
    want sampled, and `roots` are the folders that servers may be told of; `sampling` bounds what a server may sample,
    `context` says what it may see of the conversation, and `opener` opens pages (docs/host_questions.md). With a
    `log_level` the user is told of their logs.
    """

    def __init__(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        config: Configs | Iterable[Configs] | None = None,
        policy: Policy | str | PathLike[str] | None = None,
        user: User | None = None,
        audit: Audit | str | PathLike[str] | None = None,
        home: str | PathLike[str] | None = None,
        budget: int | None = None,
        models: Sequence[Model] = (),
        roots: Places | Mapping[str, Places] = (),
        sampling: SamplingBounds = SamplingBounds(),  # noqa: B008 - immutable
        context: Context | None = None,
        opener: Opener = open_in_browser,
        principal: Principal = LOCAL,
        cap: Cap | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
        log_level: LogLevel | None = None,
        at_once: int = 8,
        start_wait: float = 10.0,
        on_event: OnEvent | None = None,
    ) -> None:
        self.user: User = user if user is not None else Absent()
        self._events = Events(on_event)
        self._logs = ServerLogs(partial(self._tell, "log"))
        self._log_level: LogLevel | None = log_level
        self._start_wait = seconds_of("start_wait", start_wait)
        gate = _gate(policy, self.user, audit, cap, principal, home)
        self.questions = Questions(
            gate,
            self.user,
            models=models,
            roots=roots,
            changed=self._roots_changed,
            bounds=sampling,
            context=context,
            opener=opener,
        )
        hooks = Hooks(
            approve=self._approve,
            answers=self._answers,
            told=self._member_changed,
            changed=self._lists_changed,
            turns=asyncio.Semaphore(max(at_once, 1)),
            busy=lambda server: self._shelving.is_listing(server),
            verdicts=EraCache(Path(home).expanduser() / "eras") if home is not None else None,
        )
        finds = _finds(servers or {}, config)
        members = {name: Member(name, find, hooks) for name, find in finds.items()}
        catalogue = Catalogue(members)
        shelving = Shelving(catalogue, self._admit, self._note, self._catalogue_changed, bounds)
        super().__init__(gate, members, catalogue, shelving, budget)
        self._roster = Roster(members, hooks, gate, catalogue, self._left)
        self._shadows: set[str] = set()

    # --- its life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Host:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin with all servers, and wait (`start_wait` seconds at most) until it is known how each of them stands.
        Never fails because one of them does; who is late joins when he comes."""
        self._events.open()
        self._roster.open()
        await self._known_how_it_stands(*self.members.values())

    async def _known_how_it_stands(self, *members: Member) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._start_wait):
                for member in members:
                    await member.settled()
                    await self._shelving.known(member.name)

    async def close(self) -> None:
        """Stop all servers, and everything that runs here."""
        await self._roster.close()
        await self._shelving.close()
        await self.questions.close()
        self._events.close()
        self.gate.close()

    async def restart(self, server: str) -> None:
        """Start a server anew, as its configuration says now; one that failed, was refused or was stopped as well. What
        changed in it is asked about."""
        member = await self._roster.restart(server)
        await member.settled()
        await self._known_how_it_stands(member)

    async def stop(self, server: str) -> None:
        """Stop one server, until `restart`."""
        await self._roster.take(server, self._roster.stop)

    async def add(self, name: str, target: Any, *, replace: bool = False) -> None:
        """Take in another server while the host runs: whatever a `Client` takes, or a `Seat` with more about it. It is
        started as those that the host began with, and `members[name]` says how it stands; that it cannot be started is
        no error here. With `replace` it takes the place of the one that is called so, if there is one: its leaves stay
        where what is started or connected to stays the same, and end else."""
        member = await self._roster.add(name, partial(_seat, target), replace)
        await self._known_how_it_stands(member)

    async def remove(self, server: str, *, keep_leaves: bool = False) -> None:
        """Take a server away: it is stopped, what runs there and what is asked about it ends, and what the user
        allowed or refused there for longer than once ends with it, unless it is to be kept for when it comes back.
        What was approved of its offer counts again when it is added again as it was; `take_back` ends that, too."""
        await self._roster.remove(server, keep_leaves)

    async def review(self, server: str) -> None:
        """Ask the user, one by one, about what of a server is in quarantine: added or changed since it was approved."""
        member = member_in(self.members, server)
        for each in self.gate.quarantined(server):
            if each.change not in ("vanished", "doubled") and member.state != "removed":
                await self.gate.review(server, each.item)
        if member.client is not None and member.state != "removed":
            self._shelving.connected(server, member.client, member.start_seconds)
            await self._shelving.known(server)

    def leaves(self, server: str) -> list[Kept]:
        """What the user allowed or refused at a server for longer than once, and what exactly each covers."""
        return self.gate.leaves.all(self._known(server), self.gate.principal)

    async def take_back(self, server: str, *, kind: Kind | None = None, name: str | None = None) -> None:
        """Take back what the user said for longer than once: about one kind of deed, or about one thing, which are then
        asked about again. With neither, all that was ever approved of the server: it is stopped, and after `restart`
        it is asked about from the beginning, its start as well as what it offers. It is in the audit what was."""
        if kind is not None or name is not None:
            await self.gate.forget_leaves(self._known(server), kind=kind, name=name)
        else:
            await self._roster.take(server, self._take_back)

    async def _take_back(self, member: Member) -> None:
        await self._roster.stop(member)
        await self.gate.forget_leaves(member.name)
        await self.gate.take_back(member.name)

    def events(self) -> Following:
        """From now on: states of servers, changes of the catalogue, and notices; as an async iterator."""
        return self._events.follow()

    # --- what its parts tell it -------------------------------------------------------------------

    async def _approve(self, launch: Launch) -> None:
        self.gate.hide(launch.hide)
        await self.gate.launch(launch)

    @property
    def roots(self) -> Rooting:
        """The folders that servers may be told of."""
        return self.questions.roots

    def _answers(self, server: str) -> Mapping[str, Any]:
        found = self.questions.for_server(server)
        if self._log_level is None:
            return found
        return {**found, "log_level": self._log_level, "on_log": self._logs.listener(server)}

    async def _roots_changed(self, server: str) -> None:
        member = self.members.get(server)
        if member is not None and member.client is not None:
            await member.client.roots_changed()

    async def _left(self, server: str, back: bool) -> None:
        await self._shelving.ended(server)
        self.questions.roots.forget(server)
        if not back:
            self.questions.forget(server)
            self._logs.forget(server)

    def _member_changed(self, change: MemberChange) -> None:
        member = self.members[change.server]
        self._events.tell(change)
        if change.state == "ready" and member.client is not None:
            self._shelving.connected(change.server, member.client, member.start_seconds)
        elif change.state in ("failed", "refused", "stopped", "removed"):
            self._shelving.gone(change.server)
        if change.cause is not None:
            because = display(change.cause.summarize(), 500)
            self._tell("server", change.server, f"the server {_name(change.server)} is {change.state}: {because}")

    def _lists_changed(self, server: str, change: Change) -> None:
        member = self.members[server]
        if change.kind != "resource" and member.client is not None and member.state == "ready":
            self._shelving.refresh(server, member.client, member.start_seconds)

    async def _admit(self, server: str, offer: Offer) -> Offer:
        """What of an offer is as it was approved; what is not is in quarantine, and the user is told."""
        definitions = Definitions(
            tools=[*offer.tools.values()],
            prompts=[*offer.prompts.values()],
            templates=[*offer.templates.values()],
            instructions=offer.instructions,
        )
        launch = self.members[server].launch
        identity = launch.identity if launch is not None else ""
        found = await self.gate.admit(server, definitions, identity=identity, cost=self._costs(server, offer))
        admitted = found.admitted
        return part_of(
            offer,
            tools={name: each for name, each in offer.tools.items() if Item("tool", name) in admitted},
            prompts={name: each for name, each in offer.prompts.items() if Item("prompt", name) in admitted},
            templates={uri: each for uri, each in offer.templates.items() if Item("template", uri) in admitted},
            instructions=offer.instructions if Item("instructions", "") in admitted else None,
        )

    def _costs(self, server: str, offer: Offer) -> Callable[[Definition], int]:
        """What each thing of an offer will cost a model, as the catalogue counts it: under the name that models see."""
        others = [(entry.server, entry.name) for entry in self.catalogue.tools.values() if entry.server != server]
        names = {
            identity: name for name, identity in exposed([*others, *((server, name) for name in offer.tools)]).items()
        }

        def cost(definition: Definition) -> int:
            kind, name = definition.item
            if kind == "instructions":
                return tokens(offer.instructions or "")
            return of_tool(names[server, name], offer.tools[name]) if kind == "tool" else 0

        return cost

    def _catalogue_changed(self, server: str) -> None:
        self._forget_used(server)
        self._events.tell(CatalogueChange(server, self.catalogue.version))
        found = {_alike(several) for _, several in self.catalogue.shadows()}
        for text in sorted(found - self._shadows):
            self._tell("server", server, f"tools of several servers are called alike: {text}")
        self._shadows = found

    def _note(self, server: str, note: str) -> None:
        self._tell("cut", server, f"the server {_name(server)}: {note}")

    def _tell(self, kind: NoticeKind, server: str, text: str, name: str = "") -> None:
        notice = Notice(kind=kind, text=text, server=server, name=name)
        self._events.tell(notice)
        try:
            self.user.tell(notice)
        except Exception:  # a screen that fails must not fail what goes on behind it
            log.exception("! a notice could not be shown")


# --- what it is made of ---------------------------------------------------------------------------


def _gate(
    policy: Policy | str | PathLike[str] | None,
    user: User,
    audit: Audit | str | PathLike[str] | None,
    cap: Cap | None,
    principal: Principal,
    home: str | PathLike[str] | None,
) -> Gate:
    rules = read_policy(policy) if isinstance(policy, str | PathLike) else policy
    if home is not None:
        folder = Path(home).expanduser()
        pins, leaves = Pins(files_in(folder / "pins", "pins")), Leaves(files_in(folder / "leaves", "leaves"))
        audit = audit if audit is not None else folder / "audit.jsonl"
    else:
        pins, leaves = Pins(), Leaves()
    book = FileAudit(Path(audit)) if isinstance(audit, str | PathLike) else audit
    return Gate(rules, user, pins, book, cap, principal, leaves=leaves)


def _finds(servers: Mapping[str, Any], config: Configs | Iterable[Configs] | None) -> dict[str, Callable[[], Seat]]:
    """How each server is found when it is started: what is wrong with one is found out then, and is its own matter."""
    one = config is None or isinstance(config, str | PathLike | Mapping)
    given: list[Any] = [config] if one else [*cast("Iterable[Any]", config)]
    finds = {name: partial(_seat, target) for name, target in servers.items()}
    for each in given if config is not None else ():
        read = each if isinstance(each, Config) else read_config(each)
        for name in read:
            if name in finds:
                raise same_name(name)
            finds[name] = partial(_in_config, read, name)
    if len(finds) > MOST_SERVERS:
        raise LocalError(f"{len(finds)} servers: {MOST_SERVERS} are the most")
    return finds


def _seat(target: Any) -> Seat:
    return target if isinstance(target, Seat) else Seat(target)


def _in_config(config: Config, name: str) -> Seat:
    return Seat(config[name])


def _name(server: str) -> str:
    return repr(display(server, 60))


def _alike(several: Iterable[Identity]) -> str:
    return ", ".join(f"{display(name, 60)!r} of {_name(server)}" for server, name in several)
