"""What servers are told of a person's files."""

import asyncio
import os

import pytest

from interlock.host.callbacks.roots import Root, Rooting, root_at
from interlock.wire.errors import LocalError


class Told:
    def __init__(self):
        self.asked, self.changed = [], []

    async def consented(self, server, roots):
        self.asked.append((server, [root["uri"] for root in roots]))
        return roots if server != "refused" else []

    async def told(self, server):
        self.changed.append(server)
        if server == "away":
            raise OSError("gone\x1b[2K")


def rooting(roots, **more):
    told = Told()
    return told, Rooting(roots, told.consented, told.told, **more)


def uris(*paths):
    return [path.as_uri() for path in paths]


@pytest.fixture
def folders(tmp_path):
    tmp_path = tmp_path.resolve()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path / "a", tmp_path / "b"


def test_a_root_is_where_it_really_is(folders):
    a, b = folders
    (b / "link").symlink_to(a)
    assert root_at(b / "link") == root_at(a.as_uri()) == root_at(f"{b}/../a") == Root(a)
    assert root_at(Root(a, "mine")).told() == {"uri": a.as_uri(), "name": "mine"}
    assert root_at(f"file://localhost{a}") == Root(a)


@pytest.mark.parametrize("place", ["a", "./a", "file://host/a", "file:a", "/no/such/place", "file:///no/such%20place"])
def test_a_root_that_is_none_is_refused(place):
    with pytest.raises(LocalError, match="root"):
        root_at(place)


def test_links_in_a_circle_lead_nowhere(tmp_path):
    (tmp_path / "x").symlink_to(tmp_path / "x")
    with pytest.raises(LocalError, match="cannot be found"):
        root_at(tmp_path / "x")


def test_what_cannot_be_read_is_no_root(folders, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(LocalError, match="cannot be read"):
        root_at(folders[0])
    assert not Root(folders[0]).is_there()


async def test_each_server_is_told_what_was_agreed_for_it(folders):
    a, b = folders
    told, roots = rooting({"one": [a], "refused": [b]})
    assert [root["uri"] for root in await roots.for_server("one")()] == uris(a)
    assert await roots.for_server("refused")() == []
    assert await roots.for_server("stranger")() == []  # and no question is asked about none
    assert told.asked == [("one", uris(a)), ("refused", uris(b))]
    await roots.close()


async def test_one_list_is_for_all(folders):
    _, roots = rooting(folders)
    assert [root["uri"] for root in await roots.for_server("any")()] == uris(*folders)
    await roots.close()


async def test_a_root_that_vanishes_is_told_and_when_it_comes_back(folders, caplog):
    a, b = folders
    told, roots = rooting([a, b])
    await roots.for_server("one")()
    await roots.for_server("away")()
    await roots.look()
    assert told.changed == []
    b.rmdir()
    await roots.look()
    assert told.changed == ["one", "away"]
    assert r"gone\x1b[2K" in caplog.text and "\x1b" not in caplog.text
    assert [root["uri"] for root in await roots.for_server("one")()] == uris(a)
    b.mkdir()
    await roots.look()
    assert told.changed == ["one", "away"] * 2
    await roots.close()


async def test_a_link_turned_elsewhere_is_no_root_any_more(folders, tmp_path):
    a, b = folders
    roots_folder = a / "inner"
    roots_folder.mkdir()
    told, roots = rooting([roots_folder])
    await roots.for_server("one")()
    roots_folder.rmdir()
    roots_folder.symlink_to(b)
    await roots.look()
    assert told.changed == ["one"]
    assert await roots.for_server("one")() == []
    await roots.close()


async def test_nobody_has_to_ask_for_the_look(folders):
    a, b = folders
    told, roots = rooting([a, b], seconds=0.01)
    await roots.for_server("one")()
    b.rmdir()
    async with asyncio.timeout(20):
        while not told.changed:
            await asyncio.sleep(0.01)
    assert told.changed == ["one"]
    await roots.close()


async def test_roots_that_come_later_are_told_to_servers_that_have_not_asked(folders):
    a, b = folders
    told, roots = rooting({"own": [b]})
    answer = roots.for_server("silent")
    asked, _ = roots.for_server("asked"), roots.for_server("own")
    assert await asked() == [] and told.changed == []
    await roots.set([a])
    assert sorted(told.changed) == ["asked", "silent"]  # the third has its own
    assert [root["uri"] for root in await answer()] == uris(a)
    roots.forget("silent")
    await roots.set([b])
    assert sorted(told.changed) == ["asked", "asked", "silent"]
    await roots.close()


async def test_other_roots_are_told_at_once(folders):
    a, b = folders
    told, roots = rooting([a])
    await roots.for_server("one")()
    await roots.set([b])
    assert told.changed == ["one"]
    await roots.set([a], "one")
    assert told.changed == ["one", "one"]
    assert [root.path for root in roots.of("one")] == [a]
    assert [root.path for root in roots.of("two")] == [b]
    await roots.close()


def test_there_are_not_too_many(folders):
    with pytest.raises(LocalError, match="1000 are the most"):
        rooting([Root(folders[0])] * 1001)
