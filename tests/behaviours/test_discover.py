"""`server/discover`: what a modern server says about itself, and whether it keeps its word."""

import pytest

from interlock import Server
from support.modern_peer import SERVER_KEY, connected, listen, modern
from support.wire_peer import ALL, HANDSHAKE, server_under_test

SERVERS = ("basic", "changing", "lean")
MEMBERS = {"resultType", "supportedVersions", "capabilities", "instructions", "ttlMs", "cacheScope", "_meta"}

# What a client may do behind each capability: one request that has to be known exactly if it is declared.
BEHIND = {
    "tools": ("tools/list", {}),
    "resources": ("resources/list", {}),
    "prompts": ("prompts/list", {}),
    "completions": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}},
    ),
}


@modern
@pytest.mark.requirement("VERSION-006", "DISCOVER-001", "DISCOVER-002", "DISCOVER-007")
@pytest.mark.parametrize("server", SERVERS)
async def test_the_result_has_the_members_of_the_schema(carrier, revision, server):
    async with server_under_test(carrier, revision, server=server, opened=False) as peer:
        found = await peer.result("server/discover", {})
        assert found.keys() <= MEMBERS  # in particular no serverInfo: identity is in _meta
        assert found["resultType"] == "complete"
        assert revision in found["supportedVersions"]
        assert all(isinstance(version, str) for version in found["supportedVersions"])
        assert isinstance(found["capabilities"], dict)
        assert type(found["ttlMs"]) is int and found["ttlMs"] >= 0
        assert found["cacheScope"] in ("public", "private")


@modern
@pytest.mark.requirement("VERSION-008", "DISCOVER-001")
async def test_all_revisions_are_listed_and_only_those_the_author_chose(carrier, revision):
    async with server_under_test(carrier, revision, server="basic") as peer:
        assert sorted((await peer.result("server/discover", {}))["supportedVersions"]) == sorted(ALL)
    async with server_under_test(carrier, revision, server="lean") as peer:
        assert (await peer.result("server/discover", {}))["supportedVersions"] == [revision]


@modern
@pytest.mark.requirement("DISCOVER-004", "DISCOVER-007", "SCHEMA-003")
async def test_who_it_is_and_how_to_use_it(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        found = await peer.result("server/discover", {})
        assert found["instructions"] == "Be kind."
        assert found["_meta"][SERVER_KEY] == {
            "name": "basic",
            "version": "1.2.3",
            "title": "Basic",
            "description": "For tests",
            "websiteUrl": "https://example.com",
        }
    async with server_under_test(carrier, revision, server="lean") as peer:
        assert "instructions" not in await peer.result("server/discover", {})


@modern
@pytest.mark.requirement("SCHEMA-001")
@pytest.mark.parametrize("server", SERVERS)
async def test_capabilities_are_objects_of_booleans(carrier, revision, server):
    async with server_under_test(carrier, revision, server=server) as peer:
        found = (await peer.result("server/discover", {}))["capabilities"]
        assert all(isinstance(value, dict) for value in found.values())
        for kind in found.keys() & {"tools", "prompts", "resources"}:
            allowed = {"listChanged", "subscribe"} if kind == "resources" else {"listChanged"}
            assert found[kind].keys() <= allowed
            assert all(type(flag) is bool for flag in found[kind].values())


@modern
@pytest.mark.requirement("DISCOVER-003", "ERR-010")
@pytest.mark.parametrize("server", SERVERS)
async def test_what_is_declared_is_there_and_nothing_else(carrier, revision, server):
    async with server_under_test(carrier, revision, server=server) as peer:
        declared = (await peer.result("server/discover", {}))["capabilities"]
        for capability, (method, params) in BEHIND.items():
            answer = await peer.request(method, params)
            missing = answer.get("error", {}).get("code") == -32601
            assert missing == (capability not in declared), capability


@modern
@pytest.mark.requirement("DISCOVER-003")
@pytest.mark.parametrize("server", SERVERS)
async def test_the_change_notices_that_are_declared_are_honoured(carrier, revision, server):
    everything = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
    async with server_under_test(carrier, revision, server=server) as peer:
        declared = (await peer.result("server/discover", {}))["capabilities"]
        honoured = await listen(peer, {**everything, "resourceSubscriptions": ["note://one"]}, id="all")
        for kind in ("tools", "prompts", "resources"):
            assert honoured.get(f"{kind}ListChanged", False) is declared.get(kind, {}).get("listChanged", False)
        assert ("resourceSubscriptions" in honoured) is declared.get("resources", {}).get("subscribe", False)


@pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")
@modern
@pytest.mark.requirement("DISCOVER-003")
async def test_logging_is_declared_exactly_where_handlers_can_log(carrier, revision):
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    async with server_under_test(carrier, revision, server="basic") as peer:
        assert "logging" in (await peer.result("server/discover", {}))["capabilities"]
        await peer.result("tools/call", {"name": "shout"}, meta=level)
        assert len(peer.notices("notifications/message")) == 3
    async with server_under_test(carrier, revision, server="lean") as peer:
        assert "logging" not in (await peer.result("server/discover", {}))["capabilities"]
        await peer.result("tools/call", {"name": "first"}, meta=level)  # the level alone is no reason to refuse
        assert peer.heard == []


@pytest.mark.requirement("DISCOVER-003")
async def test_a_capability_stays_when_the_last_item_goes():
    server = Server("emptied")

    @server.tool
    async def only() -> str:
        return ""

    async with connected(server) as peer:
        before = (await peer.result("server/discover", {}))["capabilities"]
        server.remove_tool("only")
        assert (await peer.result("server/discover", {}))["capabilities"] == before
        assert (await peer.result("tools/list", {}))["tools"] == []
        assert (await peer.error("tools/call", {"name": "only"}))["code"] == -32602


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.requirement("DISCOVER-003")
async def test_both_eras_declare_the_same(revision):
    """One server, two introductions: what both revisions have a word for is in both."""
    async with server_under_test("memory", revision, server="changing", opened=False) as peer:
        hello = await peer.open()
    async with server_under_test("memory", ALL[-1], server="changing", opened=False) as peer:
        found = await peer.open()
    for kind in ("tools", "resources", "prompts"):
        assert hello["capabilities"][kind] == found["capabilities"][kind]
    assert hello["serverInfo"] == found["_meta"][SERVER_KEY]
