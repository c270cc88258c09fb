"""`_meta`: what its keys may look like, who owns which, and that strange values there break nothing (META)."""

import json

import pytest

from interlock import InterlockError, Server
from interlock.wire.meta import is_reserved_key, is_valid_key
from support.handshake_talk import barrier, call, can
from support.wire_peer import CARRIERS, HANDSHAKE, server_under_test

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)
SINCE_2025_06_18 = HANDSHAKE[2:]

# --- the grammar of keys ---

GOOD_KEYS = [
    "name",
    "a",
    "A",
    "7",
    "a1",
    "a-b",
    "a_b",
    "a.b",
    "a-._b",
    "a__b",
    "com.example/name",
    "com.example/",  # an empty name is allowed behind a prefix
    "com.example/a.b-c_d",
    "a/b",
    "a1/b",
    "a-b/c",
    "com.my-company.x9/n",
    "X.Y/Z",
    "a--b/c",
]
BAD_PREFIXES = ["1a/x", "a-/x", "-a/x", "a_b/x", "a..b/x", ".a/x", "a./x", "a b/x", "é/x", "a/b/x", "/x", "//", "a.1/x"]
BAD_NAMES = ["x/-a", "x/a.", "x/_a", "x/a_", "x/.a", "x/a-", "-a", "a-", ".a", "a.", "_", "-", "."]
BAD_CHARACTERS = ["a b", "x/a b", "é", "x/é", "x/a\n", "a\n", "x/a\0", "a:b", "x/a,b", "x/\u0661"]


@pytest.mark.requirement("META-02", "META-03", "META-04", "META-05")
@pytest.mark.parametrize("key", GOOD_KEYS)
def test_a_good_key(key):
    assert is_valid_key(key)


@pytest.mark.requirement("META-02", "META-03")
@pytest.mark.parametrize("key", BAD_PREFIXES)
def test_a_bad_prefix(key):
    assert not is_valid_key(key)


@pytest.mark.requirement("META-04", "META-05")
@pytest.mark.parametrize("key", BAD_NAMES + BAD_CHARACTERS)
def test_a_bad_name(key):
    assert not is_valid_key(key)


# --- reserved prefixes, in both wordings ---

RESERVED_IN_2025_06_18 = ["mcp.dev/x", "tools.mcp.com/x", "modelcontextprotocol.io/x", "api.modelcontextprotocol.org/x"]
RESERVED_IN_2025_11_25 = [
    "io.modelcontextprotocol/x",
    "dev.mcp/x",
    "org.modelcontextprotocol.api/x",
    "com.mcp.tools/x",
]
FREE = ["com.example.mcp/x", "com.example/mcp", "com.example/x", "mcpserver.example/x", "example.amcp/x", "own"]


@pytest.mark.requirement("META-07")
@pytest.mark.parametrize("key", RESERVED_IN_2025_06_18)
def test_reserved_by_the_wording_of_2025_06_18(key):
    assert is_reserved_key(key)


@pytest.mark.requirement("META-08")
@pytest.mark.parametrize("key", RESERVED_IN_2025_11_25)
def test_reserved_by_the_wording_of_2025_11_25(key):
    assert is_reserved_key(key)


@pytest.mark.requirement("META-07", "META-08")
@pytest.mark.parametrize("key", FREE)
def test_free_in_both_wordings(key):
    assert not is_reserved_key(key)


@pytest.mark.requirement("META-02", "META-03", "META-04", "META-07", "META-08")
@pytest.mark.parametrize("key", [*BAD_PREFIXES, *BAD_NAMES, *RESERVED_IN_2025_06_18, *RESERVED_IN_2025_11_25])
def test_authors_cannot_define_bad_or_reserved_keys(key):
    server = Server("keys")
    for decorator in (server.tool, server.prompt):
        with pytest.raises(InterlockError):
            decorator(meta={key: 1})(_nothing)
    with pytest.raises(InterlockError):
        server.resource("note://one", meta={key: 1})(_nothing)


