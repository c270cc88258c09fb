"""cli/doctor/checks.py: servers that are broken in many ways, and whether the cause is named each time."""

import sys

import pytest

from interlock import OAuth, Server, read_config
from interlock.cli.doctor import checks as module
from interlock.cli.doctor.checks import Checkup, Finding
from interlock.cli.target import Aim
from interlock.transport.stdio.child_process import Command
from support.children import command_of, write_server
from support.http_handshake import handshake, old_server
from support.http_peer import HttpPeer, http, server

FINE_TOOL = '{"name": "t", "description": "d", "inputSchema": {"type": "object"}}'


async def examined(aim, *, seconds=20.0, **options):
    """The findings by step, and what failed."""
    told = []
    limits = {"connect_timeout": seconds, "probe_timeout": seconds / 2, "timeout": seconds}
    checkup = Checkup(aim, {**limits, **options}, told.append)
    findings = await checkup.run()
    assert told == findings, "each is told as it is made"
    for finding in findings:
        assert finding.state == "ok" or finding.todo or finding.remarks, "what is wrong has a remedy"
        assert finding.said.isprintable()
    return {finding.step: finding for finding in findings}, checkup


async def of_process(folder, body, **options):
    command = command_of(write_server(folder, body), close_seconds=30.0)
    return await examined(Aim("command", "server", command), **options)


async def of_peer(script, path="/mcp", **options):
    async with HttpPeer(script) as peer:
        url = peer.url.rpartition("/")[0] + path
        return (*await examined(Aim("url", url, url), **options), url)


def cause(found, step="connection"):
    assert found[step].state == "fail", found
    return found[step].said + " " + found[step].todo


async def test_findings_show_a_configuration_as_it_is_written():
    async with HttpPeer(lambda request, _: http(404, request.path.encode(), kind="text/plain")) as peer:
        environ = {"PLACE": peer.url.removeprefix("http://").partition("/")[0], "KEY": "path-secret"}
        entry = {"url": "http://${PLACE}/${env:KEY}/mcp"}
        target = read_config({"mcpServers": {"far": entry}}, environ=environ)["far"]
        found, _ = await examined(Aim("config", "far", target))
    said = str(found)
    assert "http://${PLACE} answers" in said and not [value for value in environ.values() if value in said]


async def test_a_program_that_is_not_there_is_shown_as_it_is_written():
    environ = {"PROGRAM": "secret-program"}
    target = read_config({"mcpServers": {"near": {"command": "${PROGRAM}"}}}, environ=environ)["near"]
    found, _ = await examined(Aim("config", "near", target))
    assert "${PROGRAM}" in found["target"].said and "secret-program" not in str(found)


# --- a healthy one ---


async def test_a_healthy_server_is_ok_in_every_step(tmp_path):
    body = f"""
    import json as j
    def mine(request):
        if request.get("method") == "tools/list":
            result(request, {{"tools": [j.loads('{FINE_TOOL}')]}})
        else:
            answer(request)
    serve(mine)
    """
    found, _ = await of_process(tmp_path, body)
    assert {step: each.state for step, each in found.items()} == dict.fromkeys(
        ("target", "connection", "protocol", "offers", "tools", "errors", "timing", "end"), "ok"
    )
    assert "2025-11-25 (handshake), mini 1" in found["protocol"].said
    assert found["tools"].said.startswith("1 in ") and found["end"].said.startswith("it ended")


async def test_a_server_in_memory_has_no_process_to_look_at():
    server = Server("s", version="1")
    found, _ = await examined(Aim("command", "memory", server))
    assert found["target"].said == "memory" and "end" not in found
    assert found["offers"].state == "warn" and found["protocol"].state == "ok"


# --- processes, broken ---


async def test_1_a_command_that_is_not_there():
    found, _ = await examined(Aim("command", "x", Command(args=("no-such-program",))))
    assert "no program 'no-such-program' on PATH" in cause(found, "target") and len(found) == 1


async def test_2_a_file_that_is_not_executable(tmp_path):
    path = tmp_path / "server"
    path.write_text("x")
    found, _ = await examined(Aim("command", "x", Command(args=(str(path),))))
    assert "Permission denied" in cause(found) and "chmod +x" in cause(found)


async def test_3_a_folder_that_is_not_there():
    found, _ = await examined(Aim("command", "x", Command(args=(sys.executable,), cwd="/nowhere")))
    assert "no folder '/nowhere'" in cause(found, "target")


