"""Password hashes: what fits, which parameters are used and accepted, and what a wrong password costs."""

from __future__ import annotations

import hashlib

import pytest

from interlock.auth.authorization_server import passwords
from interlock.auth.authorization_server.passwords import check_hash, fits, hash_password, is_outdated
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


def hash_of_before(password):
    """As versions made them that stored no parameters."""
    salt = bytes(range(16))
    return f"scrypt${salt.hex()}${hashlib.scrypt(password.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=32).hex()}"


def test_the_parameters_are_in_the_hash_and_as_strong_as_owasp_asks():
    kind, written, salt, digest = hash_password("correct horse").split("$")
    assert (kind, written) == ("scrypt", "ln=14,r=8,p=5")
    derived = hashlib.scrypt(b"correct horse", salt=bytes.fromhex(salt), n=1 << 14, r=8, p=5, dklen=32)
    assert derived.hex() == digest and not is_outdated(f"scrypt${written}${salt}${digest}")


def test_a_hash_of_before_fits_and_is_outdated():
    hashed = hash_of_before("correct horse")
    check_hash(hashed)
    assert fits("correct horse", hashed) and not fits("correct horsE", hashed) and is_outdated(hashed)


def test_other_parameters_are_taken_from_the_hash():
    salt = bytes(16)
    derived = hashlib.scrypt(b"correct horse", salt=salt, n=1 << 10, r=4, p=2, dklen=32)
    assert fits("correct horse", f"scrypt$ln=10,r=4,p=2${salt.hex()}${derived.hex()}")
    assert not fits("correct horse", f"scrypt$ln=10,r=4,p=3${salt.hex()}${derived.hex()}")


def test_a_wrong_password_costs_the_same_for_every_user(monkeypatch):
    """For one who does not exist, and for one whose hash is outdated: else the time tells which users exist."""
    work = []

    def scrypt(raw, *, n, r, p, dklen, **_):
        work.append(n * r * p)
        return bytes(dklen)

    monkeypatch.setattr(passwords.hashlib, "scrypt", scrypt)
    salt, digest = "00" * 16, "11" * 32
    costs = set()
    for hashed in (None, f"scrypt${salt}${digest}", f"scrypt$ln=14,r=8,p=5${salt}${digest}"):
        work.clear()
        assert not fits("wrong password", hashed)
        costs.add(sum(work))
    assert costs == {(1 << 14) * 8 * 5}


@pytest.mark.parametrize(
    "written", ["ln=17,r=8,p=1", "ln=14,r=8,p=99", "ln=0,r=8,p=1", "ln=14,r=0,p=1", "ln=14,r=8,p=0"]
)
def test_parameters_out_of_range_are_refused(written):
    with pytest.raises(LocalError, match="out of range"):
        check_hash(f"scrypt${written}${'00' * 16}${'00' * 32}")


@pytest.mark.parametrize(
    "plain",
    [
        "correct horse",
        "scrypt$x$y",
        "scrypt$00$00",
        "md5$" + "00" * 16,
        "",
        f"scrypt$ln=14,r=8${'00' * 16}${'00' * 32}",
        f"scrypt$ln=14,r=8,p=5${'00' * 16}${'00' * 31}",
    ],
)
def test_a_plain_password_is_not_taken_for_a_hash(plain):
    with pytest.raises(LocalError, match="hash_password"):
        check_hash(plain)
