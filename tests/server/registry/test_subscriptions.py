"""server/registry/subscriptions.py: who hears of which change, and that a slow listener costs nothing."""

import asyncio
import threading

import msgspec
import pytest

from interlock.server.registry.subscriptions import Changes, check_watched
from interlock.wire.errors import InternalError, InvalidParams
from interlock.wire.exchange import LOCAL, Peer, Principal
from interlock.wire.limits import LONGEST_URI, MOST_SUBSCRIPTIONS
from interlock.wire.types.capabilities import ServerCapabilities
from interlock.wire.types.notifications import ListenFilter, ListenParams
from support.doubles import Spoken, turns

EVERYTHING = msgspec.convert(
    {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    },
    ServerCapabilities,
)
WANTS_ALL = {
    "tools_list_changed": True,
    "prompts_list_changed": True,
    "resources_list_changed": True,
    "resource_subscriptions": {"a:b", "a:c"},
}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Listening:
    """One listen exchange under way."""

    def __init__(self, changes, offered=EVERYTHING, **wanted):
        wanted["resource_subscriptions"] = set(wanted.get("resource_subscriptions", ()))
        self.exchange = Spoken("subscriptions/listen", ListenParams(notifications=ListenFilter(**wanted)))
        self.task = asyncio.ensure_future(changes.listen(self.exchange, offered))

    @property
    def heard(self):
        return [(method, params) for method, params in self.exchange.told if method != ACKNOWLEDGED]

    @property
    def acknowledged(self):
        [told] = [params["notifications"] for method, params in self.exchange.told if method == ACKNOWLEDGED]
        return told

    async def end(self):
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_the_acknowledgement_comes_first_and_says_what_is_honoured():
    listening = Listening(Changes(), **WANTS_ALL)
    await turns()
    assert listening.exchange.told[0][0] == ACKNOWLEDGED
    assert listening.acknowledged == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a:b", "a:c"],
    }
    await listening.end()


@pytest.mark.parametrize(
    ("offered", "wanted", "honoured"),
    [
        ({}, WANTS_ALL, {}),
        ({"tools": {}}, WANTS_ALL, {}),
        ({"tools": {"listChanged": True}}, WANTS_ALL, {"toolsListChanged": True}),
        (
            {"resources": {"subscribe": True}},
            WANTS_ALL,
            {"resourceSubscriptions": ["a:b", "a:c"]},
        ),
        ({"tools": {"listChanged": True}}, {}, {}),
        ({"resources": {"subscribe": True}}, {}, {}),
    ],
)
async def test_only_what_is_wanted_and_offered_is_honoured(offered, wanted, honoured):
    changes = Changes()
    listening = Listening(changes, msgspec.convert(offered, ServerCapabilities), **wanted)
    await turns()
    assert listening.acknowledged == honoured
    for kind in ("tools", "prompts", "resources"):
        changes.list_changed(kind)
    changes.resource_updated("a:b")
    await turns()
    expected = {f"{name.removesuffix('ListChanged')}" for name in honoured if name.endswith("ListChanged")}
    assert {method.split("/")[1] for method, _ in listening.heard if method.endswith("list_changed")} == expected
    assert any(method.endswith("updated") for method, _ in listening.heard) == ("resourceSubscriptions" in honoured)
    await listening.end()


async def test_each_hears_only_of_what_it_asked_for():
    changes = Changes()
    tools = Listening(changes, tools_list_changed=True)
    one = Listening(changes, resource_subscriptions={"a:b"})
    await turns()
    changes.list_changed("tools")
    changes.list_changed("prompts")
    changes.resource_updated("a:b")
    changes.resource_updated("a:other")
    await turns()
    assert tools.heard == [("notifications/tools/list_changed", {})]
    assert one.heard == [("notifications/resources/updated", {"uri": "a:b"})]
    await tools.end()
    await one.end()


async def test_a_change_between_request_and_acknowledgement_is_not_missed():
    changes = Changes()

    class Slow(Spoken):
        async def notify(self, method, params):
            if method == ACKNOWLEDGED:
                changes.list_changed("tools")
            await super().notify(method, params)

    exchange = Slow("subscriptions/listen", ListenParams(notifications=ListenFilter(tools_list_changed=True)))
    task = asyncio.ensure_future(changes.listen(exchange, EVERYTHING))
    await turns(5)
    assert [method for method, _ in exchange.told] == [ACKNOWLEDGED, "notifications/tools/list_changed"]
    task.cancel()
    await asyncio.wait([task])