async def test_4_it_exits_at_once_with_a_traceback(tmp_path):
    found, _ = await of_process(tmp_path, "import no_such_module  # no loop")
    assert "exited with code 1" in cause(found) and "the module no_such_module is missing" in cause(found)


async def test_5_it_prints_banners_on_stdout(tmp_path):
    found, _ = await of_process(tmp_path, "print('Welcome \\x1b[1m!', flush=True)")
    assert found["connection"].state == "ok"
    assert "1 lines on stdout are no messages: 'Welcome \\\\x1b[1m!'" in cause(found, "stdout")


async def test_6_it_hangs_at_initialize(tmp_path):
    found, _ = await of_process(tmp_path, "serve(lambda request: None)", seconds=0.5)
    assert "said nothing within 0.5 s" in cause(found) and "--timeout" in cause(found)


async def test_7_it_speaks_a_revision_that_nobody_knows(tmp_path):
    found, _ = await of_process(tmp_path, "REVISION = '1999-01-01'")
    assert "1999-01-01" in cause(found)


async def test_8_it_writes_json_that_is_none(tmp_path):
    body = "serve(lambda request: sys.exit(os.write(1, b\"{'jsonrpc': '2.0', 'id': 1}\\n\") - 29))"
    found, _ = await of_process(tmp_path, body)
    assert "no JSON-RPC" in cause(found) and "'jsonrpc'" in cause(found)


async def test_9_it_talks_but_is_no_mcp_server(tmp_path):
    body = "# no loop\nprint('> ready for commands', flush=True)\nos.read(0, 1)"
    found, _ = await of_process(tmp_path, body)
    assert "exited with code 0; on stdout it wrote: '> ready for commands'" in cause(found)


async def test_10_it_refuses_to_begin(tmp_path):
    found, _ = await of_process(tmp_path, "serve(lambda r: 'id' in r and error(r, -32603, 'database is down'))")
    assert "database is down" in cause(found)


LISTING = """
def mine(request):
    if request.get("method") == "tools/list":
        {}
    else:
        answer(request)
serve(mine)
"""


async def test_11_it_declares_tools_and_does_not_list_them(tmp_path):
    found, _ = await of_process(tmp_path, "")
    assert "tools/list must answer" in cause(found, "tools")


async def test_12_two_tools_have_one_name(tmp_path):
    body = LISTING.format(f"result(request, {{'tools': [{FINE_TOOL}, {FINE_TOOL}]}})")
    found, _ = await of_process(tmp_path, body)
    assert found["tools"].state == "fail"
    assert [remark.said for remark in found["tools"].remarks] == [
        "2 tools have this name: which one is meant nobody can say"
    ]


async def test_13_a_schema_is_broken(tmp_path):
    tool = "{'name': 'a', 'inputSchema': {'type': 'object', 'properties': {'x': {'type': 'strin'}}}}"
    found, _ = await of_process(tmp_path, LISTING.format(f"result(request, {{'tools': [{tool}]}})"))
    assert found["tools"].state == "fail" and "no usable JSON Schema" in found["tools"].remarks[0].said
    assert found["tools"].remarks[0].state == "fail", "faults stand before warnings"


async def test_14_a_list_is_malformed(tmp_path):
    found, _ = await of_process(tmp_path, LISTING.format("result(request, {'tools': [{'name': 'a'}]})"))
    assert "inputSchema" in cause(found, "tools")


async def test_15_it_does_not_end_when_its_stdin_does(tmp_path):
    body = LISTING.format(f"result(request, {{'tools': [{FINE_TOOL}]}})") + "\ntime.sleep(60)"
    command = command_of(write_server(tmp_path, body), close_seconds=0.1)
    found, _ = await examined(Aim("command", "server", command))
    assert found["end"].state == "warn" and "did not end when its stdin was closed" in found["end"].said


@pytest.mark.parametrize(
    ("reply", "state", "said"),
    [("result(request, {})", "warn", "as if it did"), ("error(request, -32000)", "warn", "with -32000")],
)
async def test_16_it_answers_methods_that_do_not_exist(tmp_path, reply, state, said):
    body = f"""
    def mine(request):
        if request.get("method", "").startswith("interlock/"):
            {reply}
        else:
            answer(request)
    serve(mine)
    """
    found, _ = await of_process(tmp_path, body)
    assert found["errors"].state == state and said in found["errors"].said


async def test_17_it_falls_silent_at_what_it_does_not_know_and_dies_of_a_ping(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.2)
    body = """
    def mine(request):
        if request.get("method") == "ping":
            sys.exit(3)
        if not request.get("method", "").startswith("interlock/"):
            answer(request)
    serve(mine)
    """
    found, _ = await of_process(tmp_path, body)
    assert "no answer within" in cause(found, "errors") and "a ping fails" in cause(found, "timing")


