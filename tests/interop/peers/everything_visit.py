"""What both clients of the official Python SDK do with examples/everything.py: all they can. Told by saw.py.

The SDKs 1.x and 2.x call their verbs alike; where they differ a `Words` says it.
"""

from typing import Any, Protocol

from saw import Saw

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("test_simple_text", {}),
    ("test_image_content", {}),
    ("test_audio_content", {}),
    ("test_embedded_resource", {}),
    ("test_multiple_content_types", {}),
    ("test_error_handling", {}),
    ("test_x_mcp_header", {"region": "Grüße"}),
    ("json_schema_2020_12_tool", {"name": "Ada", "phone": "1", "contactMethod": "phone"}),
    ("test_reconnection", {}),
    ("weather", {"city": "Graz"}),
    ("squares", {"most": 3}),
    ("by_hand", {"city": "Graz"}),
    ("blocks", {}),
    ("markup", {}),
    ("arguments", {"name": "Ada", "address": {"street": "A"}, "born": "1815-12-10", "colours": ["red", "blue"]}),
    ("in_its_own_thread", {"text": "abc"}),
    ("on_the_loop", {"text": "abc"}),
    ("slow", {}),
    ("fails", {"how": "unexpectedly"}),
    ("hidden", {}),
    ("describe", {}),
    ("read_through", {"uri": "more://numbered/7"}),
    ("within", {"path": "/workspace/a"}),
]
ASKING: list[tuple[str, dict[str, Any]]] = [
    ("test_sampling", {"prompt": "The capital of France?"}),
    ("test_elicitation", {"message": "Who?"}),
    ("test_elicitation_sep1034_defaults", {}),
    ("test_elicitation_sep1330_enums", {}),
    ("test_input_required_result_list_roots", {}),
    ("test_input_required_result_multiple_inputs", {}),
    ("test_input_required_result_multi_round", {}),
    ("order", {"what": "teas"}),
    ("order_parked", {"what": "teas"}),
    ("order_once", {"what": "teas"}),
    ("sign_in", {}),
]
READ = [
    "test://static-text",
    "test://static-binary",
    "test://template/123/data",
    "more://facts",
    "more://shelf/a/b",
    "more://search?words=m",
    "more://labels/a/b",
    "more://weather/city-007",
    "examples:///tour.py",
    "more://weather/atlantis",
]
GOT: list[tuple[str, dict[str, str] | None]] = [
    ("test_simple_prompt", None),
    ("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"}),
    ("test_prompt_with_embedded_resource", {"resourceUri": "test://x"}),
    ("test_prompt_with_image", None),
    ("recommend", {"genre": "novel", "year": "2001"}),
    ("show", None),
    ("test_input_required_result_prompt", None),
]
SAMPLES = {"string": "test", "boolean": True, "integer": 3, "number": 1.5}


class Words(Protocol):
    def prompt(self, name: str) -> Any: ...
    def template(self, uri: str) -> Any: ...


def filled(asked: dict[str, Any]) -> dict[str, Any]:
    """A form as a user would fill it in: what is proposed, else the first choice, else something."""
    return {name: _value(field) for name, field in asked["requestedSchema"]["properties"].items()}


def _value(field: dict[str, Any]) -> Any:
    if field["type"] == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    return field.get("default", field.get("enum", [SAMPLES[field["type"]]])[0])


async def visit(client: Any, saw: Saw, words: Words) -> None:
    for part in (lists, calls, speaking, asked, reads, prompts, completions):
        await part(client, saw, words)


async def lists(client: Any, saw: Saw, words: Words) -> None:
    for name, method in (
        ("tools", client.list_tools),
        ("prompts", client.list_prompts),
        ("templates", client.list_resource_templates),
    ):
        await saw.step(name, method())
    pages, cursor = [], None
    while True:
        page = await saw.step("page", client.list_resources(cursor=cursor))
        pages.append([str(resource.uri) for resource in page.resources])
        facts = [resource for resource in page.resources if str(resource.uri) == "more://facts"]
        if facts:
            saw.note("facts", facts[0])
        cursor = saw.record["page"].get("nextCursor")
        if cursor is None:
            break
    saw.note("pages", pages)


async def calls(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in TOOLS:
        await saw.step(name, client.call_tool(name, arguments))


async def speaking(client: Any, saw: Saw, words: Words) -> None:
    steps: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])

    for name in ("test_tool_with_progress", "countdown", "in_the_pool"):
        await saw.step(name, client.call_tool(name, {}, progress_callback=on_progress))
        saw.note(f"progress of {name}", list(steps))
        steps.clear()
    await saw.step("set level", client.set_logging_level("debug"))
    for name in ("test_tool_with_logging", "tell_secrets"):
        await saw.step(name, client.call_tool(name, {}))


async def asked(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in ASKING:
        before = len(saw.asked)
        await saw.step(name, client.call_tool(name, arguments))
        saw.note(f"asked by {name}", saw.asked[before:])


async def reads(client: Any, saw: Saw, words: Words) -> None:
    for uri in READ:
        await saw.step(uri, client.read_resource(uri))


async def prompts(client: Any, saw: Saw, words: Words) -> None:
    for name, arguments in GOT:
        await saw.step(name, client.get_prompt(name, arguments))


async def completions(client: Any, saw: Saw, words: Words) -> None:
    recommend, weather = words.prompt("recommend"), words.template("more://weather/{city}")
    for name, ref, argument, value, known in (
        ("arg1", words.prompt("test_prompt_with_arguments"), "arg1", "park", None),
        ("id", words.template("test://template/{id}/data"), "id", "12", None),
        ("genre", recommend, "genre", "dr", None),
        ("author", recommend, "author", "", {"genre": "drama"}),
        ("year", recommend, "year", "200", None),
        ("city", weather, "city", "city-0", None),
    ):
        await saw.step(f"complete {name}", client.complete(ref, {"name": argument, "value": value}, known))
