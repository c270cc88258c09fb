"""protocol/client/probe.py: a version in common, one correction, and the errors that are proof whatever the carrier."""

import pytest

from interlock.protocol.client.identity import Identity
from interlock.protocol.client.probe import Discovery, Legacy, supported_in
from interlock.protocol.client.stateless import StatelessClient
from interlock.revisions.revision import Era
from interlock.revisions.table import REVISIONS, pick
from interlock.wire.channel import Patience
from interlock.wire.errors import CallTimeout, CannotAsk, HeaderMismatch, NoCommonRevision, Refused, RemoteError
from interlock.wire.meta import PROTOCOL_VERSION
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, error_frame, result_frame

NEWEST, OLDER = "2026-07-28", "2025-11-25"
ROW = REVISIONS[NEWEST]
ME = Identity(Implementation(name="c", version="1"), {}, Spoken("", {}))
PATIENCE = Patience(idle=None, total=9)


def discovery(is_legacy=lambda error: False, *, insists=False, rows=None):
    return Discovery(rows or pick(None), ME, PATIENCE, StatelessClient, is_legacy=is_legacy, insists=insists)


def lists(*versions, **more):
    return result_frame({"supportedVersions": list(versions), "capabilities": {}, **more})


def unsupported(*versions):
    return error_frame(-32022, data={"supported": list(versions)})


async def test_an_answer_is_adopted():
    line = Link(lists(NEWEST, OLDER))
    edge = await discovery().on(line, ROW)
    assert isinstance(edge, StatelessClient) and edge.revision is ROW
    [call] = line.calls
    assert (call["method"], call["patience"], call["cancellable"]) == ("server/discover", PATIENCE, False)
    assert call["meta"][PROTOCOL_VERSION] == NEWEST
    assert [adopted for adopted, _ in line.adopted] == [edge]


@pytest.mark.parametrize("insists", [False, True])
async def test_a_version_that_is_refused_and_listed_is_tried_again_by_who_insists(insists):
    line = Link(unsupported(NEWEST), lists(NEWEST))
    if insists:
        assert (await discovery(insists=True).on(line, ROW)).revision is ROW
    else:
        with pytest.raises(NoCommonRevision, match="lists it as supported"):
            await discovery().on(line, ROW)
    assert len(line.calls) == 1 + insists


async def test_another_version_is_tried_once():
    other = ROW.evolve("2026-01-01")
    rows = {"2026-01-01": other, NEWEST: ROW}
    line = Link(unsupported("2026-01-01"), lists("2026-01-01"))
    assert (await discovery(rows=rows).on(line, ROW)).revision is other
    for insists in (False, True):
        line = Link(unsupported("2026-01-01"), unsupported(NEWEST), lists(NEWEST))
        with pytest.raises(NoCommonRevision):
            await discovery(rows=rows, insists=insists).on(line, ROW)
        assert len(line.calls) == 2


@pytest.mark.parametrize(("code", "kind"), [(-32020, HeaderMismatch), (-32021, CannotAsk)])
async def test_errors_of_the_era_are_proof_whatever_the_carrier_says(code, kind):
    with pytest.raises(kind):
        await discovery(lambda error: True).on(Link(error_frame(code)), ROW)


@pytest.mark.parametrize("answer", [error_frame(-32601), CallTimeout("server/discover", 9, "total")])
async def test_the_carrier_says_what_another_error_means(answer):
    judged = []

    def is_legacy(error):
        judged.append(error)
        return True

    with pytest.raises(Legacy) as verdict:
        await discovery(is_legacy).on(Link(answer), ROW)
    assert judged == [verdict.value.__cause__]
    with pytest.raises((Refused, CallTimeout)):
        await discovery().on(Link(answer), ROW)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lists(OLDER), Legacy),
        (unsupported(OLDER), Legacy),
        (lists(NEWEST, resultType="input_required"), Legacy),
        (result_frame({"tools": []}), Legacy),
        (lists(), NoCommonRevision),
        (unsupported("1999-01-01"), NoCommonRevision),
    ],
)
async def test_an_answer_of_the_other_era_is_a_verdict_and_nothing_in_common_is_an_error(answer, kind):
    line = Link(answer)
    with pytest.raises(kind):
        await discovery().on(line, ROW)
    assert line.adopted == []


async def test_what_the_server_lists_is_shown_in_bounds():
    with pytest.raises(NoCommonRevision) as told:
        await discovery().on(Link(lists("\x1b[2J" + "x" * 100, *map(str, range(1000)))), ROW)
    assert "\x1b" not in str(told.value) and len(told.value.offered) == 20
    assert len(told.value.offered[0]) < 70 and isinstance(told.value, RemoteError)


def test_the_newest_in_common_is_found_by_era():
    found = discovery()
    assert found.common([7, None, "2025-03-26", OLDER, NEWEST], Era.HANDSHAKE) is REVISIONS[OLDER]
    assert found.common([OLDER], Era.STATELESS) is None


@pytest.mark.parametrize("data", [None, {}, {"supported": "x"}, 5, []])
def test_a_refusal_that_lists_nothing(data):
    assert supported_in(Refused("no", data, code=-32022)) == []
