"""A server behind nginx, Debian's own package: path prefixes, streams, and who the callers are."""

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlock import Client
from support.asgi import call_tool
from support.http_socket import connection, find_free_port, http, wait_until_listening

from .environments import (
    CACHE,
    PEERS,
    PINS,
    RegistryUnreachable,
    locked,
    node_project,
    python_of,
    script_in,
    unavailable,
)

WAIT = 60.0
SERVER = """
from interlock import Context, RateLimits, Rate, Server

server = Server("behind", rate_limits=RateLimits(calls=Rate(0.001, 2)))

@server.tool
async def hi() -> str:
    return "hi"

@server.tool
async def steps(ctx: Context) -> str:
    await ctx.progress(1)
    return "done"
"""
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /tools/notes/ {{
      proxy_pass http://127.0.0.1:{upstream}/;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $http_x_test_client;
      proxy_buffering off;
    }}
  }}
}}
"""


def nginx():
    """The program: the machine's own, or Debian's package unpacked below .cache."""
    if (installed := shutil.which("nginx")) is not None:
        return installed
    if shutil.which("apt-get") is None or os.getuid() != 0:
        pytest.skip("nginx is not installed, and only root on a Debian system can download its package")
    folder = CACHE / "nginx"
    program = folder / "usr" / "sbin" / "nginx"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(CACHE / "nginx.lock"):
        if not program.is_file():
            fetch(folder)
    return str(program)


def fetch(folder):
    for words in (["apt-get", "update"], ["apt-get", "download", "nginx"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode:  # of the second: old lists may do
        unavailable(RegistryUnreachable("apt-get could not download nginx"))
    [package] = folder.glob("nginx_*.deb")
    subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)


@asynccontextmanager
async def started(*words, port):
    process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    try:
        await wait_until_listening(process, port)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


@asynccontextmanager
async def behind(folder: Path, *options):
    """The port of the proxy: what it gets below /tools/notes/ it passes on without that."""
    program, port, upstream = nginx(), find_free_port(), find_free_port()
    file, config = folder / "server.py", folder / "nginx.conf"
    file.write_text(SERVER)
    config.write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    serve = [sys.executable, "-m", "interlock", "run", str(file), "--http", "--port", str(upstream), *options]
    async with started(*serve, port=upstream), started(program, "-p", str(folder), "-c", str(config), port=port):
        yield port


@pytest.mark.parametrize(
    ("place", "revision"), [("mcp", "2026-07-28"), ("mcp", "2025-11-25"), ("sse", "2024-11-05"), ("sse/", "2024-11-05")]
)
async def test_a_prefix_that_the_proxy_removes(tmp_path, place, revision):
    async with (
        behind(tmp_path) as port,
        Client(f"http://127.0.0.1:{port}/tools/notes/{place}", revision=revision) as client,
    ):
        assert (await client.call_tool("steps")).content[0].text == "done"


@pytest.mark.parametrize("peer", ["python", "typescript"])
async def test_official_clients_of_the_oldest_transport_find_where_to_post(tmp_path, peer):
    """They resolve the address against the one they have called (RFC 3986 §5.2)."""
    try:
        if peer == "python":
            words = [python_of("mcp1", PINS["mcp1"]), str(PEERS / "old_sse_client.py")]
        else:
            node, project = node_project()
            words = [node, script_in(project, "old_sse_client.mjs")]
    except RegistryUnreachable as reason:
        unavailable(reason)
    async with behind(tmp_path) as port:
        pipe = asyncio.subprocess.PIPE
        url = f"http://127.0.0.1:{port}/tools/notes/sse"
        process = await asyncio.create_subprocess_exec(*words, url, stdout=pipe, stderr=pipe)
        async with asyncio.timeout(WAIT):
            told, errors = await process.communicate()
    assert told.decode().split() == ["steps:", "done"], errors.decode()


async def called(port, address):
    """Over a connection of its own, as one of the clients before the proxy."""
    async with connection(port) as raw:
        raw.write(http(call_tool("hi"), {"x-test-client": address}, target="/tools/notes/mcp"))
        return (await raw.response()).json["result"]


async def test_callers_behind_a_trusted_proxy_have_a_rate_each(tmp_path):
    async with behind(tmp_path, "--forwarded-allow-ips", "127.0.0.1") as port:
        for address in ("192.0.2.1", "192.0.2.2", "203.0.113.9, 192.0.2.3"):
            assert not (await called(port, address)).get("isError")
            assert not (await called(port, address)).get("isError")
            refused = await called(port, address)
            assert refused["isError"] and "0.001 calls" in refused["content"][0]["text"]
        assert (await called(port, "198.51.100.7, 192.0.2.1"))["isError"], "what a client wrote itself is not believed"


async def test_a_proxy_that_is_not_trusted_is_one_caller(tmp_path):
    async with behind(tmp_path) as port:
        for address in ("192.0.2.1", "192.0.2.2"):
            assert not (await called(port, address)).get("isError")
        assert (await called(port, "192.0.2.3"))["isError"]
