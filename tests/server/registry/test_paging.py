"""server/registry/paging.py: cursors that stay valid while items come and go, and no cursor of anybody else."""

import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import UNSET

from interlock.server.registry.paging import Catalogue, cache_hints
from interlock.wire.errors import InvalidParams, LocalError
from support.properties import many


def catalogue(count=0, size=None):
    found = Catalogue("items", size)
    for number in range(count):
        found.add(f"n{number}", f"item {number}", number)
    return found


def walk(found, hints=None):
    """All pages from the first one on."""
    pages, cursor = [], UNSET
    while cursor is not None:
        page = found.page(cursor, hints or {})
        pages.append(page["items"])
        cursor = page.get("nextCursor")
    return pages


# --- items ---


def test_items_are_found_by_name_in_the_order_they_were_added():
    found = catalogue(3)
    assert "n1" in found and "n9" not in found
    assert (found.get("n1"), found.get("n9")) == ("item 1", None)
    assert found.items() == ["item 0", "item 1", "item 2"]


def test_removing_says_whether_there_was_one():
    found = catalogue(2)
    assert found.remove("n0") and not found.remove("n0")
    assert found.items() == ["item 1"]


def test_what_was_once_offered_stays_offered():
    found = catalogue()
    assert not found.offered
    found.add("a", "A", 1)
    found.remove("a")
    assert found.offered  # a declared capability is kept (CAP-02)


# --- pages ---


@many(100)
@given(st.integers(0, 40), st.none() | st.integers(1, 12))
def test_the_pages_are_all_items_once_in_order(count, size):
    pages = walk(catalogue(count, size))
    assert [item for page in pages for item in page] == list(range(count))
    assert all(len(page) == (size or count) for page in pages[:-1])
    assert size is None or all(len(page) <= size for page in pages)


def test_an_empty_list_is_one_empty_page():
    assert catalogue().page(UNSET, {"ttlMs": 5}) == {"items": [], "ttlMs": 5}


def test_the_last_page_has_no_cursor_also_when_it_is_full():
    assert "nextCursor" not in catalogue(4, 4).page(UNSET, {})
    pages = walk(catalogue(8, 4))
    assert [len(page) for page in pages] == [4, 4]


def test_a_page_lasts_until_something_changes():
    found = catalogue(3, 2)
    first = found.page(UNSET, {})
    assert found.page(UNSET, {}) is first
    found.add("new", "New", 99)
    assert found.page(UNSET, {}) is not first
    again = found.page(UNSET, {})
    found.remove("never there")
    found.remove("n0")
    assert found.page(UNSET, {}) != again


def test_the_memory_of_pages_is_bounded():
    found = catalogue(3000, 1)
    assert sum(len(page) for page in walk(found)) == 3000
    assert len(found._pages) == 1024


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_holds_something(size):
    with pytest.raises(LocalError, match="page_size"):
        Catalogue("items", size)


def test_the_cursor_of_another_list_is_refused():
    cursor = catalogue(3, 1).page(UNSET, {})["nextCursor"]
    other = Catalogue("others", 1)
    for number in range(3):
        other.add(f"n{number}", "", number)
    with pytest.raises(InvalidParams, match="cursor"):
        other.page(cursor, {})


def test_a_cursor_stays_good_when_the_last_item_of_its_page_is_gone():
    found = catalogue(4, 2)
    cursor = found.page(UNSET, {})["nextCursor"]
    found.remove("n1")
    assert found.page(cursor, {})["items"] == [2, 3]
    found.remove("n2")
    found.remove("n3")
    assert found.page(cursor, {}) == {"items": []}


def test_the_pages_of_two_cursors_are_never_mixed_up():
    found = catalogue(6, 2)
    pages = {}
    cursor = found.page(UNSET, {})["nextCursor"]
    for _ in range(2):
        page = found.page(cursor, {})
        pages[cursor] = list(page["items"])
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    for cursor, items in pages.items():
        assert found.page(cursor, {})["items"] == items


# --- cursors ---


def cursors_of(count=10, size=1):
    found, cursor, seen = catalogue(count, size), UNSET, []
    while (cursor := found.page(cursor, {}).get("nextCursor")) is not None:
        seen.append(cursor)
    return seen


OURS = set(cursors_of(200))


@many(400)
@given(st.text(max_size=30) | st.binary(max_size=20).map(lambda data: base64.urlsafe_b64encode(data).decode()))
@example("")
@example("0")
@example("abc")
@example(base64.urlsafe_b64encode(b"items:").decode())
@example(base64.urlsafe_b64encode(b"items:-1").decode())
@example(base64.urlsafe_b64encode(b"items:1.5").decode())
@example(base64.urlsafe_b64encode(b"after:1").decode())
@example(base64.urlsafe_b64encode(b"items: 1").decode())
@example(base64.urlsafe_b64encode(b"items:1:2").decode())
@example(base64.urlsafe_b64encode("items:٣".encode()).decode())
@example(base64.urlsafe_b64encode(b"items:" + b"9" * 30).decode())
@example(base64.urlsafe_b64encode(b"items:1").decode().rstrip("="))
@example(base64.urlsafe_b64encode(b"items:1").decode() + "\n")
@example(" " + base64.urlsafe_b64encode(b"items:1").decode())
@example(base64.urlsafe_b64encode(b"items:01").decode())
@example(base64.urlsafe_b64encode(b"items:7").decode())
@example("é")
@example("\ud800")
def test_a_cursor_that_is_not_ours_is_refused(cursor):
    if cursor in OURS:
        return
    with pytest.raises(InvalidParams, match="cursor"):
        catalogue(3, 1).page(cursor, {})


