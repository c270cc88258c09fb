"""A client that logs in: `python examples/login.py URL` lists the tools of a server that wants a token.

The first run opens a browser (with --paste it shows a URL and reads the one you were sent to); the next ones use what
is kept in --tokens. With --headless nobody is asked.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from interlock import AuthorizationFailed, Client, LoginRequired, OAuth


async def main(words: list[str] | None = None, **more: Any) -> int:
    parser = argparse.ArgumentParser(description="List the tools of a server that wants a token.")
    parser.add_argument("url")
    parser.add_argument("--tokens", default="~/.interlock/tokens", help="the directory in which tokens are kept")
    parser.add_argument("--paste", action="store_true", help="show a URL instead of opening a browser")
    parser.add_argument("--headless", action="store_true", help="ask nobody: use what is kept")
    given = parser.parse_args(words)
    login = None if given.headless else "paste" if given.paste else "browser"
    auth = OAuth(**{"login": login, "tokens": given.tokens, "client_name": "Interlock example", **more})
    try:
        async with Client(given.url, auth=auth) as client:
            for tool in await client.list_tools():
                print(f"{tool.name}: {tool.description or ''}")
    except LoginRequired as error:
        print(f"Nobody is logged in: {error}")
        return 1
    except AuthorizationFailed as error:
        print(f"No token: {error}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
