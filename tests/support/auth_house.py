"""An authorization server in the test's hand, without a socket: its app, a browser, and clients that ask for tokens."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from interlock.auth.authorization_server.app import IssuerApp
from interlock.auth.authorization_server.client_metadata import KnownClient, hash_secret
from interlock.auth.authorization_server.passwords import hash_password
from interlock.auth.authorization_server.server import AuthorizationServer
from interlock.auth.flow import Ask, Said
from interlock.state.memory import MemoryStore

from .asgi import Talk, begin

__all__ = ["AS", "CALLBACK", "MCP", "SECRET", "House", "VERIFIER", "challenge_of", "served_by"]

AS, MCP = "https://as.example.com", "https://mcp.example.com/mcp"
CALLBACK = "http://127.0.0.1:7777/callback"
SECRET = "a-secret-of-some-length"
VERIFIER = "v" * 50
ADA = hash_password("correct horse")


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


async def served_by(
    app: Any, verb: str, url: str, body: bytes | None = None, *, address: str = "", **headers: str
) -> Talk:
    """One request to an ASGI app, from an address; header names with underscores."""
    parts = urlsplit(url)
    lines = {"host": parts.netloc, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in lines.items()]
    scope = {"method": verb, "path": parts.path, "query_string": parts.query.encode(), "headers": raw}
    if address:
        scope["client"] = (address, 40000)
    return await begin(app, [body or b""], **scope).answer()


class House:
    """`documents` are what stands at URLs; `asked` is what the server fetched."""

    def __init__(self, *, origins: tuple[str, ...] = (), **more: Any) -> None:
        self.now = 1_000_000.0
        self.address = ""
        """Where requests come from."""
        self.documents: dict[str, Said] = {}
        self.asked: list[str] = []
        known = [
            KnownClient(id="public", name="Pub", redirect_uris=(CALLBACK, "https://app.example.com/done")),
            KnownClient(
                id="machine", secret_hash=hash_secret(SECRET), grants=("client_credentials", "authorization_code")
            ),
        ]
        store = more.pop("store", None) or MemoryStore(clock=lambda: self.now)
        given: dict[str, Any] = {
            "resources": [MCP],
            "users": {"ada": ADA},
            "clients": known,
            "scopes": ("read", "write"),
        }
        self.server = AuthorizationServer(AS, **{**given, "store": store, "clock": lambda: self.now, **more})
        self.app = IssuerApp(self.server, allowed_origins=origins)
        for part in (self.app._clients, self.app._desk):
            part._ask = self._ask  # pyright: ignore

    async def _ask(self, step: Ask) -> Said:
        self.asked.append(step.url)
        return self.documents.get(step.url, Said(status=404))

    def get(self, path: str, **headers: str) -> Any:
        return served_by(self.app, "GET", AS + path, address=self.address, **headers)

    def post(self, path: str, form: dict[str, str] | bytes, **headers: str) -> Any:
        body = form if isinstance(form, bytes) else urlencode(form).encode()
        said = {"content_type": "application/x-www-form-urlencoded", **headers}
        return served_by(self.app, "POST", AS + path, body, address=self.address, **said)

    def register(self, members: Any, **headers: str) -> Any:
        body = members if isinstance(members, bytes) else json.dumps(members).encode()
        return served_by(self.app, "POST", AS + "/register", body, content_type="application/json", **headers)

    # --- the way of a person ----------------------------------------------------------------------

    def query(self, **changes: str | None) -> str:
        base = {
            "response_type": "code",
            "client_id": "public",
            "redirect_uri": CALLBACK,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "s t&",
            "scope": "read",
            "resource": MCP,
        }
        return urlencode({name: value for name, value in {**base, **changes}.items() if value is not None})

    async def page(self, **changes: str | None) -> Talk:
        return await self.get("/authorize?" + self.query(**changes))

    async def answer(self, page: Talk, headers: dict[str, str] | None = None, **form: str) -> Talk:
        """Post the form of a page as a browser would."""
        ticket = html.unescape(re.search(r'name="ticket" value="([^"]*)"', page.body.decode())[1])  # pyright: ignore
        said = {"cookie": page.headers.get("set-cookie", "").partition(";")[0], "origin": AS} | (headers or {})
        filled = {"ticket": ticket, "user": "ada", "password": "correct horse", "decision": "allow", **form}
        return await self.post("/authorize", filled, **said)

    async def code(self, **changes: str | None) -> str:
        back = await self.answer(await self.page(**changes))
        assert back.status == 303, back.body
        return self.query_of(back)["code"]

    def query_of(self, talk: Talk) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(talk.headers["location"]).query))

    async def redeem(self, code: str, headers: dict[str, str] | None = None, **changes: str | None) -> Talk:
        base = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": "public",
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            "resource": MCP,
        }
        form = {name: value for name, value in {**base, **changes}.items() if value is not None}
        return await self.post("/token", form, **(headers or {}))

    async def refresh(self, token: str, headers: dict[str, str] | None = None, **changes: str) -> Talk:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "public", **changes}
        return await self.post("/token", form, **(headers or {}))

    def basic(self, id: str = "machine", secret: str = SECRET) -> dict[str, str]:
        pair = f"{quote_plus(id)}:{quote_plus(secret)}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
