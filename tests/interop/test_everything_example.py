"""The clients of other SDKs use every feature of examples/everything.py that they have, over stdio and over HTTP.

Each runs as a process once for each way it goes; the tests read different parts of what it saw.
"""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interop.environments import PEERS
from interop.spoken import SPOKEN
from interop.told import ToldOnce, breaking, our_server, served, story
from support.examples import EXAMPLES
from support.wire_peer import ALL, HANDSHAKE, MODERN

SERVER = our_server(str(Path(__file__).parents[1] / "support" / "servers" / "everything_waiting.py"))
OLDEST = ALL[0]
BEFORE_STRUCTURED = ALL[:2]  # and before titles, resource links, forms and the context of a completion
BEFORE_PAGES = ALL[:3]  # and before icons and choices of several
RESUMING = HANDSHAKE[-1]  # where streams begin with an event id to come back with
CUT_AFTER = '"message":"3"'  # the first progress of the tool `countdown`

# A mode is a revision, over stdio, or that with a form of HTTP before it: `http` is one endpoint, `sse` came before.
OVER_HTTP = [
    ("mcp1", f"sse {OLDEST}"),
    ("ts1", f"sse {HANDSHAKE[-1]}"),  # what it offers there too
    *((peer, f"http {HANDSHAKE[-1]}") for peer in ("mcp1", "mcp2", "fastmcp", "ts1", "ts2")),
    *((peer, f"http {MODERN[-1]}") for peer in ("mcp2", "fastmcp", "ts2")),
]
WAYS = [*SPOKEN, *OVER_HTTP]

everywhere = pytest.mark.parametrize(("peer", "mode"), WAYS)
handshake = pytest.mark.parametrize(("peer", "mode"), [way for way in WAYS if not way[1].endswith(tuple(MODERN))])
stateless = pytest.mark.parametrize(
    ("peer", "mode"), [way for way in WAYS if way[1].endswith(tuple(MODERN)) and way[0] != "fastmcp"]
)


@pytest.fixture(scope="session")
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the client of a peer saw in a mode, and the revision that it spoke."""

    def visit(peer: str, mode: str) -> dict[str, Any]:
        *form, revision = mode.split()
        client = visitor(request, peer, revision, named=not form)
        if not form:
            return story([*client, *SERVER])
        said = tmp_path_factory.mktemp("everything")
        with (
            served([*SERVER, "--http", "--port", "0"], said / "by us") as address,
            breaking(address, CUT_AFTER, said / "by the wire") as wire,
        ):
            where = {"sse": address.replace("/mcp", "/sse"), "http": wire if revision == RESUMING else address}
            saw = story([*client, where[form[0]]])
        return {**saw, "our log": (said / "by us").read_text(), "the wire": (said / "by the wire").read_text()}

    told = ToldOnce(tmp_path_factory, "everything", {" ".join(way): partial(visit, *way) for way in WAYS})
    return lambda peer, mode: (told(f"{peer} {mode}"), mode.split()[-1])


def visitor(request: pytest.FixtureRequest, peer: str, revision: str, *, named: bool) -> list[str]:
    """The command of a peer's client, all but where to go. Unless `named`, the stateless revision is to be found."""
    mode = "auto" if revision in MODERN else "legacy"
    if peer.startswith("ts"):
        script = request.getfixturevalue("typescript")("ts_everything_client.mjs", "everything_visit.json")
        return [*script, peer.removeprefix("ts"), mode]
    if peer.startswith("mcp") and (named or revision in HANDSHAKE):
        mode = revision
    return [request.getfixturevalue("peer_python")(peer), str(PEERS / f"{peer}_everything_client.py"), mode]


def text_of(step: dict[str, Any]) -> str:
    assert "error" not in step and not step.get("isError"), step
    [block] = step["content"]
    return block["text"]


def failure_of(step: dict[str, Any]) -> str:
    assert step["isError"] is True, step
    [block] = step["content"]
    return block["text"]


def code_of(step: dict[str, Any]) -> int:
    return step["error"]["code"]


def values_of(step: dict[str, Any]) -> list[str]:
    return step["completion"]["values"]


