"""A world for flows of authorization, without a loop, a socket or a clock: a server, its issuers, a user, a disk."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from interlock.auth.client.providers import OAuth
from interlock.auth.client.token_manager import Seeker
from interlock.auth.client.token_storage import MemoryRecords
from interlock.auth.flow import Ask, Hold, Load, Prepare, Said, Save, Visit
from interlock.auth.secrets import Secret
from interlock.auth.www_authenticate import Demand

__all__ = ["SERVER", "ISSUER", "REDIRECT", "Clock", "Issuer", "World", "said", "oauth", "basic_of", "NOTHING"]

SERVER, ISSUER = "https://mcp.example.com/mcp", "https://as.example.com"
REDIRECT = "http://127.0.0.1:7777/callback"
NOTHING = Said(status=404)


async def _never(url: str) -> str:
    raise AssertionError("the world visits for itself")


def oauth(**more: Any) -> OAuth:
    return OAuth(**{"login": _never, "redirect_uri": REDIRECT, **more})


def said(members: Any, status: int = 200, **headers: str) -> Said:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(status=status, headers={"content-type": "application/json", **named}, body=json.dumps(members).encode())


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Issuer:
    """An authorization server that checks what it is told as a good one does."""

    def __init__(self, issuer: str = ISSUER, **more: Any) -> None:
        self.issuer, self.more = issuer, more
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshes: set[str] = set()
        self.clients: dict[str, dict[str, Any]] = {}
        self.requests: list[dict[str, str]] = []
        self.issued = self.visited = 0
        self.life: Any = 3600
        self.answer: Callable[[dict[str, str]], dict[str, str]] = lambda answer: answer
        self.token: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer

    def metadata(self) -> dict[str, Any]:
        told = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
            "response_types_supported": ["code"],
        }
        return {name: value for name, value in {**told, **self.more}.items() if value is not None}

    def routes(self) -> dict[str, Callable[[Ask], Said]]:
        at = urlsplit(self.issuer)
        origin = f"{at.scheme}://{at.netloc}"
        return {
            f"{origin}/.well-known/oauth-authorization-server{at.path}": lambda ask: said(self.metadata()),
            f"{self.issuer}/token": self._token,
            f"{self.issuer}/register": self._register,
        }

    def _register(self, ask: Ask) -> Said:
        id = f"client-{len(self.clients) + 1}"
        self.clients[id] = ask.json
        secret = {} if ask.json["token_endpoint_auth_method"] == "none" else {"client_secret": "s3cret-of-theirs"}
        return said({**ask.json, "client_id": id, **secret}, 201)

    def visit(self, url: str) -> str:
        """What a user's browser comes back with when he agrees."""
        asked = dict(parse_qsl(urlsplit(url).query))
        self.visited += 1
        code = f"code-{self.visited}-of-{self.issuer}"
        self.codes[code] = asked
        told = {"code": code, "state": asked["state"], "iss": self.issuer}
        return f"{asked['redirect_uri']}?{urlencode(self.answer(told))}"

    def _token(self, ask: Ask) -> Said:
        form = dict(ask.form or {})
        self.requests.append(form | {f"header {name.lower()}": value for name, value in ask.headers.items()})
        if form["grant_type"] == "authorization_code":
            return self._redeem(form)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refreshes:
                return said({"error": "invalid_grant"}, 400)
            self.refreshes.remove(form["refresh_token"])
        return self._issue(form.get("scope", ""))

    def _redeem(self, form: dict[str, str]) -> Said:
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return said({"error": "invalid_grant", "error_description": f"code {form['code']} is unknown"}, 400)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return said({"error": "invalid_grant"}, 400)
        if asked["resource"] != form["resource"]:
            return said({"error": "invalid_target"}, 400)
        return self._issue(asked.get("scope", ""))

    def _issue(self, scope: str) -> Said:
        self.issued += 1
        refresh = f"refresh-{self.issued}"
        self.refreshes.add(refresh)
        told = {"access_token": f"access-{self.issued}", "token_type": "Bearer", "refresh_token": refresh}
        return said(self.token({**told, "expires_in": self.life, **({"scope": scope} if scope else {})}))


class World:
    """Drives flows, and remembers what they wanted."""

    def __init__(self, *issuers: Issuer, resource: dict[str, Any] | None = None, url: str = SERVER) -> None:
        self.issuers = issuers or (Issuer(),)
        self.url, self.clock, self.records = url, Clock(), MemoryRecords()
        self.asks: list[Ask] = []
        self.visits: list[str] = []
        self.held: list[str] = []
        self.routes: dict[str, Callable[[Ask], Said]] = {}
        for issuer in self.issuers:
            self.routes |= issuer.routes()
        at = urlsplit(url)
        self.resource = resource or {"resource": url, "authorization_servers": [self.issuers[0].issuer]}
        self.routes[f"{at.scheme}://{at.netloc}/.well-known/oauth-protected-resource{at.path}"] = lambda ask: said(
            self.resource
        )

    def seeker(self, plan: Any = None, **more: Any) -> Seeker:
        return Seeker(plan or oauth(), self.url, clock=self.clock, **more)

    def run(self, flow: Any) -> Any:
        try:
            step = next(flow)
            while True:
                try:
                    outcome = self.do(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as end:
            return end.value
        finally:
            self.held.clear()

    def do(self, step: Any) -> Any:
        match step:
            case Ask():
                self.asks.append(step)
                return self.routes.get(step.url, lambda _: NOTHING)(step)
            case Hold():
                self.held.append(step.key)
            case Load():
                return self.records.load(step.key)
            case Save():
                assert self.held, "a record is changed that is not held"
                self.records.save(step.key, step.value)
            case Prepare():
                return step.wanted or REDIRECT
            case Visit():
                self.visits.append(step.url)
                issuer = next(each for each in self.issuers if step.url.startswith(f"{each.issuer}/authorize"))
                return Secret(issuer.visit(step.url))
        return None

    @property
    def asked_urls(self) -> list[str]:
        return [ask.url for ask in self.asks]

    def visited(self, number: int = -1) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.visits[number]).query))

    def again(self, plan: Any = None) -> Any:
        """A further login: the token that is there is refused, and not refreshed."""
        seeker = self.seeker(plan)
        used = self.run(seeker.current()).standing.token.access
        return self.run(seeker.renewed(Demand(), used, refresh=False))

    def logged_in(self, plan: Any = None, **demand: Any) -> Seeker:
        seeker = self.seeker(plan)
        self.run(seeker.renewed(Demand(**demand), None))
        return seeker


def basic_of(header: str) -> tuple[str, str]:
    id, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return unquote_plus(id), unquote_plus(secret)
