"""What a result of the newest revision looks like, and which methods there are to have one: basic/index, schema.ts."""

import pytest

from interlock import Server
from support.asgi import message, post
from support.modern_peer import REQUESTS, modern
from support.schemas import Oracle
from support.transcripts import Transcript
from support.wire_peer import server_under_test


@modern
@pytest.mark.requirement("RESULT-001", "RESULT-002")
async def test_every_result_says_that_it_is_complete(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS:
            assert (await peer.result(method, params))["resultType"] == "complete", method


@modern
@pytest.mark.requirement("SCHEMA-004")
@pytest.mark.parametrize("server", ["basic", "changing"])
async def test_a_list_stands_under_its_name(carrier, revision, server):
    lists = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
    lists["resources/templates/list"] = "resourceTemplates"
    async with server_under_test(carrier, revision, server=server) as peer:
        for method, member in lists.items():
            result = await peer.result(method, {})
            assert isinstance(result[member], list)
            assert result.keys() <= {"resultType", "_meta", "ttlMs", "cacheScope", "nextCursor", member}


@pytest.mark.requirement("SCHEMA-005")
@pytest.mark.parametrize("found", [[], ["Ada", "Alan"], [str(number) for number in range(200)]], ids=len)
async def test_completion_gives_values(found):
    server = Server("s")

    @server.prompt
    async def greet(name: str) -> str:
        return name

    @server.completion(prompt="greet", argument="name")
    async def names(typed: str) -> list[str]:
        return found

    frame = message(
        "completion/complete", ref={"type": "ref/prompt", "name": "greet"}, argument={"name": "name", "value": "A"}
    )
    answer = (await post(server.asgi(), frame).answer()).json
    assert answer["result"]["completion"]["values"] == found[:100]
    Transcript("2026-07-28").sent(frame, sender="client").sent(answer, sender="server").check()


@modern
@pytest.mark.requirement("SCHEMA-009")
async def test_the_methods_are_those_of_the_schema(carrier, revision):
    """Every other name that any revision ever used for a request does not exist here."""
    theirs = {method for old in ("2024-11-05", "2025-11-25") for method in _requests_of(old)}
    mine = set(_requests_of(revision))
    async with server_under_test(carrier, revision) as peer:
        for method in sorted(theirs - mine):
            assert (await peer.error(method, {}, judged=False))["code"] == -32601, method
        for method in sorted(mine - {"completion/complete"}):  # completion comes with its own issue
            if method != "subscriptions/listen":
                answer = await peer.request(method, {}, judged=False)
                assert answer.get("error", {}).get("code") != -32601, method
        params = {"notifications": {}}
        peer.send(peer.frame("subscriptions/listen", params, id="listening"))
        await peer.expect("notifications/subscriptions/acknowledged")


def _requests_of(revision):
    oracle = Oracle.load(revision)
    return [*oracle.requests("client"), *oracle.requests("server")]
