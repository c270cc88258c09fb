"""revisions/http_probing.py: the table of verdicts for HTTP (modern.md §11), one row at a time."""

import pytest

from interlock.revisions.http_probing import HttpProber
from interlock.revisions.identity import Identity
from interlock.revisions.probing import Verdicts
from interlock.revisions.revision import Era
from interlock.revisions.stateless_http_client import StatelessHttpClient
from interlock.revisions.table import pick
from interlock.wire.errors import (
    BadResult,
    CallTimeout,
    CannotAsk,
    ConnectionLost,
    HeaderMismatch,
    HttpStatus,
    InternalError,
    NoCommonRevision,
)
from interlock.wire.link import Patience
from interlock.wire.meta import PROTOCOL_VERSION
from interlock.wire.types.common import Implementation
from support.doubles import Link, Spoken, error_frame, result_frame

NEWEST = "2026-07-28"
ME = Identity(Implementation(name="c", version="1"), {}, Spoken("", {}))
PATIENCE = Patience(idle=None, total=9)


def discovery(*versions, **more):
    return result_frame(
        {"resultType": "complete", "supportedVersions": list(versions), "capabilities": {"tools": {}}, **more}
    )


def unsupported(*versions):
    return error_frame(-32022, data={"supported": list(versions), "requested": "x"})


class Endpoint:
    """A server that answers as told."""

    def __init__(self, *answers, names=None, verdicts=None, target="http://x:80"):
        self.line = Link(*answers)
        self.verdicts = verdicts or Verdicts()
        self.target = target
        self.prober = HttpProber(
            self.dial,
            pick(names),
            ME,
            patience=PATIENCE,
            probe_seconds=3,
            verdicts=self.verdicts,
            target=target,
        )

    async def dial(self):
        return self.line

    async def open(self):
        return await self.prober.open()

    async def fails(self, kind, **match):
        with pytest.raises(kind, **match) as told:
            await self.open()
        assert self.line.closed == 1
        return told.value

    def said(self):
        return [call["method"] for call in self.line.calls]


# --- stateless ---


async def test_a_discovery_with_our_version_is_stateless():
    server = Endpoint(discovery(NEWEST, "2025-11-25"))
    edge = await server.open()
    assert isinstance(edge, StatelessHttpClient)
    assert edge.revision.name == NEWEST
    assert server.said() == ["server/discover"]
    [call] = server.line.calls
    assert call["meta"][PROTOCOL_VERSION] == NEWEST
    assert call["patience"] is PATIENCE
    assert server.line.adopted == [(edge, 0)]
    assert server.verdicts.get(server.target) is Era.STATELESS
    assert server.line.closed == 0


async def test_a_server_may_introduce_itself_in_the_body():
    edge = await Endpoint(discovery(NEWEST, serverInfo={"name": "old", "version": "1"})).open()
    assert edge.server_info.name == "old"


async def test_a_refused_version_is_corrected_once_even_to_the_same():
    server = Endpoint(unsupported(NEWEST), discovery(NEWEST))
    assert (await server.open()).revision.name == NEWEST
    assert server.said() == ["server/discover"] * 2


async def test_a_version_refused_twice_is_the_end():
    server = Endpoint(unsupported(NEWEST), unsupported(NEWEST))
    await server.fails(NoCommonRevision, match="lists it as supported")
    assert server.said() == ["server/discover"] * 2


@pytest.mark.parametrize("listed", [[], ["2099-01-01"], ["\x1b[2J"], [7, None]])
async def test_nothing_in_common_is_said(listed):
    error = await Endpoint(unsupported(*listed)).fails(NoCommonRevision, match="this client")
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(("code", "kind"), [(-32020, HeaderMismatch), (-32021, CannotAsk)])
async def test_an_error_of_the_era_is_its_proof_and_raised(code, kind):
    server = Endpoint(error_frame(code))
    await server.fails(kind)
    assert server.said() == ["server/discover"]


# --- no evidence ---


@pytest.mark.parametrize(
    "error",
    [
        HttpStatus("no", 401, challenge="Bearer"),
        HttpStatus("no", 403),
        HttpStatus("no", 429),
        HttpStatus("no", 500),
        HttpStatus("no", 503),
        CallTimeout("server/discover", 9, "total"),
        ConnectionLost("refused"),
    ],
)
async def test_what_is_no_evidence_is_raised_as_it_is(error):
    server = Endpoint(error)
    assert await server.fails(type(error)) is error
    assert server.verdicts.get(server.target) is None


async def test_a_failure_inside_the_server_is_no_evidence():
    await Endpoint(error_frame(-32603)).fails(InternalError)


# --- a server with a handshake ---


@pytest.mark.parametrize(
    "answer",
    [
        HttpStatus("no", 400),
        HttpStatus("no", 404),
        HttpStatus("no", 405),
        error_frame(-32601),
        error_frame(-32600),
        error_frame(-32000, "no session"),
        error_frame(-32602),
        unsupported("2025-11-25"),
        discovery("2025-11-25"),
        result_frame({"resultType": "input_required"}),
        result_frame({"tools": []}),
        BadResult("junk"),
    ],
)
async def test_the_verdict_handshake_is_said_and_nothing_else_is_sent(answer):
    server = Endpoint(answer)
    await server.fails(NoCommonRevision, match="over HTTP this client speaks only")
    assert server.said() == ["server/discover"]
    assert server.verdicts.get(server.target) is None


async def test_a_client_of_the_handshake_alone_sends_nothing():
    server = Endpoint(names=("2025-11-25",))
    await server.fails(NoCommonRevision, match="over HTTP")
    assert server.said() == []


@pytest.mark.parametrize("error", [HttpStatus("gone", 404), BadResult("junk")])
async def test_who_was_stateless_once_never_falls_back(error):
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.STATELESS)
    server = Endpoint(error, verdicts=verdicts)
    assert await server.fails(type(error)) is error
    assert verdicts.get("http://x:80") is Era.STATELESS
