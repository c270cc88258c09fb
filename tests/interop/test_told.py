"""The rule of stories that several workers read: told once, by whoever is free."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from interop.environments import locked
from interop.told import ToldOnce


class Teller:
    """What two workers share: a folder, and how often each story was told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
        self.folder = folder
        self.told: list[str] = []

    def getbasetemp(self) -> Path:
        return self.folder

    def worker(self) -> ToldOnce:
        return ToldOnce(self, "x", {name: lambda name=name: self.tell(name) for name in ("a", "b", "bad")})

    def tell(self, name: str) -> dict[str, str]:
        self.told.append(name)
        if name == "bad":
            raise ValueError(name)
        return {"name": name}


@pytest.fixture
def teller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Teller:
    return Teller(tmp_path, monkeypatch)


def test_a_story_is_told_once_for_all(teller: Teller):
    first, second = teller.worker(), teller.worker()
    assert [first("a"), second("a"), first("a")] == [{"name": "a"}] * 3
    assert teller.told == ["a"]


def test_a_story_that_fails_fails_for_everybody(teller: Teller):
    for worker in (teller.worker(), teller.worker()):
        with pytest.raises(ValueError, match="bad"):
            worker("bad")


def test_who_has_to_wait_tells_the_rest_meanwhile(teller: Teller):
    heard: list[dict[str, str]] = []
    waiting = threading.Thread(target=lambda: heard.append(teller.worker()("a")))
    with locked(teller.folder / "x-a.lock"):
        waiting.start()
        deadline = time.monotonic() + 20
        while teller.told != ["b", "bad"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (teller.told, heard) == (["b", "bad"], [])
    waiting.join(20)
    assert heard == [{"name": "a"}]
    assert teller.worker()("b") == {"name": "b"}
    assert teller.told == ["b", "bad", "a"]