# --- the network ---


async def test_18_nobody_listens_at_the_port():
    async with HttpPeer(server()) as peer:
        url = peer.url
    found, _ = await examined(Aim("url", url, url))
    assert "connection refused" in cause(found, "target") and len(found) == 1


async def test_19_a_host_that_does_not_exist():
    url = "https://no-such-host.invalid/mcp"
    found, _ = await examined(Aim("url", url, url))
    assert "no such host" in cause(found, "target") or "no connection" in cause(found, "target")


async def test_20_no_tls_where_https_is_written():
    async def plain(request, stream):
        await stream.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        stream.close()

    async with HttpPeer(plain, read=False) as peer:
        url = peer.url.replace("http:", "https:")
        found, _ = await examined(Aim("url", url, url))
    assert "TLS" in cause(found, "target") and "http://" in cause(found, "target")


async def test_21_the_wrong_path_and_the_right_one_is_named():
    def script(request, stream):
        return server()(request, stream) if request.path == "/mcp" else http(404)

    found, _, url = await of_peer(script, "/api")
    assert "HTTP status 404" in cause(found) and f"{url.removesuffix('/api')}/mcp: give that URL" in cause(found)


async def test_22_the_wrong_path_and_there_is_no_other():
    found, _, _ = await of_peer(lambda request, stream: http(404), "/api")
    assert "most servers have it at /mcp" in cause(found)


async def test_23_a_web_page_and_no_server():
    found, _, _ = await of_peer(lambda request, stream: http(200, b"<html>hi", kind="text/html"))
    assert "connection" in found and "web" in cause(found)


async def test_24_a_login_is_wanted_and_nobody_says_where():
    def script(request, stream):
        return http(404) if request.verb == "GET" else http(401, b"", "WWW-Authenticate: Bearer")

    found, checkup, _ = await of_peer(script)
    assert "nobody can find out where to get one" in cause(found, "auth") and "RFC 9728" in cause(found, "auth")
    assert checkup.wants_login and found["connection"].state == "ok"


async def test_24_a_login_is_wanted_also_where_tokens_are_kept(tmp_path):
    def script(request, stream):
        return http(404) if request.verb == "GET" else http(401, b"", "WWW-Authenticate: Bearer")

    found, checkup, _ = await of_peer(script, auth=OAuth(login=None, tokens=tmp_path))
    assert checkup.wants_login and found["connection"].state == "ok" and "token" in cause(found, "auth")


async def test_25_an_old_server_that_only_has_events():
    found, _, _ = await of_peer(old_server())
    assert found["connection"].state == "warn" and "over HTTP+SSE" in found["connection"].said
    assert found["auth"].said == "none, and it is on this machine"


async def test_26_the_server_fails_by_itself():
    found, _, _ = await of_peer(lambda request, stream: http(500))
    assert "HTTP status 500" in cause(found) and "log" in cause(found)


async def test_a_modern_and_a_middle_aged_server_are_told_apart():
    tools = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    found, _, _ = await of_peer(server(tools_list=tools), headers={"Authorization": "Bearer x"})
    assert found["connection"].said.startswith("opened over Streamable HTTP in")
    assert found["auth"].said == "it takes the token"
    found, _, _ = await of_peer(handshake(tools_list={"tools": []}, ping={}))
    assert found["connection"].said.startswith("opened over Streamable HTTP, with a session")


async def test_a_server_that_everybody_can_reach_and_use_is_warned_of():
    checkup = Checkup(Aim("url", "u", "https://mcp.example.com/"), {"connect_timeout": 1.0}, lambda finding: None)
    checkup._anybody()
    assert checkup.findings[0].state == "warn" and "everybody" in checkup.findings[0].said


@pytest.mark.parametrize(("name", "todo"), [("SLOW_OPENING", "starts slowly"), ("SLOW_ANSWER", "answers slowly")])
async def test_what_is_slow_is_said(name, todo, monkeypatch):
    monkeypatch.setattr(module, name, -1.0)
    found, _ = await examined(Aim("command", "memory", Server("s", version="1")))
    assert found["timing"].state == "warn" and todo in found["timing"].todo


async def test_a_nameless_server_is_told_so():
    found, _ = await examined(Aim("command", "memory", Server("s", version=" ")))
    assert found["protocol"].state == "warn"


def test_a_finding_is_plain_data():
    assert Finding("a", "ok", "b") == Finding("a", "ok", "b", "", [])
