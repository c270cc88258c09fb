"""What a server declares, that it keeps to it, and that it uses only what the client declared (CAP)."""

import pytest

from interlock import InterlockError, Server
from support.handshake_talk import barrier, call, can, hello
from support.wire_peer import CARRIERS, HANDSHAKE, server_under_test

every_carrier = pytest.mark.parametrize("carrier", CARRIERS)
every_revision = pytest.mark.parametrize("revision", HANDSHAKE)

KEYS = {"experimental", "logging", "prompts", "resources", "tools"}
EXTRA_KEYS = {
    "2024-11-05": set(),
    "2025-03-26": {"completions"},
    "2025-06-18": {"completions"},
    # `extensions` is an additional capability (CAP-08) by which the extensions page lets old versions negotiate
    "2025-11-25": {"completions", "tasks", "extensions"},
}
SUB_KEYS = {
    "tools": {"listChanged"},
    "prompts": {"listChanged"},
    "resources": {"listChanged", "subscribe"},
    "logging": set(),
    "completions": set(),
}
GATES = {
    "tools/list": ("tools", {}),
    "tools/call": ("tools", {"name": "echo"}),
    "resources/list": ("resources", {}),
    "resources/templates/list": ("resources", {}),
    "resources/read": ("resources", {"uri": "note://one"}),
    "resources/subscribe": ("resources", {"uri": "note://one"}),
    "resources/unsubscribe": ("resources", {"uri": "note://one"}),
    "prompts/list": ("prompts", {}),
    "prompts/get": ("prompts", {"name": "greet", "arguments": {"name": "Ada"}}),
    "logging/setLevel": ("logging", {"level": "info"}),
    "completion/complete": (
        "completions",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}},
    ),
}
SERVERS = ("basic", "handshake_full", "handshake_bare", "handshake_strict", "handshake_logs")


# --- what is declared ---


@pytest.mark.requirement("CAP-01", "CAP-09", "BASE-16")
@pytest.mark.parametrize(("carrier", "server"), [*(("memory", name) for name in SERVERS), ("stdio", "basic")])
@every_revision
async def test_a_method_is_answered_exactly_when_its_capability_is_declared(carrier, revision, server):
    async with server_under_test(carrier, revision, server=server, opened=False) as peer:
        declared = (await peer.open())["capabilities"]
        for method, (gate, params) in GATES.items():
            answer = await peer.request(method, params)
            served = not ("error" in answer and answer["error"]["code"] == -32601)
            if method == "completion/complete" and revision == "2024-11-05":
                assert not served, "completion is not built yet, and this revision has no capability for it"
            else:
                assert served == (gate in declared), (method, declared, answer)


@pytest.mark.requirement("CAP-06", "CAP-07", "CAP-09", "CAP-11")
@pytest.mark.parametrize("server", SERVERS)
@every_revision
async def test_capabilities_are_objects_with_known_keys(revision, server):
    """Deviations §16.9-11: no `templates`, `streaming`, `dynamic` or `levels`, no `true` for an object."""
    async with server_under_test("memory", revision, server=server, opened=False) as peer:
        declared = (await peer.open())["capabilities"]
        assert declared.keys() <= KEYS | EXTRA_KEYS[revision]
        assert all(isinstance(value, dict) for value in declared.values())
        assert all(isinstance(value, dict) for value in declared.get("experimental", {}).values())
        for name, allowed in SUB_KEYS.items():
            flags = declared.get(name, {})
            assert flags.keys() <= allowed and all(type(flag) is bool for flag in flags.values()), name


