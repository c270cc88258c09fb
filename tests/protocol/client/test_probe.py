"""protocol/client/probe.py: the table of verdicts (modern.md §11), one row at a time."""

import asyncio

import pytest

from interlock.protocol.client import probe
from interlock.protocol.client.handshake import HandshakeClient
from interlock.protocol.client.identity import Identity
from interlock.protocol.client.probe import Prober, Verdicts
from interlock.protocol.client.stateless import StatelessClient
from interlock.revisions.revision import Era
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.channel import Patience
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    CannotAsk,
    HeaderMismatch,
    InterlockError,
    NoCommonRevision,
    PeerClosed,
    Refused,
    SpawnFailed,
)
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, error_frame, result_frame
from support.virtual_time import virtual_time

NEWEST = "2026-07-28"
ME = Identity(Implementation(name="c", version="1"), {}, Spoken("", {}))
PATIENCE = Patience(idle=None, total=9)


def discovery(*versions, **more):
    return result_frame(
        {"resultType": "complete", "supportedVersions": list(versions), "capabilities": {"tools": {}}, **more}
    )


def welcome(version="2025-11-25"):
    return result_frame({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})


class Dialled:
    """A server that answers as told, connection by connection."""

    def __init__(self, *connections, names=None, verdicts=None, target=None):
        self.connections = [Link(*answers) for answers in connections]
        self.lines = []
        self.verdicts = verdicts or Verdicts()
        self.prober = Prober(
            self.dial,
            pick(names),
            ME,
            patience=PATIENCE,
            probe_seconds=3,
            verdicts=self.verdicts,
            target=target,
        )

    async def dial(self):
        line = self.connections.pop(0)
        self.lines.append(line)
        return line

    async def open(self):
        return await self.prober.open()

    def said(self):
        return [[call["method"] for call in line.calls] for line in self.lines]


# --- stateless ---


async def test_a_discovery_with_our_version_is_stateless():
    server = Dialled([discovery(NEWEST, "2025-11-25")])
    edge = await server.open()
    assert isinstance(edge, StatelessClient)
    assert edge.revision.name == NEWEST
    assert server.said() == [["server/discover"]]
    [call] = server.lines[0].calls
    assert call["patience"] is PATIENCE
    assert server.lines[0].closed == 0


async def test_another_version_of_the_era_is_tried_once_after_a_refusal(monkeypatch):
    older = REVISIONS[NEWEST].evolve("2026-01-01")
    monkeypatch.setitem(REVISIONS, "2026-01-01", older)
    rows = {"2026-01-01": older, NEWEST: REVISIONS[NEWEST]}
    server = Dialled([error_frame(-32022, data={"supported": ["2026-01-01"]}), discovery("2026-01-01")])
    server.prober = Prober(server.dial, rows, ME, patience=PATIENCE, probe_seconds=3, verdicts=Verdicts(), target=None)
    edge = await server.open()
    assert edge.revision is older
    assert server.said() == [["server/discover", "server/discover"]]


async def test_a_version_that_is_not_listed_is_never_used():
    # COMPAT-024: answered although it lists only another one.
    server = Dialled([discovery("2027-01-01")], names=(NEWEST,))
    with pytest.raises(NoCommonRevision) as caught:
        await server.open()
    assert caught.value.offered == ("2027-01-01",)
    assert server.lines[0].closed == 1


async def test_a_server_that_refuses_what_it_lists_is_given_up():
    server = Dialled([error_frame(-32022, data={"supported": [NEWEST]})])
    with pytest.raises(NoCommonRevision, match="refuses"):
        await server.open()
    assert server.said() == [["server/discover"]]
    assert server.lines[0].closed == 1


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_its_own_errors_prove_the_era(code):
    server = Dialled([error_frame(code)])
    with pytest.raises((HeaderMismatch, CannotAsk)):
        await server.open()
    assert server.said() == [["server/discover"]]
    assert server.lines[0].closed == 1


async def test_malformed_capabilities_are_no_reason_to_fall_back():
    server = Dialled([discovery(NEWEST, capabilities=[])])
    with pytest.raises(BadResult):
        await server.open()
    assert server.lines[0].closed == 1


# --- handshake ---


