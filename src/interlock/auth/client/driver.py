"""Flows of authorization, driven: their steps become requests, logins and files; and the token goes with requests.

An `Authorizer` belongs to one endpoint. An outbound object asks it for headers before a request and shows it what came
back; what has to be renewed is renewed once for all who wait, and then the request is made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ...revisions.revision import Revision
from ...web.outbound.deadlines import paused
from ...web.outbound.endpoint import Endpoint
from ...web.outbound.reply import Reply
from ...wire.errors import CallTimeout, LocalError, LoginRequired
from ..flow import Ask, Hold, Load, Prepare, Said, Save, Step, Visit
from ..flow_http import asked
from ..secrets import Secret
from ..www_authenticate import Demand, demand_in
from .browser_login import Login, login_of
from .providers import OAuth, Plan
from .token_manager import Got, Seeker
from .token_storage import Release

__all__ = ["Authorizer", "Turn", "drive"]

T = TypeVar("T")
_HELD_AGAIN = 0.05  # seconds between two tries to get a record that somebody else holds
_FLOW_SECONDS = 120.0  # for everything of a flow but the user
_ROUNDS = 5  # of one request: with a token, a new one, wider ones; then what the server says is final
_WIDENED = 2  # of them for more scopes


class Authorizer:
    """The tokens for one endpoint. Several clients may share it; it is used on one loop at a time."""

    def __init__(self, plan: Plan, endpoint: Endpoint) -> None:
        if any(name.lower() == "authorization" for name in endpoint.headers):
            raise LocalError("auth= and an Authorization header in headers= exclude each other")
        self._plan = plan
        self._endpoint = endpoint
        self._seeker = Seeker(plan, endpoint.url)
        self._version: str | None = None
        self._got: Got | None = None
        self._looked = False
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Authorizer({self._endpoint.label!r})"

    def speak(self, rows: Mapping[str, Revision]) -> None:
        """With these revisions: the oldest rules of authorization count only where one that has them is among them."""
        self._seeker.may_be_own = any(row.own_issuer for row in rows.values())
        self._version = max(rows)

    # --- for one request --------------------------------------------------------------------------

    async def present(self) -> Got | None:
        """What can be sent now; an expired token is refreshed before it is turned away."""
        got = self._got
        if got is not None and got.standing.token.fresh(self._seeker.now()):
            return got
        if got is None and self._looked:
            return None
        self._got = await self._run(self._seeker.current)
        self._looked = True
        return self._got

    def headers_of(self, got: Got, verb: str, url: str) -> dict[str, str]:
        token = got.standing.token
        prover = self._seeker.prover_for(got.standing)
        if prover is None:
            return {"Authorization": f"Bearer {token.access.reveal()}"}
        proof = prover.proof(verb, url, token.access)
        return {"Authorization": f"DPoP {token.access.reveal()}", "DPoP": proof}

    def nonce_heard(self, got: Got, url: str, nonce: str | None) -> bool:
        prover = self._seeker.prover_for(got.standing)
        return prover is not None and prover.heard(url, nonce)

    async def renew(self, demand: Demand, used: Secret | None, *, refresh: bool) -> Got:
        self._got = await self._run(lambda: self._seeker.renewed(demand, used, refresh=refresh))
        return self._got

    async def widen(self, demand: Demand, used: Secret | None) -> Got:
        self._got = await self._run(lambda: self._seeker.widened(demand, used))
        return self._got

    async def _run(self, begin: Callable[[], Generator[Step, Any, T]]) -> T:
        """One flow at a time on this loop; between processes and loops the records see to it."""
        loop = asyncio.get_running_loop()
        seconds = _FLOW_SECONDS + (self._plan.login_seconds if isinstance(self._plan, OAuth) else 0.0)
        with paused(seconds):
            try:
                async with asyncio.timeout(seconds), self._turns.setdefault(loop, asyncio.Lock()):
                    return await drive(begin(), self._plan, self._endpoint, self._version)
            except TimeoutError as error:
                if isinstance(error, CallTimeout):
                    raise  # of one request within
                raise LoginRequired(f"no token was to be had within {seconds:g} s") from None


class Turn:
    """One request on its way through refusals."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._got: Got | None = None
        self._mended: Got | None = None
        self._used: Secret | None = None
        self._verb = ""
        self._rounds = self._widened = 0
        self._granted = self._refreshed = False
        self._next: Callable[[], Awaitable[Got]] | None = None

    async def headers(self, verb: str, url: str) -> dict[str, str]:
        self._verb = verb
        # what was just got for this request goes with it, however short its life is said to be
        self._got = self._mended or await self._authorizer.present()
        self._mended = None
        if self._got is None:
            return {}
        self._used = self._got.standing.token.access
        return self._authorizer.headers_of(self._got, verb, url)

    def refused(self, reply: Reply, url: str) -> bool:
        """Is it worth trying again? What has to be done first is done by `mend`."""
        news = self._got is not None and self._authorizer.nonce_heard(self._got, url, reply.nonce)
        if reply.status not in (401, 403) or self._rounds >= _ROUNDS or self._verb == "DELETE":
            return False  # nobody is asked to log in so that a goodbye may be heard
        self._rounds += 1
        demand = demand_in(reply.challenge)
        if reply.status == 401:
            return self._at_401(demand, news)
        if demand.error != "insufficient_scope" or self._widened >= _WIDENED:
            return False
        self._widened += 1
        self._next = lambda: self._authorizer.widen(demand, self._used)
        return True

    def _at_401(self, demand: Demand, news: bool) -> bool:
        if demand.error == "use_dpop_nonce" and news:
            self._next = None
            return True
        if self._granted:
            return False  # a token that was granted for this very request is not taken: another would not be either
        refresh = not self._refreshed
        self._next = lambda: self._authorizer.renew(demand, self._used, refresh=refresh)
        return True

    async def mend(self) -> None:
        if self._next is None:
            return
        got = self._mended = await self._next()
        self._granted, self._refreshed = got.by == "granted", got.by == "refreshed"


