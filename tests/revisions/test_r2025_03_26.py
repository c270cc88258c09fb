"""revisions/r2025_03_26.py: the row is what its official schema says."""

from interlock.revisions.r2024_11_05 import R2024_11_05
from interlock.revisions.r2025_03_26 import R2025_03_26 as R
from support.rows import check_row


def test_the_row_is_what_the_schema_says():
    check_row(R)


def test_it_alone_has_batches():
    assert R.batches and not R2024_11_05.batches


def test_what_it_added():
    assert R.blocks - R2024_11_05.blocks == {"audio"}
    assert R.server_capabilities - R2024_11_05.server_capabilities == {"completions"}
    assert R2024_11_05.unknown - R.unknown == {"Tool.annotations", "Progress.message"}
