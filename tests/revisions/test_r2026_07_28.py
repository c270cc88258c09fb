"""revisions/r2026_07_28.py: the row is what its official schema says."""

from interlock.revisions.r2026_07_28 import R2026_07_28 as R
from interlock.revisions.revision import Era
from interlock.wire.errors import CannotAsk, HeaderMismatch, Refused, ResourceNotFound, UnsupportedVersion
from support.rows import check_row


def test_the_row_is_what_the_schema_says():
    check_row(R)


def test_nothing_is_unknown_to_the_newest():
    assert R.era is Era.STATELESS
    assert R.unknown == frozenset()


def test_its_errors_have_the_new_codes():
    for error, code in (
        (ResourceNotFound("gone"), -32602),
        (CannotAsk("no"), -32021),
        (UnsupportedVersion("no"), -32022),
        (HeaderMismatch("no"), -32020),
    ):
        assert R.code_of(error) == code


def test_it_understands_its_own_errors_and_an_older_servers():
    assert isinstance(R.refusal(-32020, "no"), HeaderMismatch)
    assert isinstance(R.refusal(-32021, "no"), CannotAsk)
    assert isinstance(R.refusal(-32022, "no"), UnsupportedVersion)
    assert isinstance(R.refusal(-32002, "gone"), ResourceNotFound)


def test_the_old_verbs_are_gone():
    gone = {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    assert not gone & R.requests


def test_codes_that_belong_to_others_are_never_used():
    # basic/index#error-codes: -32000..-32019 is a legacy area, -32020..-32099 is the specification's alone.
    for code in (-32000, -32001, -32019, -32023, -32042, -32099):
        assert R.code_of(Refused("mine", code=code)) == -32603
    for code in (-32100, -31999, -1, 7, -32700, -32600, -32020):
        assert R.code_of(Refused("mine", code=code)) == code
    assert R.code_of(Refused("gone", code=-32002)) == -32602
