"""A server of the official Python SDK, 1.x or 2.x, with its own authorization server, which agrees to every login.

    python guarded_server.py mcp1|mcp2

Tokens live for 2 s, so that a client has to refresh. The address is said on stderr.
"""

import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken


class Everybody:
    """Keeps clients, codes and tokens in dictionaries; a refresh token is good for one use."""

    def __init__(self):
        self.clients, self.codes, self.refreshes, self.tokens = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self._issued(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refreshes[refresh_token.token]
        return self._issued(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        found = self.tokens.get(token)
        return found if found is not None and found.expires_at > time.time() else None

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)

    def _issued(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        told = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.tokens[access] = AccessToken(token=access, expires_at=int(time.time()) + 3, **told)
        self.refreshes[refresh] = RefreshToken(token=refresh, **told)
        return OAuthToken(access_token=access, expires_in=2, refresh_token=refresh, scope=" ".join(scopes))


if sys.argv[1] == "mcp1":
    from mcp.server.fastmcp import FastMCP as Server
else:
    from mcp.server.mcpserver import MCPServer as Server

listening = socket.create_server(("127.0.0.1", 0))
origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
settings = AuthSettings(
    issuer_url=origin,
    resource_server_url=f"{origin}/mcp",
    validate_token_resource=True,
    required_scopes=["use"],
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"], default_scopes=["use"]),
)
server = Server("guarded", auth_server_provider=Everybody(), auth=settings)


@server.tool()
def echo(text: str) -> str:
    """Give back the text."""
    return text


print(f"{origin}/mcp", file=sys.stderr, flush=True)
app = server.streamable_http_app()
uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[listening])
