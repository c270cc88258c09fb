"""cli/commands/run.py: a file, the Server in it, and what is said when there is none."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from interlock import Server
from interlock.cli.commands import run_reload
from interlock.cli.commands.run import Endpoint, Orders, _CannotRun, _without_port, load_server, read_options
from interlock.cli.commands.run import run as command
from interlock.cli.errors import Failure

ONE = "from interlock import Server\nserver = Server('only')\n"
TWO = "from interlock import Server\nnotes = Server('notes')\ntasks = Server('tasks')\n"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": ENVELOPE}}


@pytest.fixture(autouse=True)
def imports_are_undone(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("made_for_test"):
            del sys.modules[name]


def file_of(tmp_path, text, name="made_for_test.py"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def why_not(target):
    with pytest.raises(_CannotRun) as caught:
        load_server(target)
    return str(caught.value)


# --- loading ---


@pytest.mark.parametrize("target", ["made_for_test.py", "./made_for_test.py", "../{}/made_for_test.py"])
def test_a_relative_path_keeps_lines_and_tracebacks(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    target = target.format(tmp_path.name)
    file_of(tmp_path, ONE + "@server.tool\ndef f(*a): ...\n")
    assert f"{target} line 3: " in why_not(target)
    file_of(tmp_path, ONE + "\n1 / 0\n")
    told = why_not(target)
    assert "line 4" in told and "1 / 0" in told and "importlib" not in told


def test_the_one_server_of_a_file_is_found(tmp_path):
    assert load_server(file_of(tmp_path, ONE)).info.name == "only"


def test_two_names_for_one_server_are_one_server(tmp_path):
    assert load_server(file_of(tmp_path, ONE + "app = server\n")).info.name == "only"


def test_one_of_several_is_chosen_by_name(tmp_path):
    path = file_of(tmp_path, TWO)
    assert load_server(f"{path}:notes").info.name == "notes"
    assert load_server(f"{path}:tasks").info.name == "tasks"


def test_several_without_a_name_are_listed(tmp_path):
    told = why_not(file_of(tmp_path, TWO))
    assert "2 servers" in told and ".py:notes" in told and ".py:tasks" in told


def test_a_server_that_another_one_has_mounted_is_no_choice(tmp_path):
    three = TWO + "house = Server('house')\n"
    assert load_server(file_of(tmp_path, TWO + "notes.mount('t', tasks)\n")).info.name == "notes"
    nested = three + "tasks.mount('n', notes)\nhouse.mount('t', tasks)\n"
    assert load_server(file_of(tmp_path, nested)).info.name == "house"
    told = why_not(file_of(tmp_path, three + "house.mount('t', tasks)\n"))
    assert "2 servers" in told and ".py:notes" in told and ".py:house" in told


def test_none_is_said_with_how_to_make_one(tmp_path):
    told = why_not(file_of(tmp_path, "x = 1\n"))
    assert "0 servers" in told and "interlock.Server" in told


@pytest.mark.parametrize("name", ["nope", "x"])
def test_a_name_that_is_no_server_is_said(tmp_path, name):
    told = why_not(file_of(tmp_path, ONE + "x = 1\n") + f":{name}")
    assert name in told and ".py:server" in told


@pytest.mark.parametrize("target", ["/nowhere/server.py", "/nowhere/server.py:notes", "nope", ":", ""])
def test_a_file_that_is_not_there_is_said(target):
    assert "no file" in why_not(target)


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path):
    assert load_server(file_of(tmp_path, ONE, "made_for_test:1.py")).info.name == "only"


def test_a_file_that_is_no_python_is_said(tmp_path):
    assert "no Python file" in why_not(file_of(tmp_path, ONE, "made_for_test.txt"))


def test_a_folder_is_no_file(tmp_path):
    assert str(tmp_path) in why_not(str(tmp_path))


def test_a_mistake_in_the_file_is_said_with_its_line(tmp_path):
    told = why_not(file_of(tmp_path, "a = 1\nb = = 2\n"))
    assert "line 2" in told


def test_what_stands_beside_the_file_can_be_imported(tmp_path):
    file_of(tmp_path, "NAME = 'beside'\n", "made_for_test_beside.py")
    text = "import made_for_test_beside\nfrom interlock import Server\nserver = Server(made_for_test_beside.NAME)\n"
    assert load_server(file_of(tmp_path, text)).info.name == "beside"


def test_an_error_of_the_file_itself_is_not_hidden(tmp_path):
    told = why_not(file_of(tmp_path, "def f():\n    1 / 0\nf()\n"))
    assert "ZeroDivisionError" in told and "line 3" in told
    assert "importlib" not in told, "frames that are not the author's"


def test_a_mistake_with_our_api_is_one_line(tmp_path):
    told = why_not(file_of(tmp_path, ONE + "@server.tool\ndef f(*args): ...\n"))
    assert "\n" not in told and "*args" in told and "made_for_test.py line 3: " in told


def test_a_syntax_error_names_the_file_it_is_in(tmp_path):
    (tmp_path / "broken_part.py").write_text("def (\n")
    assert "broken_part.py line 1" in why_not(file_of(tmp_path, "import broken_part\n"))


def test_the_main_part_of_a_file_is_not_run(tmp_path):
    text = ONE + "if __name__ == '__main__':\n    raise SystemExit('served twice')\n"
    assert load_server(file_of(tmp_path, text)).info.name == "only"


# --- running, in a process of its own ---


def run(target, *frames):
    return subprocess.run(
        [sys.executable, "-m", "interlock", "run", target],
        input="".join(json.dumps(frame) + "\n" for frame in frames),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_is_served(tmp_path):
    done = run(file_of(tmp_path, ONE), DISCOVER)
    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    assert json.loads(line)["id"] == 1


def test_what_the_file_prints_while_it_is_imported_does_not_reach_the_client(tmp_path):
    text = "import os\nprint('hello')\nos.write(1, b'raw')\nos.system('echo shell')\n" + ONE
    done = run(file_of(tmp_path, text), DISCOVER)
    assert len(done.stdout.splitlines()) == 1
    for noise in ("hello", "raw", "shell"):
        assert noise in done.stderr


def test_what_cannot_be_run_is_code_1_and_one_sentence(tmp_path):
    done = run(file_of(tmp_path, "x = 1\n"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("interlock run:")
    assert "Traceback" not in done.stderr


def test_an_error_of_the_file_is_a_traceback_on_stderr(tmp_path):
    done = run(file_of(tmp_path, "1 / 0\n"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "ZeroDivisionError" in done.stderr


# --- over HTTP ---


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], None),
        (["--http"], Endpoint()),
        (["--http", "--port", "0"], Endpoint(port=0)),
        (["--port=65535", "--http"], Endpoint(port=65535)),
        (["--http", "--workers", "4", "--state", "x.db"], Endpoint(workers=4, state="x.db")),
        (["--http", "--host", "::1", "--path", "/x"], Endpoint(host="::1", path="/x")),
        (["--http", "--allow", "a.example", "--allow=b.example"], Endpoint(allow=["a.example", "b.example"])),
        (["--http", "--origin", "https://a.b", "--origin=http://c:1"], Endpoint(origin=["https://a.b", "http://c:1"])),
        (["--http", "--drain", "0", "--connections", "9"], Endpoint(drain=0.0, connections=9)),
        (["--http", "--heartbeat-timeout", "0"], Endpoint(heartbeat_timeout=0.0)),
        (
            ["--http", "--forwarded-allow-ips", "10.0.0.5,10.1.0.0/16"],
            Endpoint(forwarded_allow_ips="10.0.0.5,10.1.0.0/16"),
        ),
        (["--http", "--health", "/up", "--reload"], Endpoint(health="/up", reload=True)),
        (["--http", "--no-health"], Endpoint(health=None)),
        (["--http", "--always-stream"], Endpoint(always_stream=True)),
    ],
)
def test_options_say_where_to_serve(words, found):
    assert read_options(words) == Orders(found)


def test_a_log_level_is_for_every_carrier():
    assert read_options(["--log-level", "debug"]) == Orders(None, "debug")
    assert read_options(["--http", "--log-level=error"]) == Orders(Endpoint(), "error")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--http", "--port"], "--port needs a value"),
        (["--http", "--port", "65536"], "65535"),
        (["--http", "--port", "99999999999999999999"], "65535"),
        (["--http", "--port", "-1"], "65535"),
        (["--http", "--port", "http"], "65535"),
        (["--port", "0"], "--port needs --http"),
        (["--reload"], "--reload needs --http"),
        (["--http", "--workers", "0"], "--workers '0': this is a whole number from 1 to 1024"),
        (["--http", "--workers", "1025"], "1024"),
        (["--workers", "2"], "--workers needs --http"),
        (["--origin", "https://a.b"], "--origin needs --http"),
        (["--http", "--drain", "3601"], "from 0 to 3600"),
        (["--http", "--connections", "0"], "from 1 to 1000000"),
        (["--http", "--health", "/x", "--no-health"], "contradict"),
        (["--log-level", "loud"], "one of debug, info, warning, error"),
        (["--https"], "no option '--https'"),
        (["--http=1"], "no option"),
        (["--http", "more"], "one FILE"),
        (["--", "more"], "one FILE"),
    ],
)
def test_wrong_options_are_said(words, told):
    with pytest.raises(Failure) as caught:
        read_options(words)
    assert caught.value.code == 2 and told in str(caught.value)


def test_wrong_options_are_code_2_before_anything_is_loaded(tmp_path):
    path = file_of(tmp_path, "raise SystemExit('loaded')")
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "run", path, "--htp"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "interlock run: there is no option '--htp'\n  hint: did you mean --http?\n"


def test_a_server_for_others_needs_its_names(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "run", file_of(tmp_path, ONE), "--http", "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "allowed_hosts" in done.stderr and "Traceback" not in done.stderr


def test_an_origin_that_stands_for_all_is_refused_with_the_reason(tmp_path, capsys):
    assert command(file_of(tmp_path, ONE), ["--http", "--port", "0", "--origin", "*"]) == 1
    told = capsys.readouterr().err
    assert "every page" in told and "Traceback" not in told


def test_a_file_is_served_over_http_and_ends_by_a_signal(tmp_path):
    words = [sys.executable, "-m", "interlock", "run", file_of(tmp_path, ONE), "--http", "--port", "0"]
    words += ["--origin", "https://a.example"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        [url] = re.findall(r"http://127\.0\.0\.1:\d+/mcp", line)
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
        request = urllib.request.Request(
            url,
            json.dumps(DISCOVER).encode(),
            {"Content-Type": "application/json", "Origin": "https://a.example", **headers},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.loads(answer.read())["id"] == 1
            assert answer.headers["Access-Control-Allow-Origin"] == "https://a.example"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_said_with_what_to_do(tmp_path, capsys):
    file = file_of(tmp_path, "from interlock import Server\nserver = Server('one')\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert command(str(file), ["--http", "--port", str(taken.getsockname()[1])]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "another process" in said[-2] and said[-1].startswith("  hint: stop that process, or take another port")


def test_workers_of_a_file_that_is_not_there_are_not_started(tmp_path, capsys):
    assert command(str(tmp_path / "no.py"), ["--http", "--workers", "2", "--state", "x.db"]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_a_state_in_a_file_is_for_one_process_too(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr(Server, "run", lambda self, carrier, **options: served.append((carrier, options)))
    assert command(file_of(tmp_path, ONE), ["--http", "--state", "x.db"]) == 0
    [(carrier, options)] = served
    assert (carrier, options["state"], "workers" in options) == ("http", "x.db", False)


def test_what_the_options_say_of_the_endpoint_reaches_it(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr(Server, "run", lambda self, carrier, **options: served.append(options))
    words = ["--http", "--drain", "1.5", "--connections", "7", "--no-health", "--always-stream"]
    assert command(file_of(tmp_path, ONE), words) == 0
    [options] = served
    assert (options["drain"], options["connections"], options["health"]) == (1.5, 7, None)
    assert options["always_stream"] is True


def test_a_log_level_is_heard_on_stderr_and_nothing_else_is(tmp_path):
    text = "import logging\n" + ONE + "logging.getLogger('interlock.x').info('told')\n"
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "run", file_of(tmp_path, text), "--log-level", "info"],
        input=json.dumps(DISCOVER) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    assert "INFO interlock.x: told" in done.stderr


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--http", "--reload"], ["--http"]),
        (["--http", "--port", "0", "--reload", "--path", "/x"], ["--http", "--path", "/x"]),
        (["--port=0", "--http"], ["--http"]),
    ],
)
def test_the_port_of_a_server_that_reloads_is_decided_once(options, kept):
    assert _without_port(options) == kept


def test_reloading_gets_the_same_words(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(run_reload, "serve_reloading", lambda *words: asked.append(words) or 5)
    path = file_of(tmp_path, ONE)
    assert command(f"{path}:server", ["--http", "--reload", "--port", "0", "--host", "::1"]) == 5
    assert asked == [(path, [f"{path}:server", "--http", "--host", "::1"], "::1", 0)]
    assert command(str(tmp_path / "no.py"), ["--http", "--reload"]) == 1