async def test_the_same_change_waits_only_once():
    changes = Changes()
    listening = Listening(changes, **WANTS_ALL)
    await turns()
    for _ in range(1000):
        changes.list_changed("tools")
        changes.resource_updated("a:b")
        changes.resource_updated("a:c")
    await turns()
    assert len(listening.heard) == 3
    await listening.end()


async def test_a_filter_may_be_widened_while_it_listens():
    # The handshake edge adjusts its one exchange on `resources/subscribe`.
    changes = Changes()
    listening = Listening(changes)
    await turns()
    changes.resource_updated("a:b")
    listening.exchange.params.notifications.resource_subscriptions.add("a:b")
    changes.resource_updated("a:b")
    await turns()
    assert len(listening.heard) == 1
    await listening.end()


async def test_a_change_may_come_from_any_thread():
    changes = Changes()
    listening = Listening(changes, tools_list_changed=True)
    await turns()
    thread = threading.Thread(target=changes.list_changed, args=("tools",))
    thread.start()
    thread.join()
    await turns(5)
    assert len(listening.heard) == 1
    await listening.end()


async def test_a_burst_from_a_thread_is_told_once():
    changes = Changes()
    listening = Listening(changes, resource_subscriptions={"a:b"})
    await turns()

    def burst():
        for _ in range(1000):
            changes.resource_updated("a:b")

    thread = threading.Thread(target=burst)
    thread.start()
    thread.join()  # the loop had no turn meanwhile
    await turns(5)
    assert listening.heard == [("notifications/resources/updated", {"uri": "a:b"})]
    await listening.end()


@pytest.mark.parametrize(
    "watched",
    [["no uri"], ["a:b", ""], ["a:" + "b" * LONGEST_URI], [f"a:{number}" for number in range(MOST_SUBSCRIPTIONS + 1)]],
    ids=["no uri", "empty", "long", "many"],
)
async def test_what_cannot_be_watched_is_refused(watched):
    with pytest.raises(InvalidParams, match="watched"):
        check_watched(set(watched))
    changes = Changes()
    listening = Listening(changes, resource_subscriptions=watched)
    with pytest.raises(InvalidParams):
        await listening.task
    assert not changes._listeners and listening.exchange.told == []


def test_what_does_not_exist_may_be_watched():
    check_watched({f"a:{number}" for number in range(MOST_SUBSCRIPTIONS)})


def test_what_is_watched_is_bounded_by_what_it_takes():
    with pytest.raises(InvalidParams, match="bytes"):
        check_watched({f"a:{number}" + "b" * 8000 for number in range(600)})


async def test_what_all_streams_watch_is_bounded_and_a_session_counts_for_itself(monkeypatch):
    monkeypatch.setattr("interlock.server.registry.subscriptions.ALL_WATCHED_BYTES", 2000)
    changes = Changes()
    first, second = (Listening(changes, resource_subscriptions={"a:" + "b" * 300}) for _ in range(2))
    first.exchange.peer = second.exchange.peer = Peer(principal=Principal("i", "ada"))
    with pytest.raises(InternalError, match="at this server"):
        await second.task
    session = Listening(changes, resource_subscriptions={"a:" + "c" * 3000})
    session.exchange.subscription = None
    await turns()
    assert not session.task.done() and not first.task.done()
    await session.end()
    await first.end()
    assert changes._bytes.held == 0


async def test_who_stops_listening_is_forgotten():
    changes = Changes()
    listening = Listening(changes, tools_list_changed=True)
    await turns()
    await listening.end()
    assert not changes._listeners
    changes.list_changed("tools")
    await turns()
    assert listening.heard == []


async def test_a_listener_whose_stream_breaks_is_forgotten():
    changes = Changes()

    class Broken(Spoken):
        async def notify(self, method, params):
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await changes.listen(Broken("x", ListenParams(notifications=ListenFilter())), EVERYTHING)
    assert not changes._listeners


async def test_closing_ends_every_stream_with_its_result():
    changes = Changes()
    streams = [Listening(changes, tools_list_changed=True) for _ in range(3)]
    await turns()
    changes.close()
    assert await asyncio.gather(*(stream.task for stream in streams)) == [{}, {}, {}]
    assert not changes._listeners


async def test_who_comes_after_a_close_is_served_again():
    """A server may be run twice in one process."""
    changes = Changes()
    changes.close()
    listening = Listening(changes, tools_list_changed=True)
    await turns()
    changes.list_changed("tools")
    await turns()
    assert listening.heard == [("notifications/tools/list_changed", {})]
    await listening.end()


