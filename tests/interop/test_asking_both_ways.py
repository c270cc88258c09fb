"""Questions between us and the official SDKs 2.x: each as client and as server, over stdio and HTTP."""

from __future__ import annotations

import pytest

from interlock import Client
from interlock.protocol.client.probe import Verdicts
from interop.asking import (
    OUR_SERVER,
    User,
    check_story,
    visit_a_page,
    visit_a_prompt_and_a_resource,
    visit_the_forms,
    visit_the_other_kinds,
    visit_with_less_than_is_needed,
    visit_with_many_at_once,
)
from interop.environments import PEERS
from interop.told import served, story
from support.wire_peer import HANDSHAKE, MODERN

VISITS = (visit_the_forms, visit_with_many_at_once, visit_the_other_kinds, visit_a_page)


@pytest.fixture(params=["python", "typescript"])
def sdk(request):
    return request.param


@pytest.fixture
def theirs(sdk, request):
    """The command of their client or server, made only for the SDK that is wanted."""
    if sdk == "python":
        python = request.getfixturevalue("peer_python")("mcp2")
        return lambda part: [python, str(PEERS / f"mcp2_asking_{part}.py")]
    command = request.getfixturevalue("typescript")
    return lambda part: command(f"ts2_asking_{part}.mjs", "over_http.mjs")


# --- our server asks their client -------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "revision"), [("legacy", HANDSHAKE[-1]), ("auto", MODERN[-1])])
def test_our_server_asks_over_stdio(theirs, mode, revision):
    saw = story([*theirs("client"), mode, *OUR_SERVER])
    assert saw["revision"] == revision
    check_story(saw, stateless=revision in MODERN)


@pytest.mark.parametrize("mode", ["legacy", "auto", MODERN[-1]])
def test_our_server_asks_over_http(theirs, tmp_path, mode):
    with served([*OUR_SERVER, "--http", "--port", "0"], tmp_path / "said") as address:
        saw = story([*theirs("client"), mode, address])
    assert saw["revision"] == (HANDSHAKE[-1] if mode == "legacy" else MODERN[-1])
    check_story(saw, stateless=mode != "legacy")


# --- their server asks our client -------------------------------------------------------------------


@pytest.mark.parametrize("revision", [HANDSHAKE[-2], HANDSHAKE[-1], MODERN[-1]])
async def test_our_client_answers_over_stdio(theirs, sdk, revision):
    user = User()
    async with Client(theirs("server"), revision=revision, verdicts=Verdicts(), **user.options()) as client:
        for visit in VISITS:
            await visit(client, user)
        if sdk != "python" or revision in MODERN:  # in the handshake era prompts and resources of that SDK cannot ask
            await visit_a_prompt_and_a_resource(client, user)


async def test_our_client_answers_over_http(theirs, tmp_path):
    user = User()
    with served([*theirs("server"), "--http"], tmp_path / "said") as address:
        async with Client(address, verdicts=Verdicts(), **user.options()) as client:
            assert client.revision == MODERN[-1]
            for visit in (*VISITS, visit_a_prompt_and_a_resource):
                await visit(client, user)


async def test_a_question_that_we_did_not_declare_is_not_asked(theirs, tmp_path):
    await visit_with_less_than_is_needed(theirs("server"))
    with served([*theirs("server"), "--http"], tmp_path / "said") as address:
        await visit_with_less_than_is_needed(address)
