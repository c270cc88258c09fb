"""Passwords fit or do not; nobody who is unknown fits."""

from __future__ import annotations

import pytest

from interlock.auth.passwords import check_hash, fits, hash_password
from interlock.wire.errors import LocalError


def test_a_password_fits_its_hash_only():
    hashed = hash_password("correct horse")
    check_hash(hashed)
    assert fits("correct horse", hashed) and not fits("correct horsE", hashed) and not fits("", hashed)
    assert "correct" not in hashed and hash_password("correct horse") != hashed


def test_nobody_fits_who_does_not_exist():
    assert not fits("correct horse", None) and not fits("\ud800", None)


@pytest.mark.parametrize("short", ["", "1234567", "x" * 1025])
def test_a_password_has_a_length(short):
    with pytest.raises(LocalError):
        hash_password(short)


@pytest.mark.parametrize("plain", ["correct horse", "scrypt$x$y", "scrypt$00$00", "md5$" + "00" * 16, ""])
def test_a_plain_password_is_not_taken_for_a_hash(plain):
    with pytest.raises(LocalError, match="hash_password"):
        check_hash(plain)
