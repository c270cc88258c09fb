"""Tokens on real requests: every one carries it, one renewal serves all, and nothing of it is seen elsewhere."""

from __future__ import annotations

import asyncio
import logging

import pytest

from interlock import AuthorizationFailed, Client, ClientCredentials, LoginRequired
from interlock.auth.client.driver import Authorizer, Turn, drive
from interlock.auth.client.token_storage import FileRecords, MemoryRecords
from interlock.auth.flow import Ask, Hold, Load, Save
from interlock.auth.www_authenticate import Demand
from interlock.web.outbound.deadlines import movable
from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.reply import Reply
from interlock.wire.errors import HttpStatus, InterlockError, LocalError
from support.auth_peer import GuardedPeer
from support.auth_world import oauth, said
from support.http_peer import DISCOVERY, http, result, server
from support.idle import until_idle

CALLED = {"content": [{"type": "text", "text": "ok"}]}


def guarded(**more):
    return GuardedPeer(server(tools_call=CALLED, tools_list={"tools": [], "ttlMs": 0, "cacheScope": "private"}), **more)


def either_era(request, stream):
    if request.verb != "POST":
        return http(405 if request.verb == "GET" else 200)
    if request.method == "initialize":
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        return result(request, told).replace(b"\r\n", b"\r\nMcp-Session-Id: abc\r\n", 1)
    if request.method == "server/discover":
        return result(request, DISCOVERY)
    return result(request, {}) if request.id is not None else http(202)


async def test_a_client_logs_in_and_every_request_carries_the_token():
    async with guarded() as host, Client(host.url, auth=host.oauth()) as client:
        await client.call_tool("t")
        await client.list_tools()
        assert [call.header("Authorization") for call in host.calls] == [None] + ["Bearer access-1"] * 3
        assert len(host.visits) == 1
        for request in host.peer.requests:
            if request.path != "/mcp":
                assert request.header("Authorization") is None and request.header("Mcp-Method") is None
            assert "access-1" not in request.path


@pytest.mark.parametrize(("revision", "own"), [("2026-07-28", False), (("2026-07-28", "2025-03-26"), True)])
async def test_a_server_is_its_own_issuer_only_in_the_revision_that_says_so(revision, own):
    async with guarded() as host:
        host.issuer.issuer = host.origin
        host.routes = host.issuer.routes()
        client = Client(host.url, auth=host.oauth(), revision=revision)
        if own:
            async with client:
                assert len(host.visits) == 1
        else:
            with pytest.raises(AuthorizationFailed, match="does not say who grants"):
                await client.open()
            await client.close()
        told = {request.header("MCP-Protocol-Version") for request in host.peer.requests if request.verb == "GET"}
        assert told == {"2026-07-28"}


async def test_many_that_are_turned_away_together_are_helped_once():
    async with guarded() as host, Client(host.url, auth=host.oauth()) as client:
        host.revoked.add("access-1")
        async with asyncio.TaskGroup() as tasks:
            for _ in range(20):
                tasks.create_task(client.call_tool("t"))
        assert host.asked.count("/as/token") == 2 and len(host.visits) == 1
        assert host.issuer.requests[-1]["grant_type"] == "refresh_token"


async def test_a_step_up_keeps_what_was_there():
    async with guarded() as host, Client(host.url, auth=host.oauth(scope="a")) as client:
        host.needs = {"tools/call": "b"}
        await client.call_tool("t")
        assert len(host.visits) == 2 and "scope=a+b" in host.visits[1]


async def test_a_server_that_wants_ever_more_is_not_followed_for_ever():
    async with guarded() as host, Client(host.url, auth=host.oauth()) as client:
        wanted = iter(range(1000))
        inner = host.peer.script

        def script(request, stream):
            if request.body and b"tools/call" in request.body and request.path == "/mcp":
                host.needs["tools/call"] = f"scope{next(wanted)}"
            return inner(request, stream)

        host.peer.script = script
        with pytest.raises(HttpStatus) as refused:
            await client.call_tool("t")
        assert refused.value.status == 403 and len(host.visits) == 3


