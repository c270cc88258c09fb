"""Extensions in the newest revision: basic/versioning#extension-negotiation, on the server's side."""

import pytest

from interlock import Server
from interlock.wire.errors import LocalError
from support.modern_peer import REQUESTS, connected, modern
from support.wire_peer import CAPABILITIES_KEY, server_under_test

FANCY = "com.example/fancy"
GOOD_IDS = ["com.example/x", "org.example-two.sub/a.b_c-d", "io.modelcontextprotocol/tasks", "x/y", "com.example.mcp/x"]
BAD_IDS = ["", "x", "tasks", "/x", "com..example/x", "com./x", ".com/x", "-com/x", "1com/x", "com-/x", "com.example/-x"]
BAD_IDS += ["com.example/x-", "com.example/a b", "com example/x", "com.exämple/x", "com.example/x/y", "com.example/x\n"]


@pytest.mark.requirement("EXTNEG-001")
@pytest.mark.parametrize("id", BAD_IDS)
def test_an_identifier_that_breaks_the_rules_is_refused_at_once(id):
    with pytest.raises(LocalError):
        Server("author", extensions={id: {}})


@pytest.mark.requirement("EXTNEG-001", "EXTNEG-003")
@pytest.mark.parametrize("id", GOOD_IDS)
async def test_an_identifier_that_keeps_the_rules_is_advertised(id):
    server = Server("author", extensions={id: {"level": 1, "deep": {"er": [None, True]}}})
    async with connected(server) as peer:
        found = await peer.result("server/discover", {})
        assert found["capabilities"]["extensions"] == {id: {"level": 1, "deep": {"er": [None, True]}}}


@modern
@pytest.mark.requirement("EXTNEG-003")
async def test_extensions_are_advertised_by_discover(carrier, revision):
    async with server_under_test(carrier, revision, server="changing") as peer:
        found = await peer.result("server/discover", {})
        assert found["capabilities"]["extensions"] == {FANCY: {"level": 2}}


@modern
@pytest.mark.requirement("EXTNEG-007")
async def test_there_are_no_extensions_unless_the_author_says_so(carrier, revision):
    async with server_under_test(carrier, revision, server="lean") as peer:
        assert "extensions" not in (await peer.result("server/discover", {}))["capabilities"]


@modern
@pytest.mark.requirement("EXTNEG-004", "EXTNEG-006")
@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "plain"),
        ({"extensions": {}}, "plain"),
        ({"extensions": {"com.example/other": {}}}, "plain"),
        ({"extensions": {FANCY: {}}}, "fancy"),
        ({"extensions": {FANCY: {"level": 9}, "com.example/other": {}}}, "fancy"),
    ],
)
async def test_a_handler_can_see_what_the_client_has_and_fall_back(carrier, revision, declared, said):
    async with server_under_test(carrier, revision, server="changing", capabilities=declared) as peer:
        result = await peer.result("tools/call", {"name": "fancy"})
        assert result["content"][0]["text"] == said


@modern
@pytest.mark.requirement("EXTNEG-004", "EXTNEG-006")
async def test_or_reject_with_the_error_that_names_the_extension(carrier, revision):
    declared = {"elicitation": {"form": {}}}
    async with server_under_test(carrier, revision, server="changing", capabilities=declared) as peer:
        error = await peer.error("tools/call", {"name": "only_fancy"})
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"extensions": {FANCY: {}}}}


@modern
@pytest.mark.requirement("EXTNEG-004")
async def test_an_extension_that_only_the_client_has_changes_nothing(carrier, revision):
    meta = {CAPABILITIES_KEY: {"extensions": {"com.example/unheard-of": {"on": True}}}}
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS[:6]:
            plain = await peer.request(method, params, id="same")
            assert await peer.request(method, params, meta=meta, id="same") == plain


@modern
@pytest.mark.requirement("EXTNEG-004")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel", "com.example/anything", "skills/list"])
async def test_the_methods_of_an_extension_that_is_not_there_do_not_exist(carrier, revision, method):
    meta = {CAPABILITIES_KEY: {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    async with server_under_test(carrier, revision) as peer:
        assert (await peer.error(method, {"taskId": "1"}, meta=meta))["code"] == -32601


@modern
@pytest.mark.requirement("EXTNEG-011")
@pytest.mark.parametrize("settings", [None, True, 1, "on", [], [{}]])
async def test_settings_that_are_no_object_are_refused(carrier, revision, settings):
    meta = {CAPABILITIES_KEY: {"extensions": {FANCY: settings}}}
    async with server_under_test(carrier, revision, server="changing") as peer:
        assert (await peer.error("tools/call", {"name": "fancy"}, meta=meta, judged=False))["code"] == -32602


@modern
@pytest.mark.requirement("EXTNEG-011")
@pytest.mark.parametrize(
    "extensions",
    [
        {"": {}},
        {"no-prefix": {}},
        {"com.example/" + "x" * 50_000: {}},
        {f"com.example/x{number}": {"number": number} for number in range(2000)},
        {FANCY: {"a": [{"b": {"c": [1.5, None, "é", "x" * 50_000]}}]}},
        {FANCY: {"$ref": "https://example.com/", "__proto__": {}, "level": -(2**63)}},
    ],
    ids=["empty", "no-prefix", "long", "many", "deep", "odd"],
)
async def test_whatever_a_client_declares_the_request_is_answered_and_the_next_one_too(carrier, revision, extensions):
    async with server_under_test(carrier, revision, server="changing") as peer:
        answer = await peer.request(
            "tools/call", {"name": "fancy"}, meta={CAPABILITIES_KEY: {"extensions": extensions}}
        )
        text = "fancy" if FANCY in extensions else "plain"
        assert answer["result"]["content"][0]["text"] == text
        assert (await peer.result("tools/call", {"name": "fancy"}))["content"][0]["text"] == "plain"
