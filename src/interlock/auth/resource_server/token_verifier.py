"""Who asks, by the token that a request brings: read here, or shown to its issuer. Every request is judged anew.

A flow (see auth/flow.py): it yields what has to be asked of the issuer, and nothing where the keys are known. What it
says no to is `Turned`, with the words of the challenge; where it cannot find out, `Unsure`, and nobody gets in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import quote_plus

import msgspec

from ...wire.exchange import Principal
from ...wire.lazy_regex import pattern
from ..flow import Ask, Flow, Said
from ..jose.dpop_proof import BadProof, Nonces, Proof, check_proof
from ..jose.jwks import KeySource
from ..jose.jwt import BadToken, Times, audiences_of, check_times, read_written, text_of
from ..www_authenticate import scopes_in
from .protection import Introspection, Protection, challenge, widened

__all__ = ["Admitted", "Judge", "Turned", "Unsure"]

T = TypeVar("T")
_CREDENTIALS = pattern(r"(?i:(bearer|dpop)) +([A-Za-z0-9._~+/-]+=*)")
_SCHEME = pattern(r"(?i:bearer|dpop)(?: .*)?")
_TYPES = ("", "jwt", "at+jwt")  # of a token that is meant for a resource (RFC 9068 §2.1); older issuers say less
_LONGEST = 16 * 1024
_UNKNOWN_EXP_TTL = 3600.0  # seconds a stream may last whose token has no known end: introspection may leave `exp` out
_MOST_HELD = 1000  # answers of the issuer, yes and no each, that are remembered for some seconds; then the oldest goes


class Turned(Exception):
    """No: the status and the challenge."""

    def __init__(self, status: int, challenge: str, told: str, nonce: str | None = None) -> None:
        super().__init__(told)
        self.status, self.challenge, self.nonce = status, challenge, nonce


class Unsure(Exception):
    """The issuer cannot be asked: that is our trouble, and no reason to throw the token away."""


class Admitted(msgspec.Struct, frozen=True):
    """Who asks, what he may, the proof that must not be used twice, and when the token ends."""

    principal: Principal
    scopes: frozenset[str]
    proof: Proof | None = None
    until: float | None = None
    """Unix time from which the token is not accepted any more; None where there is no token."""


class Judge:
    """The rules of one protection. It remembers keys, and for seconds what the issuer said; never a token."""

    def __init__(self, protection: Protection, clock: Callable[[], float]) -> None:
        self._rules, self._clock = protection, clock
        self.nonces = Nonces(clock)
        self._keys = KeySource(
            protection.issuer, protection.algorithms, clock, url=protection.keys_url, given=protection.keys
        )
        self._held: dict[bytes, tuple[float, dict[str, Any]]] = {}
        self._unknown: dict[bytes, tuple[float, None]] = {}  # apart: who makes tokens up pushes nobody's out

    def judge(self, authorization: str | None, proof: str | None, verb: str, url: str) -> Flow[Admitted]:
        """Who asks with these headers for this URL; `Turned` or `Unsure`."""
        dpop, token = self._token_in(authorization)
        try:
            claims = yield from self._claims_of(token)
            found = self._admit(claims)
        except BadToken as bad:
            raise self._no(str(bad), dpop=dpop) from None
        held = self._held_key(claims)
        shown = self._prove(held, dpop, proof, token, verb, url)
        self.need(found, ())
        return msgspec.structs.replace(found, proof=shown)

    def need(self, found: Admitted, scopes: tuple[str, ...]) -> None:
        """Are these among what the token allows, beside what every request needs? All that lacks is told at once."""
        needed = (*self._rules.scopes, *scopes)
        if not set(needed) <= found.scopes:
            told = "the token does not allow this: more scopes are needed"
            words = challenge(self._rules, "insufficient_scope", told, scopes=needed, dpop=found.proof is not None)
            raise Turned(403, words, told)

    # --- the token --------------------------------------------------------------------------------

    def _token_in(self, authorization: str | None) -> tuple[bool, str]:
        if authorization is None or not _SCHEME.fullmatch(authorization):
            raise Turned(401, challenge(self._rules), "a token is needed")  # no error: nothing was wrong (§3.1)
        found = _CREDENTIALS.fullmatch(authorization)
        if found is None or len(authorization) > _LONGEST:
            told = "Authorization is not of the form that the standard says"
            raise Turned(400, challenge(self._rules, "invalid_request", told), told)
        return found[1].lower() == "dpop", found[2]

    def _claims_of(self, token: str) -> Flow[dict[str, Any]]:
        if self._rules.introspection is not None:
            return (yield from self._asked(token, self._rules.introspection))
        written = read_written(token)
        keys = self._keys.held(written.key_id)
        if keys is None:
            try:
                keys = yield from self._keys.look(written.key_id)
            except Exception as error:
                raise Unsure(str(error)) from error
        if not keys:
            raise Unsure("the keys of the issuer are not to be had")
        written.check(keys, self._rules.algorithms, _TYPES)
        if written.claims.get("iss") != self._rules.issuer:
            raise BadToken("it is of another issuer")
        return written.claims

    def _admit(self, claims: Mapping[str, Any]) -> Admitted:
        """What the claims say about the caller, once they are believed."""
        leeway = self._rules.leeway
        until = check_times(claims, self._clock(), Times(leeway=leeway)) + leeway
        if not self._rules.takes(meant := audiences_of(claims)):
            raise BadToken("it is for another audience" if meant else "it names no audience (aud)")
        subject = text_of(claims, "sub")
        if subject is None:
            raise BadToken("it names no subject")
        client = text_of(claims, "client_id") or text_of(claims, "azp") or ""
        scopes = widened(_scopes_of(claims), self._rules.implies)
        return Admitted(Principal(self._rules.issuer, subject, client), scopes, until=until)

    def _asked(self, token: str, how: Introspection) -> Flow[dict[str, Any]]:
        """What the issuer says about it (RFC 7662), now or a few seconds ago."""
        name, now = hashlib.sha256(token.encode()).digest(), self._clock()
        held = self._held.get(name) or self._unknown.get(name)
        if held is not None and held[0] > now:
            return _vouched(held[1])
        try:
            said: Said = yield Ask(
                method="POST",
                url=how.url,
                headers={"Authorization": _basic(how)},
                form={"token": token},
                policy="typed",
            )
            claims = said.members("the issuer") if said.status == 200 else None
        except Exception as error:
            raise Unsure(str(error)) from error
        if claims is None:
            raise Unsure(f"the issuer answered with HTTP status {said.status}")
        if claims.get("active") is not True or claims.get("iss", self._rules.issuer) != self._rules.issuer:
            _remember(self._unknown, name, (now + how.seconds, None))
            return _vouched(None)
        claims.setdefault("exp", now + _UNKNOWN_EXP_TTL)  # it may be left out (§2.2); the issuer is asked again earlier
        _remember(self._held, name, (now + how.seconds, claims))
        return claims

    # --- the key it is bound to -------------------------------------------------------------------

    def _held_key(self, claims: Mapping[str, Any]) -> str | None:
        confirmed = claims.get("cnf")
        if confirmed is None:
            return None
        key = text_of(cast("dict[str, Any]", confirmed), "jkt") if isinstance(confirmed, dict) else None
        if key is None:
            raise self._no("it is bound to something that is not known here", dpop=False)
        return key

    def _prove(self, held: str | None, dpop: bool, proof: str | None, token: str, verb: str, url: str) -> Proof | None:
        """A bound token is never taken without its proof, and no proof makes a token bound (RFC 9449 §7.1)."""
        if held is None:
            if dpop or self._rules.dpop == "required":
                raise self._no("it is not bound to a key", dpop=True)
            return None
        if not dpop:
            raise self._no("it is bound to a key: the scheme is DPoP", dpop=True)
        try:
            if proof is None:
                raise BadProof("there is no proof", nonce=False)
            nonces = self.nonces if self._rules.nonces else None
            found = check_proof(proof, verb, url, self._clock(), access=token, nonces=nonces)
            if found.key != held:
                raise BadProof("the proof is of another key than the token")
        except BadProof as bad:
            raise self.unproved(bad) from None
        return found

    def unproved(self, bad: BadProof) -> Turned:
        error = "use_dpop_nonce" if bad.nonce else "invalid_dpop_proof"
        nonce = self.nonces.new() if self._rules.nonces else None
        return Turned(401, challenge(self._rules, error, str(bad), dpop=True), str(bad), nonce)

    def _no(self, why: str, *, dpop: bool) -> Turned:
        told = f"the token is not accepted: {why}"
        return Turned(401, challenge(self._rules, "invalid_token", told, dpop=dpop), told)


def _vouched(claims: dict[str, Any] | None) -> dict[str, Any]:
    if claims is None:
        raise BadToken("the issuer does not know it, or it has ended")
    return claims


def _remember(held: dict[bytes, T], name: bytes, what: T) -> None:
    held.pop(name, None)
    held[name] = what
    while len(held) > _MOST_HELD:
        del held[next(iter(held))]


def _scopes_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """`scope` as the standard has it, or `scp` as some issuers do: a text or a list."""
    found = claims.get("scope", claims.get("scp"))
    if isinstance(found, str):
        return scopes_in(found)
    if isinstance(found, list):
        return scopes_in([each for each in cast("list[Any]", found) if isinstance(each, str)])
    return ()


def _basic(how: Introspection) -> str:
    """The two parts are encoded as in a form before they are joined (RFC 6749 §2.3.1)."""
    pair = f"{quote_plus(how.client_id)}:{quote_plus(how.secret())}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
