"""A client of the official Python SDK, 1.x or 2.x, that logs in by itself; prints what it saw.

usage: guarded_client.py mcp1|mcp2 URL USER PASSWORD

The SDK does all of OAuth; here is only the person, who fills in the form of the page that he is sent to.
"""

import html
import json
import re
import sys
import time
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, build_opener

import anyio
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

CALLBACK = "http://127.0.0.1:33418/callback"


class Person:
    """Says yes on every page, and brings back where he was sent; nobody listens there."""

    def __init__(self, user, password):
        self.user, self.password, self.visits, self.back = user, password, [], ""

    async def visit(self, url):
        self.visits.append(parse_qs(urlsplit(url).query)["scope"][0])
        self.back = await anyio.to_thread.run_sync(self._agree, url)

    def _agree(self, url):
        class Stay(HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        browser = build_opener(HTTPCookieProcessor(CookieJar()), Stay())
        page = browser.open(url, timeout=20).read().decode()
        fields = {name: html.unescape(re.search(rf'{name}="([^"]*)"', page)[1]) for name in ("action", "value")}
        form = {"ticket": fields["value"], "user": self.user, "password": self.password, "decision": "allow"}
        try:
            browser.open(urljoin(url, fields["action"]), urlencode(form).encode(), timeout=20)
        except HTTPError as answer:
            return answer.headers["Location"]
        raise AssertionError("the page sent nobody back")

    async def callback(self):
        told = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        if sys.argv[1] == "mcp1":
            return told["code"], told["state"]
        from mcp.shared.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told.get("iss"))


class Kept:
    """Where the SDK keeps what it got."""

    tokens = client = None

    def __init__(self):
        self.accesses = []

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.accesses.append(tokens.access_token)

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


@asynccontextmanager
async def opened(transport):
    """In the newest revision of the SDK: the revision, and how to call a tool."""
    if sys.argv[1] == "mcp1":
        async with transport as streams, ClientSession(streams[0], streams[1]) as session:
            yield (await session.initialize()).protocolVersion, session.call_tool
    else:
        from mcp import Client

        async with Client(transport) as client:
            yield client.protocol_version, client.call_tool


async def main(url, user, password):
    if sys.argv[1] == "mcp1":
        import httpx as http
    else:
        import httpx2 as http
    person, kept, saw = Person(user, password), Kept(), {}
    metadata = OAuthClientMetadata(client_name="peer", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(url, metadata, kept, person.visit, person.callback)
    async with (
        http.AsyncClient(auth=auth, timeout=30) as web,
        opened(streamable_http_client(url, http_client=web)) as (revision, call),
    ):
        saw["revision"] = revision
        saw["who"] = (await call("whoami", {})).content[0].text
        auth.context.token_expiry_time = time.time() - 1
        saw["who again"] = (await call("whoami", {})).content[0].text
        saw["tokens"] = len(set(kept.accesses))
        saw["written"] = (await call("write", {"text": "hi"})).content[0].text
    saw["visits"] = person.visits
    saw["registered"] = kept.client is not None
    print(json.dumps(saw))


anyio.run(main, *sys.argv[2:])
