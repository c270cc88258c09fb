"""A tool that keeps to the client's roots, in every revision and over every carrier: `ctx.within_roots(path)`."""

import shutil
import sys
from contextlib import asynccontextmanager

import pytest

from interlock import Client
from support.http_socket import served
from support.http_talk import PLACES
from support.servers import rooted

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")
everywhere = pytest.mark.parametrize(("carrier", "revision"), PLACES)
tools = pytest.mark.parametrize("tool", ["read", "read_in_thread"])


@pytest.fixture
def folder(tmp_path):
    """A root, a neighbour whose name begins alike, and links between them."""
    root, other = tmp_path.resolve() / "data", tmp_path.resolve() / "data-secret"
    for each in (root, other):
        (each / "sub").mkdir(parents=True)
        (each / "sub" / "a b.txt").write_text(each.name)
    (root / "out").symlink_to(other)
    (other / "in").symlink_to(root)
    return root


@asynccontextmanager
async def client_of(carrier, revision, roots):
    if carrier == "http":
        async with (
            served(rooted.server.asgi()) as port,
            Client(f"http://127.0.0.1:{port}/mcp", revision=revision, roots=roots) as client,
        ):
            yield client
        return
    command = [sys.executable, "-m", "interlock", "run", rooted.__file__]
    async with Client(rooted.server if carrier == "memory" else command, revision=revision, roots=roots) as client:
        yield client


@everywhere
@tools
@pytest.mark.requirement("ROOTS-12", "ROOTS-13", "ROOTS-004")
async def test_nothing_outside_of_the_roots_is_read(carrier, revision, tool, folder):
    other = folder.parent / "data-secret"
    async with client_of(carrier, revision, [{"uri": folder.as_uri()}]) as client:
        for path in (folder / "sub" / "a b.txt", f"{folder}/sub/../sub/a b.txt", other / "in" / "sub" / "a b.txt"):
            assert (await client.call_tool(tool, {"path": str(path)})).text == "data"
        outside = (
            other / "sub" / "a b.txt",
            f"{folder}/../data-secret/sub/a b.txt",
            folder / "out" / "sub" / "a b.txt",
        )
        for path in (*outside, "/etc/passwd", f"{folder}/a\0b"):
            refused = await client.call_tool(tool, {"path": str(path)})
            assert refused.is_error and refused.text == "outside of the roots"


@everywhere
@tools
@pytest.mark.requirement("ROOTS-11", "ROOTS-004")
async def test_a_root_that_is_gone_is_no_harm(carrier, revision, tool, folder):
    roots = [{"uri": folder.as_uri()}, {"uri": (folder.parent / "data-secret").as_uri()}]
    async with client_of(carrier, revision, roots) as client:
        shutil.rmtree(folder)
        gone = await client.call_tool(tool, {"path": str(folder / "sub" / "a b.txt")})
        assert gone.is_error  # it cannot be read, and that is all
        kept = folder.parent / "data-secret" / "sub" / "a b.txt"
        assert (await client.call_tool(tool, {"path": str(kept)})).text == "data-secret"
