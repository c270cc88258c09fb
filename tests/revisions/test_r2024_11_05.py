"""revisions/r2024_11_05.py: the row is what its official schema says."""

from interlock.revisions.r2024_11_05 import R2024_11_05 as R
from interlock.revisions.revision import Era
from interlock.wire.errors import CannotAsk, InvalidParams, ResourceNotFound, UnsupportedVersion
from support.rows import check_row


def test_the_row_is_what_the_schema_says():
    check_row(R)


def test_its_errors_have_the_old_codes():
    assert R.era is Era.HANDSHAKE
    assert R.code_of(ResourceNotFound("gone")) == -32002
    assert R.code_of(CannotAsk("no")) == -32601
    assert R.code_of(UnsupportedVersion("no")) == -32602
    assert R.code_of(InvalidParams("no")) == -32602


def test_the_code_of_a_summary_counts_only_with_a_uri():
    # handshake.md §16.3: peers written from that summary send -32001 for a resource that is not there.
    assert isinstance(R.refusal(-32001, "gone", {"uri": "a:b"}), ResourceNotFound)
    assert not isinstance(R.refusal(-32001, "timeout"), ResourceNotFound)
    assert not isinstance(R.refusal(-32001, "timeout", {"seconds": 1}), ResourceNotFound)


def test_completions_stand_behind_no_capability():
    assert "completion/complete" in R.requests
    assert "completions" not in R.server_capabilities