def messages_of(step: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in step["messages"]]


# --- lists ------------------------------------------------------------------------------------------


@everywhere
def test_lists_and_pages(seen, peer, mode):
    saw, revision = seen(peer, mode)
    tools = {tool["name"]: tool for tool in saw["tools"]["tools"]}
    assert len(tools) == 52 and "hidden" not in tools
    assert tools["weather"].get("title") == (None if revision in BEFORE_STRUCTURED else "Weather")
    assert ("icons" in tools["weather"]) == (revision not in BEFORE_PAGES)
    assert ("outputSchema" in tools["weather"]) == (revision not in BEFORE_STRUCTURED)
    assert ("annotations" in tools["weather"]) == (revision != OLDEST)
    assert tools["arguments"]["inputSchema"]["properties"]["height"]["maximum"] == 3
    assert {prompt["name"] for prompt in saw["prompts"]["prompts"]} >= {"test_simple_prompt", "recommend", "show"}
    templates = {template["uriTemplate"] for template in saw["templates"]["resourceTemplates"]}
    assert templates >= {"test://template/{id}/data", "more://search{?words,most}", "more://labels{/labels*}"}
    assert [len(page) for page in saw["pages"]] == [100, 25]
    uris = [uri for page in saw["pages"] for uri in page]
    assert len(set(uris)) == 125 and uris[0] == "test://static-text"
    assert saw["facts"]["annotations"]["priority"] == 1.0 and saw["facts"]["size"] == 13


