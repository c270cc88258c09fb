"""The `_meta` of every request and result in the newest revision, on the server's side: basic/index#meta."""

import re

import pytest

from interlock import Server
from interlock.wire.errors import LocalError
from support.modern_peer import REQUESTS, SERVER_KEY, connected, listen, members_called, modern
from support.wire_peer import CAPABILITIES_KEY, CLIENT_KEY, MODERN, VERSION_KEY, server_under_test

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")

ENVELOPE = {VERSION_KEY: MODERN[0], CAPABILITIES_KEY: {}}
GONE = object()

# The grammar of basic/index#meta, written down here on its own.
LABEL = r"[a-zA-Z]([a-zA-Z0-9-]*[a-zA-Z0-9])?"
KEY = re.compile(rf"({LABEL}(\.{LABEL})*/)?([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?)?")


def broken_params():
    """Params whose envelope lacks a required member, or has it in another type."""
    yield "no params", GONE
    yield "no _meta", {}
    for value in (None, [], "x", 1, {}):
        yield f"_meta {value!r}", {"_meta": value}
    for key in (VERSION_KEY, CAPABILITIES_KEY):
        yield f"no {key}", {"_meta": {name: value for name, value in ENVELOPE.items() if name != key}}
    for value in (None, 20260728, ["2026-07-28"], {}, True):
        yield f"version {value!r}", {"_meta": ENVELOPE | {VERSION_KEY: value}}
    for value in (None, True, [], "all", 1):
        yield f"capabilities {value!r}", {"_meta": ENVELOPE | {CAPABILITIES_KEY: value}}
    for value in (None, True, [], "yes", 1):
        yield f"sampling {value!r}", {"_meta": ENVELOPE | {CAPABILITIES_KEY: {"sampling": value}}}


@modern
@pytest.mark.requirement("META-004")
@pytest.mark.parametrize("server", ["basic", "lean"])
async def test_a_request_without_a_proper_envelope_is_refused(carrier, revision, server):
    """On a server of both eras too: a broken envelope is never taken for a message of the older era."""
    rest = {"name": "first", "uri": "note://one", "notifications": {}, "arguments": {}}
    methods = ("server/discover", "tools/list", "tools/call", "resources/read", "prompts/get", "no/such/method")
    async with server_under_test(carrier, revision, server=server) as peer:
        wrong = []
        for method in (*methods, "subscriptions/listen"):
            for label, params in broken_params():
                frame = {"jsonrpc": "2.0", "id": peer.next_id(), "method": method}
                if params is not GONE:
                    frame["params"] = rest | params
                peer.send(frame, judged=False)
                answer = await peer.response(frame["id"])
                if answer.get("error", {}).get("code") != -32602:
                    wrong.append(f"{method}, {label}: {answer}")
        assert not wrong, "\n".join(wrong)


@modern
@pytest.mark.requirement("META-004", "RESULT-001")
async def test_a_server_of_this_era_alone_answers_nothing_without_an_envelope(carrier, revision):
    """The verbs of the handshake are no exception where there is no handshake."""
    async with server_under_test(carrier, revision, server="lean") as peer:
        wrong = []
        for method in ("ping", "logging/setLevel", "resources/subscribe", "shutdown", "tools/list", "resources/read"):
            peer.send({"jsonrpc": "2.0", "id": method, "method": method}, judged=False)
            answer = await peer.response(method)
            if answer.get("error", {}).get("code") != -32602:
                wrong.append(answer)
        assert not wrong


