"""What a client of ours sends, in every revision: ids, batches, and only what was agreed on."""

from __future__ import annotations

import json

import pytest

from interlock.protocol.client.base import NotOffered
from interlock.wire.errors import CallTimeout, LocalError
from support.talking import everything, methods, reply, settled, start, talking, text
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN

over_all = pytest.mark.parametrize("revision", ALL)
over_handshake = pytest.mark.parametrize("revision", HANDSHAKE)
over_modern = pytest.mark.parametrize("revision", MODERN)
over_carriers = pytest.mark.parametrize("carrier", CARRIERS)

TAGS = "io.modelcontextprotocol/subscriptionId"


async def still_works(client, peer):
    call = start(client.call_tool("echo"))
    reply(peer, await peer.expect("tools/call"), text("fine"))
    assert (await call).text == "fine"


# --- ids and tokens -----------------------------------------------------------------------------------------


@pytest.mark.requirement("BASE-02", "BASE-03", "BASE-04", "SCH-02", "JSONRPC-003", "JSONRPC-004", "JSONRPC-005")
@pytest.mark.requirement("PROG-01", "PROG-02", "PROGRESS-001", "PROGRESS-002")
@over_carriers
@over_all
async def test_ids_and_tokens_are_integers_or_strings_and_never_come_twice(carrier, revision):
    """Thirty calls in flight, thirty after them; no id is used again even when its answer is long there."""
    async with talking(carrier, revision) as (client, peer):
        for _ in range(2):
            calls = [start(client.call_tool("echo", {"text": str(number)})) for number in range(30)]
            requests = [await peer.expect("tools/call") for _ in calls]
            for request in reversed(requests):  # answered in another order than asked
                reply(peer, request, text(request["params"]["arguments"]["text"]))
            assert [(await call).text for call in calls] == [str(number) for number in range(30)]
        requests = [frame for frame in peer.transcript.frames("client") if "id" in frame]
        ids = [request["id"] for request in requests]
        tokens = [t for r in requests if (t := r["params"].get("_meta", {}).get("progressToken")) is not None]
        assert all(type(id) in (int, str) for id in ids + tokens)
        assert len(set(ids)) == len(ids) > 60
        assert len(set(tokens)) == len(tokens)


@pytest.mark.requirement("BASE-05")
@over_carriers
@over_handshake
async def test_equal_ids_of_both_sides_do_not_meet(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        assert (await peer.request("ping", id=request["id"]))["result"] == {}
        assert not call.done()
        reply(peer, request, text("mine"))
        assert (await call).text == "mine"


@pytest.mark.requirement("BASE-06")
@over_carriers
@over_all
async def test_an_answer_under_another_id_is_no_answer(carrier, revision):
    """The same number as a string is another id; so is one that nobody asked with."""
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        for wrong in (str(request["id"]), request["id"] + 1000, -1, ""):
            reply(peer, {"id": wrong}, text("wrong"), judged=False)
        reply(peer, request, text("right"))
        reply(peer, request, text("twice"), judged=False)
        assert (await call).text == "right"
        await still_works(client, peer)


# --- batches ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("BASE-17", "TRANS-STDIO-06")
@over_carriers
async def test_answers_may_come_as_an_array_where_there_are_batches(carrier):
    async with talking(carrier, "2025-03-26") as (client, peer):
        calls = [start(client.call_tool(str(number))) for number in range(3)]
        requests = [await peer.expect("tools/call") for _ in calls]
        peer.send([{"jsonrpc": "2.0", "id": r["id"], "result": text(r["params"]["name"])} for r in requests])
        assert [(await call).text for call in calls] == ["0", "1", "2"]


@pytest.mark.requirement("BASE-20", "TRANS-STDIO-05")
@over_carriers
@pytest.mark.parametrize("revision", [name for name in ALL if name != "2025-03-26"])
async def test_an_array_is_no_message_anywhere_else(carrier, revision):
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo"))
        request = await peer.expect("tools/call")
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": text("wrong")}
        peer.channel.send(json.dumps([answer]).encode())
        reply(peer, request, text("right"))
        assert (await call).text == "right"


# --- what may be called -------------------------------------------------------------------------------------

GATED = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
}
GATED_BY_HANDSHAKE = {
    "logging/setLevel": "logging",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
}


@pytest.mark.requirement("CAP-04", "LIFE-16", "LIFE-29")
@over_carriers
@over_all
async def test_what_the_server_did_not_declare_is_not_asked_for(carrier, revision):
    gated = {**GATED, **(GATED_BY_HANDSHAKE if revision in HANDSHAKE else {})}
    if revision != "2024-11-05":  # which has completion and no capability for it
        gated["completion/complete"] = "completions"
    for capability in sorted(set(gated.values())):
        rest = {key: value for key, value in everything(revision).items() if key != capability}
        async with talking(carrier, revision, capabilities=rest) as (client, peer):
            for method in (name for name, gate in gated.items() if gate == capability):
                with pytest.raises(NotOffered):
                    await client.request(method, {})
                await settled(client, peer)
                assert method not in methods(peer)


@pytest.mark.requirement("CAP-11", "LIFE-16")
@over_carriers
@over_handshake
@pytest.mark.parametrize("resources", [{}, {"subscribe": False}, {"listChanged": True}], ids=repr)
async def test_an_absent_flag_means_no(carrier, revision, resources):
    async with talking(carrier, revision, capabilities={"resources": resources}) as (client, peer):
        for method in ("resources/subscribe", "resources/unsubscribe"):
            with pytest.raises(NotOffered):
                await client.request(method, {"uri": "note://one"})
        await settled(client, peer)
        assert not {"resources/subscribe", "resources/unsubscribe"} & set(methods(peer))


