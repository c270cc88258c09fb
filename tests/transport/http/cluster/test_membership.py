"""transport/http/cluster/membership.py: how a process becomes one of those that share a store, and how it leaves."""

import asyncio

import pytest

from interlock.state.memory import MemoryStore
from interlock.state.sqlite.store import SQLiteStore
from interlock.transport.http.cluster.membership import Sharing, owner_of
from interlock.transport.http.cluster.message_bus import Mail
from interlock.wire.errors import LocalError, StoreError
from interlock.wire.exchange import ANONYMOUS, Principal


def test_owners_are_told_apart_whatever_their_names_are():
    names = [("a", "bc", ""), ("ab", "c", ""), ("a", "b", "c"), ("a|b", "c", ""), ("a", "b" * 10_000, "")]
    owners = {owner_of(Principal(*name)) for name in names}
    assert len(owners) == 5 and all(len(owner) == 64 for owner in owners)
    assert owner_of(ANONYMOUS) == owner_of(Principal("interlock", "anonymous"))


def test_a_store_of_one_process_is_refused():
    with pytest.raises(LocalError, match="other processes do not see this store"):
        Sharing(MemoryStore(), "x", lease=5.0)


async def test_it_begins_once_however_many_ask(tmp_path):
    sharing, begun = Sharing(tmp_path / "state.db", "x", lease=5.0), []

    async def note():
        begun.append(sharing.colleagues.number)

    sharing.on_ready.append(note)
    await asyncio.gather(*(sharing.ready() for _ in range(5)))
    assert begun == [1]
    await sharing.leave()
    await sharing.leave()
    await sharing.ready()  # and again, with another number
    assert begun == [1, 2]
    await sharing.leave()


async def test_what_could_not_begin_may_begin_later(tmp_path):
    sharing = Sharing(tmp_path / "later" / "state.db", "x", lease=5.0)
    for _ in range(2):
        with pytest.raises(StoreError):
            await sharing.ready()
    await sharing.leave()
    (tmp_path / "later").mkdir()
    await sharing.ready()
    await sharing.leave()


async def test_a_store_that_was_given_is_left_open(tmp_path):
    store = SQLiteStore(tmp_path / "state.db")
    sharing = Sharing(store, "x", lease=5.0)
    await sharing.ready()
    await sharing.leave()
    assert await store.last("nothing") == 0
    await store.close()


async def test_mail_reaches_who_hears_of_its_kind_and_other_mail_nobody(tmp_path):
    sharing, heard = Sharing(tmp_path / "state.db", "x", lease=5.0), asyncio.Queue()
    sharing.hear(known=heard.put)
    await sharing.ready()
    for kind in ("unknown", "known"):
        await sharing.colleagues.tell_all(Mail(kind, data=b"x"))
    async with asyncio.timeout(30):
        assert (await heard.get()).kind == "known"
    await sharing.leave()


async def test_errands_have_their_time_and_a_failure_of_the_store_is_only_logged(tmp_path, caplog):
    sharing, done = Sharing(tmp_path / "state.db", "x", lease=5.0), []

    async def errand():
        await asyncio.sleep(0.01)
        done.append(True)
        raise StoreError("full up")

    await sharing.ready()
    sharing.spawn(errand())
    await sharing.leave()
    assert done == [True] and "full up" in caplog.text
