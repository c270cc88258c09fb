"""One scripted host on a real socket: an MCP server that wants tokens at /mcp, and its issuer below /as."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from interlock import OAuth
from interlock.auth.flow import Ask
from support.auth_world import NOTHING, Issuer, said
from support.http_peer import HttpPeer, Request, Stream, http

__all__ = ["GuardedPeer"]


class GuardedPeer:
    def __init__(self, script: Callable[[Request, Stream], Any], *, scheme: str = "Bearer", **metadata: Any) -> None:
        self._inner, self._scheme, self._metadata = script, scheme, metadata
        self.peer = HttpPeer(self._script)
        self.revoked: set[str] = set()
        self.needs: dict[str, str] = {}
        self.refused: list[Request] = []
        self.visits: list[str] = []
        self.challenge = ""

    async def __aenter__(self) -> GuardedPeer:
        await self.peer.start()
        self.origin = self.peer.url.removesuffix("/mcp")
        self.issuer = Issuer(f"{self.origin}/as", **self._metadata)
        if self._scheme == "DPoP":
            self.issuer.token = lambda told: {**told, "token_type": "DPoP"}
        self.resource = {"resource": self.url, "authorization_servers": [self.issuer.issuer]}
        self.routes = {
            **self.issuer.routes(),
            f"{self.origin}/.well-known/oauth-protected-resource/mcp": lambda ask: said(self.resource),
        }
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.peer.__aexit__(*error)

    @property
    def url(self) -> str:
        return self.peer.url

    @property
    def calls(self) -> list[Request]:
        return [request for request in self.peer.requests if request.path == "/mcp"]

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.peer.requests if request.path != "/mcp"]

    def oauth(self, **more: Any) -> OAuth:
        return OAuth(**{"login": self.login, "redirect_uri": "http://127.0.0.1:1/cb", **more})

    async def login(self, url: str) -> str:
        self.visits.append(url)
        return self.issuer.visit(url)

    def _script(self, request: Request, stream: Stream) -> Any:
        if request.path != "/mcp":
            return self._document(request)
        scheme, _, token = (request.header("Authorization") or "").partition(" ")
        if scheme != self._scheme or not token.startswith("access-") or token in self.revoked:
            self.refused.append(request)
            return http(401, b"", f"WWW-Authenticate: {self._scheme} realm=x{self.challenge}")
        scope = self.needs.pop(request.method, None) if request.body else None
        if scope is not None:
            told = f'Bearer error="insufficient_scope", scope="{scope}"'
            return http(403, b"", f"WWW-Authenticate: {told}")
        return self._inner(request, stream)

    def _document(self, request: Request) -> bytes:
        posted = request.body and (request.header("Content-Type") or "").startswith("application/x-www-form")
        ask = Ask(
            url=self.origin + request.path,
            headers=dict(request.headers),
            form=dict(parse_qsl(request.body.decode())) if posted else None,
            json=json.loads(request.body) if request.body and not posted else None,
        )
        answer = self.routes.get(ask.url, lambda _: NOTHING)(ask)
        return http(answer.status, answer.body)