async def test_a_token_that_was_just_granted_and_is_refused_ends_it():
    async with guarded() as host:
        host.issuer.token = lambda told: {**told, "access_token": "worthless"}
        with pytest.raises(HttpStatus) as refused:
            async with Client(host.url, auth=host.oauth()):
                pass
        assert refused.value.status == 401 and len(host.visits) == 1


async def test_a_token_that_was_kept_serves_the_next_client_and_an_expired_one_is_refreshed_first(tmp_path):
    async with guarded() as host:
        for _ in range(2):
            async with Client(host.url, auth=host.oauth(tokens=tmp_path / "t")) as client:
                await client.call_tool("t")
        assert len(host.visits) == 1 and len(host.refused) == 1
        host.issuer.life = 0.001
        host.revoked.add("access-1")
        async with Client(host.url, auth=host.oauth(tokens=tmp_path / "t", login=None)) as client:
            await client.call_tool("t")
            await client.call_tool("t")
        assert len(host.visits) == 1 and len(host.refused) == 2, "what has expired is not sent"


async def test_two_programs_that_share_their_records_refresh_once(tmp_path):
    async with guarded() as host:
        async with Client(host.url, auth=host.oauth(tokens=tmp_path / "t")):
            pass
        clients = [Client(host.url, auth=host.oauth(tokens=tmp_path / "t")) for _ in range(4)]
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.open())
        host.revoked.add("access-1")
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.call_tool("t"))
        for client in clients:
            await client.close()
        assert [each["grant_type"] for each in host.issuer.requests] == ["authorization_code", "refresh_token"]


async def test_clients_of_one_plan_share_what_it_got():
    async with guarded() as host:
        plan = host.oauth()
        for _ in range(2):
            async with Client(host.url, auth=plan) as client:
                await client.call_tool("t")
        assert len(host.visits) == 1 and len(host.refused) == 1


async def test_a_goodbye_asks_nobody_to_log_in():
    async with GuardedPeer(either_era) as host:
        async with Client(host.url, auth=host.oauth(), revision="2025-11-25"):
            host.revoked.add("access-1")
            host.issuer.refreshes.clear()
        assert len(host.visits) == 1 and host.refused[-1].verb == "DELETE"


async def test_nobody_is_asked_where_that_is_not_wanted():
    async with guarded() as host:
        with pytest.raises(LoginRequired):
            async with Client(host.url, auth=host.oauth(login=None)):
                pass
        assert not host.visits


async def test_a_token_of_the_shortest_life_serves_the_request_it_was_got_for():
    async with guarded() as host:
        host.issuer.token = lambda told: {**told, "refresh_token": None, "expires_in": 1e-9}
        async with Client(host.url, auth=ClientCredentials("svc", "s3")) as client:
            await client.call_tool("t")
        assert [call.header("Authorization") for call in host.calls] == [
            None,
            "Bearer access-1",
            None,
            "Bearer access-2",
        ]


async def test_a_login_that_nobody_makes_has_an_end():
    async def never(url):
        await asyncio.Event().wait()

    async with guarded() as host:
        with pytest.raises(LoginRequired, match="nobody logged in"):
            async with Client(host.url, auth=host.oauth(login=never, login_seconds=0.02)):
                pass


async def test_the_time_of_a_user_is_not_the_time_of_the_server():
    moved: list[float] = []
    async with guarded() as host:
        authorizer = Authorizer(host.oauth(login_seconds=100.0), endpoint_of(host.url))
        with movable(moved.append):
            got = await authorizer.renew(Demand(), None, refresh=True)
        assert got.by == "granted" and moved[0] > 100.0 and sum(moved) >= 0


async def test_calls_of_either_era_wait_longer_while_somebody_logs_in():
    """The deadline of a call is moved by the login that it waits for."""
    until: list[float] = []

    async def login(url):
        if host.visits:
            until.extend(call.until for call in client._edge.link._calls.waiting.values())
        return await host.login(url)

    for revision in ("2026-07-28", "2025-11-25"):
        peer = GuardedPeer(either_era)
        async with peer as host, Client(host.url, auth=host.oauth(login=login), revision=revision) as client:
            begun = asyncio.get_running_loop().time()
            host.revoked.add("access-1")
            host.issuer.refreshes.clear()
            await client.ping(timeout=30)
        assert len(until) == 1 and until.pop() > begun + 300


