"""transport/http/server/health.py: the sign of life of a server whose store cannot be used."""

from __future__ import annotations

import asyncio

from interlock import Server
from interlock.state.memory import MemoryStore
from interlock.transport.http.server import health
from interlock.transport.http.server.health import Pulse
from interlock.transport.http.server.routes import NO_STORE, sign_of_life
from interlock.wire.errors import StoreError
from support.asgi import begin

WELL = sign_of_life("GET", False)


class Ill(MemoryStore):
    """A store of several processes, whose file is locked until somebody mends it."""

    shared = True
    ill, looks = True, 0

    async def get(self, key, *, owner=""):
        self.looks += 1
        if self.ill:
            raise StoreError("locked")
        return await super().get(key, owner=owner)


async def test_a_store_that_fails_is_seen_and_one_that_was_mended_too(monkeypatch):
    store = Ill()
    beats = Pulse(None, [store, None, MemoryStore(), store])
    assert beats.matters and await beats.judged(WELL) is NO_STORE
    assert store.looks == 1, "the same store is looked at once"
    store.ill = False
    assert await beats.judged(WELL) is NO_STORE, "looked at a moment ago"
    monkeypatch.setattr(health, "_APART", 0.0)
    assert await beats.judged(WELL) is WELL


async def test_who_stops_says_that_and_asks_no_store():
    store = Ill()
    stopping = sign_of_life("GET", True)
    assert await Pulse(None, [store]).judged(stopping) is stopping and store.looks == 0


async def test_a_store_that_hangs_is_none(monkeypatch):
    monkeypatch.setattr(health, "_SECONDS", 0.02)

    class Hanging(Ill):
        async def get(self, key, *, owner=""):
            await asyncio.Event().wait()

    assert await Pulse(None, [Hanging()]).judged(WELL) is NO_STORE


def test_a_server_that_keeps_nothing_for_others_has_none():
    assert not Pulse(None, [None, MemoryStore()]).matters


async def ask_health(app):
    return await begin(app, None, method="GET", path="/health", headers=[(b"host", b"10.0.0.7")]).answer()


async def test_the_endpoint_asks_its_stores(tmp_path):
    assert (await ask_health(Server("s").asgi())).json == {"status": "serving"}
    ill = await ask_health(Server("s", store=Ill()).asgi())
    assert ill.status == 503 and ill.json == {"status": "no store"} and ill.headers["retry-after"] == "5"
    missing = Server("s").asgi(state=tmp_path / "nowhere" / "state.db")
    assert (await ask_health(missing)).status == 503
    there = Server("s").asgi(state=tmp_path / "state.db")
    assert (await ask_health(there)).status == 200
    there._sharing.colleagues._signed = float("-inf")  # nothing could be written for too long
    there._pulse._looked = float("-inf")
    assert (await ask_health(there)).json == {"status": "no store"}
    there.stop()
    assert (await ask_health(there)).json == {"status": "stopping"}
    await there._lifecycle.leave()