@pytest.mark.requirement("CAP-07")
@every_carrier
@every_revision
async def test_experimental_features_are_declared_as_their_author_wrote_them(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        assert (await peer.open())["capabilities"]["experimental"] == {"example": {"on": True}}


@pytest.mark.requirement("CAP-07")
def test_an_experimental_feature_that_is_no_object_cannot_be_declared():
    with pytest.raises((InterlockError, TypeError, ValueError)):
        Server("odd", experimental={"feature_x": True})  # type: ignore[dict-item]


@pytest.mark.requirement("CAP-01", "LIFE-16")
@every_carrier
@every_revision
async def test_a_server_that_can_log_says_so(carrier, revision):
    """An author's own method may log too: then logging is declared, or nothing is sent."""
    async with server_under_test(carrier, revision, server="handshake_logs", opened=False) as peer:
        declared = (await peer.open())["capabilities"]
        assert await peer.result("example/log", {}) == {"logged": True}
        await peer.settle()
        assert bool(peer.notices("notifications/message")) <= ("logging" in declared)


# --- for the whole session ---


@pytest.mark.requirement("CAP-02", "CAP-11", "CAP-12")
@every_carrier
@every_revision
async def test_a_declared_capability_is_never_withdrawn(carrier, revision):
    """Also when the last tool is gone: the list is empty, the method is there, the change is told."""
    async with server_under_test(carrier, revision, server="handshake_fading", opened=False) as peer:
        assert (await peer.open())["capabilities"]["tools"] == {"listChanged": True}
        assert len((await peer.result("tools/list", {}))["tools"]) == 1
        await peer.result("tools/call", {"name": "vanish"})
        await peer.expect("notifications/tools/list_changed")
        assert (await peer.result("tools/list", {}))["tools"] == []
        assert (await peer.error("tools/call", {"name": "vanish"}))["code"] == -32602
        assert (await peer.result("resources/list", {}))["resources"] == []
        assert (await peer.error("resources/read", {"uri": "note://one"}))["code"] == -32002
        assert await peer.result("resources/subscribe", {"uri": "note://one"}) == {}
        assert (await peer.result("prompts/list", {}))["prompts"] == []


@pytest.mark.requirement("CAP-12", "CAP-11")
@every_carrier
@every_revision
async def test_changes_of_a_list_are_told_without_being_asked_for(carrier, revision):
    async with server_under_test(carrier, revision) as peer:
        await peer.result("tools/call", {"name": "grow", "arguments": {}})
        told = await peer.expect("notifications/tools/list_changed")
        assert "id" not in told
        names = [tool["name"] for tool in (await peer.result("tools/list", {}))["tools"]]
        assert "grown" in names


@pytest.mark.requirement("LIFE-16", "CAP-03", "CAP-11")
@every_carrier
@every_revision
async def test_changes_of_what_was_not_declared_are_not_told(carrier, revision):
    """Tools, resources and prompts that came after `initialize` belong to sessions opened after them."""
    async with server_under_test(carrier, revision, server="handshake_bare") as peer:
        await peer.result("example/grow", {})
        await peer.result("example/touch", {})
        await barrier(peer)
        assert _methods(peer.heard) == []


@pytest.mark.requirement("LIFE-16")
@every_carrier
@every_revision
async def test_nothing_is_logged_in_a_session_that_did_not_declare_logging(carrier, revision):
    """The tool that logs came later. Whether this session may call it at all is left open here."""
    async with server_under_test(carrier, revision, server="handshake_bare") as peer:
        await peer.result("example/grow", {})
        await peer.request("tools/call", {"name": "late"})
        await barrier(peer)
        assert _methods(peer.heard) == []


def _methods(frames):
    return [frame["method"] for frame in frames if "method" in frame]


# --- resource updates ---


@pytest.mark.requirement("CAP-03", "CAP-11")
@every_carrier
@every_revision
async def test_updates_come_only_after_subscribing(carrier, revision):
    async with server_under_test(carrier, revision, opened=False) as peer:
        assert (await peer.open())["capabilities"]["resources"]["subscribe"] is True
        touch = {"name": "touch", "arguments": {"uri": "note://one"}}
        await peer.result("tools/call", touch)
        await barrier(peer)
        assert peer.notices("notifications/resources/updated") == []
        await peer.result("resources/subscribe", {"uri": "note://one"})
        await peer.result("tools/call", touch)
        told = await peer.expect("notifications/resources/updated")
        assert told["params"] == {"uri": "note://one"}
        await peer.result("resources/unsubscribe", {"uri": "note://one"})
        await peer.result("tools/call", touch)
        await barrier(peer)
        assert peer.notices("notifications/resources/updated") == []


# --- what the client declared ---

SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
QUESTIONS = {
    "roots/list": ("roots", {}),
    "sampling/createMessage": ("sampling", SAMPLING),
    "elicitation/create": ("elicitation", FORM),
}


def _questions(revision):
    return {method: each for method, each in QUESTIONS.items() if each[0] in can(revision)}


@pytest.mark.requirement("CAP-05", "LIFE-16", "LIFE-29")
@every_carrier
@every_revision
async def test_nothing_is_asked_of_a_client_that_declared_nothing(carrier, revision):
    """Deviation §16.8: the tool call fails with -32601; no code of our own, no question on the wire."""
    async with server_under_test(carrier, revision, server="handshake_full") as peer:
        for method, (_, params) in _questions(revision).items():
            asking = {"name": "ask", "arguments": {"method": method, "params": params}}
            assert (await peer.error("tools/call", asking))["code"] == -32601
        await barrier(peer)
        assert _methods(peer.heard) == []


@pytest.mark.requirement("CAP-05", "LIFE-16")
@every_revision
async def test_one_declaration_does_not_stand_for_another(revision):
    for method, (capability, params) in _questions(revision).items():
        others = {name: value for name, value in can(revision).items() if name != capability}
        async with server_under_test("memory", revision, server="handshake_full", capabilities=others) as peer:
            asking = {"name": "ask", "arguments": {"method": method, "params": params}}
            assert (await peer.error("tools/call", asking))["code"] == -32601
            await barrier(peer)
            assert _methods(peer.heard) == []


@pytest.mark.requirement("CAP-05", "CAP-06")
@every_revision
async def test_an_empty_object_is_a_declaration(revision):
    for method, (capability, params) in _questions(revision).items():
        async with server_under_test(
            "memory", revision, server="handshake_full", capabilities={capability: {}}
        ) as peer:
            asking = call(peer, "ask", {"method": method, "params": params})
            peer.send(asking)
            question = await peer.expect(method)
            peer.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "User rejected"}})
            await peer.response(asking["id"])