def test_a_cursor_is_a_plain_string_for_json():
    for cursor in OURS:
        assert json.loads(json.dumps(cursor)) == cursor
        assert cursor.isascii() and cursor.isprintable()


class CursorMachine(RuleBasedStateMachine):
    """Walks through the pages while items come and go: nothing that stayed is missed, nothing is seen twice."""

    @initialize(size=st.integers(1, 4), count=st.integers(0, 10))
    def begin(self, size, count):
        self.catalogue = catalogue(count, size)
        self.present = [f"n{number}" for number in range(count)]
        self.added = count
        self.restart()

    @rule()
    def restart(self):
        self.cursor, self.seen, self.over = UNSET, [], False
        self.from_the_start = set(self.present)

    @rule()
    def add(self):
        name = f"n{self.added}"
        self.catalogue.add(name, name, self.added)
        self.present.append(name)
        self.added += 1

    @rule(which=st.integers(0, 1000))
    def remove(self, which):
        if self.present:
            name = self.present.pop(which % len(self.present))
            self.catalogue.remove(name)
            self.from_the_start.discard(name)

    @rule()
    def next_page(self):
        if self.over:
            return
        page = self.catalogue.page(self.cursor, {})
        self.seen += page["items"]
        self.cursor = page.get("nextCursor")
        self.over = self.cursor is None

    @invariant()
    def nothing_is_seen_twice_or_out_of_order(self):
        seen = getattr(self, "seen", [])
        assert seen == sorted(set(seen))

    @invariant()
    def a_finished_walk_has_seen_everything_that_stayed(self):
        if getattr(self, "over", False):
            assert {int(name[1:]) for name in self.from_the_start} <= set(self.seen)


TestCursorsWhileItemsComeAndGo = CursorMachine.TestCase
TestCursorsWhileItemsComeAndGo.settings = many(100, stateful_step_count=30)


@pytest.mark.parametrize(("seconds", "told"), [(0, 0), (1.5, 1500), (60.0, 60_000), (366 * 86400, 366 * 86_400_000)])
def test_hints_for_caches(seconds, told):
    hints = cache_hints(seconds, "public")
    assert hints == {"ttlMs": told, "cacheScope": "public"} and type(hints["ttlMs"]) is int


@pytest.mark.parametrize(
    ("seconds", "scope"),
    [(-1, "public"), (-0.001, "private"), (float("nan"), "public"), (float("inf"), "public"), (1, ""), (1, "shared")],
)
def test_hints_that_no_cache_could_read(seconds, scope):
    with pytest.raises(LocalError, match="cache_"):
        cache_hints(seconds, scope)


# --- pages for those who do not see everything ---


def seen(found, *names, cursor=UNSET, hints=None):
    return found.page(cursor, hints or {}, lambda item: item.rpartition(" ")[2] in names)


def test_a_page_holds_what_is_shown():
    found = catalogue(4)
    assert seen(found, "1", "3")["items"] == [1, 3]
    assert seen(found)["items"] == []
    assert found.page(UNSET, {})["items"] == [0, 1, 2, 3]


def test_it_is_kept_for_those_who_see_the_same_and_for_nobody_else():
    found = catalogue(4)
    first = seen(found, "1", "3")
    assert seen(found, "3", "1") is first
    assert seen(found, "1") is not first and seen(found, "1")["items"] == [1]
    found.add("n4", "item 4", 4)
    assert seen(found, "1", "3") is not first


def test_pages_of_those_who_see_less_follow_each_other():
    found = catalogue(6, 2)
    first = seen(found, "0", "2", "3", "5")
    second = seen(found, "0", "2", "3", "5", cursor=first["nextCursor"])
    assert (first["items"], second["items"], "nextCursor" in second) == ([0, 2], [3, 5], False)


def test_not_more_are_kept_than_the_bound():
    found = catalogue(8)
    masks = [[str(bit) for bit in range(8) if number >> bit & 1] for number in range(100)]
    kept = sum(seen(found, *mask) is seen(found, *mask) for mask in masks)
    assert kept == 64
    assert seen(found, *masks[99])["items"] == [0, 1, 5, 6]


def test_a_page_made_of_what_was_there_before_is_not_kept():
    found = catalogue(2)

    def adds_meanwhile(item):
        if "n9" not in found:
            found.add("n9", "item 9", 9)
        return True

    assert found.page(UNSET, {}, adds_meanwhile)["items"] == [0, 1]
    assert found.page(UNSET, {}, lambda item: True)["items"] == [0, 1, 9]


def test_a_number_that_was_not_given_yet_is_no_cursor():
    found = catalogue(2)
    ahead = base64.urlsafe_b64encode(b"items:2").decode()
    with pytest.raises(InvalidParams):
        found.page(ahead, {})
    found.add("n2", "item 2", 2)
    assert found.page(ahead, {})["items"] == []
