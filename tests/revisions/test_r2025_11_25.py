"""revisions/r2025_11_25.py: the row is what its official schema says."""

from interlock.revisions.r2025_06_18 import R2025_06_18
from interlock.revisions.r2025_11_25 import R2025_11_25 as R
from interlock.revisions.r2026_07_28 import R2026_07_28
from interlock.revisions.revision import Era
from interlock.wire.errors import Refused, UrlElicitationRequired
from support.rows import check_row


def test_the_row_is_what_the_schema_says():
    check_row(R)


def test_it_alone_has_the_error_that_asks_for_a_url():
    assert R.era is Era.HANDSHAKE
    assert isinstance(R.refusal(-32042, "open it"), UrlElicitationRequired)
    assert type(R2025_06_18.refusal(-32042, "open it")) is Refused
    assert type(R2026_07_28.refusal(-32042, "open it")) is Refused


def test_only_what_came_with_the_next_revision_is_unknown():
    assert {pair.partition(".")[0] for pair in R.unknown} == {"Result"}