@pytest.mark.requirement("CAP-06")
@every_revision
async def test_anything_but_an_object_is_no_declaration(revision):
    """The introduction is refused, or it goes on as if the capability were not there; never is it taken as one."""
    for method, (capability, params) in _questions(revision).items():
        for value in (True, None, False, 1, "yes", []):
            async with server_under_test("memory", revision, server="handshake_full", opened=False) as peer:
                declaring = hello(revision, capabilities={capability: value})
                answer = await peer.request("initialize", declaring, judged=False)
                if "error" in answer:
                    assert answer["error"]["code"] == -32602, (capability, value)
                    continue
                peer.notify("notifications/initialized")
                asking = {"name": "ask", "arguments": {"method": method, "params": params}}
                assert (await peer.error("tools/call", asking))["code"] == -32601, (capability, value)


@pytest.mark.requirement("CAP-13", "CAP-06", "LIFE-16")
@pytest.mark.parametrize(
    ("declared", "need", "allowed"),
    [
        ({}, "elicitation.form", True),  # an empty object means form only (§4)
        ({}, "elicitation.url", False),
        ({"form": {}}, "elicitation.form", True),
        ({"form": {}}, "elicitation.url", False),
        ({"url": {}}, "elicitation.form", False),
        ({"url": {}}, "elicitation.url", True),
        ({"form": {}, "url": {}}, "elicitation.url", True),
        ({"form": {}, "url": True}, "elicitation.url", False),
        ({"form": {}, "url": None}, "elicitation.url", False),
        ({"form": None, "url": {}}, "elicitation.form", False),
        ({"form": True, "url": {}}, "elicitation.form", False),
    ],
)
async def test_modes_of_elicitation(declared, need, allowed):
    async with server_under_test("memory", "2025-11-25", server="handshake_full", opened=False, check=False) as peer:
        answer = await peer.request("initialize", hello("2025-11-25", capabilities={"elicitation": declared}))
        if "error" in answer:
            assert not allowed, answer
            return
        peer.notify("notifications/initialized")
        asking = call(peer, "ask", {"method": "elicitation/create", "params": FORM, "needs": [need]})
        peer.send(asking)
        await barrier(peer)
        assert ("elicitation/create" in _methods(peer.heard)) == allowed, peer.heard
        if not allowed:
            assert [frame["error"]["code"] for frame in peer.heard] == [-32601]


@pytest.mark.requirement("CAP-08", "SCH-23")
@every_carrier
@every_revision
async def test_unknown_capabilities_are_ignored(carrier, revision):
    """Deviations §16.9-11, and whatever else: neither keys nor sub-keys nor their values matter."""
    strange = {
        "x": True,
        "streaming": None,
        "tasks": True,  # §14: accepted leniently
        "experimental": {"feature_x": True},
        "sampling": {"models": ["a"], "streaming": True},
        "roots": {"listChanged": True, "watch": 1},
        "tools": {"streaming": True},
        "logging": {"levels": ["debug", "warn"]},
    }
    async with server_under_test(carrier, revision, opened=False, check=False) as peer:
        found = await peer.open(strange)
        assert found["protocolVersion"] == revision
        assert found["capabilities"].get("logging", {}) == {}
        assert "result" in await peer.request("tools/list", {})


# Keys of later revisions; before theirs they are unknown capabilities like any other.
LATER = {"elicitation": "2025-06-18", "extensions": "2025-11-25"}


@pytest.mark.requirement("CAP-08")
@pytest.mark.parametrize(
    ("revision", "key"),
    [(revision, key) for revision in HANDSHAKE for key, since in LATER.items() if revision < since],
)
async def test_a_capability_the_revision_does_not_know_is_ignored_whatever_it_holds(revision, key):
    for value in (True, "all", ["a"], {"a": True}):
        async with server_under_test("memory", revision, opened=False) as peer:
            found = await peer.result("initialize", hello(revision, capabilities={key: value}))
            assert found["protocolVersion"] == revision


# --- the levels of logging ---


@every_carrier
@every_revision
async def test_warn_is_understood_as_warning(carrier, revision):
    """Deviation §16.10: a courtesy for clients written from a summary."""
    async with server_under_test(carrier, revision) as peer:
        assert await peer.result("logging/setLevel", {"level": "warn"}, judged=False) == {}
        await peer.result("tools/call", {"name": "shout", "arguments": {}})
        await barrier(peer)
        assert [told["level"] for told in peer.notices("notifications/message")] == ["warning", "error"]


@pytest.mark.requirement("BASE-21")
@every_carrier
@every_revision
async def test_warn_is_no_level_in_strict_mode(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_strict") as peer:
        error = await peer.error("logging/setLevel", {"level": "warn"}, judged=False)
        assert error["code"] == -32602
        assert await peer.result("logging/setLevel", {"level": "warning"}) == {}
