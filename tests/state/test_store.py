"""state/store.py: the contract, sentence by sentence, for every implementation."""

import asyncio
import math

import pytest

from interlock.state.store import Bounds, Event, surplus
from interlock.wire.errors import EventsGone, Fenced, LocalError, NotOpen, StoreFull
from support.stores import FOREVER, KINDS, Clock, opened, until_waiting

each_kind = pytest.mark.parametrize("kind", KINDS)


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events]


# --- values ---------------------------------------------------------------------------------------


@each_kind
async def test_what_was_put_is_got_until_it_expires(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        version = await store.put("k", b"\x00value", until=1010, owner="me")
        entry = await store.get("k", owner="me")
        assert entry is not None
        assert (entry.key, entry.value, entry.version, entry.until, entry.owner) == (
            "k",
            b"\0value",
            version,
            1010,
            "me",
        )
        clock.now = 1009.9
        assert await store.get("k", owner="me") is not None
        clock.now = 1010
        assert await store.get("k", owner="me") is None


@each_kind
async def test_infinity_is_an_end_and_nan_is_none(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        await store.put("k", b"v", until=math.inf)
        clock.now = 1e15
        assert await store.get("k") is not None
        with pytest.raises(LocalError, match="until"):
            await store.put("k", b"v", until=math.nan)
        with pytest.raises(LocalError, match="until"):
            await store.append("s", [b"e"], until=math.nan)


@each_kind
async def test_versions_grow_over_all_keys_and_deletions(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        one = await store.put("a", b"", until=FOREVER)
        two = await store.put("b", b"", until=FOREVER)
        assert await store.delete("a")
        three = await store.put("a", b"", until=FOREVER)
        assert 0 < one < two < three


@each_kind
async def test_put_if_absent_succeeds_once_of_many_at_once(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        versions = await asyncio.gather(*[store.put("k", b"%d" % n, until=FOREVER, expect=0) for n in range(50)])
        [winner] = [n for n, version in enumerate(versions) if version]
        entry = await store.get("k")
        assert entry is not None and entry.value == b"%d" % winner


@each_kind
async def test_put_if_absent_succeeds_over_an_expired_entry(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        old = await store.put("k", b"old", until=1010, owner="me")
        clock.now = 1010
        assert not await store.put("k", b"new", until=FOREVER, owner="me", expect=old)
        assert await store.put("k", b"new", until=FOREVER, owner="other", expect=0)
        assert await store.take_expired() == []


@each_kind
async def test_compare_and_set_counts_every_increment(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.put("n", b"0", until=FOREVER)

        async def increment() -> None:
            while True:
                entry = await store.get("n")
                assert entry is not None
                if await store.put("n", b"%d" % (int(entry.value) + 1), until=FOREVER, expect=entry.version):
                    return
                await asyncio.sleep(0)

        await asyncio.gather(*[increment() for _ in range(20)])
        entry = await store.get("n")
        assert entry is not None and entry.value == b"20"


@each_kind
async def test_another_owners_key_is_as_good_as_absent(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        version = await store.put("k", b"mine", until=FOREVER, owner="me")
        for other in ("", "you", "me "):
            assert await store.get("k", owner=other) is None
            assert not await store.delete("k", owner=other)
            for expect in (None, 0, version):
                assert await store.put("k", b"yours", until=FOREVER, owner=other, expect=expect) == 0
        entry = await store.get("k", owner="me")
        assert entry is not None and entry.value == b"mine" and entry.version == version


@each_kind
async def test_delete_removes_once_and_with_expect_only_that_version(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        version = await store.put("k", b"", until=FOREVER)
        assert not await store.delete("k", expect=version + 1)
        assert await store.delete("k", expect=version)
        assert not await store.delete("k")
        await store.put("k", b"", until=1001)
        clock.now = 1001
        assert not await store.delete("k")


@each_kind
async def test_delete_owned_removes_what_one_owner_has_below_a_prefix(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        await store.put("s/old", b"", until=1001, owner="me")
        clock.now = 1002
        for key, owner in (("s/1", "me"), ("s/ä", "me"), ("s/2", "you"), ("s", "me"), ("t/1", "me"), ("s0", "me")):
            await store.put(key, b"value", until=FOREVER, owner=owner)
        assert await store.delete_owned("s/", owner="me") == 2
        assert await store.delete_owned("s/", owner="me") == 0
        left = [key for key in ("s/1", "s/ä", "s", "t/1", "s0") if await store.get(key, owner="me") is not None]
        assert left == ["s", "t/1", "s0"] and await store.get("s/2", owner="you") is not None
        assert await store.delete_owned("", owner="me") == 3


@each_kind
async def test_expired_entries_are_taken_once_the_longest_expired_first(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        for number, until in enumerate((1030, 1010, 1020, 9999)):
            await store.put(f"s/{number}", b"%d" % number, until=until, owner="me")
        await store.put("other", b"", until=1010)
        assert await store.take_expired() == []
        clock.now = 1050
        taken = await asyncio.gather(*[store.take_expired("s/", 1) for _ in range(5)])
        assert [entry.key for entries in taken for entry in entries] == ["s/1", "s/2", "s/0"]
        assert [entry.key for entry in await store.take_expired()] == ["other"]
        assert await store.get("s/3", owner="me") is not None


@each_kind
async def test_a_prefix_is_bytes_of_the_key_and_no_pattern(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        for key in ("ä%", "ä_", "äx", "a"):
            await store.put(key, b"", until=1001)
        clock.now = 1002
        assert [entry.key for entry in await store.take_expired("ä%")] == ["ä%"]
        assert {entry.key for entry in await store.take_expired("ä")} == {"ä_", "äx"}


@each_kind
async def test_expired_entries_go_unseen_when_they_lingered_long_enough(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock, linger_seconds=60) as store:
        await store.put("k", b"", until=1010)
        clock.now = 1071
        await store.put("other", b"", until=FOREVER)
        assert await store.take_expired() == []


@each_kind
async def test_at_the_bound_of_keys_what_expired_makes_room_and_what_lives_stays(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock, entries=3) as store:
        for key, until in (("a", 1010), ("b", FOREVER), ("c", FOREVER)):
            await store.put(key, b"", until=until)
        with pytest.raises(StoreFull):
            await store.put("d", b"", until=FOREVER)
        assert await store.put("b", b"again", until=FOREVER)
        clock.now = 1011
        assert await store.put("d", b"", until=FOREVER)
        with pytest.raises(StoreFull):
            await store.put("e", b"", until=FOREVER)
        assert [await store.get(key) is not None for key in "abcde"] == [False, True, True, True, False]
        await store.delete("b")
        assert await store.put("e", b"", until=FOREVER)


@each_kind
async def test_at_the_bound_of_bytes_nothing_is_written(kind, tmp_path):
    async with opened(kind, tmp_path, entries_bytes=20) as store:
        assert await store.put("a", b"123456", until=FOREVER, owner="me")  # 9 bytes
        with pytest.raises(StoreFull):
            await store.put("b", b"12345678901", until=FOREVER)
        assert await store.put("b", b"1234567890", until=FOREVER)
        with pytest.raises(StoreFull):
            await store.put("a", b"1234567", until=FOREVER, owner="me")
        entry = await store.get("a", owner="me")
        assert entry is not None and entry.value == b"123456"
        assert await store.put("b", b"", until=FOREVER)
        assert await store.put("a", b"1234567", until=FOREVER, owner="me")


@each_kind
async def test_names_and_values_have_their_bounds(kind, tmp_path):
    async with opened(kind, tmp_path, name_bytes=4, value_bytes=5, event_bytes=5, stream_events=3) as store:
        assert await store.put("ää", b"12345", until=FOREVER, owner="ää")
        for key, value, owner in (("äää", b"", ""), ("k", b"", "äää"), ("k", b"123456", ""), ("\ud800", b"", "")):
            with pytest.raises(LocalError):
                await store.put(key, value, until=FOREVER, owner=owner)
        for stream, events in (("äää", [b""]), ("s", [b"123456"]), ("s", [b""] * 4), ("\ud800", [b""])):
            with pytest.raises(LocalError):
                await store.append(stream, events, until=FOREVER)
        for fence in (-1, 1 << 63):
            with pytest.raises(LocalError, match="fence"):
                await store.append("s", [b""], until=FOREVER, fence=fence)
        assert await store.last("s") == 0


@each_kind
async def test_a_name_that_nobody_can_write_is_absent(kind, tmp_path):
    async with opened(kind, tmp_path, name_bytes=4) as store:
        for name in ("\ud800", "x" * 1000, "a\0b", ""):
            assert await store.get(name) is None
            assert await store.get("k", owner=name) is None
            assert not await store.delete(name)
            assert await store.read(name) == []
            assert await store.last(name) == 0
            assert not await store.drop(name)
            assert await store.take_expired(name) == []
            await store.trim(name, 10)


# --- streams --------------------------------------------------------------------------------------


@each_kind
async def test_events_are_read_in_order_from_any_point(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        assert await store.append("s", [b"a", b"b"], until=FOREVER) == 2
        assert await store.append("other", [b"x"], until=FOREVER) == 1
        assert await store.append("s", [b"c"], until=FOREVER) == 3
        assert await store.read("s") == [Event(1, b"a"), Event(2, b"b"), Event(3, b"c")]
        assert await store.read("s", 1) == [Event(2, b"b"), Event(3, b"c")]
        assert await store.read("s", 3) == []
        assert await store.last("s") == 3


@each_kind
async def test_a_page_has_a_size_and_at_least_one_event(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"12345"] * 10, until=FOREVER)
        assert ids(await store.read("s", 2, most=3)) == [3, 4, 5]
        assert ids(await store.read("s", 2, most_bytes=11)) == [3, 4]
        assert ids(await store.read("s", 2, most_bytes=1)) == [3]
        assert ids(await store.read("s", 2, most=0)) == [3]
        assert ids(await store.read("s", 2, most=1 << 70)) == list(range(3, 11))


@each_kind
async def test_many_writers_leave_one_order_without_gap_or_duplicate(kind, tmp_path):
    async with opened(kind, tmp_path) as store:

        async def write(writer: int) -> list[int]:
            return [await store.append("s", [b"%d %d" % (writer, n)], until=FOREVER) for n in range(20)]

        given = await asyncio.gather(*[write(writer) for writer in range(10)])
        events = await store.read("s", most=1000)
        assert ids(events) == list(range(1, 201))
        assert sorted(id for ids in given for id in ids) == list(range(1, 201))
        for writer, own in enumerate(given):
            assert [events[id - 1].data for id in own] == [b"%d %d" % (writer, n) for n in range(20)]


@each_kind
@pytest.mark.parametrize("after", [-1, 4, 1 << 40, 1 << 70])
async def test_an_id_that_was_never_given_is_told(kind, after, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b""] * 3, until=FOREVER)
        with pytest.raises(EventsGone):
            await store.read("s", after)
        with pytest.raises(EventsGone):
            await store.read("unknown", after)
        assert await store.wait("s", after, seconds=60)


@each_kind
async def test_the_oldest_go_by_count_and_who_needs_them_is_told(kind, tmp_path):
    async with opened(kind, tmp_path, stream_events=3) as store:
        for number in range(5):
            await store.append("s", [b"%d" % number], until=FOREVER)
        assert ids(await store.read("s", 2)) == [3, 4, 5]
        for after in (0, 1):
            with pytest.raises(EventsGone):
                await store.read("s", after)


@each_kind
async def test_the_oldest_go_by_bytes_but_never_the_newest(kind, tmp_path):
    async with opened(kind, tmp_path, stream_bytes=10) as store:
        await store.append("s", [b"1234", b"1234"], until=FOREVER)
        await store.append("s", [b"1234"], until=FOREVER)
        assert ids(await store.read("s", 1)) == [2, 3]
        await store.append("s", [b"12345678", b"x" * 100], until=FOREVER)
        assert ids(await store.read("s", 4)) == [5]
        with pytest.raises(EventsGone):
            await store.read("s", 3)


@each_kind
async def test_the_oldest_go_by_age(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock, event_seconds=10) as store:
        await store.append("s", [b"a"], until=FOREVER)
        clock.now = 1005
        await store.append("s", [b"b"], until=FOREVER)
        clock.now = 1010
        assert ids(await store.read("s", 1)) == [2]
        with pytest.raises(EventsGone):
            await store.read("s")
        clock.now = 1100
        assert await store.read("s", 2) == []
        assert await store.append("s", [b"c"], until=FOREVER) == 3
        assert ids(await store.read("s", 2)) == [3]


@each_kind
async def test_trimming_forgets_what_was_read_and_ids_go_on(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"x"] * 5, until=FOREVER)
        await store.trim("s", 3)
        await store.trim("s", 2)
        assert ids(await store.read("s", 3)) == [4, 5]
        with pytest.raises(EventsGone):
            await store.read("s", 2)
        await store.trim("s", 100)
        assert await store.read("s", 5) == [] and await store.last("s") == 5
        assert await store.append("s", [b"y"], until=FOREVER) == 6
        await store.trim("unknown", 3)


@each_kind
async def test_a_dropped_stream_is_gone_and_its_ids_never_come_again(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"old"] * 5, until=FOREVER)
        assert await store.drop("s") and not await store.drop("s")
        assert await store.last("s") == 0 and await store.read("s") == []
        with pytest.raises(EventsGone):
            await store.read("s", 5)
        assert await store.append("s", [b"new"] * 9, until=FOREVER) == 14
        assert ids(await store.read("s")) == list(range(6, 15))
        for after in (1, 4):
            with pytest.raises(EventsGone):
                await store.read("s", after)


@each_kind
async def test_a_stream_expires_and_an_empty_append_keeps_it(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock) as store:
        assert await store.append("s", [], until=FOREVER) == 0
        assert await store.last("s") == 0
        await store.append("s", [b"a", b"b"], until=1010)
        assert await store.append("s", [], until=1020) == 2
        clock.now = 1015
        assert ids(await store.read("s")) == [1, 2]
        clock.now = 1020
        assert await store.read("s") == [] and not await store.drop("s")
        with pytest.raises(EventsGone):
            await store.read("s", 1)
        assert await store.append("s", [b"c"], until=FOREVER) == 3


@each_kind
async def test_an_older_fence_is_locked_out(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        old = await store.put("session", b"worker 1", until=FOREVER)
        await store.append("s", [b"1"], until=FOREVER, fence=old)
        new = await store.put("session", b"worker 2", until=FOREVER, expect=old)
        await store.append("s", [], until=FOREVER, fence=new)
        for fence in (0, old):
            with pytest.raises(Fenced):
                await store.append("s", [b"late"], until=FOREVER, fence=fence)
        assert await store.append("s", [b"2"], until=FOREVER, fence=new) == 2
        assert [event.data for event in await store.read("s")] == [b"1", b"2"]


@each_kind
async def test_at_the_bound_of_streams_what_expired_makes_room(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock, streams=2) as store:
        await store.append("a", [b""], until=1010)
        await store.append("b", [b""], until=FOREVER)
        with pytest.raises(StoreFull):
            await store.append("c", [b""], until=FOREVER)
        assert await store.append("b", [b""], until=FOREVER) == 2
        clock.now = 1011
        assert await store.append("c", [b""], until=FOREVER) == 2
        await store.drop("b")
        assert await store.append("d", [b""], until=FOREVER) == 3


@each_kind
async def test_at_the_bound_of_all_bytes_what_is_old_makes_room_and_nothing_else(kind, tmp_path):
    clock = Clock()
    async with opened(kind, tmp_path, clock, events_bytes=10, event_seconds=60) as store:
        await store.append("a", [b"12345"], until=FOREVER)
        await store.append("b", [b"12345"], until=FOREVER)
        with pytest.raises(StoreFull):
            await store.append("b", [b"x"], until=FOREVER)
        with pytest.raises(StoreFull):
            await store.append("c", [b"x"], until=FOREVER)
        assert await store.read("a") == [Event(1, b"12345")]
        clock.now = 1061
        assert await store.append("c", [b"1234567890"], until=FOREVER) == 1
        assert await store.last("a") == 1
        with pytest.raises(EventsGone):
            await store.read("a")
        await store.trim("c", 1)
        assert await store.append("b", [b"1234567890"], until=FOREVER) == 2


# --- waiting --------------------------------------------------------------------------------------


@each_kind
async def test_waiting_ends_with_the_append_for_everybody_who_waits(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"a"], until=FOREVER)
        waits = [asyncio.create_task(store.wait("s", 1, seconds=60)) for _ in range(5)]
        waits.append(asyncio.create_task(store.wait("unborn", seconds=60)))
        other = asyncio.create_task(store.wait("other", seconds=60))
        await until_waiting(store)
        assert not any(wait.done() for wait in waits)
        await store.append("s", [b"b"], until=FOREVER)
        await store.append("unborn", [b"b"], until=FOREVER)
        assert all(await asyncio.gather(*waits)) and not other.done()
        other.cancel()
        await asyncio.wait([other])


@each_kind
async def test_waiting_returns_at_once_where_there_is_something_and_after_its_time_where_not(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"a"], until=FOREVER)
        assert await store.wait("s", seconds=0)
        assert not await store.wait("s", 1, seconds=0)
        assert not await store.wait("s", 1, seconds=0.03)
        await store.append("s", [], until=FOREVER)
        assert not await store.wait("s", 1, seconds=0)


@each_kind
async def test_waiting_ends_with_the_stream(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        await store.append("s", [b"a"], until=FOREVER)
        wait = asyncio.create_task(store.wait("s", 1, seconds=60))
        await until_waiting(store)
        await store.drop("s")
        assert await wait
        with pytest.raises(EventsGone):
            await store.read("s", 1)


@each_kind
async def test_a_reader_that_waits_misses_nothing(kind, tmp_path):
    async with opened(kind, tmp_path) as store:

        async def write() -> None:
            for number in range(200):
                await store.append("s", [b"%d" % number], until=FOREVER)
                if number % 7 == 0:
                    await asyncio.sleep(0.001)

        writing, got = asyncio.create_task(write()), list[Event]()
        while len(got) < 200:
            assert await store.wait("s", len(got), seconds=60)
            got += await store.read("s", len(got))
        await writing
        assert [(event.id, event.data) for event in got] == [(n + 1, b"%d" % n) for n in range(200)]


# --- the end --------------------------------------------------------------------------------------


@each_kind
async def test_after_the_end_nothing_works_and_who_waits_is_told(kind, tmp_path):
    async with opened(kind, tmp_path) as store:
        assert store.shared == (kind == "sqlite")
        await store.append("s", [b"a"], until=FOREVER)
        wait = asyncio.create_task(store.wait("s", 1, seconds=60))
        await until_waiting(store)
        await store.close()
        await store.close()
        for call in (store.get("k"), store.put("k", b"", until=FOREVER), store.read("s"), wait):
            with pytest.raises(NotOpen):
                await call


@each_kind
async def test_one_that_was_never_used_closes(kind, tmp_path):
    async with opened(kind, tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


# --- what goes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "gone"),
    [
        ([], (0, 0)),
        ([(100.0, 5)], (0, 0)),
        ([(100.0, 500)], (0, 0)),
        ([(100.0, 500), (100.0, 500)], (1, 500)),
        ([(100.0, 1)] * 5, (2, 2)),
        ([(89.0, 1), (100.0, 1)], (1, 1)),
        ([(89.0, 1)], (1, 1)),
        ([(100.0, 8), (100.0, 8), (100.0, 2)], (1, 8)),
    ],
)
def test_the_surplus_is_the_oldest_by_count_bytes_and_age(events, gone):
    bounds = Bounds(stream_events=3, stream_bytes=10, event_seconds=10)
    assert surplus(iter(events), len(events), sum(size for _, size in events), 100.0, bounds) == gone
