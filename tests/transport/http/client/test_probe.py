"""transport/http/client/probe.py: the table of verdicts for HTTP (modern.md §11), one row at a time."""

import asyncio

import pytest

from interlock.protocol.client.handshake import HandshakeClient
from interlock.protocol.client.identity import Identity
from interlock.protocol.client.probe import Verdicts
from interlock.revisions.revision import Era
from interlock.revisions.table import pick
from interlock.transport.http.client.probe import HttpProber
from interlock.transport.http.client.stateless import StatelessHttpClient
from interlock.wire.channel import Patience
from interlock.wire.errors import (
    AuthRequired,
    BadResult,
    CallTimeout,
    CannotAsk,
    ConnectionLost,
    HeaderMismatch,
    HttpStatus,
    InternalError,
    NoCommonRevision,
    RemoteError,
)
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


class OldLine(Link):
    """A line of the handshake era."""

    def __init__(self, *answers, unopened=None):
        super().__init__(*answers)
        self.opened, self.unopened = 0, unopened

    async def open(self):
        self.opened += 1
        if self.unopened is not None:
            raise self.unopened


class HttpLine(Link):
    def __init__(self, *answers, session=(), stream=()):
        super().__init__(*answers)
        self.sessions, self.streams = list(session), list(stream)
        self.made = []

    def session(self):
        self.made.append(self.sessions.pop(0))
        return self.made[-1]

    def stream(self):
        self.made.append(self.streams.pop(0))
        return self.made[-1]


class Endpoint:
    """A server that answers as told."""

    def __init__(self, *answers, names=None, verdicts=None, target="http://x:80", session=(), stream=()):
        self.line = HttpLine(*answers, session=session, stream=stream)
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
        AuthRequired("no", 403, challenge="Bearer"),
        HttpStatus("no", 407),
        HttpStatus("no", 307),
        CallTimeout("server/discover", 9, "total"),
        ConnectionLost("refused"),
    ],
)
async def test_what_is_no_evidence_is_raised_as_it_is(error):
    server = Endpoint(error)
    assert await server.fails(type(error)) is error
    assert server.verdicts.get(server.target) is None


WEAK = [403, 408, 422, 429, 500, 501, 502, 503]


@pytest.mark.parametrize("status", WEAK)
async def test_a_bare_status_leads_to_initialize_and_is_not_remembered(status):
    server = Endpoint(HttpStatus("no", status), session=[OldLine(hello())])
    assert isinstance(await server.open(), HandshakeClient)
    assert server.verdicts.get(server.target) is None


@pytest.mark.parametrize("status", WEAK)
@pytest.mark.parametrize(
    "second", [HttpStatus("not this", 500), error_frame(-32603, "not this"), BadResult("not this")]
)
async def test_where_initialize_fails_too_the_first_refusal_names_both(status, second):
    first = HttpStatus("server/discover: no", status)
    server = Endpoint(first, session=[OldLine(second)])
    error = await server.fails(HttpStatus)
    assert error is first
    assert "initialize was tried too and gave: not this" in error.hint and "revision=" in error.hint
    assert error.hint in error.__notes__ and str(error.__cause__) == "not this"


async def test_where_the_era_is_clear_the_refusal_of_initialize_names_both():
    second = HttpStatus("initialize: no", 500)
    error = await Endpoint(HttpStatus("nothing here", 404), session=[OldLine(second)]).fails(HttpStatus)
    assert error is second
    assert "server/discover was tried too and gave: nothing here" in error.hint and "revision=" in error.hint


async def test_the_same_answer_is_not_told_twice():
    second = HttpStatus("initialize: nothing here", 500)
    error = await Endpoint(HttpStatus("server/discover: nothing here", 404), session=[OldLine(second)]).fails(
        HttpStatus
    )
    assert error.hint.startswith("server/discover was tried too, with the same answer; ")


@pytest.mark.parametrize("kind", [AuthRequired("log in", 401), unsupported("2099-01-01")])
async def test_an_answer_to_initialize_that_says_what_to_do_is_raised_as_it_is(kind):
    server = Endpoint(HttpStatus("no", 403), session=[OldLine(kind)])
    await server.fails((AuthRequired, NoCommonRevision))


@pytest.mark.parametrize("status", WEAK)
async def test_a_client_without_a_handshake_hears_the_status(status):
    error = HttpStatus("no", status)
    assert await Endpoint(error, names=(NEWEST,)).fails(HttpStatus) is error


async def test_a_failure_inside_the_server_is_no_evidence():
    await Endpoint(error_frame(-32603)).fails(InternalError)


# --- a server with a handshake ---


def hello(version="2025-11-25"):
    return result_frame({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})


LEGACY = [
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
]


@pytest.mark.parametrize("answer", LEGACY)
async def test_the_verdict_handshake_leads_to_initialize(answer):
    session = OldLine(hello())
    server = Endpoint(answer, session=[session])
    edge = await server.open()
    assert isinstance(edge, HandshakeClient)
    assert (edge.link, edge.revision.name) == (session, "2025-11-25")
    assert [call["method"] for call in session.calls] == ["initialize"]
    assert [method for method, _ in session.told] == ["notifications/initialized"]
    assert session.adopted == [(edge, 0)]
    assert (session.opened, session.closed) == (1, 0)
    assert server.line.closed == 1  # it was only there to ask
    assert server.verdicts.get(server.target) is Era.HANDSHAKE


@pytest.mark.parametrize("answer", LEGACY)
async def test_a_client_without_a_handshake_says_that_it_needs_none(answer):
    server = Endpoint(answer, names=(NEWEST,))
    await server.fails(NoCommonRevision, match=NEWEST)
    assert server.said() == ["server/discover"]
    assert server.line.made == []
    assert server.verdicts.get(server.target) is None