@pytest.mark.requirement("META-05", "META-06")
@pytest.mark.parametrize("key", ["com.example/name", "name", "com.example.mcp/x"])
def test_authors_may_define_their_own(key):
    server = Server("keys")
    server.tool(meta={key: 1})(_nothing)
    server.prompt(meta={key: 1})(_nothing)
    server.resource("note://one", meta={key: 1})(_nothing)


async def _nothing() -> str:
    return ""


# --- what the server itself puts there ---

TYPED = {"progressToken"}  # the only key the base schema types in these revisions


def _keys(value):
    """All keys of all `_meta` objects at any depth."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "_meta":
                assert isinstance(member, dict), f"_meta is {member!r}"
                yield from member
            yield from _keys(member)
    elif isinstance(value, list):
        for member in value:
            yield from _keys(member)


@pytest.mark.requirement("META-06", "META-07", "META-08", "META-09")
@every_carrier
@every_revision
async def test_the_server_uses_no_key_it_does_not_own(carrier, revision):
    """Neither keys of the newest revision nor inventions of ours; authors' keys are valid and theirs."""
    async with server_under_test(carrier, revision, server="handshake_full", capabilities=can(revision)) as peer:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            await peer.result(method, {})
        await peer.result("tools/call", {"name": "steps"}, meta={"progressToken": "t"})
        await peer.result("tools/call", {"name": "blocks"})
        asking = call(peer, "ask", {"method": "roots/list", "params": {}})
        peer.send(asking)
        question = await peer.expect("roots/list")
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        await peer.response(asking["id"])
        said = set(_keys(peer.transcript.frames("server")))
        assert said <= TYPED | {"com.example/note"}
        assert "com.example/note" in said or revision < "2025-06-18"
        assert type(question["params"]["_meta"]["progressToken"]) in (int, str)


# --- strange values at reserved keys ---

ODD_KEYS = [
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/unheard-of",
    "mcp.dev/future",
    "traceparent",
    "tracestate",
    "baggage",
]
ODD_VALUES = [5, 1.5, "loud", None, True, [], {"odd": [1]}]


@pytest.mark.requirement("META-01")
@pytest.mark.parametrize("key", ODD_KEYS)
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_odd_values_at_reserved_keys_break_nothing(revision, key):
    """These revisions define none of them on a request, so no value can be wrong there."""
    refused = []
    async with server_under_test("memory", revision) as peer:
        for value in ODD_VALUES:
            params = {"name": "echo", "arguments": {"text": "hi"}, "_meta": {key: value}}
            answer = await peer.request("tools/call", params, judged=False)
            if answer.get("result") != {"content": [{"type": "text", "text": "hi"}]}:
                refused.append((value, answer))
    assert refused == []


@pytest.mark.requirement("META-01")
@pytest.mark.parametrize("key", ODD_KEYS)
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_odd_values_at_reserved_keys_do_not_spoil_the_introduction(revision, key):
    for value in ODD_VALUES:
        async with server_under_test("memory", revision, opened=False) as peer:
            hello = {
                "protocolVersion": revision,
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
                "_meta": {key: value},
            }
            found = await peer.result("initialize", hello, judged=False)
            assert found["protocolVersion"] == revision


@pytest.mark.requirement("META-01")
@every_carrier
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_keys_of_the_newest_revision_change_nothing_in_a_handshake_session(carrier, revision):
    """A client info, a capability or a log level in `_meta` is not what was negotiated, so it does not count."""
    async with server_under_test(carrier, revision) as peer:
        sneaked = {
            "io.modelcontextprotocol/clientInfo": {"name": "somebody else", "version": "9"},
            "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "roots": {}},
            "io.modelcontextprotocol/logLevel": "debug",
        }
        result = await peer.result("tools/call", {"name": "who", "arguments": {}}, meta=sneaked)
        known = json.loads(result["content"][0]["text"])
        assert (known["name"], known["sampling"], known["roots"]) == ("raw", False, False)
        await peer.result("tools/call", {"name": "shout", "arguments": {}}, meta=sneaked)
        levels = [told["level"] for told in peer.notices("notifications/message")]
        assert "debug" not in levels


