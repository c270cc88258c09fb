"""Features that the newest revision keeps and no longer recommends: roots, sampling, logging (SEP-2577, SEP-2596)."""

import sys

import pytest

from interlock import Command, Context
from interlock.transport.stdio.child_process import ChildChannel
from support.modern_peer import modern
from support.wire_peer import HERE, MODERN, WirePeer, server_under_test

quiet = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")
LEVEL_KEY = "io.modelcontextprotocol/logLevel"


@quiet
@modern
@pytest.mark.requirement("DEPR-001", "DEPR-002")
async def test_logging_is_still_declared_and_still_works(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        assert (await peer.result("server/discover", {}))["capabilities"]["logging"] == {}
        await peer.result("tools/call", {"name": "shout"}, meta={LEVEL_KEY: "error"})
        assert [each["level"] for each in peer.notices("notifications/message")] == ["error"]


@quiet
@modern
@pytest.mark.requirement("DEPR-002")
@pytest.mark.parametrize(
    "declared",
    [
        {"roots": {}},
        {"roots": {"listChanged": True}},  # a member of the older revisions
        {"sampling": {}},
        {"sampling": {"context": {}, "tools": {}}},
        {"roots": {}, "sampling": {}, "elicitation": {}},
    ],
)
async def test_a_client_that_declares_them_is_served_and_known_to_have_them(carrier, revision, declared):
    async with server_under_test(carrier, revision, capabilities=declared, check=False) as peer:
        who = (await peer.result("tools/call", {"name": "who"}))["structuredContent"]
        assert {name for name in ("roots", "sampling", "elicitation") if who[name]} == declared.keys()


@pytest.mark.requirement("DEPR-003")
@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.parametrize(
    ("call", "meta"),
    [
        ({"name": "shout"}, {LEVEL_KEY: "debug"}),
        ({"name": "question", "arguments": {"method": "sampling/createMessage"}}, {}),
        ({"name": "question", "arguments": {"method": "roots/list"}}, {}),
    ],
)
async def test_their_use_is_warned_of_once(revision, call, meta):
    """In a process of its own, because it is said once per process; and on stderr, where people look."""
    capabilities = {"sampling": {}, "roots": {}}
    async with server_under_test("stdio", revision, capabilities=capabilities) as peer:
        await peer.request("tools/call", call, meta=meta)
        await peer.request("tools/call", call, meta=meta)
        await peer.channel.close()  # the process is gone: all it had to say is here
        told = [line for line in peer.channel.stderr_tail().splitlines() if "deprecated" in line.lower()]
        assert told
        assert len({line for line in told if line.startswith("!")}) == 1


@pytest.mark.requirement("DEPR-002")
async def test_a_warning_that_is_made_an_error_does_not_fail_the_call():
    """People run their tests with `-W error`. That a client asks for log messages is not the author's mistake."""
    command = [
        sys.executable,
        "-W",
        "error::DeprecationWarning",
        "-m",
        "interlock",
        "run",
        str(HERE / "servers" / "basic.py"),
    ]
    channel = ChildChannel(Command.of(command))
    peer = WirePeer(channel, MODERN[0], "client")
    await channel.open(peer)
    try:
        result = await peer.result("tools/call", {"name": "shout"}, meta={LEVEL_KEY: "debug"})
        assert result.get("isError", False) is False, result
        assert len(peer.notices("notifications/message")) == 3
    finally:
        await channel.close()


@pytest.mark.requirement("DEPR-004")
def test_the_api_of_a_deprecated_feature_is_marked_as_python_marks_it():
    """PEP 702: type checkers and editors read `__deprecated__`; nothing has to run to be told."""
    for call in (Context.log, Context.sample, Context.roots, Context.within_roots):
        assert getattr(call, "__deprecated__", None), call