async def test_a_login_that_is_given_up_leaves_nothing_behind():
    async def never(url):
        await asyncio.Event().wait()

    async with guarded() as host:
        records = MemoryRecords()
        opening = asyncio.create_task(Client(host.url, auth=host.oauth(login=never, tokens=records)).open())
        while "/as/register" not in host.asked:
            await asyncio.sleep(0.005)
        opening.cancel()
        await asyncio.wait([opening])
        async with Client(host.url, auth=host.oauth(tokens=records)) as client:
            await client.call_tool("t")


async def test_a_refresh_that_nobody_waits_for_any_more_is_kept():
    async with guarded() as host:
        plan, arrived, may_answer = host.oauth(), asyncio.Event(), asyncio.Event()
        async with Client(host.url, auth=plan) as client:
            inner = host.peer.script

            async def slow(request, stream):
                if request.path == "/as/token":
                    arrived.set()
                    await may_answer.wait()
                return inner(request, stream)

            host.peer.script = slow
            host.revoked.add("access-1")
            call = asyncio.create_task(client.call_tool("t"))
            await arrived.wait()
            call.cancel()
            await until_idle()
            may_answer.set()
            await asyncio.wait([call])
            assert await asyncio.wait_for(settled(plan, "refresh-2"), 20)
            host.peer.script = inner
            await client.call_tool("t")
        assert [each["grant_type"] for each in host.issuer.requests] == ["authorization_code", "refresh_token"]
        assert len(host.visits) == 1


async def settled(plan, text):
    """Until a record holds it."""
    while text not in str(plan.records._values):
        await asyncio.sleep(0.005)
    return True


async def test_a_program_gets_its_token_alone():
    async with guarded(registration_endpoint=None) as host:
        async with Client(host.url, auth=ClientCredentials("svc", "s3")) as client:
            await client.call_tool("t")
        assert host.issuer.requests[0]["grant_type"] == "client_credentials"


async def test_a_bound_token_is_shown_with_a_fresh_proof_each_time():
    async with guarded(scheme="DPoP", dpop_signing_alg_values_supported=["ES256"]) as host:
        async with Client(host.url, auth=host.oauth()) as client:
            await client.call_tool("t")
            await client.call_tool("t")
        proofs = [call.header("DPoP") for call in host.calls[1:]]
        assert len(set(proofs)) == len(proofs) == 3 and None not in proofs
        assert {call.header("Authorization") for call in host.calls[1:]} == {"DPoP access-1"}


async def test_sessions_carry_it_on_every_verb():
    async with GuardedPeer(either_era) as host:
        async with Client(host.url, auth=host.oauth(), revision="2025-11-25") as client:
            await client.ping()
            while not any(call.verb == "GET" for call in host.calls):
                await asyncio.sleep(0.005)
        assert {call.verb for call in host.calls} == {"POST", "GET", "DELETE"}
        assert {call.header("Authorization") for call in host.calls[1:]} == {"Bearer access-1"}


async def test_nothing_secret_is_logged_or_told(caplog):
    caplog.set_level(logging.DEBUG)
    peer = guarded(token_endpoint_auth_methods_supported=["client_secret_post"])
    async with peer as host, Client(host.url, auth=host.oauth()) as client:
        host.revoked.add("access-1")
        await client.call_tool("t")
        host.revoked.add("access-2")
        host.routes[f"{host.origin}/as/token"] = lambda ask: said(
            {"error": "invalid_grant", "error_description": str(ask.form)}, 400
        )
        with pytest.raises(AuthorizationFailed) as refused:
            await client.call_tool("t")
    told = caplog.text + str(refused.value) + repr(refused.value)
    secrets = {value for each in host.issuer.requests for name, value in each.items()}
    public = ("authorization_code", "refresh_token", "http://127.0.0.1:1/cb", host.url, "client-1")
    for secret in (secrets - set(public)) | {"access-1", "access-2", "refresh-2"}:
        if len(secret) > 5 and not secret.startswith(("application/", "interlock/", "identity", "127.", "keep")):
            assert secret not in told


def test_what_cannot_be_meant():
    with pytest.raises(LocalError, match="exclude each other"):
        Client("https://h/mcp", auth=oauth(), headers={"authorization": "Bearer x"})
    with pytest.raises(LocalError, match="auth="):
        Client(["python"], auth=oauth())
    assert "access" not in repr(Authorizer(oauth(), endpoint_of("https://h/mcp")))