FOREIGN = dict.fromkeys(HANDSHAKE, ("subscriptions/listen", "tasks/get")) | {
    MODERN[0]: ("initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list")
}


@pytest.mark.requirement("LIFE-15", "SCH-12", "VERSION-001")
@over_carriers
@over_all
async def test_a_method_of_another_revision_is_not_sent(carrier, revision):
    """A session uses exactly one revision: what it does not have is our mistake, not the server's."""
    async with talking(carrier, revision, check=False) as (client, peer):
        for method in FOREIGN[revision]:
            with pytest.raises(LocalError) as told:
                await client.request(method, {"uri": "note://one", "level": "info"}, timeout=1)
            assert not isinstance(told.value, CallTimeout), method
            await settled(client, peer)
            assert peer.heard == [], method


@pytest.mark.requirement("SCH-12", "SCH-14", "SCH-18", "TRANS-STDIO-11", "STDIO-006", "JSONRPC-002")
@over_carriers
@over_all
async def test_every_verb_is_a_message_of_the_revision(carrier, revision):
    """The transcript is judged by the official schema at the end."""
    calls = [
        ("list_tools", (), {"tools": []}),
        ("list_resources", (), {"resources": []}),
        ("list_resource_templates", (), {"resourceTemplates": []}),
        ("list_prompts", (), {"prompts": []}),
        ("call_tool", ("echo", {"a": 1}), {"content": []}),
        ("read_resource", ("note://one",), {"contents": []}),
        ("get_prompt", ("greet", {"name": "Ada"}), {"messages": []}),
    ]
    completing = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}}
    by_name = [("completion/complete", completing)]
    if revision in HANDSHAKE:
        by_name += [("logging/setLevel", {"level": "info"}), ("resources/subscribe", {"uri": "note://one"})]
    async with talking(carrier, revision) as (client, peer):
        for verb, arguments, result in calls:
            call = start(getattr(client, verb)(*arguments))
            request = await peer.receive()
            cacheable = {"ttlMs": 0, "cacheScope": "private"} if revision in MODERN and "call" not in verb else {}
            reply(peer, request, {**result, **cacheable})
            await call
        for method, params in by_name:
            call = start(client.request(method, params))
            result = {"completion": {"values": []}} if method == "completion/complete" else {}
            reply(peer, await peer.expect(method), result)
            await call
        await settled(client, peer)


@pytest.mark.requirement("TRANS-STDIO-03", "TRANS-STDIO-04", "STDIO-001", "JSONRPC-016")
@over_carriers
@over_all
async def test_text_of_any_kind_survives_both_ways(carrier, revision):
    odd = 'one\ntwo\r\nthree\u2028\u0085\x00 \x7f ä € 𝄞 \\n " \ufeff'
    async with talking(carrier, revision) as (client, peer):
        call = start(client.call_tool("echo", {"text": odd}))
        request = await peer.expect("tools/call")
        assert request["params"]["arguments"]["text"] == odd
        assert b"\n" not in peer.raw[-1]
        assert b"\r" not in peer.raw[-1]
        peer.raw[-1].decode("utf-8")
        reply(peer, request, text(odd))
        assert (await call).text == odd


@pytest.mark.requirement("TRANS-STDIO-11", "STDIO-006")
@over_carriers
@over_all
async def test_a_call_that_is_no_json_fails_alone(carrier, revision):
    """Nothing of it reaches the server, and nobody else notices."""
    async with talking(carrier, revision) as (client, peer):
        for argument in (object(), {"a": [object()]}, "\ud800"):
            with pytest.raises((LocalError, TypeError, ValueError)):
                await client.call_tool("echo", {"a": argument})
        await still_works(client, peer)
        assert methods(peer).count("tools/call") == 1


# --- subscriptions (2026-07-28) -----------------------------------------------------------------------------


@pytest.mark.requirement("STDIO-009")
@over_carriers
@over_modern
async def test_what_a_subscription_tells_reaches_its_own_listener(carrier, revision):
    heard = {"one": [], "two": []}

    def listening(name):
        return lambda method, params: heard[name].append((method, params.get("uri")))

    async with talking(carrier, revision) as (client, peer):
        listens, ids = {}, {}
        for name in heard:
            wanted = {"notifications": {"resourceSubscriptions": [f"note://{name}"]}}
            work = client.request("subscriptions/listen", wanted, on_notification=listening(name))
            listens[name] = start(work)
            ids[name] = (await peer.expect("subscriptions/listen"))["id"]
            peer.notify("notifications/subscriptions/acknowledged", {**wanted, "_meta": {TAGS: ids[name]}})
        for name in ("two", "one", "two"):
            peer.notify("notifications/resources/updated", {"uri": f"note://{name}", "_meta": {TAGS: ids[name]}})
        for name, id in ids.items():
            reply(peer, {"id": id}, {"_meta": {TAGS: id}})
            await listens[name]
        peer.notify("notifications/resources/updated", {"uri": "note://late", "_meta": {TAGS: ids["one"]}})
        await settled(client, peer)
    acknowledged = ("notifications/subscriptions/acknowledged", None)
    updated = "notifications/resources/updated"
    assert heard == {
        "one": [acknowledged, (updated, "note://one")],
        "two": [acknowledged, (updated, "note://two"), (updated, "note://two")],
    }
