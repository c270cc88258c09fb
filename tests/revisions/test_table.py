"""revisions/table.py: five rows, oldest first, two eras, and which of them are meant."""

import itertools

import pytest

from interlock.revisions.revision import Era
from interlock.revisions.table import NEWEST, OFFICIAL_METHODS, REVISIONS, names_of, newest_of, pick
from interlock.wire.errors import LocalError

NAMES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def test_the_rows_are_in_order():
    assert list(REVISIONS) == [row.name for row in REVISIONS.values()] == NAMES == sorted(NAMES)
    assert NEWEST is REVISIONS["2026-07-28"]


def test_behaviour_changes_in_kind_only_once():
    assert [row.era for row in REVISIONS.values()] == [Era.HANDSHAKE] * 4 + [Era.STATELESS]


def test_a_row_reveals_and_never_hides():
    rows = list(REVISIONS.values())
    for older, newer in itertools.pairwise(rows):
        assert newer.unknown <= older.unknown
        assert newer.blocks >= older.blocks
        assert newer.server_capabilities >= older.server_capabilities
        assert newer.client_capabilities >= older.client_capabilities


def test_the_whole_table_unless_told():
    assert list(pick(None)) == NAMES
    pick(None).clear()
    assert list(pick(None)) == NAMES


def test_a_choice_keeps_the_order_of_the_table():
    assert list(pick(("2026-07-28", "2025-03-26"))) == ["2025-03-26", "2026-07-28"]
    assert list(pick(("2025-06-18", "2025-06-18"))) == ["2025-06-18"]


@pytest.mark.parametrize("names", [("2025-01-01",), ("2025-06-18", "latest"), ()])
def test_an_unknown_name_is_a_mistake_of_the_caller(names):
    with pytest.raises(LocalError, match="2024-11-05"):
        pick(names)


def test_the_newest_of_an_era():
    assert newest_of(pick(None), Era.HANDSHAKE).name == "2025-11-25"
    assert newest_of(pick(("2024-11-05", "2025-03-26")), Era.HANDSHAKE).name == "2025-03-26"
    assert newest_of(pick(("2024-11-05",)), Era.STATELESS) is None
    assert newest_of({}, Era.STATELESS) is None


def test_peers_read_the_newest_first():
    assert names_of(pick(None)) == NAMES[::-1]


def test_the_specification_has_taken_every_name_it_ever_used():
    assert {"initialize", "server/discover", "ping", "elicitation/create", "tasks/get"} <= OFFICIAL_METHODS
    assert all(row.requests <= OFFICIAL_METHODS for row in REVISIONS.values())
    assert "example/report" not in OFFICIAL_METHODS