async def test_a_client_of_the_handshake_alone_asks_nothing_first():
    session = OldLine(hello("2025-06-18"))
    server = Endpoint(names=("2025-11-25", "2025-06-18"), session=[session])
    assert (await server.open()).revision.name == "2025-06-18"
    assert server.said() == []
    assert server.verdicts.get(server.target) is None  # nobody has looked


async def test_a_known_handshake_is_not_asked_for_again():
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.HANDSHAKE)
    server = Endpoint(session=[OldLine(hello())], verdicts=verdicts)
    assert (await server.open()).revision.name == "2025-11-25"
    assert server.said() == []


@pytest.mark.parametrize("refused", [HttpStatus("no", 400), HttpStatus("no", 404), error_frame(-32601)])
async def test_a_server_that_was_renewed_meanwhile_is_asked_again(refused):
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.HANDSHAKE)
    stream = OldLine(unopened=RemoteError("no stream"))
    server = Endpoint(discovery(NEWEST), session=[OldLine(refused)], stream=[stream], verdicts=verdicts)
    assert (await server.open()).revision.name == NEWEST
    assert verdicts.get("http://x:80") is Era.STATELESS
    assert [line.closed for line in server.line.made] == [1, 1]


@pytest.mark.parametrize("error", [HttpStatus("no", 401), HttpStatus("no", 503), ConnectionLost("refused")])
async def test_what_is_no_evidence_ends_a_handshake_too(error):
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.HANDSHAKE)
    session = OldLine(error)
    server = Endpoint(session=[session], verdicts=verdicts)
    assert await server.fails(type(error)) is error
    assert session.closed == 1
    assert verdicts.get("http://x:80") is None


# --- the transport before that ---


@pytest.mark.parametrize("status", [400, 403, 404, 405, 406, 410, 415, 422])
@pytest.mark.parametrize("names", [None, ("2024-11-05",), ("2024-11-05", "2025-11-25")])
async def test_a_server_without_initialize_by_post_is_tried_in_the_oldest_way(status, names):
    session, stream = OldLine(HttpStatus("no", status)), OldLine(hello("2024-11-05"))
    server = Endpoint(HttpStatus("no", 405), session=[session], stream=[stream], names=names)
    edge = await server.open()
    assert (edge.link, edge.revision.name) == (stream, "2024-11-05")
    assert (session.closed, stream.opened, stream.closed, server.line.closed) == (1, 1, 0, 1)
    assert server.verdicts.get(server.target) is (Era.HANDSHAKE if names is None else None)


async def test_where_there_is_no_stream_either_the_first_refusal_is_told():
    refused, none = HttpStatus("no", 404), HttpStatus("no stream", 405)
    stream = OldLine(unopened=none)
    server = Endpoint(HttpStatus("no", 404), session=[OldLine(refused)], stream=[stream])
    error = await server.fails(HttpStatus)
    assert error is refused and error.__cause__ is none
    assert stream.closed == 1


async def test_a_stream_that_is_there_and_no_good_is_told():
    refused, bad = HttpStatus("no", 405), BadResult("it wants messages elsewhere")
    stream = OldLine(unopened=bad)
    server = Endpoint(HttpStatus("no", 404), session=[OldLine(refused)], stream=[stream])
    assert await server.fails(BadResult) is bad and bad.__cause__ is refused
    assert stream.closed == 1


@pytest.mark.parametrize("error", [HttpStatus("no", 401), HttpStatus("no", 500), ConnectionLost("x"), BadResult("x")])
async def test_no_other_failure_leads_there(error):
    server = Endpoint(HttpStatus("no", 404), session=[OldLine(error)])
    assert await server.fails(type(error)) is error
    assert [line.closed for line in server.line.made] == [1]


async def test_a_stream_that_opens_and_then_refuses_is_told_as_it_is():
    stream = OldLine(hello("1999-01-01"))
    server = Endpoint(HttpStatus("no", 405), session=[OldLine(HttpStatus("no", 405))], stream=[stream])
    await server.fails(NoCommonRevision)
    assert stream.closed == 1


async def test_giving_up_while_it_opens_closes_everything():
    stream = OldLine(unopened=asyncio.CancelledError())
    server = Endpoint(HttpStatus("no", 405), session=[OldLine(HttpStatus("no", 405))], stream=[stream])
    await server.fails(asyncio.CancelledError)
    assert [line.closed for line in server.line.made] == [1, 1]


@pytest.mark.parametrize("error", [HttpStatus("gone", 404), BadResult("junk")])
async def test_who_was_stateless_once_never_falls_back(error):
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.STATELESS)
    server = Endpoint(error, verdicts=verdicts)
    assert await server.fails(type(error)) is error
    assert verdicts.get("http://x:80") is Era.STATELESS


async def test_who_speaks_the_newest_era_alone_is_not_led_back_by_what_others_found():
    verdicts = Verdicts()
    verdicts.put("http://x:80", Era.HANDSHAKE)
    server = Endpoint(discovery(NEWEST), names=(NEWEST,), verdicts=verdicts)
    assert (await server.open()).revision.name == NEWEST
    assert server.said() == ["server/discover"]


async def test_one_given_up_at_the_last_moment_is_closed():
    welcome = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    old = OldLine(result_frame(welcome))
    server = Endpoint(HttpStatus("no", 400), session=[old])

    async def given_up():
        raise asyncio.CancelledError

    server.line.close = given_up
    with pytest.raises(asyncio.CancelledError):
        await server.open()
    assert old.told and old.closed == 1
