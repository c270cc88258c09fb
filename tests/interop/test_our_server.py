"""Clients written with other SDKs talk to our server: each runs as a process, uses everything and tells what it saw."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interop.environments import PEERS
from interop.spoken import SPOKEN, STATEFUL
from interop.told import ToldOnce, story
from support.wire_peer import HANDSHAKE, MODERN

SERVER = Path(__file__).parents[1] / "support" / "servers" / "basic.py"
HARD = "hé\u2028\x85\n😀"
OLDEST = HANDSHAKE[0]
BEFORE_TITLES = HANDSHAKE[:2]  # and before structured output, resource links and elicitation
WAYS = [*SPOKEN, ("mcp1", "auto"), ("mcp2", "auto"), ("mcp2", "legacy")]

every_revision = pytest.mark.parametrize(("peer", "mode"), SPOKEN)
every_handshake = pytest.mark.parametrize(("peer", "mode"), STATEFUL)


@pytest.fixture(scope="session")
def seen(peer_python: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the client of a peer saw in a mode. It runs once; the tests read different parts of its story."""

    def visit(peer: str, mode: str) -> dict[str, Any]:
        status = tmp_path_factory.mktemp(f"{peer}-{mode}") / "status"
        client = [peer_python(peer), str(PEERS / f"{peer}_client.py"), mode, str(status)]
        return story([*client, sys.executable, str(SERVER)])

    told = ToldOnce(tmp_path_factory, "our server", {" ".join(way): partial(visit, *way) for way in WAYS})
    return lambda peer, mode: told(f"{peer} {mode}")


def text_of(step: dict[str, Any]) -> str:
    [block] = step["content"]
    return block["text"]


def code_of(step: dict[str, Any]) -> int:
    return step["error"]["code"]


# --- who is there -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "mode", "revision"),
    [
        ("mcp1", "auto", HANDSHAKE[-1]),
        ("mcp2", "auto", MODERN[-1]),
        ("mcp2", "legacy", HANDSHAKE[-1]),
    ],
)
def test_the_newest_common_revision_is_agreed_on(seen, peer, mode, revision):
    assert seen(peer, mode)["revision"] == revision


@every_revision
def test_the_revision_that_a_client_wants_is_spoken(seen, peer, mode):
    assert seen(peer, mode)["revision"] == mode