HOSTILE = [
    *("http://as.example.com/x", "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://10.0.0.1/"),
    *("https://192.168.1.1/", "https://172.16.0.1/", "https://169.254.169.254/latest/meta-data/", "https://0.0.0.0/"),
    *(
        "https://[::ffff:169.254.169.254]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://0/",
    ),
    *("https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://127.1/", "https://0177.0.0.1/"),
    *(
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001:0:1::1]/",
        "https://[::]/",
    ),
    *(
        "https://[fe80::1%25eth0]/",
        "https://100.64.0.1/",
        "https://224.0.0.1/",
        "https://168.63.129.16/",
        "file:///etc/x",
    ),
    *("gopher://h/", "https://user:pw@as.example.com/", "https://as.example.com\\@127.0.0.1/", "https://h/\r\nX: y"),
    *("https://127.0.0.1.:443/", "https://127。0。0。1/", "javascript:alert(1)", "//h/x", "https://h/#x", "unix:/x"),
    *("https://metadata.localhost/", "https://127.0.0.1%2f@h/", "https://[::127.0.0.1]/", "https://①②⑦.0.0.1/"),
]


@pytest.mark.parametrize("url", HOSTILE)
async def test_a_server_elsewhere_sends_us_nowhere_inside(url):
    """Refused by its text, before anybody is asked for an address."""

    def flow():
        return (yield Ask(url=url))

    with pytest.raises(InterlockError):
        await drive(flow(), oauth(), endpoint_of("https://mcp.example.com/mcp"))


# --- the driver ---


async def test_a_step_that_fails_is_thrown_in_where_it_was_wanted():
    def flow():
        try:
            yield Ask(url="https://127.0.0.1/")
        except InterlockError as error:
            yield Save("k", b"1")
            yield Hold("k")
            yield Hold("k")
            return str(error), (yield Load("k"))

    records = MemoryRecords()
    told, kept = await drive(flow(), oauth(tokens=records), endpoint_of("https://h/mcp"))
    assert "127.0.0.1" in told and kept == b"1"
    release = records.try_hold("k")
    assert release is not None
    release()


async def test_what_somebody_else_holds_is_waited_for(tmp_path):
    records = FileRecords(tmp_path / "t")
    release = records.try_hold("k")
    assert release is not None

    def flow():
        yield Hold("k")
        return "held"

    waiting = asyncio.create_task(drive(flow(), oauth(tokens=records), endpoint_of("https://h/mcp")))
    await until_idle()
    assert not waiting.done()
    release()
    assert await waiting == "held"


async def test_a_turn_has_an_end():
    turn = Turn(Authorizer(oauth(), endpoint_of("https://h/mcp")))
    assert await turn.headers("POST", "https://h/mcp") == {}
    challenge = 'Bearer error="insufficient_scope", scope="x"'
    found = [turn.refused(Reply(status=403, challenge=challenge), "https://h/mcp") for _ in range(4)]
    assert found == [True, True, False, False]
    assert not turn.refused(Reply(status=200), "https://h/mcp")
    assert not Turn(Authorizer(oauth(), endpoint_of("https://h/mcp"))).refused(Reply(status=403), "https://h/mcp")


async def test_a_call_with_a_token_of_its_own_uses_that_and_nothing_else():
    async with guarded() as host, Client(host.url, auth=host.oauth()) as client:
        await client.call_tool("t", headers={"authorization": "Bearer access-of-somebody-else"})
        assert host.calls[-1].header("Authorization") == "Bearer access-of-somebody-else"
        with pytest.raises(HttpStatus):
            await client.call_tool("t", headers={"Authorization": "Bearer worthless"})
        assert len(host.visits) == 1


async def test_a_client_that_supervises_itself_does_not_ask_a_user_again_and_again():
    async with guarded() as host:
        host.issuer.answer = lambda told: {**told, "iss": "https://evil.example"}
        client = Client(host.url, auth=host.oauth(), supervise=True)
        with pytest.raises(AuthorizationFailed):
            await client.open()
        await client.close()
        assert len(host.visits) == 1