@modern
@pytest.mark.requirement("META-006")
async def test_nobody_has_to_say_who_they_are(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for number, (method, params) in enumerate(REQUESTS):
            id = f"anonymous {number}"
            peer.send({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": ENVELOPE}})
            assert "result" in await peer.response(id)


FORM, URL = {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}
TOOLS = {"sampling": {"tools": {}}}
NEEDS = [  # declared, asked, needed beside the capability itself, what the error has to name
    ({}, "roots/list", "", {"roots": {}}),
    ({}, "sampling/createMessage", "", {"sampling": {}}),
    ({}, "elicitation/create", "", {"elicitation": {}}),
    ({"sampling": {}}, "elicitation/create", "", {"elicitation": {}}),
    ({"elicitation": {}}, "elicitation/create", "elicitation.url", URL),
    (URL, "elicitation/create", "elicitation.form", FORM),
    ({"sampling": {}}, "sampling/createMessage", "sampling.tools", TOOLS),
]


@modern
@pytest.mark.requirement("META-007", "META-008", "META-009")
async def test_what_the_client_did_not_declare_is_not_asked_of_it(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for declared, method, need, required in NEEDS:
            arguments = {"method": method, "need": need}
            meta = {CAPABILITIES_KEY: declared}
            error = await peer.error("tools/call", {"name": "question", "arguments": arguments}, meta=meta)
            assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": required})
        await peer.settle()
        assert peer.heard == []


@modern
@pytest.mark.requirement("META-007", "META-022", "STATELESS-001")
async def test_capabilities_hold_for_one_request(carrier, revision):
    ask = {"name": "question", "arguments": {"method": "elicitation/create"}}
    async with server_under_test(carrier, revision, capabilities={"elicitation": {"form": {}}}) as peer:
        able = await peer.request("tools/call", ask)
        assert able.get("error", {}).get("code") != -32021
        peer.capabilities = {}
        assert (await peer.error("tools/call", ask))["code"] == -32021
        who = await peer.result("tools/call", {"name": "who"})
        assert who["structuredContent"]["elicitation"] is False


@modern
@pytest.mark.requirement("META-011", "SCHEMA-003")
async def test_every_result_says_who_answers(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS:
            info = (await peer.result(method, params))["_meta"][SERVER_KEY]
            assert (info["name"], info["version"]) == ("basic", "1.2.3")


@pytest.mark.requirement("META-011")
async def test_a_server_may_be_configured_to_say_nothing_about_itself():
    server = Server("shy", identify=False)

    @server.tool
    async def nothing() -> str:
        return ""

    async with connected(server) as peer:
        for method, params in (("server/discover", {}), ("tools/list", {}), ("tools/call", {"name": "nothing"})):
            assert "_meta" not in await peer.result(method, params)


@modern
@pytest.mark.requirement("META-012", "META-013")
async def test_the_name_of_a_client_changes_nothing(carrier, revision):
    names = ({"name": "raw", "version": "1"}, {"name": "admin", "version": "999", "title": "root"})
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS:
            answers = [await peer.request(method, params, meta={CLIENT_KEY: name}, id="same") for name in names]
            assert _without_reference(answers[0]) == _without_reference(answers[1])


def _without_reference(answer):
    """An unexpected failure carries a fresh number for the log; nothing else may differ."""
    return re.sub(r"reference [0-9a-f]+", "reference", repr(answer))


@modern
@pytest.mark.requirement("META-015")
async def test_nothing_is_made_of_keys_that_are_not_defined(carrier, revision):
    """Reserved keys may get a meaning one day; until then they are carried past."""
    keys = (
        "io.modelcontextprotocol/somethingNew",
        "io.modelcontextprotocol/serverInfo",
        "io.modelcontextprotocol/subscriptionId",
        "dev.mcp/other",
        "com.example/own",
        "unprefixed",
        "not a key at all",
    )
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS[:3]:
            told = await peer.request(method, params, id="same")
            for value in (None, True, 0, -1.5, "", "x" * 10_000, [], [[1]], {}, {"name": None}):
                meta = dict.fromkeys(keys, value)
                assert await peer.request(method, params, meta=meta, id="same") == told, value


@modern
@pytest.mark.requirement("META-016", "META-017", "META-018", "META-019")
async def test_the_keys_a_server_writes_follow_the_grammar(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        for method, params in REQUESTS:
            await peer.result(method, params)
        await listen(peer, {"toolsListChanged": True}, id="changes")
        await peer.result("tools/call", {"name": "grow"})
        await peer.settle()
        metas = [meta for frame in peer.transcript.frames("server") for meta in members_called("_meta", frame)]
        keys = {key for meta in metas for key in meta}
        assert all(KEY.fullmatch(key) for key in keys)
        # Ours are the official ones; the third is the author's, under the reversed domain of its owner.
        assert keys == {SERVER_KEY, "io.modelcontextprotocol/subscriptionId", "com.example/note"}


BAD_KEYS = ["", "a b", "-a", "a-", "é", "1com/x", "com./x", "com..example/x", "com-/x", "/x", "a/b/c", "com.example/-x"]
RESERVED_KEYS = [
    "io.modelcontextprotocol/x",
    "dev.mcp/x",
    "com.mcp.tools/x",
    "IO.ModelContextProtocol/x",
    "progressToken",
]
GOOD_KEYS = ["name", "n", "a.b_c-d9", "com.example/x", "com.example/", "com.example.mcp/x", "c-d.e9/0", "x/y"]


def _offer_tool(server, meta):
    server.tool(name="one", meta=meta)(lambda: "")


def _offer_resource(server, meta):
    server.resource("note://one", meta=meta)(lambda: "")


def _offer_prompt(server, meta):
    server.prompt(name="one", meta=meta)(lambda: "")


@pytest.mark.parametrize("offer", [_offer_tool, _offer_resource, _offer_prompt])
@pytest.mark.requirement("META-016", "META-018", "META-019")
@pytest.mark.parametrize("key", BAD_KEYS + RESERVED_KEYS)
def test_an_author_cannot_write_a_wrong_or_a_reserved_key(offer, key):
    server = Server("author")
    with pytest.raises(LocalError):
        offer(server, {key: 1})


@pytest.mark.parametrize("offer", [_offer_tool, _offer_resource, _offer_prompt])
@pytest.mark.requirement("META-018", "META-019", "META-020")
@pytest.mark.parametrize("key", GOOD_KEYS)
async def test_an_author_may_write_any_other_key(offer, key):
    server = Server("author")
    offer(server, {key: {"deep": [1]}})
    async with connected(server) as peer:
        kind = {_offer_tool: "tools", _offer_resource: "resources", _offer_prompt: "prompts"}[offer]
        (item,) = (await peer.result(f"{kind}/list", {}))[kind]
        assert item["_meta"] == {key: {"deep": [1]}}


# --- versions ---


@modern
@pytest.mark.requirement("VERSION-002", "VERSION-003")
@pytest.mark.parametrize("server", ["basic", "lean"])
async def test_a_version_that_is_not_spoken_is_refused(carrier, revision, server):
    """Also one of the older era: it cannot be spoken per request (modern.md §11)."""
    versions = ("1900-01-01", "2099-12-31", "2025-11-25", "2024-11-05", "", "draft", "é" * 200)
    methods = ("server/discover", "tools/list", "initialize", "ping", "no/such/method")
    async with server_under_test(carrier, revision, server=server) as peer:
        listed = (await peer.result("server/discover", {}))["supportedVersions"]
        for version in versions:
            for method in methods:
                error = await peer.error(method, {}, meta={VERSION_KEY: version}, judged=False)
                assert error["code"] == -32022, (version, method)
                assert error["data"]["requested"] == version
                assert revision in error["data"]["supported"]
                assert set(error["data"]["supported"]) <= set(listed)


@modern
@pytest.mark.requirement("VERSION-002")
async def test_the_version_is_judged_before_what_it_defines(carrier, revision):
    """Another revision may have other params and other levels; its client must learn which ones are spoken here.

    The order of modern.md §4: the two required keys, then the version, everything else behind it.
    """
    other = [
        ({"name": 5}, {}),
        ({"name": "add", "arguments": 5}, {}),
        ({"name": "add"}, {"io.modelcontextprotocol/logLevel": "trace"}),
        ({"name": "add"}, {"io.modelcontextprotocol/logLevel": 5}),
        ({"name": "add"}, {"progressToken": {"any": "shape"}}),
        ({"name": "add"}, {CLIENT_KEY: "another shape"}),
    ]
    async with server_under_test(carrier, revision) as peer:
        wrong = []
        for params, meta in other:
            error = await peer.error("tools/call", params, meta={VERSION_KEY: "2099-12-31", **meta}, judged=False)
            if error["code"] != -32022:
                wrong.append((params, meta, error))
        assert not wrong


@modern
@pytest.mark.requirement("VERSION-002", "META-004")
async def test_a_version_without_capabilities_is_no_envelope(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        frame = {"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {"_meta": {VERSION_KEY: "2099-12-31"}}}
        peer.send(frame, judged=False)
        assert (await peer.response("x"))["error"]["code"] == -32602


@modern
@pytest.mark.requirement("VERSION-007")
async def test_the_first_message_may_be_any_request(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        result = await peer.result("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert result["content"][0]["text"] == "3"


# --- tracing ---

TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "tracestate": "vendor=opaque,other=1",
    "baggage": "userId=alice,serverNode=DF%2028",
}


@modern
@pytest.mark.requirement("TRACE-001", "TRACE-002")
async def test_the_trace_context_reaches_the_handler_as_it_came(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        who = await peer.result("tools/call", {"name": "who"}, meta=TRACE)
        assert who["structuredContent"]["trace"] == TRACE
        # Only the bare names are the standard's; nothing is remembered for the next request.
        prefixed = {f"io.modelcontextprotocol/{key}": value for key, value in TRACE.items()}
        who = await peer.result("tools/call", {"name": "who"}, meta=prefixed)
        assert who["structuredContent"]["trace"] == {}


MALFORMED = [
    "nonsense",
    "",
    5,
    None,
    "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    "00-0AF7651916CD43DD8448EB211C80319C-00F067AA0BA902B7-01",
    "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more",
]


@modern
@pytest.mark.requirement("TRACE-001")
async def test_a_malformed_trace_is_not_passed_on(carrier, revision):
    """W3C Trace Context §3.2: an invalid traceparent is ignored, and tracestate with it. The request is served."""
    async with server_under_test(carrier, revision) as peer:
        passed = []
        for traceparent in MALFORMED:
            meta = TRACE | {"traceparent": traceparent}
            who = await peer.result("tools/call", {"name": "who"}, meta=meta, judged=False)
            if who["structuredContent"]["trace"].keys() - {"baggage"}:
                passed.append(traceparent)
        assert passed == []


@pytest.mark.requirement("TRACE-003")
async def test_trace_identifiers_stay_out_of_the_log(caplog):
    """Whoever may read the log need not be allowed to see who called: baggage carries user names."""
    caplog.set_level("DEBUG")
    async with server_under_test("memory", MODERN[0]) as peer:
        for how in ("tool", "bug", "group"):
            await peer.result("tools/call", {"name": "fail", "arguments": {"how": how}}, meta=TRACE)
        await peer.error("no/such/method", {}, meta=TRACE)
    assert "secret detail" in caplog.text  # the failure itself was logged
    assert not [value for value in TRACE.values() if value in caplog.text]