@pytest.mark.parametrize(("peer", "mode"), [*STATEFUL, ("mcp2", "auto")])
def test_the_server_introduces_itself(seen, peer, mode):
    saw = seen(peer, mode)
    assert (saw["server"]["name"], saw["server"]["version"]) == ("basic", "1.2.3")
    assert ("title" in saw["server"]) == (mode not in BEFORE_TITLES)
    assert saw["instructions"] == "Be kind."
    assert saw["capabilities"]["tools"] == {"listChanged": True}
    assert saw["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert saw["capabilities"]["logging"] == {}
    assert "completions" not in saw["capabilities"]


@every_revision
def test_lists(seen, peer, mode):
    saw = seen(peer, mode)
    tools = {tool["name"]: tool for tool in saw["tools"]["tools"]}
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert tools["echo"]["description"] == "Give back the text."
    assert tools["echo"].get("title") == (None if mode in BEFORE_TITLES else "Echo")
    assert tools["echo"].get("annotations") == (None if mode == OLDEST else {"readOnlyHint": True})
    assert [each["uri"] for each in saw["resources"]["resources"]] == ["note://one", "note://bytes"]
    assert saw["templates"]["resourceTemplates"] == []
    [prompt] = saw["prompts"]["prompts"]
    assert prompt["name"] == "greet"
    assert prompt["arguments"] == [{"name": "name", "required": True}, {"name": "mood", "required": False}]


# --- what comes back --------------------------------------------------------------------------------


@every_revision
def test_results_of_tools(seen, peer, mode):
    saw = seen(peer, mode)
    assert text_of(saw["echo"]) == HARD
    assert text_of(saw["add"]) == "3"
    assert text_of(saw["add_in_thread"]) == "3"
    assert text_of(saw["noise"]) == "quiet"  # what it printed reached no client
    assert saw["big"] is True
    assert saw["many"] == {str(number): str(number + 1) for number in range(40)}
    assert json.loads(text_of(saw["record"])) == {"answer": 42}
    assert saw["record"].get("structuredContent") == (None if mode in BEFORE_TITLES else {"answer": 42})
    assert json.loads(text_of(saw["who"]))["name"] == "peer-client"


@every_revision
def test_blocks_are_said_in_the_words_of_the_revision(seen, peer, mode):
    text, image, audio, embedded, link = seen(peer, mode)["blocks"]["content"]
    assert text["text"] == "hi"
    assert image == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert audio["type"] == ("text" if mode == OLDEST else "audio")
    assert embedded["resource"] == {"uri": "note://one", "text": "hi", "mimeType": "text/plain"}
    if mode in BEFORE_TITLES:
        assert link == {"type": "text", "text": "One: note://one"}
    else:
        assert link == {"type": "resource_link", "uri": "note://one", "name": "one", "title": "One"}


@every_revision
def test_failures_of_tools(seen, peer, mode):
    saw = seen(peer, mode)
    assert (saw["fail tool"]["isError"], text_of(saw["fail tool"])) == (True, "out of paper")
    for how in ("bug", "exit", "group"):
        assert saw[f"fail {how}"]["isError"]
        assert "reference" in text_of(saw[f"fail {how}"])
        assert "secret" not in text_of(saw[f"fail {how}"])
    if mode in (*BEFORE_TITLES, "2025-06-18"):
        assert code_of(saw["add wrongly"]) == -32602
    else:
        assert saw["add wrongly"]["isError"]
        assert "a: " in text_of(saw["add wrongly"])
    assert code_of(saw["unknown tool"]) == -32602


@every_revision
def test_resources_and_prompts(seen, peer, mode):
    saw = seen(peer, mode)
    assert saw["read text"]["contents"] == [{"uri": "note://one", "mimeType": "text/plain", "text": "the first note"}]
    [blob] = saw["read bytes"]["contents"]
    assert blob["blob"] == "AAE="
    assert code_of(saw["read nothing"]) == (-32602 if mode in MODERN else -32002)
    assert saw["read nothing"]["error"]["data"] == {"uri": "note://none"}
    assert saw["greet"]["description"] == "A greeting."
    said = {"type": "text", "text": "Greet Ada, who is fine."}
    assert saw["greet"]["messages"] == [{"role": "user", "content": said}]
    assert code_of(saw["greet nobody"]) == -32602
    assert code_of(saw["unknown prompt"]) == -32602
    assert code_of(saw["complete"]) == -32601  # this server completes nothing and said so


# --- what is told and asked -------------------------------------------------------------------------


@every_revision
def test_progress(seen, peer, mode):
    saw = seen(peer, mode)
    assert text_of(saw["steps"]) == "done"
    words = [None] * 3 if mode == OLDEST else ["step 1", "step 2", "step 3"]
    assert saw["progress of steps"] == [[step + 1, 3, words[step]] for step in range(3)]
    assert saw["progress of add_in_thread"] == [[1, 2, None]]


@every_handshake
def test_logs_follow_the_level_that_was_set(seen, peer, mode):
    saw = seen(peer, mode)
    assert "error" not in saw["set level"]
    assert "error" not in saw["ping"]
    # The first time below `warning` (1.x set it) or `info` (2.x said nothing), the second time below `error`.
    assert [each["level"] for each in saw["logs"]] == ["warning", "error", "error"]
    assert saw["logs"][0] == {"level": "warning", "logger": "basic", "data": {"said": "warning"}}


def test_logs_follow_the_level_of_each_stateless_request(seen):
    saw = seen("mcp2", MODERN[-1])
    assert [each["level"] for each in saw["logs"]] == ["warning", "error"] * 2
    assert code_of(saw["set level"]) == -32601
    assert code_of(saw["ping"]) == -32601


@every_handshake
def test_questions_are_put_to_the_client(seen, peer, mode):
    saw = seen(peer, mode)
    assert text_of(saw["roots/list"]) == repr({"roots": [{"uri": "file:///home", "name": "home"}]})
    assert "'text': 'hello'" in text_of(saw["sampling/createMessage"])
    assert saw["asked"][0]["maxTokens"] == 5
    if mode in BEFORE_TITLES:
        assert code_of(saw["elicitation/create"]) == -32601
        assert len(saw["asked"]) == 1
    else:
        assert text_of(saw["elicitation/create"]) == repr({"action": "accept", "content": {"name": "Ada"}})
        assert saw["asked"][1]["message"] == "Who?"


def test_questions_are_put_to_a_stateless_client_in_rounds(seen):
    saw = seen("mcp2", MODERN[-1])
    assert text_of(saw["roots/list"]) == repr({"roots": [{"uri": "file:///home", "name": "home"}]})
    assert "'text': 'hello'" in text_of(saw["sampling/createMessage"])
    assert text_of(saw["elicitation/create"]) == repr({"action": "accept", "content": {"name": "Ada"}})
    assert [each.get("message") for each in saw["asked"]] == [None, "Who?"]  # each once


@every_handshake
def test_changes_are_told_to_the_session(seen, peer, mode):
    saw = seen(peer, mode)
    assert "error" not in saw["subscribe"]
    assert "error" not in saw["unsubscribe"]
    assert saw["roots changed"] is None
    changes = [each for each in saw["notices"] if each != "notifications/message"]
    # One update for two touches: the second came after `unsubscribe`.
    assert changes == ["notifications/resources/updated", "notifications/tools/list_changed"]


def test_changes_are_told_on_the_listen_stream(seen):
    saw = seen("mcp2", MODERN[-1])
    assert saw["honoured"] == {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}
    assert saw["listen"] == [True, True]


# --- the end ----------------------------------------------------------------------------------------


@every_revision
def test_a_cancelled_call_stops_and_says_nothing_more(seen, peer, mode):
    saw = seen(peer, mode)
    assert text_of(saw["stopped by cancelling"]) == "True"
    # steps, add_in_thread, and one word of each `forever` as it begins; their last words come when nobody listens.
    assert saw["progress"][:5] == [1, 2, 3, 1, 1]
    assert saw["progress"][5:] in ([1], [])  # none on a machine too busy to begin it within its timeout


@every_revision
def test_a_timeout_of_the_client_stops_the_tool_if_it_tells(seen, peer, mode):
    """1.x does not tell by itself, so there the tool works on."""
    saw = seen(peer, mode)
    began = len(saw["progress"]) == 6
    assert code_of(saw["timeout"]) == (408 if peer == "mcp1" else -32001)  # the SDKs' own codes
    assert text_of(saw["stopped by timeout"]) == str(began and peer == "mcp2")


@every_revision
def test_the_server_leaves_by_itself_when_its_client_goes(seen, peer, mode):
    """By itself: one that had to be killed would leave no exit status."""
    assert seen(peer, mode)["exit status"] == "0"