@handshake
def test_the_server_introduces_itself_in_the_words_of_the_revision(seen, peer, mode):
    saw, revision = seen(peer, mode)
    server = saw["server"]
    assert saw["revision"] == revision and (server["name"], server["version"]) == ("everything", "1.0")
    assert server.get("title") == (None if revision in BEFORE_STRUCTURED else "One of everything")
    assert ("icons" in server) == ("websiteUrl" in server) == ("description" in server) == (revision == HANDSHAKE[-1])
    assert saw["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert ("completions" in saw["capabilities"]) == (revision != OLDEST)


# --- results ----------------------------------------------------------------------------------------


@everywhere
def test_blocks_of_every_type(seen, peer, mode):
    saw, revision = seen(peer, mode)
    assert text_of(saw["test_simple_text"]) == "This is a simple text response for testing."
    [image] = saw["test_image_content"]["content"]
    assert image["mimeType"] == "image/png" and base64.b64decode(image["data"]).startswith(b"\x89PNG")
    [audio] = saw["test_audio_content"]["content"]
    assert audio["type"] == ("text" if revision == OLDEST else "audio")
    if revision != OLDEST:
        assert audio["mimeType"] == "audio/wav" and base64.b64decode(audio["data"]).startswith(b"RIFF")
    [held] = saw["test_embedded_resource"]["content"]
    assert held["resource"]["uri"] == "test://embedded-resource" and held["resource"]["text"]
    assert [block["type"] for block in saw["test_multiple_content_types"]["content"]] == ["text", "image", "resource"]
    text, people, image, audio, file, link = saw["blocks"]["content"]
    assert text["text"] == "a text" and people["annotations"] == {"audience": ["user"], "priority": 0.8}
    assert file["resource"]["text"] == "a,b\n1,2\n" and file["resource"]["mimeType"] == "text/csv"
    if revision in BEFORE_STRUCTURED:
        assert link == {"type": "text", "text": "The first: more://numbered/1"}
    else:
        assert link["uri"] == "more://numbered/1" and ("icons" in link) == (revision not in BEFORE_PAGES)


@everywhere
def test_structured_output(seen, peer, mode):
    """The SDKs check it against the schema that was listed, so what came through here fits."""
    saw, revision = seen(peer, mode)
    data = {"city": "Graz", "degrees": 21.5, "sky": "clear"}
    assert json.loads(text_of(saw["weather"])) == data and json.loads(text_of(saw["squares"])) == [1, 4, 9]
    assert text_of(saw["by_hand"]) == "It is fine in Graz"
    assert saw["by_hand"]["_meta"]["com.example/source"] == "made up"
    assert json.loads(text_of(saw["arguments"])) == {
        "name": "Ada",
        "street": "A",
        "city": "Vienna",
        "year": 1815,
        "colours": ["red", "blue"],
    }
    if revision in BEFORE_STRUCTURED:
        assert not any("structuredContent" in saw[name] for name in ("weather", "squares", "by_hand"))
        return
    assert saw["weather"]["structuredContent"] == data
    assert saw["squares"]["structuredContent"] == ([1, 4, 9] if revision in MODERN else {"result": [1, 4, 9]})
    assert saw["by_hand"]["structuredContent"] == data | {"degrees": 20.0}


@everywhere
def test_tools_of_every_kind_answer(seen, peer, mode):
    saw, revision = seen(peer, mode)
    told = {
        "test_x_mcp_header": "region: Grüße",
        "json_schema_2020_12_tool": "name: Ada",
        "test_reconnection": "Still here.",
        "markup": "&lt;script>alert(1)</script>",
        "in_its_own_thread": "ABC",
        "on_the_loop": "3",
        "read_through": "number 7",
        "within": "true",
    }
    assert {name: text_of(saw[name]) for name in told} == told
    assert failure_of(saw["test_error_handling"]) == "This tool intentionally returns an error for testing"
    assert text_of(saw["was_stopped"]) == "stopped"  # whoever gives up stops the tool
    assert failure_of(saw["slow"]) == "The tool slow was stopped: it took longer than 0.2 s"
    assert "reference" in failure_of(saw["fails"]) and "inside" not in failure_of(saw["fails"])
    assert code_of(saw["hidden"]) == -32602
    known = json.loads(text_of(saw["describe"]))
    assert known["client"] == "peer-client" and {"sampling", "roots"} <= set(known["can"])
    assert ("elicitation" in known["can"]) == (revision not in BEFORE_STRUCTURED)
    assert bool(known["headers"]) == (mode == f"http {MODERN[-1]}")


@pytest.mark.parametrize(("peer", "mode"), OVER_HTTP)
def test_our_server_has_nothing_else_to_complain_about(seen, peer, mode):
    saw, _ = seen(peer, mode)
    assert saw["our log"].count("Traceback") == 1  # of the tool that fails
    complaints = [line for line in saw["our log"].splitlines() if line.startswith("!")]
    assert "tool fails failed" in complaints[0]
    assert all("is deprecated" in line for line in complaints[1:])
    if peer.startswith("ts") and mode == f"http {HANDSHAKE[-1]}":
        assert saw["end"] is None  # DELETE was taken
    if peer == "ts2":
        assert saw["joined"] == 125  # it reads all pages by itself


# --- what is said on the way ------------------------------------------------------------------------


@everywhere
def test_progress(seen, peer, mode):
    saw, revision = seen(peer, mode)

    def steps(*wanted: tuple[float, float | None, str]) -> list[list[Any]]:
        return [[done, of, None if revision == OLDEST else said] for done, of, said in wanted]

    done = steps((0, 100, "0 of 100"), (50, 100, "50 of 100"), (100, 100, "100 of 100"))
    assert saw["progress of test_tool_with_progress"] == done
    counted = steps((1, None, "3"), (2, None, "2"), (3, None, "1"), (4, None, "lift-off"))
    assert said_before_the_end(counted, saw["progress of countdown"], peer, mode)
    assert text_of(saw["countdown"]) == "lift-off"
    pooled = steps((1, None, "step 1"), (2, None, "step 2"))
    assert said_before_the_end(pooled, saw["progress of in_the_pool"], peer, mode)
    assert text_of(saw["in_the_pool"]) == "step 2"


@pytest.mark.parametrize("peer", [peer for peer, mode in OVER_HTTP if mode == f"http {RESUMING}"])
def test_a_stream_that_breaks_is_resumed(seen, peer):
    """The wire broke in the middle of `countdown`, whose progress and result are nevertheless all there, once."""
    saw, _ = seen(peer, f"http {RESUMING}")
    assert saw["the wire"].split()[1:3] == ["cut", "resumed"]
    assert [step[2] for step in saw["progress of countdown"]] == ["3", "2", "1", "lift-off"]
    assert text_of(saw["countdown"]) == "lift-off"


def said_before_the_end(told: list[Any], heard: list[Any], peer: str, mode: str) -> bool:
    """The TypeScript SDKs forget who wanted progress as soon as they read the answer, which over HTTP+SSE comes in one
    piece with the last of it."""
    may_be_lost = peer.startswith("ts") and mode.startswith("sse")
    return heard == told or (may_be_lost and heard == told[:-1])


@everywhere
def test_log_messages(seen, peer, mode):
    saw, revision = seen(peer, mode)
    assert ("error" in (saw["set level"] or {})) == (revision in MODERN)  # there every request says it, and these did
    words = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert [(each["level"], each["data"]) for each in saw["logs"][:3]] == [("info", said) for said in words]
    [secret] = saw["logs"][3:]
    assert secret == {"level": "warning", "logger": "accounts", "data": {"user": "ada", "password": "[redacted]"}}


# --- questions --------------------------------------------------------------------------------------


@everywhere
def test_sampling_and_roots(seen, peer, mode):
    saw, _ = seen(peer, mode)
    assert text_of(saw["test_sampling"]) == "LLM response: Paris"
    [asked] = saw["asked by test_sampling"]
    assert asked["messages"] == [{"role": "user", "content": {"type": "text", "text": "The capital of France?"}}]
    assert asked["maxTokens"] == 100
    assert text_of(saw["test_input_required_result_list_roots"]) == "Roots: file:///workspace"
    assert saw["asked by test_input_required_result_list_roots"] == [{"roots": True}]


@everywhere
def test_elicitation(seen, peer, mode):
    saw, revision = seen(peer, mode)
    told = {
        "test_elicitation": "User response: test, test",
        "test_input_required_result_multiple_inputs": "Paris test, 1 roots",
        "test_input_required_result_multi_round": "test likes test.",
        "order": "order 1: 3 teas, wrapped",
        "order_parked": "3 teas",
        "order_once": "3 teas",
    }
    if revision in BEFORE_STRUCTURED:
        for name in (*told, "sign_in"):
            assert code_of(saw[name]) == -32601 and "no elicitation/create" in saw[name]["error"]["message"]
            assert not any("message" in asked for asked in saw[f"asked by {name}"])
        return
    assert {name: text_of(saw[name]) for name in told} == told
    assert [asked["message"] for asked in saw["asked by order"]] == ["How many teas?", "As a present?"]  # each once
    assert len(saw["asked by test_input_required_result_multiple_inputs"]) == 3
    [asked] = saw["asked by test_elicitation_sep1034_defaults"]
    fields = asked["requestedSchema"]["properties"]
    assert {name: field["default"] for name, field in fields.items()} == {
        "name": "John Doe",
        "age": 30,
        "score": 95.5,
        "status": "active",
        "verified": True,
    }
    assert "John Doe" in text_of(saw["test_elicitation_sep1034_defaults"])


@pytest.mark.parametrize(("peer", "mode"), [way for way in WAYS if not way[1].endswith(tuple(BEFORE_STRUCTURED))])
def test_choices_of_several_and_pages_where_there_are_such(seen, peer, mode):
    saw, revision = seen(peer, mode)
    if revision in BEFORE_PAGES:
        for name in ("test_elicitation_sep1330_enums", "sign_in"):
            assert code_of(saw[name]) == -32601 and saw[f"asked by {name}"] == []
        return
    chosen = text_of(saw["test_elicitation_sep1330_enums"])
    for name, value in (("untitledMulti", ["option1"]), ("titledMulti", ["value1"]), ("titledSingle", "value1")):
        assert f"{name!r}: {value!r}" in chosen
    [asked] = saw["asked by test_elicitation_sep1330_enums"]
    assert asked["requestedSchema"]["properties"]["legacyEnum"]["enumNames"] == ["Option One", "Option Two"]
    assert text_of(saw["sign_in"]) == "The user agreed to open the page."
    [page] = saw["asked by sign_in"]
    assert (page["mode"], page["url"]) == ("url", "https://example.com/sign-in")


# --- resources, prompts, suggestions ----------------------------------------------------------------


@everywhere
def test_resources_and_templates(seen, peer, mode):
    saw, revision = seen(peer, mode)

    def held(uri: str) -> dict[str, Any]:
        [contents] = saw[uri]["contents"]
        assert contents["uri"] == uri
        return contents

    assert held("test://static-text")["text"] == "This is the content of the static text resource."
    assert base64.b64decode(held("test://static-binary")["blob"]).startswith(b"\x89PNG")
    assert json.loads(held("test://template/123/data")["text"])["id"] == "123"
    for uri, value in (
        ("more://facts", {"true": True}),
        ("more://search?words=m", ["Emma", "Moby Dick"]),
        ("more://labels/a/b", ["a", "b"]),
        ("more://weather/city-007", {"city": "city-007", "degrees": 20.0, "sky": "clear"}),
    ):
        assert json.loads(held(uri)["text"]) == value
    assert held("more://shelf/a/b")["text"] == "a/b"
    assert held("examples:///tour.py")["text"] == (EXAMPLES / "tour.py").read_text()
    missing = saw["more://weather/atlantis"]
    # 2.x of the TypeScript SDK says the number of the stateless era in both
    assert code_of(missing) == (-32602 if revision in MODERN or peer == "ts2" else -32002)
    assert missing["error"]["data"] == {"uri": "more://weather/atlantis"}


@everywhere
def test_prompts(seen, peer, mode):
    saw, revision = seen(peer, mode)
    assert messages_of(saw["test_simple_prompt"])[0]["text"] == "This is a simple prompt for testing."
    [said] = messages_of(saw["test_prompt_with_arguments"])
    assert said["text"] == "Prompt with arguments: arg1='one', arg2='two'"
    assert messages_of(saw["test_prompt_with_embedded_resource"])[0]["resource"]["uri"] == "test://x"
    assert messages_of(saw["test_prompt_with_image"])[0]["mimeType"] == "image/png"
    assert [(each["role"], each["content"]["text"]) for each in saw["recommend"]["messages"]] == [
        ("user", "Recommend a novel by anybody of 2001."),
        ("assistant", "With pleasure."),
    ]
    kinds = [block["type"] for block in messages_of(saw["show"])]
    assert kinds == ["image", "text" if revision == OLDEST else "audio", "resource", "text"]
    if revision in BEFORE_STRUCTURED:
        assert code_of(saw["test_input_required_result_prompt"]) == -32601
    else:
        [greeting] = messages_of(saw["test_input_required_result_prompt"])
        assert greeting["text"] == "Write a greeting. It is about test."


@everywhere
def test_completions(seen, peer, mode):
    saw, _ = seen(peer, mode)
    assert values_of(saw["complete arg1"]) == ["park"] and values_of(saw["complete id"]) == ["12", "123"]
    assert values_of(saw["complete genre"]) == ["drama"]
    assert values_of(saw["complete author"]) == ["Nestroy"]  # these SDKs send the context in every revision
    year, city = saw["complete year"]["completion"], saw["complete city"]["completion"]
    assert (len(year["values"]), year["total"], year["hasMore"]) == (5, 500, True)
    assert (len(city["values"]), city["total"], city["hasMore"]) == (100, 133, True)  # with a 0 somewhere


# --- changes ----------------------------------------------------------------------------------------


@handshake
def test_changes_are_told_to_the_session(seen, peer, mode):
    saw, _ = seen(peer, mode)
    assert "error" not in saw["subscribe"] and "error" not in saw["unsubscribe"]
    changes = [each for each in saw["notices"] if each != "notifications/message"]
    assert changes == [  # one update for two touches: the second came after `unsubscribe`
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
    ]


@stateless
def test_changes_are_told_on_the_listen_stream(seen, peer, mode):
    saw, _ = seen(peer, mode)
    for name in ("test_trigger_tool_change", "test_trigger_prompt_change", "touch"):
        assert saw[f"listened to {name}"] is True
