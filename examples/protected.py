"""A server that wants tokens, and the authorization server that gives them, in one process.

    INTERLOCK_PASSWORD=... python examples/protected.py [port]

Whoever connects is sent to a page, where "ada" says yes with that password.
"""

from __future__ import annotations

import os
import sys

from interlock import AuthorizationServer, Context, KnownClient, Server, hash_password


def protected(port: int, password: str, *, redirect_uri: str = "http://127.0.0.1:3000/callback") -> Server:
    """The server; `server.run("http", port=port)` serves both."""
    base = f"http://127.0.0.1:{port}"
    issuer = AuthorizationServer(
        base,
        resources=[f"{base}/mcp"],
        users={"ada": hash_password(password)},
        clients=[KnownClient(id="example", name="An example", redirect_uris=(redirect_uri,))],
        scopes=["notes:read", "notes:write"],
    )
    server = Server("protected", version="1.0", auth=issuer.protection(scopes=("notes:read",)))
    notes: list[str] = []

    @server.tool
    async def whoami(ctx: Context) -> str:
        """Who the token says you are."""
        return f"{ctx.principal.subject}, through {ctx.principal.client}"

    @server.tool(scopes=["notes:write"])
    async def write(text: str) -> int:
        """Write a note; needs a token that allows it."""
        notes.append(text)
        return len(notes)

    return server


if __name__ == "__main__":
    chosen = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    given = os.environ.get("INTERLOCK_PASSWORD")
    if not given:
        sys.exit("set INTERLOCK_PASSWORD: the password with which ada says yes")
    protected(chosen, given).run("http", port=chosen)
