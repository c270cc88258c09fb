"""A conversation on disk."""

import errno
import os
import stat

import pytest

from interlock.host.chat.content_blocks import text_block
from interlock.host.chat.transcript import Transcript, read_transcript
from interlock.wire.errors import LocalError

ONE = {"role": "user", "content": [text_block("hi \u2028 \n there")]}
TWO = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {"a": None}}]}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new" / "talk.jsonl"
    Transcript(path).add(ONE)
    Transcript(path).add(TWO, {"notes", "files"})
    assert read_transcript(path) == ([ONE, TWO], {"notes", "files"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes().split(b"\n")) == 3


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "talk.jsonl"
    Transcript(path).add(ONE)
    with path.open("ab") as file:
        file.write(b'{"role": "user", "con')
    assert read_transcript(path) == ([ONE], set())


def test_it_goes_on_after_a_crash_at_every_byte(tmp_path):
    path = tmp_path / "talk.jsonl"
    for message in (ONE, TWO):
        Transcript(path).add(message)
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        before, _ = read_transcript(path)
        Transcript(path).add(ONE)
        Transcript(path).add(TWO)
        assert read_transcript(path)[0] == [*before, ONE, TWO], end


def test_a_long_line_that_was_cut_off_is_taken_away_and_a_foreign_one_is_not(tmp_path):
    path = tmp_path / "talk.jsonl"
    Transcript(path).add(ONE)
    with path.open("ab") as file:
        file.write(b'{"role":"user","content":[{"type":"text","text":"' + b"x" * 200_000)
    Transcript(path).add(TWO)
    assert read_transcript(path)[0] == [ONE, TWO]
    path.write_bytes(b"dear diary")
    Transcript(path).add(ONE)
    assert path.read_bytes().startswith(b"dear diary\n{")


@pytest.mark.parametrize("line", [b"{}", b'{"role": "system", "content": []}', b"\xff", b"5"])
def test_anything_else_that_is_wrong_is_told(tmp_path, line):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(line + b"\n")
    Transcript(path).add(ONE)
    with pytest.raises(LocalError, match="line 1"):
        read_transcript(path)


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path, whole = tmp_path / "talk.jsonl", os.write
    Transcript(path).add(ONE)
    before, written = path.read_bytes(), []

    def write(file, data):
        if written:
            raise OSError(errno.ENOSPC, "no room")
        written.append(whole(file, data[:10]))
        return written[0]

    with monkeypatch.context() as full:
        full.setattr(os, "write", write)
        with pytest.raises(LocalError, match="no room"):
            Transcript(path).add(ONE)
    assert path.read_bytes() == before
    Transcript(path).add(TWO)
    assert read_transcript(path)[0] == [ONE, TWO]


def test_files_that_cannot_be(tmp_path):
    with pytest.raises(LocalError, match="cannot be read"):
        read_transcript(tmp_path / "none")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LocalError, match="cannot be written"):
        Transcript(tmp_path / "link").add(ONE)
    assert not os.path.exists(tmp_path / "elsewhere")
