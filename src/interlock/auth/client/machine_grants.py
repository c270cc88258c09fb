"""Tokens without a browser: for the program itself, by way of a company's identity provider, by the platform's word.

These are the flows of the extensions for authorization; each begins where discovery has ended.
"""

from __future__ import annotations

from collections.abc import Callable

from ...wire.errors import AuthorizationFailed
from ..discovery import Found
from ..flow import Flow, Said
from ..secrets import Hidden, Secret
from .dpop import Prover
from .providers import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from .token_record import Registered, Token
from .token_request import TokenRequest, method_for, request_token

__all__ = ["client_credentials", "enterprise_managed", "workload_identity"]

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TYPE = "urn:ietf:params:oauth:token-type:"
_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
Clock = Callable[[], float]


def client_credentials(
    plan: ClientCredentials, found: Found, scope: tuple[str, ...], prover: Prover | None, clock: Clock
) -> Flow[tuple[Registered | None, Token]]:
    assert plan.given is not None
    client = method_for(plan.given, found.server.token_endpoint_auth_methods_supported)
    form = _with_scope({"grant_type": "client_credentials", "resource": found.resource}, scope)
    return client, (yield from request_token(_request(found, client, prover, clock), form, scope))


def enterprise_managed(
    plan: EnterpriseManaged, found: Found, scope: tuple[str, ...], prover: Prover | None, clock: Clock
) -> Flow[tuple[Registered | None, Token]]:
    """ID token → ID-JAG at the identity provider → access token at the server's own authorization server."""
    profiles = found.server.authorization_grant_profiles_supported
    if profiles is not None and _PROFILE not in profiles:
        raise AuthorizationFailed("the authorization server takes no grant of an identity provider (ID-JAG)")
    assert plan.given is not None
    grant = yield from _exchanged(plan, found, scope, clock)
    client = method_for(plan.given, found.server.token_endpoint_auth_methods_supported)
    form = Hidden(grant_type=_JWT_BEARER, assertion=grant.reveal())
    token = yield from request_token(_request(found, client, prover, clock), form, scope)
    return client, token


def _exchanged(plan: EnterpriseManaged, found: Found, scope: tuple[str, ...], clock: Clock) -> Flow[Secret]:
    """The endpoint is the owner's own word; the audience is the issuer that discovery found and checked."""
    form = _with_scope(
        {
            "grant_type": _EXCHANGE,
            "requested_token_type": f"{_TYPE}id-jag",
            "audience": found.issuer,
            "resource": found.resource,
            "subject_token": plan.id_token().reveal(),
            "subject_token_type": f"{_TYPE}id_token",
        },
        scope,
    )
    client = method_for(plan.at_idp, None)
    request = TokenRequest(
        endpoint=plan.idp_token_endpoint, issuer=plan.idp_token_endpoint, client=client, clock=clock, policy="typed"
    )
    ask = request.ask(form)
    said: Said = yield ask
    refused = request.refusal_in(said, ask)
    if refused is not None:
        raise refused
    told = said.members("the identity provider")
    grant, kind = told.get("access_token"), told.get("issued_token_type")
    if not isinstance(grant, str) or not grant or kind != f"{_TYPE}id-jag":
        raise AuthorizationFailed("the identity provider gave something else than the grant that was asked for")
    return Secret(grant)


def workload_identity(
    plan: WorkloadIdentity, found: Found, scope: tuple[str, ...], prover: Prover | None, clock: Clock
) -> Flow[tuple[Registered | None, Token]]:
    form = Hidden(grant_type=_JWT_BEARER, assertion=plan.assertion().reveal(), resource=found.resource)
    form = _with_scope(form, scope)
    return plan.given, (yield from request_token(_request(found, plan.given, prover, clock), form, scope))


def _request(found: Found, client: Registered | None, prover: Prover | None, clock: Clock) -> TokenRequest:
    endpoint = found.server.endpoint()
    return TokenRequest(endpoint=endpoint, issuer=found.issuer, client=client, clock=clock, prover=prover)


def _with_scope(form: dict[str, str], scope: tuple[str, ...]) -> Hidden[str]:
    return Hidden(form, scope=" ".join(scope)) if scope else Hidden(form)