@pytest.mark.requirement("META-01")
@every_carrier
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_unknown_keys_on_a_notification_are_ignored(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        ringing = {"tone": "low", "_meta": {"io.modelcontextprotocol/subscriptionId": [5], "x/y": None}}
        peer.notify("notifications/example/ring", ringing)
        peer.notify("notifications/cancelled", {"requestId": 999, "_meta": {"mcp.dev/odd": 1}})
        await barrier(peer)
        assert await peer.result("example/heard", judged=False) == {"heard": ["low"]}


# --- `_meta` itself ---


@pytest.mark.requirement("META-09", "BASE-25")
@every_carrier
@every_revision
async def test_a_meta_that_is_no_object_is_refused(carrier, revision):
    calls = (("tools/list", {}), ("tools/call", {"name": "echo"}), ("example/double", {"number": 1}))
    async with server_under_test(carrier, revision) as peer:
        for meta in ([], 5, "x", True):
            for method, params in calls:
                error = await peer.error(method, {**params, "_meta": meta}, judged=False)
                assert error["code"] in (-32602, -32600), (method, meta)


@every_carrier
@every_revision
async def test_null_for_an_optional_member_is_read_as_missing(carrier, revision):
    """Many clients write out what they do not have; a null in the arguments of a tool is the author's."""
    calls = (
        ("tools/list", {"cursor": None, "_meta": None}),
        ("tools/list", {"_meta": {"progressToken": None}}),
        ("tools/call", {"name": "echo", "arguments": None}),
        ("tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": None}),
    )
    async with server_under_test(carrier, revision) as peer:
        for method, params in calls:
            assert await peer.result(method, params, judged=False), params
        peer.notify("notifications/cancelled", {"requestId": 99, "reason": None}, judged=False)
        answer = await peer.request("tools/call", {"name": "echo", "arguments": {"text": None}}, judged=False)
        assert "error" in answer or answer["result"]["isError"]


@pytest.mark.requirement("META-10", "META-09")
@every_carrier
@pytest.mark.parametrize("revision", SINCE_2025_06_18)
async def test_meta_of_authors_reaches_the_client_unchanged(carrier, revision):
    note = {"com.example/note": 1}
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        assert (await peer.result("tools/list", {}))["tools"][0]["_meta"] == note
        assert (await peer.result("prompts/list", {}))["prompts"][0]["_meta"] == note
        assert (await peer.result("resources/list", {}))["resources"][0]["_meta"] == note
        templates = await peer.result("resources/templates/list", {})
        assert templates["resourceTemplates"][0]["_meta"] == note
        read = await peer.result("resources/read", {"uri": "note://one"})
        assert read["contents"][0]["_meta"] == note
        blocks = (await peer.result("tools/call", {"name": "blocks"}))["content"]
        assert [block.get("_meta") for block in blocks] == [note, note, note, note, None, note]
        assert blocks[3]["resource"]["_meta"] == note


@pytest.mark.requirement("META-09", "META-10")
@pytest.mark.parametrize("revision", HANDSHAKE[:2])
async def test_meta_on_types_is_dropped_before_it_existed(revision):
    async with server_under_test("memory", revision, server="handshake_full") as peer:
        for method, params in (
            ("tools/list", {}),
            ("prompts/list", {}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "note://one"}),
            ("tools/call", {"name": "blocks"}),
            ("prompts/get", {"name": "every", "arguments": {"name": "Ada"}}),
        ):
            assert list(_keys(await peer.result(method, params))) == [], method
