"""Questions between us and the official Python SDK 2.x: each as client and as server, over stdio and HTTP."""

from __future__ import annotations

import pytest

from interlock import Client
from interlock.revisions.probing import Verdicts
from interop.asking import (
    OUR_SERVER,
    User,
    check_story,
    served,
    story,
    visit_a_page,
    visit_a_prompt_and_a_resource,
    visit_the_forms,
    visit_the_other_kinds,
    visit_with_less_than_is_needed,
    visit_with_many_at_once,
)
from interop.environments import PEERS
from support.wire_peer import HANDSHAKE, MODERN


@pytest.fixture
def their_client(peer_python):
    return [peer_python("mcp2"), str(PEERS / "mcp2_asking_client.py")]


@pytest.fixture
def their_server(peer_python):
    return [peer_python("mcp2"), str(PEERS / "mcp2_asking_server.py")]


# --- our server asks their client -------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "revision"), [("legacy", HANDSHAKE[-1]), ("auto", MODERN[-1])])
def test_our_server_asks_over_stdio(their_client, mode, revision):
    saw = story(their_client, mode, *OUR_SERVER)
    assert saw["revision"] == revision
    check_story(saw, stateless=revision in MODERN)


@pytest.mark.parametrize("mode", ["auto", MODERN[-1]])
def test_our_server_asks_over_http(their_client, tmp_path, mode):
    with served([*OUR_SERVER, "--http", "--port", "0"], tmp_path / "said") as address:
        saw = story(their_client, mode, address)
    assert saw["revision"] == MODERN[-1]
    check_story(saw, stateless=True)


# --- their server asks our client -------------------------------------------------------------------


@pytest.mark.parametrize("revision", [HANDSHAKE[-2], HANDSHAKE[-1], MODERN[-1]])
async def test_our_client_answers_over_stdio(their_server, revision):
    user = User()
    async with Client(their_server, revision=revision, verdicts=Verdicts(), **user.options()) as client:
        await visit_the_forms(client, user)
        await visit_with_many_at_once(client, user)
        await visit_the_other_kinds(client, user)
        await visit_a_page(client, user)
        if revision in MODERN:  # in the handshake era prompts and resources of this SDK cannot ask
            await visit_a_prompt_and_a_resource(client, user)


async def test_our_client_answers_over_http(their_server, tmp_path):
    user = User()
    with served([*their_server, "--http"], tmp_path / "said") as address:
        async with Client(address, verdicts=Verdicts(), **user.options()) as client:
            assert client.revision == MODERN[-1]
            await visit_the_forms(client, user)
            await visit_with_many_at_once(client, user)
            await visit_the_other_kinds(client, user)
            await visit_a_page(client, user)
            await visit_a_prompt_and_a_resource(client, user)


async def test_a_question_that_we_did_not_declare_is_not_asked(their_server, tmp_path):
    await visit_with_less_than_is_needed(their_server)
    with served([*their_server, "--http"], tmp_path / "said") as address:
        await visit_with_less_than_is_needed(address)