async def test_what_happened_before_the_close_is_still_told():
    changes = Changes()
    listening = Listening(changes, tools_list_changed=True)
    await turns()
    changes.list_changed("tools")
    changes.close()
    await listening.task
    assert listening.heard == [("notifications/tools/list_changed", {})]


def test_a_listener_on_a_loop_that_is_gone_harms_nobody():
    changes = Changes()

    async def leaves():
        listening = Listening(changes, tools_list_changed=True)
        await turns()
        kept.extend(changes._listeners)
        await listening.end()

    kept = []
    asyncio.run(leaves())
    changes._listeners.update(kept)  # as if it had been there while its loop was closed
    changes.list_changed("tools")
    changes.close()


# --- who may hear ---


async def test_a_change_reaches_those_it_is_meant_for():
    changes, listening = Changes(), {}
    for name in ("ada", "bob"):
        params = ListenParams(notifications=ListenFilter(**{**WANTS_ALL, "resource_subscriptions": {"a:b"}}))
        exchange = Spoken("subscriptions/listen", params, Peer(principal=Principal("i", name)))
        listening[name] = exchange, asyncio.ensure_future(changes.listen(exchange, EVERYTHING))
    await turns()
    changes.list_changed("tools", lambda principal: principal.subject == "ada")
    changes.resource_updated("a:b", lambda principal: principal.subject == "bob")
    await turns()
    said = {name: [method for method, _ in exchange.told[1:]] for name, (exchange, _) in listening.items()}
    assert said == {"ada": ["notifications/tools/list_changed"], "bob": ["notifications/resources/updated"]}
    changes.close()
    await asyncio.gather(*(task for _, task in listening.values()))


async def test_many_streams_of_one_client_watch_no_more_than_one_may():
    changes = Changes()
    ada, bob = (Peer(principal=Principal("i", name)) for name in ("ada", "bob"))

    def listen(peer, first, count):
        wanted = ListenFilter(resource_subscriptions={f"a:{number}" for number in range(first, first + count)})
        exchange = Spoken("subscriptions/listen", ListenParams(notifications=wanted))
        exchange.peer = peer
        return asyncio.ensure_future(changes.listen(exchange, EVERYTHING))

    half = MOST_SUBSCRIPTIONS // 2
    open_ones = [listen(ada, 0, half), listen(ada, half, half), listen(bob, 0, half), listen(ada, 0, 0)]
    await turns(3)
    with pytest.raises(InvalidParams, match="end other streams first"):
        await listen(ada, 0, 1)
    assert not any(task.done() for task in open_ones)
    open_ones[0].cancel()
    await asyncio.wait([open_ones[0]])
    open_ones.append(listen(ada, 0, 1))
    await turns(3)
    assert not open_ones[-1].done()
    for task in open_ones:
        task.cancel()
    await asyncio.wait(open_ones)
    assert not changes._watched


async def test_of_those_who_own_the_process_each_connection_counts_for_itself():
    changes, tasks = Changes(), []
    for connection in ("one", "other"):
        wanted = ListenFilter(resource_subscriptions={f"a:{number}" for number in range(MOST_SUBSCRIPTIONS)})
        params = ListenParams(notifications=wanted)
        exchange = Spoken("subscriptions/listen", params, Peer(principal=LOCAL), outlet=connection)
        tasks.append(asyncio.ensure_future(changes.listen(exchange, EVERYTHING)))
    await turns(3)
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def test_the_longest_uri_may_be_watched():
    check_watched({"a:" + "x" * (LONGEST_URI - 2)})
    with pytest.raises(InvalidParams):
        check_watched({"a:" + "x" * (LONGEST_URI - 1)})


async def test_a_burst_wakes_the_loop_once(monkeypatch):
    changes, woken = Changes(), []
    listening = Listening(changes, tools_list_changed=True, prompts_list_changed=True)
    await turns(3)
    [listener] = changes._listeners
    soon = listener.soon
    monkeypatch.setattr(listener, "soon", lambda call: (woken.append(call), soon(call)))
    for kind in ("tools", "prompts", "tools"):
        changes.list_changed(kind)
    assert len(woken) == 1
    await turns(3)
    changes.list_changed("tools")
    assert len(woken) == 2
    listening.task.cancel()
    await asyncio.wait([listening.task])
