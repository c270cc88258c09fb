"""A real server that gives everything, over every carrier and in every revision that the carrier knows."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from support.http_socket import served
from support.servers import giving
from support.warm_channel import warm_or_cold
from support.wire_peer import ALL, CARRIERS

__all__ = ["NEWEST", "SINCE_2025_03", "SINCE_2025_06", "SINCE_2025_11", "given", "over"]

NEWEST = ALL[-1]
SINCE_2025_03 = ALL[1:]
SINCE_2025_06 = ALL[2:]
SINCE_2025_11 = ALL[3:]
FILE = Path(giving.__file__)


def over(revisions: Iterable[str] = ALL) -> Any:
    """Every carrier with every revision it carries: HTTP has the newest alone yet."""
    pairs = [(carrier, revision) for revision in revisions for carrier in CARRIERS]
    pairs += [("http", NEWEST)] if NEWEST in revisions else []
    return pytest.mark.parametrize(("carrier", "revision"), pairs)


@asynccontextmanager
async def given(carrier: str, revision: str, **options: Any) -> AsyncIterator[Client]:
    """A client of that revision, and the server `giving` behind that carrier."""
    async with _target(carrier) as target, Client(target, revision=revision, **options) as client:
        yield client


@asynccontextmanager
async def _target(carrier: str) -> AsyncIterator[Any]:
    if carrier == "http":
        async with served(giving.server.asgi()) as port:
            yield f"http://127.0.0.1:{port}/mcp"
    elif carrier == "memory":
        yield giving.server
    else:
        yield warm_or_cold(FILE, [sys.executable, "-m", "interlock", "run", str(FILE)])