# --- steps ----------------------------------------------------------------------------------------


async def drive(flow: Generator[Step, Any, T], plan: Plan, endpoint: Endpoint, version: str | None = None) -> T:
    """Do what the flow says, step by step, up to its end; whatever it holds or has open is let go of there.

    Whoever is asked for metadata is told `version`, the revision that is spoken (AUTH-11). Who gives up
    while a grant is being redeemed waits until what comes of it is kept: a refresh token is gone once it was sent, and
    the new one would be lost.
    """
    doer = _Doer(plan, endpoint, version)
    task = asyncio.get_running_loop().create_task(_driven(flow, doer))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        doer.hurry = True
        if not doer.redeeming:
            task.cancel()
        await asyncio.wait([task])
        raise


async def _driven(flow: Generator[Step, Any, T], doer: _Doer) -> T:
    try:
        step = next(flow)
        while True:
            try:
                outcome = await doer.do(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(outcome)
    except StopIteration as end:
        return end.value
    finally:
        flow.close()
        await doer.close()


class _Doer:
    def __init__(self, plan: Plan, endpoint: Endpoint, version: str | None) -> None:
        self._plan, self._endpoint, self._records, self._version = plan, endpoint, plan.records, version
        self._held: dict[str, Release] = {}
        self._login: Login | None = None
        self.redeeming = False
        """What is done now changes what the server or the disk has: it is not broken off."""
        self.hurry = False
        """Nobody waits for the token any more: what came is kept, nothing else is begun."""

    async def do(self, step: Step) -> Any:
        self.redeeming = isinstance(step, Save) or (isinstance(step, Ask) and step.form is not None)
        if self.hurry and not isinstance(step, Save):
            raise asyncio.CancelledError
        match step:
            case Ask():
                return await self._ask(step)
            case Hold():
                return await self._hold(step.key)
            case Load():
                return await asyncio.to_thread(self._records.load, step.key)
            case Save():
                return await asyncio.to_thread(self._records.save, step.key, step.value)
            case Prepare():
                self._login = login_of(self._user())
                return await self._login.prepare(step.wanted)
            case Visit():
                return await self._visit(step)

    async def _ask(self, step: Ask) -> Said:
        return await asked(step, self._endpoint, version=self._version)

    async def _hold(self, key: str) -> None:
        while key not in self._held:
            release = self._records.try_hold(key)
            if release is not None:
                self._held[key] = release
                return
            await asyncio.sleep(_HELD_AGAIN)

    async def _visit(self, step: Visit) -> Secret:
        plan = self._user()
        assert self._login is not None
        try:
            async with asyncio.timeout(plan.login_seconds):
                return Secret(await self._login.visit(step.url, step.state))
        except TimeoutError:
            raise LoginRequired(f"nobody logged in within {plan.login_seconds:g} s") from None

    def _user(self) -> OAuth:
        assert isinstance(self._plan, OAuth)
        return self._plan

    async def close(self) -> None:
        held, self._held = self._held, {}
        for release in held.values():
            release()
        if self._login is not None:
            await self._login.close()
