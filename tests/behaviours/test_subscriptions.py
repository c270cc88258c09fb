"""Change notices of the newest revision: `subscriptions/listen`. Those of the older ones: test_change_notices.py.

Over HTTP, where each subscription is a stream of its own: test_http_server.py.
"""

import json
import subprocess
import sys

import pytest

from support.modern_peer import (
    ACKNOWLEDGED,
    FILTER_OF,
    NOTICE_OF,
    SERVER_KEY,
    SUBSCRIPTION_KEY,
    UPDATED,
    change,
    hears,
    listen,
    methods,
    modern,
    same,
    settled,
    tag_of,
    tagged,
    touch,
)
from support.talking import reply, start, talking
from support.transcripts import Transcript
from support.wire_peer import HERE, MODERN, server_under_test

pytestmark = pytest.mark.filterwarnings("ignore::interlock.revisions.deprecation.DeprecatedFeature")

EVERYTHING = dict.fromkeys(FILTER_OF.values(), True) | {"resourceSubscriptions": ["note://one", "note://two"]}
CANCELLED = "notifications/cancelled"


# --- the newest revision: one stream of notices per listen request ---


@modern
@pytest.mark.requirement("META-014", "SUBS-003", "SUBS-008")
@pytest.mark.parametrize("id", [0, 1000, -1000, 2**53 + 1, "1000", "", "é😀"])
async def test_a_subscription_begins_with_its_acknowledgement(carrier, revision, id):
    """The first word of the stream, under the id of the request in its own JSON type."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        peer.send(peer.frame("subscriptions/listen", {"notifications": EVERYTHING}, id=id))
        first = await peer.receive()
        assert first["method"] == ACKNOWLEDGED
        assert same(tag_of(first), id)
        assert first["params"]["notifications"] == EVERYTHING


@modern
@pytest.mark.requirement("META-014", "SUBS-004")
async def test_nothing_overtakes_the_acknowledgement(carrier, revision):
    """Not even a change that comes in the same breath."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        call = {"name": "change", "arguments": {"kind": "tools"}}
        before = [peer.frame("tools/call", call, id=f"before{number}") for number in range(3)]
        after = [peer.frame("tools/call", call, id=f"after{number}") for number in range(3)]
        request = peer.frame("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
        for frame in (*before, request, *after):
            peer.send(frame)
        for frame in (*before, *after):
            await hears(peer, lambda heard, id=frame["id"]: heard.get("id") == id)
        await settled(peer)
        told = methods(tagged(peer, "sub"))
        assert told[0] == ACKNOWLEDGED
        assert set(told[1:]) == {NOTICE_OF["tools"]}


@modern
@pytest.mark.requirement("META-014", "SUBS-002", "SUBS-016", "SUBS-017", "SUBS-018")
@pytest.mark.parametrize("tool", ["change", "change_in_thread"])
@pytest.mark.parametrize("kind", NOTICE_OF)
async def test_a_change_of_a_list_is_told_to_whoever_asked_for_it(carrier, revision, kind, tool):
    """That kind and no other, tagged, from handlers in threads too."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await listen(peer, {FILTER_OF[kind]: True}, id="sub")
        for each in NOTICE_OF:
            await change(peer, each, tool=tool)
        assert methods(peer.heard) == [NOTICE_OF[kind]]
        assert methods(tagged(peer, "sub")) == [ACKNOWLEDGED, NOTICE_OF[kind]]


@modern
@pytest.mark.requirement("META-014", "SUBS-019")
@pytest.mark.parametrize("tool", ["touch", "touch_in_thread"])
async def test_an_update_is_told_for_the_resources_that_were_named(carrier, revision, tool):
    async with server_under_test(carrier, revision, server="changing") as peer:
        await listen(peer, {"resourceSubscriptions": ["note://two"]}, id=4711)
        for uri in ("note://one", "note://two", "note://three", "note://tw", "note://two/below"):
            await touch(peer, uri, tool=tool)
        updates = [frame for frame in peer.heard if frame.get("method") == UPDATED]
        assert {frame["params"]["uri"] for frame in updates} >= {"note://two"}
        assert {frame["params"]["uri"] for frame in updates} <= {"note://two", "note://two/below"}
        assert all(same(tag_of(frame), 4711) for frame in updates)


@modern
@pytest.mark.requirement("META-014", "SUBS-002")
@pytest.mark.parametrize("wanted", [{}, dict.fromkeys(FILTER_OF.values(), False), {"resourceSubscriptions": []}])
async def test_who_asks_for_nothing_hears_nothing(carrier, revision, wanted):
    """And without any subscription there are no notices at all."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        for _ in range(2):
            for kind in NOTICE_OF:
                await change(peer, kind)
            await touch(peer, "note://one")
            assert peer.heard == []
            honoured = await listen(peer, wanted, id=f"sub{len(peer.raw)}")
            assert not any(honoured.values())


@modern
@pytest.mark.requirement("META-014", "SUBS-008", "SUBS-009")
async def test_two_subscriptions_at_once_are_told_apart_by_type_and_value(carrier, revision):
    """1000 and "1000" are two ids."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await listen(peer, {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}, id=1000)
        await listen(peer, {"toolsListChanged": True, "promptsListChanged": True}, id="1000")
        await change(peer, "tools")
        await change(peer, "prompts")
        await touch(peer, "note://one")
        assert methods(tagged(peer, 1000)) == [ACKNOWLEDGED, NOTICE_OF["tools"], UPDATED]
        assert methods(tagged(peer, "1000")) == [ACKNOWLEDGED, NOTICE_OF["tools"], NOTICE_OF["prompts"]]


@modern
@pytest.mark.requirement("DISCOVER-003", "META-014", "SUBS-006")
async def test_only_what_the_server_can_honour_is_acknowledged(carrier, revision):
    """A server with tools alone promises nothing about prompts and resources, and keeps to that."""
    async with server_under_test(carrier, revision, server="lean") as peer:
        assert await listen(peer, EVERYTHING, id="sub") == {"toolsListChanged": True}
        await peer.result("tools/call", {"name": "touch", "arguments": {"uri": "note://one"}})
        await peer.result("tools/call", {"name": "grow"})
        await settled(peer)
        assert methods(tagged(peer, "sub")) == [ACKNOWLEDGED, NOTICE_OF["tools"]]


@pytest.mark.requirement("SUBS-006")
@modern
async def test_members_of_a_filter_that_nobody_knows_are_left_out(carrier, revision):
    """The tasks extension adds `taskIds`, later revisions may add more."""
    wanted = {"toolsListChanged": True, "taskIds": ["1"], "somethingNew": {"deep": True}}
    async with server_under_test(carrier, revision, server="changing") as peer:
        assert await listen(peer, wanted, id="sub") == {"toolsListChanged": True}


@modern
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": "all"},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"toolsListChanged": 1}},
        {"notifications": {"resourceSubscriptions": "note://one"}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
)
async def test_a_filter_of_the_wrong_shape_is_refused(carrier, revision, params):
    """Nothing is left listening behind."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        assert (await peer.error("subscriptions/listen", params, judged=False))["code"] == -32602
        await change(peer, "tools")
        assert peer.heard == []


@modern
@pytest.mark.requirement("PROGRESS-010", "META-014", "SUBS-020")
async def test_what_belongs_to_a_request_stays_off_the_stream(carrier, revision):
    """Progress and log messages carry their own request's token and no subscription."""
    meta = {"progressToken": "of-listen", "io.modelcontextprotocol/logLevel": "debug"}
    async with server_under_test(carrier, revision, server="basic") as peer:
        await listen(peer, EVERYTHING, id="sub", meta=meta)
        await peer.result("tools/call", {"name": "steps", "arguments": {"count": 2}}, meta={"progressToken": "p"})
        await peer.result("tools/call", {"name": "shout"}, meta={"io.modelcontextprotocol/logLevel": "debug"})
        await peer.result("tools/call", {"name": "grow"})
        await settled(peer)
        told = {kind: peer.notices(f"notifications/{kind}") for kind in ("progress", "message")}
        assert [each["progressToken"] for each in told["progress"]] == ["p", "p"]
        assert len(told["message"]) == 3
        assert not any("_meta" in each for each in (*told["progress"], *told["message"]))
        assert methods(tagged(peer, "sub")) == [ACKNOWLEDGED, NOTICE_OF["tools"]]


@modern
@pytest.mark.requirement("META-014")
async def test_nothing_that_happened_is_forgotten_and_no_change_is_told_twice(carrier, revision):
    """Changes that pile up while nobody reads may be told once; each kind and each resource is told at all."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await listen(peer, EVERYTHING, id="sub")
        calls = [("change", {"kind": kind}) for kind in NOTICE_OF] * 10
        calls += [("touch", {"uri": uri}) for uri in EVERYTHING["resourceSubscriptions"]] * 10
        for number, (name, arguments) in enumerate(calls):
            peer.send(peer.frame("tools/call", {"name": name, "arguments": arguments}, id=f"n{number}"))
        for number in range(len(calls)):
            await hears(peer, lambda frame, id=f"n{number}": frame.get("id") == id)
        await settled(peer)
        told = tagged(peer, "sub")[1:]
        assert set(methods(told)) == {*NOTICE_OF.values(), UPDATED}
        assert {frame["params"].get("uri") for frame in told} == {None, "note://one", "note://two"}
        assert len(told) <= len(calls)


# --- the end of a subscription ---


@modern
@pytest.mark.requirement("CANCEL-005", "STDIO-012", "SUBS-014")
async def test_a_cancelled_subscription_says_nothing_more(carrier, revision):
    """No notice, no result, and nobody else's subscription is touched."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        for id in (1000, "1000"):
            await listen(peer, {"toolsListChanged": True}, id=id)
        peer.notify(CANCELLED, {"requestId": 1000, "reason": "enough"})
        await change(peer, "tools")
        assert methods(tagged(peer, 1000)) == [ACKNOWLEDGED]
        assert methods(tagged(peer, "1000")) == [ACKNOWLEDGED, NOTICE_OF["tools"]]
        assert not [frame for frame in peer.transcript.frames("server") if same(frame.get("id"), 1000)]
        assert CANCELLED not in methods(peer.heard)


@modern
@pytest.mark.requirement("CANCEL-005", "CANCEL-008")
async def test_a_subscription_may_be_cancelled_in_the_same_breath(carrier, revision):
    """Before it began, or right behind its acknowledgement: nothing more comes of it, and others go on."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        peer.send(peer.frame("subscriptions/listen", {"notifications": EVERYTHING}, id="gone"))
        peer.notify(CANCELLED, {"requestId": "gone"})
        await listen(peer, {"toolsListChanged": True}, id="kept")
        await change(peer, "tools")
        assert methods(tagged(peer, "gone")) in ([], [ACKNOWLEDGED])
        assert methods(tagged(peer, "kept")) == [ACKNOWLEDGED, NOTICE_OF["tools"]]
        assert not [frame for frame in peer.transcript.frames("server") if frame.get("id") == "gone"]


@modern
@pytest.mark.requirement("CANCEL-009")
async def test_cancelling_what_only_looks_like_its_id_changes_nothing(carrier, revision):
    async with server_under_test(carrier, revision, server="changing") as peer:
        await listen(peer, {"toolsListChanged": True}, id=2000)
        for id in ("2000", 2001, "two thousand"):
            peer.notify(CANCELLED, {"requestId": id})
        await change(peer, "tools")
        assert methods(tagged(peer, 2000)) == [ACKNOWLEDGED, NOTICE_OF["tools"]]


@modern
@pytest.mark.requirement("CANCEL-004", "CANCEL-003", "META-011", "RESULT-001", "SUBS-010", "SUBS-011")
async def test_a_subscription_that_the_server_ends_has_a_result(carrier, revision):
    """The result first, then the notification of the cancellation page (modern.md §13.1)."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        ids = (1000, "1000")
        for id in ids:
            await listen(peer, EVERYTHING, id=id)
        peer.send(peer.frame("tools/call", {"name": "end"}, id="end"))
        for id in ids:
            await hears(peer, lambda frame, id=id: frame.get("method") == CANCELLED and _names(frame, id))
        await change(peer, "tools")
        frames = peer.transcript.frames("server")
        for id in ids:
            (result,) = [frame for frame in frames if "result" in frame and same(frame["id"], id)]
            (cancelled,) = [frame for frame in frames if frame.get("method") == CANCELLED and _names(frame, id)]
            assert result["result"].keys() == {"resultType", "_meta"}
            assert result["result"]["resultType"] == "complete"
            assert same(result["result"]["_meta"][SUBSCRIPTION_KEY], id)
            assert result["result"]["_meta"][SERVER_KEY]["name"] == "changing"
            assert frames.index(result) < frames.index(cancelled)
            assert methods(tagged(peer, id))[0] == ACKNOWLEDGED
            assert frames.index(tagged(peer, id)[-1]) < frames.index(cancelled)
            assert NOTICE_OF["tools"] not in methods(tagged(peer, id))
        assert len([frame for frame in frames if frame.get("method") == CANCELLED]) == len(ids)


def _names(cancelled, id):
    return same(cancelled["params"]["requestId"], id)


@modern
@pytest.mark.requirement("CANCEL-003")
async def test_the_server_cancels_nothing_but_subscriptions(carrier, revision):
    """A request that was refused, failed or cancelled by its client is not cancelled by the server as well."""
    async with server_under_test(carrier, revision, server="changing") as peer:
        await peer.error("subscriptions/listen", {"notifications": 5}, id="bad", judged=False)
        await listen(peer, EVERYTHING, id="sub")
        peer.send(
            peer.frame("tools/call", {"name": "wait", "arguments": {"name": "x"}}, id="w", meta={"progressToken": 1})
        )
        await peer.expect("notifications/progress")
        for id in ("sub", "w", "bad"):
            peer.notify(CANCELLED, {"requestId": id})
        await settled(peer)
        await peer.result("tools/call", {"name": "end"})
        await settled(peer)
        assert CANCELLED not in [frame.get("method") for frame in peer.transcript.frames("server")]


@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.requirement("CANCEL-004")
async def test_a_process_that_is_told_to_stop_ends_its_subscriptions_first(revision):
    """SIGTERM, as from an operator or a container runtime: the client is told before the pipe closes."""
    async with server_under_test("stdio", revision, server="changing") as peer:
        for id in (1000, "1000"):
            await listen(peer, EVERYTHING, id=id)
        peer.send(peer.frame("tools/call", {"name": "terminate"}, id="stop"))
        await peer.ended_event.wait()
        said = peer.transcript.frames("server")
        _check_ended(said, (1000, "1000"))


@pytest.mark.parametrize("revision", MODERN)
@pytest.mark.requirement("CANCEL-004", "STDIO-014")
def test_a_process_whose_stdin_ends_ends_its_subscriptions_first(revision):
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    transcript = Transcript(revision)
    ids = (1000, "1000")
    for id in ids:
        params = {"notifications": EVERYTHING, "_meta": meta}
        transcript.sent(
            {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}, sender="client"
        )
    lines = "".join(json.dumps(frame) + "\n" for frame in transcript.frames("client"))
    command = [sys.executable, "-m", "interlock", "run", str(HERE / "servers" / "changing.py")]
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        transcript.sent(line, sender="server")
    transcript.check()
    _check_ended(transcript.frames("server"), ids)


def _check_ended(frames, ids):
    """Each subscription has its acknowledgement, its result and its end, in this order."""
    for id in ids:
        mine = [
            frame
            for frame in frames
            if same(frame.get("id"), id)
            or same(tag_of(frame), id)
            or (frame.get("method") == CANCELLED and _names(frame, id))
        ]
        assert [frame.get("method", "result") for frame in mine] == [ACKNOWLEDGED, "result", CANCELLED]


# --- our client ---


@pytest.mark.requirement("SUBS-001")
@modern
async def test_a_client_that_listens_says_what_for_and_everything_about_itself(carrier, revision):
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://a"]}
    async with talking(carrier, revision) as (client, peer):
        call = start(client.request("subscriptions/listen", {"notifications": wanted}))
        request = await peer.expect("subscriptions/listen")
        assert request["params"]["notifications"] == wanted
        assert {f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientCapabilities")} <= request[
            "params"
        ]["_meta"].keys()
        reply(peer, request, {"_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]}})
        assert (await call)["resultType"] == "complete"
