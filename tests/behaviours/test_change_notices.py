"""Change notices of the handshake revisions: unsolicited, or subscribed to by resource, once the client is ready."""

import pytest

from support.modern_peer import NOTICE_OF, UPDATED, change, hears, methods, settled, touch
from support.wire_peer import CARRIERS, HANDSHAKE, server_under_test

handshake = pytest.mark.parametrize("revision", HANDSHAKE)
carriers = pytest.mark.parametrize("carrier", CARRIERS)


@carriers
@handshake
@pytest.mark.requirement("CAP-12")
@pytest.mark.parametrize("tool", ["change", "change_in_thread"])
async def test_a_change_of_a_list_is_told_without_being_asked(carrier, revision, tool):
    async with server_under_test(carrier, revision, server="changing") as peer:
        for kind in NOTICE_OF:
            await change(peer, kind, tool=tool)
        assert methods(peer.heard) == list(NOTICE_OF.values())
        # Nothing of the newest revision's ways shows: no acknowledgement, no tag.
        assert all(frame.get("params", {}) == {} for frame in peer.heard)


@carriers
@handshake
@pytest.mark.requirement("LIFE-06")
async def test_nothing_is_told_before_the_client_is_ready(carrier, revision):
    async with server_under_test(carrier, revision, server="changing", initialized=False) as peer:
        await peer.result("resources/subscribe", {"uri": "note://one"})
        for kind in NOTICE_OF:
            await change(peer, kind)
        await touch(peer, "note://one")
        assert peer.heard == []
        peer.notify("notifications/initialized")
        await change(peer, "tools")
        await touch(peer, "note://one")  # subscribed to before it was ready, and valid all the same
        assert {NOTICE_OF["tools"], UPDATED} <= set(methods(peer.heard))


@carriers
@handshake
@pytest.mark.requirement("LIFE-06", "CAP-12")
async def test_a_change_right_behind_initialized_is_not_missed(carrier, revision):
    async with server_under_test(carrier, revision, server="changing", initialized=False) as peer:
        call = peer.frame("tools/call", {"name": "change", "arguments": {"kind": "tools"}}, id="change")
        peer.notify("notifications/initialized")
        peer.send(call)
        await hears(peer, lambda frame: frame.get("id") == "change")
        await settled(peer)
        assert methods(peer.heard) == [NOTICE_OF["tools"]]


@carriers
@handshake
@pytest.mark.requirement("CAP-03")
async def test_updates_come_from_subscribe_to_unsubscribe(carrier, revision):
    """RES-05..07."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await touch(peer, "note://one")
        assert peer.heard == []
        for _ in range(2):  # twice is once
            assert await peer.result("resources/subscribe", {"uri": "note://one"}) == {}
        await touch(peer, "note://two")
        assert peer.heard == []
        await touch(peer, "note://one")
        assert [(frame["method"], frame["params"]) for frame in peer.heard] == [(UPDATED, {"uri": "note://one"})]
        peer.heard.clear()
        await peer.result("resources/subscribe", {"uri": "note://two"})
        for _ in range(2):
            assert await peer.result("resources/unsubscribe", {"uri": "note://one"}) == {}
        await touch(peer, "note://one")
        assert peer.heard == []
        await touch(peer, "note://two")
        assert [frame["params"]["uri"] for frame in peer.heard] == ["note://two"]


@carriers
@handshake
@pytest.mark.requirement("CAP-03")
async def test_without_resources_there_is_nothing_to_subscribe_to(carrier, revision):
    async with server_under_test(carrier, revision, server="handshake_only") as peer:
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert (await peer.error(method, {"uri": "note://one"}))["code"] == -32601


@carriers
@handshake
async def test_listening_is_not_known_there(carrier, revision):
    async with server_under_test(carrier, revision, server="changing") as peer:
        error = await peer.error("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, judged=False)
        assert error["code"] == -32601
        await touch(peer, "note://one")
        assert peer.heard == []


@carriers
@handshake
async def test_no_subscription_outlives_the_end_of_the_server_with_words_nobody_knows(carrier, revision):
    """When a server stops, an older client hears neither a result nor a cancellation: it asked nothing."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await peer.result("resources/subscribe", {"uri": "note://one"})
        await peer.result("tools/call", {"name": "end"})
        await settled(peer)
        await touch(peer, "note://one")
        assert peer.heard == []