@pytest.mark.parametrize(
    "answer",
    [
        error_frame(-32601),
        error_frame(-32602),
        error_frame(-32600),
        error_frame(-32603),
        error_frame(-32000),
        error_frame(-1),
        error_frame(12),
        result_frame({}),
        result_frame({"supportedVersions": "x"}),
        result_frame([]),
        CallTimeout("server/discover", 3, "total"),
        discovery("2025-11-25"),
        discovery("2025-06-18", "1999-01-01"),
        error_frame(-32022, data={"supported": ["2025-06-18"]}),
    ],
)
async def test_everything_else_means_handshake_on_the_same_line(answer):
    server = Dialled([answer, welcome()])
    edge = await server.open()
    assert isinstance(edge, HandshakeClient)
    assert server.said() == [["server/discover", "initialize"]]
    assert server.lines[0].closed == 0


async def test_a_server_that_exits_on_the_probe_is_started_again():
    server = Dialled([PeerClosed("exited", exit_code=1)], [welcome()])
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover"], ["initialize"]]
    assert [line.closed for line in server.lines] == [1, 0]


@pytest.mark.parametrize(
    "data", [None, {}, {"supported": None}, {"supported": []}, {"supported": ["1999-01-01"]}, "x", []]
)
async def test_a_refusal_without_a_version_of_ours_is_the_end(data):
    server = Dialled([error_frame(-32022, data=data)])
    with pytest.raises(NoCommonRevision):
        await server.open()
    assert server.lines[0].closed == 1


@pytest.mark.parametrize("supported", [7, True, {"2025-06-18": 1}, "2025-06-18"])
async def test_a_list_of_versions_that_is_none_harms_nothing(supported):
    server = Dialled([error_frame(-32022, data={"supported": supported})])
    with pytest.raises(NoCommonRevision):
        await server.open()
    assert server.lines[0].closed == 1


@pytest.mark.parametrize("listed", [[7, None, {}, NEWEST], [[], NEWEST]])
async def test_odd_entries_in_the_list_are_skipped(listed):
    edge = await Dialled([result_frame({"supportedVersions": listed, "capabilities": {}})]).open()
    assert edge.revision.name == NEWEST


async def test_a_client_of_the_handshake_alone_does_not_probe():
    server = Dialled([welcome("2025-03-26")], names=("2025-03-26",))
    assert (await server.open()).revision.name == "2025-03-26"
    assert server.said() == [["initialize"]]


async def test_a_client_of_the_newest_alone_does_not_fall_back():
    server = Dialled([error_frame(-32601)], names=(NEWEST,))
    with pytest.raises(NoCommonRevision, match="server/discover"):
        await server.open()
    assert server.said() == [["server/discover"]]
    assert server.lines[0].closed >= 1


@pytest.mark.parametrize("error", [PeerClosed("gone", exit_code=1), CallTimeout("server/discover", 3, "total")])
async def test_a_client_of_the_newest_alone_hears_why_a_server_never_answered(error):
    """A crash or a silence says nothing about the era."""
    server = Dialled([error], names=(NEWEST,))
    with pytest.raises(type(error)) as caught:
        await server.open()
    assert caught.value is error
    assert server.lines[0].closed >= 1


async def test_a_handshake_that_fails_closes_the_line():
    server = Dialled([error_frame(-32601), error_frame(-32603, "broken")])
    with pytest.raises(Refused, match="broken"):
        await server.open()
    assert server.lines[0].closed >= 1


async def test_a_restarted_server_that_fails_is_closed_too():
    server = Dialled([PeerClosed("exited")], [PeerClosed("exited again")])
    with pytest.raises(PeerClosed, match=r"^exited$") as caught:
        await server.open()
    assert str(caught.value.__cause__) == "exited again"
    assert server.said() == [["server/discover"], ["initialize"]]
    assert all(line.closed for line in server.lines)


async def test_a_server_that_ended_before_it_read_anything_is_not_started_again():
    """The probe cannot be what ended it, so that `initialize` alone would change nothing."""
    server = Dialled([PeerClosed("no such module", exit_code=1)])
    server.connections[0].is_unread = True
    with pytest.raises(PeerClosed, match="no such module"):
        await server.open()
    assert server.said() == [["server/discover"]] and server.lines[0].closed


async def test_a_server_that_ends_at_its_second_message_is_started_once_more():
    server = Dialled([error_frame(-32601), PeerClosed("exited")], [welcome()])
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover", "initialize"], ["initialize"]]


