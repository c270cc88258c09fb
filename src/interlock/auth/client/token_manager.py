"""One server's tokens: have one, renew it, widen it. The flows that a request of a client needs, one at a time.

Each holds the record of the server while it works, so that of all tasks and processes that were turned away together
one asks and the others take what it got: a refresh token that is used twice is a stolen one to most servers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

from ...wire.errors import AuthorizationFailed
from ...wire.escaping import display
from ..discovery import Found, discover
from ..flow import Flow, Hold, Load, Save
from ..jose.signer import new_key
from ..secrets import Hidden, Secret
from ..urls import canonical
from ..www_authenticate import Demand
from .authorization_code import log_in
from .dpop import Prover
from .machine_grants import client_credentials, enterprise_managed, workload_identity
from .providers import ClientCredentials, EnterpriseManaged, OAuth, Plan, WorkloadIdentity
from .registration import asked_client, forgotten_by
from .token_record import Registered, Standing, Token, kept, read_standing
from .token_request import TokenRequest, request_token

__all__ = ["Seeker", "Got", "scope_for"]

_DENIED_FOR = 600.0  # seconds in which a user who said no to some scopes is not asked for them again
_MOST_DENIED = 32
_MOST_LOGINS, _LOGINS_WITHIN = (
    10,
    600.0,
)  # of one server, in so many seconds; a further one is refused, whatever it says
_NO_TOKEN = Token(access=Secret(""), expires=0.0)
_REFUSED_FOR_GOOD = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}
    | {"invalid_target", "invalid_request", "invalid_dpop_proof"}
)


class Got(msgspec.Struct, frozen=True):
    """How we stand now, and whether anybody had to be asked for more than a refresh."""

    standing: Standing
    by: Literal["kept", "refreshed", "granted"]


class Seeker:
    def __init__(
        self, plan: Plan, url: str, *, clock: Callable[[], float] = time.time, may_be_own: bool = True
    ) -> None:
        self.plan = plan
        self.url = canonical(url)
        self.may_be_own = may_be_own
        self._clock = clock
        self._prover: Prover | None = None
        self._denied: dict[frozenset[str], float] = {}
        self._logins: deque[float] = deque(maxlen=_MOST_LOGINS)
        self._issuer: str | None = None
        """Who granted the last token that is known of, also when that token is of no use any more."""
        self._key = f"server {plan.principal} {self.url}"

    def now(self) -> float:
        return self._clock()

    # --- what a client does -----------------------------------------------------------------------

    def current(self) -> Flow[Got | None]:
        """What can be used without asking anybody but for a refresh; None: nothing is."""
        standing = yield from self._load()
        if standing is None or standing.token.fresh(self._clock()):
            return Got(standing, "kept") if standing is not None else None
        if standing.token.refresh is None:
            return None
        yield Hold(self._key)
        standing = yield from self._load()  # it may have changed while we waited
        if standing is None or standing.token.fresh(self._clock()):
            return Got(standing, "kept") if standing is not None else None
        return (yield from self._refreshed(standing))

    def renewed(self, demand: Demand, used: Secret | None, *, refresh: bool = True) -> Flow[Got]:
        """After a 401 to a request with the token `used`. Who grants tokens is asked anew: it may have changed."""
        yield Hold(self._key)
        standing = yield from self._load()
        if standing is not None and standing.token.access != used and standing.token.fresh(self._clock()):
            return Got(standing, "kept")
        found = yield from self._discovered(demand)
        same = standing if standing is not None and standing.issuer == found.issuer else None
        if same is not None and refresh:
            got = yield from self._refreshed(same)
            if got is not None:
                return got
        asked = same.token.asked if same is not None else ()
        return (yield from self._granted(found, demand, _union(asked, scope_for(self.plan, demand, found)), same))

    def widened(self, demand: Demand, used: Secret | None) -> Flow[Got]:
        """After a 403 for want of scopes: everything that was asked for before, and these (AUTH-017)."""
        yield Hold(self._key)
        standing = yield from self._load()
        asked = standing.token.asked if standing is not None else ()
        if standing is not None and standing.token.access != used and set(demand.scope or ()) <= set(asked):
            return Got(standing, "kept")
        found = yield from self._discovered(demand)
        if standing is not None and standing.issuer != found.issuer:
            standing, asked = None, ()  # keys and scopes of another issuer mean nothing to this one
        wanted = _union(asked, demand.scope if demand.scope is not None else found.scopes or ())
        if set(wanted) == set(asked):
            told = "the server wants scopes that were asked for already: asking again gives no more"
            raise AuthorizationFailed(told, "insufficient_scope")
        return (yield from self._granted(found, demand, wanted, standing))

    def prover_for(self, standing: Standing) -> Prover | None:
        """What shows that its token is ours, for a token that is bound to a key."""
        if not standing.token.dpop or standing.dpop_key is None:
            return None
        return self._with_key(standing.dpop_key)

    # --- records ----------------------------------------------------------------------------------

    def _load(self) -> Flow[Standing | None]:
        standing = read_standing((yield Load(self._key)))
        self._issuer = standing.issuer if standing is not None else None
        if standing is None or self.plan.issuer not in (None, standing.issuer):
            return None  # the owner trusts another one now
        return standing if standing.token.access else None

    def _saved(self, standing: Standing) -> Flow[Standing]:
        yield Save(self._key, kept(standing))
        return standing

    # --- steps ------------------------------------------------------------------------------------

    def _spent(self, standing: Standing) -> Flow[None]:
        """Of what is refused for good one thing is kept: whose client we were. Else a server could wait for that, and
        then send the owner's credentials to an issuer of its choice."""
        yield from self._saved(msgspec.structs.replace(standing, token=_NO_TOKEN, dpop_key=None))

    def _discovered(self, demand: Demand) -> Flow[Found]:
        prefer = self.plan.issuer or self._issuer
        found = yield from discover(self.url, demand, prefer=prefer, may_be_own=self.may_be_own)
        if self.plan.issuer not in (None, found.issuer):
            told = f"the server names {display(found.issuer, 200)} as its authorization server"
            raise AuthorizationFailed(f"{told}, and issuer= trusts another one")
        moved = self._issuer is not None and self._issuer != found.issuer
        if moved and self.plan.of_one_issuer and self.plan.issuer is None:
            told = f"the server has changed its authorization server to {display(found.issuer, 200)}"
            raise AuthorizationFailed(
                f"{told}: the credentials are for the one before; say issuer= if they are for this"
            )
        return found

    def _refreshed(self, standing: Standing) -> Flow[Got | None]:
        """None: there is nothing to refresh with, or it is not taken any more."""
        token = standing.token
        if token.refresh is None:
            return None
        client = self._client_of(standing)
        if client is not None and not client.able:
            return None  # its credentials are not here any more: with others there is another login
        request = TokenRequest(
            endpoint=standing.token_endpoint,
            issuer=standing.issuer,
            client=client,
            clock=self._clock,
            prover=self.prover_for(standing),
        )
        form = Hidden(grant_type="refresh_token", refresh_token=token.refresh.reveal(), resource=standing.resource)
        try:
            new = yield from request_token(request, form, token.asked)
        except AuthorizationFailed as error:
            if error.error not in _REFUSED_FOR_GOOD:
                raise  # the server is in trouble: the refresh token is as good as before
            yield from self._spent(standing)
            yield from forgotten_by(self.plan, standing.issuer, client, error)
            return None
        if new.refresh is None:
            new = msgspec.structs.replace(new, refresh=token.refresh)  # it is used again (OAuth 2.1 §4.3.2)
        standing = msgspec.structs.replace(standing, token=new)
        return Got((yield from self._saved(standing)), "refreshed")

    def _client_of(self, standing: Standing) -> Registered | None:
        client, plan = standing.client, self.plan
        if client is None or client.how != "given":
            return client
        given = plan.given
        if given is None and isinstance(plan, OAuth) and plan.ask_client is not None:
            given = asked_client(plan.ask_client, standing.issuer)
        return client if given is None else msgspec.structs.replace(given, method=client.method)

    def _granted(self, found: Found, demand: Demand, scope: tuple[str, ...], before: Standing | None) -> Flow[Got]:
        prover = self._prover_wanted(found, demand, before)
        self._check_denied(scope)
        try:
            client, token = yield from self._obtained(found, scope, prover)
        except AuthorizationFailed as error:
            if error.error == "access_denied":
                self._remember_denied(scope)
            raise
        standing = Standing(
            issuer=found.issuer,
            resource=found.resource,
            token_endpoint=found.server.endpoint(),
            client=client,
            token=token,
            dpop_key=prover.pem if prover is not None else None,
        )
        return Got((yield from self._saved(standing)), "granted")

    def _obtained(
        self, found: Found, scope: tuple[str, ...], prover: Prover | None
    ) -> Flow[tuple[Registered | None, Token]]:
        plan = self.plan
        if isinstance(plan, OAuth):
            self._count_login()
            return (yield from log_in(plan, found, scope, prover, self._clock))
        if isinstance(plan, ClientCredentials):
            return (yield from client_credentials(plan, found, scope, prover, self._clock))
        if isinstance(plan, EnterpriseManaged):
            return (yield from enterprise_managed(plan, found, scope, prover, self._clock))
        assert isinstance(plan, WorkloadIdentity)
        return (yield from workload_identity(plan, found, scope, prover, self._clock))

    # --- keys, and what a user does not want ------------------------------------------------------

    def _prover_wanted(self, found: Found, demand: Demand, before: Standing | None) -> Prover | None:
        if not (self.plan.dpop or demand.dpop or found.dpop):
            return None
        algorithms = found.server.dpop_signing_alg_values_supported
        if algorithms is not None and "ES256" not in algorithms:
            raise AuthorizationFailed("the server wants tokens bound to a key, by an algorithm that is not ES256")
        return self._with_key(before.dpop_key if before is not None and before.dpop_key is not None else None)

    def _with_key(self, pem: Secret | None) -> Prover:
        if self._prover is None or (pem is not None and self._prover.pem != pem):
            self._prover = Prover(pem or new_key(), self._clock)
        return self._prover

    def _count_login(self) -> None:
        """A server that takes no token for long, or wants other scopes each time, does not open windows for ever."""
        now = self._clock()
        if len(self._logins) == _MOST_LOGINS and now - self._logins[0] < _LOGINS_WITHIN:
            told = f"the server wanted {_MOST_LOGINS} logins within {_LOGINS_WITHIN / 60:g} minutes"
            raise AuthorizationFailed(f"{told}: nobody is asked again before some of them have passed")
        self._logins.append(now)

    def _check_denied(self, scope: tuple[str, ...]) -> None:
        until = self._denied.get(frozenset(scope), 0.0)
        if self._clock() < until:
            raise AuthorizationFailed("the user has just refused these scopes, and is not asked again", "access_denied")

    def _remember_denied(self, scope: tuple[str, ...]) -> None:
        while len(self._denied) >= _MOST_DENIED:
            del self._denied[next(iter(self._denied))]
        self._denied[frozenset(scope)] = self._clock() + _DENIED_FOR


def scope_for(plan: Plan, demand: Demand, found: Found) -> tuple[str, ...]:
    """What is asked for at first: the challenge's scopes, else all that the server has, else none (AUTH-019); what the
    owner says goes before that. `offline_access` is added only where it exists and is wanted."""
    if plan.scope is not None:
        scope = _union(plan.scope, demand.scope or ())
    else:
        scope = demand.scope if demand.scope is not None else found.scopes or ()
    offline = isinstance(plan, OAuth) and plan.offline and "offline_access" in (found.server.scopes_supported or ())
    return _union(scope, ("offline_access",)) if offline else scope


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))
