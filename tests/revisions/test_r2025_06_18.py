"""revisions/r2025_06_18.py: the row is what its official schema says."""

from interlock.revisions.r2025_03_26 import R2025_03_26
from interlock.revisions.r2025_06_18 import R2025_06_18 as R
from support.rows import check_row


def test_the_row_is_what_the_schema_says():
    check_row(R)


def test_batches_are_gone():
    assert not R.batches


def test_it_can_ask_the_user():
    assert R.questions["elicitation/create"] == "elicitation"
    assert "elicitation/create" not in R2025_03_26.questions


def test_links_are_blocks_now():
    assert R.blocks - R2025_03_26.blocks == {"resource_link"}