async def test_a_program_that_cannot_be_started_is_no_verdict():
    server = Dialled()

    async def fails():
        raise SpawnFailed("no such program")

    server.prober._dial = fails
    with pytest.raises(SpawnFailed):
        await server.open()


# --- verdicts ---


async def test_a_verdict_saves_the_probe():
    verdicts = Verdicts()
    first = Dialled([error_frame(-32601), welcome()], verdicts=verdicts, target="t")
    await first.open()
    assert verdicts.get("t") is Era.HANDSHAKE
    second = Dialled([welcome()], verdicts=verdicts, target="t")
    await second.open()
    assert second.said() == [["initialize"]]


async def test_who_has_not_looked_says_nothing_about_the_era():
    """A client that was told to shake hands does, and one that comes after it is not misled."""
    verdicts = Verdicts()
    await Dialled([welcome()], names=("2025-11-25",), verdicts=verdicts, target="t").open()
    assert verdicts.get("t") is None
    after = Dialled([discovery(NEWEST)], verdicts=verdicts, target="t")
    assert (await after.open()).revision.name == NEWEST
    await Dialled([welcome()], names=("2025-11-25",), verdicts=verdicts, target="t").open()
    assert verdicts.get("t") is Era.STATELESS


async def test_a_verdict_that_is_used_does_not_last_longer(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(probe, "monotonic", lambda: clock[0])
    verdicts = Verdicts(handshake_seconds=10)
    await Dialled([error_frame(-32601), welcome()], verdicts=verdicts, target="t").open()
    for clock[0] in (104.0, 108.0):
        again = Dialled([welcome()], verdicts=verdicts, target="t")
        await again.open()
        assert again.said() == [["initialize"]]
    clock[0] = 111.0
    upgraded = Dialled([discovery(NEWEST)], verdicts=verdicts, target="t")
    assert (await upgraded.open()).revision.name == NEWEST


async def test_a_stateless_verdict_never_skips_the_discovery():
    verdicts = Verdicts()
    await Dialled([discovery(NEWEST)], verdicts=verdicts, target="t").open()
    assert verdicts.get("t") is Era.STATELESS
    again = Dialled([discovery(NEWEST)], verdicts=verdicts, target="t")
    await again.open()
    assert again.said() == [["server/discover"]]


async def test_a_stateless_verdict_that_no_longer_holds_is_replaced():
    # The next process under the same command may be an older server: probed again, fallen back, remembered anew.
    verdicts = Verdicts()
    verdicts.put("t", Era.STATELESS)
    again = Dialled([error_frame(-32601), welcome()], verdicts=verdicts, target="t")
    assert isinstance(await again.open(), HandshakeClient)
    assert verdicts.get("t") is Era.HANDSHAKE


async def test_a_verdict_that_fails_is_forgotten():
    verdicts = Verdicts()
    verdicts.put("t", Era.HANDSHAKE)
    refusals = [error_frame(-32601)] * 3  # initialize, server/discover, and initialize once more
    with pytest.raises(Refused):
        await Dialled(refusals, verdicts=verdicts, target="t").open()
    assert verdicts.get("t") is None


async def test_a_verdict_that_fails_is_probed_again_on_the_same_connection():
    verdicts = Verdicts()
    verdicts.put("t", Era.HANDSHAKE)
    server = Dialled([error_frame(-32601), discovery(NEWEST)], verdicts=verdicts, target="t")
    assert isinstance(await server.open(), StatelessClient)
    assert verdicts.get("t") is Era.STATELESS


async def test_a_verdict_of_handshake_does_not_bind_a_client_without_it():
    verdicts = Verdicts()
    verdicts.put("t", Era.HANDSHAKE)
    server = Dialled([discovery(NEWEST)], names=(NEWEST,), verdicts=verdicts, target="t")
    assert isinstance(await server.open(), StatelessClient)


def test_a_verdict_of_handshake_expires_and_the_other_does_not(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(probe, "monotonic", lambda: now[0])
    verdicts = Verdicts(handshake_seconds=10)
    verdicts.put("old", Era.HANDSHAKE)
    verdicts.put("new", Era.STATELESS)
    now[0] += 9
    assert verdicts.get("old") is Era.HANDSHAKE
    now[0] += 2
    assert verdicts.get("old") is None and verdicts.get("old") is None
    assert verdicts.get("new") is Era.STATELESS


def test_a_nameless_target_is_not_remembered():
    verdicts = Verdicts()
    verdicts.put(None, Era.STATELESS)
    assert verdicts.get(None) is None


def test_the_memory_of_verdicts_is_bounded():
    verdicts = Verdicts(most=3)
    for number in range(10):
        verdicts.put(number, Era.STATELESS)
    assert [number for number in range(10) if verdicts.get(number)] == [7, 8, 9]


def test_putting_a_known_target_again_forgets_no_other():
    verdicts = Verdicts(most=2)
    for target in ("a", "b", "b", "b"):
        verdicts.put(target, Era.STATELESS)
    assert verdicts.get("a") and verdicts.get("b")


def test_forgetting_is_harmless():
    verdicts = Verdicts()
    verdicts.forget("never")
    verdicts.put("a", Era.STATELESS)
    verdicts.forget("a")
    assert verdicts.get("a") is None


# --- second looks ---


async def test_a_crash_of_a_known_server_is_no_change_of_era():
    verdicts = Verdicts()
    verdicts.put("t", Era.STATELESS)
    server = Dialled([PeerClosed("crashed")], [discovery(NEWEST)], verdicts=verdicts, target="t")
    assert isinstance(await server.open(), StatelessClient)
    assert server.said() == [["server/discover"], ["server/discover"]]
    assert server.lines[0].closed >= 1
    assert verdicts.get("t") is Era.STATELESS


async def test_one_that_crashes_twice_is_asked_like_a_stranger_by_the_next_attempt():
    """An attempt has two starts at most."""
    verdicts = Verdicts()
    verdicts.put("t", Era.STATELESS)
    server = Dialled([PeerClosed("1")], [PeerClosed("2")], verdicts=verdicts, target="t")
    with pytest.raises(PeerClosed, match=r"^1$"):
        await server.open()
    assert verdicts.get("t") is None
    server = Dialled([PeerClosed("3")], [welcome()], verdicts=verdicts, target="t")
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover"], ["initialize"]]


async def test_a_server_that_was_only_slow_proves_its_era_when_it_refuses_initialize():
    # COMPAT-006: a recognised error of the newest era never leads to the handshake.
    verdicts = Verdicts()
    refusal = error_frame(-32022, data={"supported": [NEWEST]})
    answers = [CallTimeout("server/discover", 3, "total"), refusal, discovery(NEWEST)]
    server = Dialled(answers, verdicts=verdicts, target="t")
    assert isinstance(await server.open(), StatelessClient)
    assert server.said() == [["server/discover", "initialize", "server/discover"]]
    assert verdicts.get("t") is Era.STATELESS
    assert server.lines[0].closed == 0


@pytest.mark.parametrize(
    ("data", "error"), [(None, Refused), ({"supported": ["2099-01-01"]}, NoCommonRevision), ({"supported": 7}, Refused)]
)
@pytest.mark.parametrize("code", [-32022, -32602])
async def test_a_refusal_of_initialize_without_a_version_of_ours_is_the_end(code, data, error):
    server = Dialled([error_frame(-32601), error_frame(code, data=data)])
    with pytest.raises(error):
        await server.open()
    assert server.said() == [["server/discover", "initialize"]]
    assert server.lines[0].closed >= 1


# --- silence ---


class Kept(Verdicts):
    """Notes what a memory that lasts would keep."""

    def __init__(self):
        super().__init__()
        self.costly = []

    def put(self, target, era, *, costly=False):
        super().put(target, era, costly=costly)
        self.costly += [era] if costly else []


def later(seconds, answer):
    async def come(line):
        line.times = [*getattr(line, "times", []), (asyncio.get_running_loop().time(), line.calls[-1]["method"])]
        await asyncio.sleep(seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return come


NEVER = later(10_000, None)


@virtual_time
async def test_a_silent_server_gets_initialize_on_the_same_line_and_is_remembered():
    server = Dialled([NEVER, later(0, welcome())], verdicts=Kept(), target="t")
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover", "initialize"]] and server.lines[0].closed == 0
    [(probed, _), (greeted, method)] = server.lines[0].times
    assert method == "initialize" and 3 <= greeted - probed < 3.2
    assert server.verdicts.costly == [Era.HANDSHAKE]


@virtual_time
async def test_the_time_until_the_server_reads_is_not_part_of_the_wait():
    server = Dialled([NEVER, later(0, welcome())])
    [line] = server.connections
    line.is_unread = True
    asyncio.get_running_loop().call_later(20, setattr, line, "is_unread", False)
    assert isinstance(await server.open(), HandshakeClient)
    [(probed, _), (greeted, _)] = line.times
    assert 22.9 < greeted - probed < 23.2


@virtual_time
@pytest.mark.parametrize("seconds", [2, 3.5, 100])
async def test_a_late_discovery_counts_as_long_as_initialize_is_not_answered(seconds):
    server = Dialled([later(seconds, discovery(NEWEST)), NEVER], target="t")
    edge = await server.open()
    assert isinstance(edge, StatelessClient)
    assert server.lines[0].adopted[-1][0] is edge and server.lines[0].closed == 0
    assert server.verdicts.get("t") is Era.STATELESS


@virtual_time
async def test_where_both_are_answered_at_once_the_discovery_decides():
    async def at(line, when, answer):
        await asyncio.sleep(when - asyncio.get_running_loop().time())
        return answer

    moment = asyncio.get_running_loop().time() + 8
    server = Dialled([lambda line: at(line, moment, discovery(NEWEST)), lambda line: at(line, moment, welcome())])
    edge = await server.open()
    assert isinstance(edge, StatelessClient) and server.lines[0].adopted[-1][0] is edge


@virtual_time
async def test_a_late_refusal_of_the_probe_leaves_the_handshake():
    server = Dialled([later(4, error_frame(-32601)), later(20, welcome())])
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover", "initialize"]]


@virtual_time
async def test_a_refusal_of_initialize_leaves_the_probe_some_time():
    server = Dialled([later(5, discovery(NEWEST)), later(0, error_frame(-32600))])
    assert isinstance(await server.open(), StatelessClient)


@virtual_time
async def test_a_refusal_of_initialize_is_the_end_where_the_probe_stays_silent():
    server = Dialled([NEVER, later(0, error_frame(-32600, "not you"))])
    with pytest.raises(Refused, match="not you"):
        await server.open()
    assert server.lines[0].closed


@virtual_time
async def test_a_silent_server_that_goes_at_initialize_is_started_again_with_that_alone():
    """As one of the Python SDK 1.2 to 1.8 does."""

    def both(line):
        line.end = PeerClosed("gone")
        return later(1, line.end)(line)

    server = Dialled([later(4, PeerClosed("gone")), both], [welcome()], verdicts=Kept(), target="t")
    assert isinstance(await server.open(), HandshakeClient)
    assert server.said() == [["server/discover", "initialize"], ["initialize"]]
    assert server.verdicts.costly == [Era.HANDSHAKE]


@virtual_time
async def test_giving_up_leaves_nothing_behind():
    server = Dialled([NEVER, NEVER])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await server.open()
    assert server.said() == [["server/discover", "initialize"]] and server.lines[0].closed


async def test_an_answer_that_comes_at_once_is_not_worth_remembering_for_long():
    server = Dialled([error_frame(-32601), welcome()], verdicts=Kept(), target="t")
    await server.open()
    assert server.verdicts.get("t") is Era.HANDSHAKE and server.verdicts.costly == []


@pytest.mark.parametrize("last", [error_frame(-32603), CallTimeout("server/discover", 3, "total"), PeerClosed("gone")])
async def test_one_that_proves_its_era_and_then_fails_is_an_error_of_the_tree(last):
    # What a caller sees is always an InterlockError, never an exception of our own machinery.
    refusal = error_frame(-32022, data={"supported": [NEWEST]})
    server = Dialled([CallTimeout("server/discover", 3, "total"), refusal, last], [PeerClosed("gone")])
    with pytest.raises(InterlockError):
        await server.open()
    assert all(line.closed >= 1 for line in server.lines)


async def test_with_nothing_to_fall_back_to_there_is_no_hurry():
    server = Dialled([discovery(NEWEST)], names=(NEWEST,))
    await server.open()
    assert server.lines[0].calls[0]["patience"] is PATIENCE


async def test_one_that_proves_its_era_and_is_gone_by_then_is_heard():
    def refused(line):
        line.end = PeerClosed("gone")
        return error_frame(-32022, data={"supported": [NEWEST]})

    server = Dialled([CallTimeout("server/discover", 3, "total"), refused])
    with pytest.raises(Refused) as caught:
        await server.open()
    assert caught.value.code == -32022
    assert server.said() == [["server/discover", "initialize"]] and server.lines[0].closed >= 1
