"""server/roots.py: a place lies within a root by where it leads, not by how it is written."""

import os
import sys

import pytest

from interlock.server.input import Root
from interlock.server.roots import folder_of, within


@pytest.fixture
def data(tmp_path):
    folder = tmp_path.resolve() / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a b.txt").write_text("x")
    (tmp_path / "data-secret").mkdir()
    (tmp_path / "data-secret" / "key").write_text("x")
    return folder


def test_what_is_below_or_is_the_root(data):
    roots = [Root(data.as_uri(), None)]
    for path in (
        data,
        data / "sub",
        data / "sub" / "a b.txt",
        data / "not" / "there",
        str(data) + "/",
        f"{data}/sub/..",
    ):
        assert within(path, roots), path


def test_what_is_elsewhere(data):
    roots = [Root(data.as_uri(), None)]
    for path in (
        data.parent,
        data / "..",
        f"{data}-secret",
        f"{data}-secret/key",
        f"{data}/../data-secret/key",
        "/",
        "",
    ):
        assert not within(path, roots), path


def test_links_count_for_where_they_lead(data):
    (data / "out").symlink_to(data.parent / "data-secret")
    (data.parent / "in").symlink_to(data)
    roots = [data.as_uri()]
    assert not within(data / "out" / "key", roots)
    assert within(data.parent / "in" / "sub", roots)
    assert within(data / "sub", [(data.parent / "in").as_uri()])  # a root may be a link itself


def test_a_relative_path_begins_where_the_process_works(data, monkeypatch):
    monkeypatch.chdir(data)
    assert within("sub", [data.as_uri()]) and not within("..", [data.as_uri()])


def test_several_roots_and_none(data):
    assert within(data, ["file:///nowhere", data.as_uri()])
    assert not within(data, [])


def test_a_path_that_leads_nowhere(data):
    assert not within(f"{data}/a\0b", [data.as_uri()])
    (data / "loop").symlink_to(data / "loop")
    assert within(data / "loop", [data.as_uri()]) in (True, False)  # it may be either, it must not raise


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/data",
        "file://elsewhere/data",
        "file:data",
        "file:///a%00b",
        "file:///data?x",
        "file:///data#x",
        "file://[",
        "",
        "data",
    ],
)
def test_what_names_no_folder_of_this_machine(uri):
    assert folder_of(uri) is None
    assert not within("/data", [uri])


@pytest.mark.skipif(sys.getfilesystemencoding() == "ascii", reason="file names here are ASCII")
def test_a_uri_is_decoded(data):
    (data / "ä %").mkdir()
    assert folder_of((data / "ä %").as_uri()) == os.path.realpath(data / "ä %")
    assert folder_of(data.as_uri().replace("file://", "file://localhost")) == str(data)
    assert folder_of(data.as_uri().replace("file:", "FILE:")) == str(data)
