"""One of everything: what the official conformance suite asks a server for, by the names it expects.

Whatever else an author can say is in everything_more.py, which is mounted here.

interlock run examples/everything.py                        over stdio
interlock run examples/everything.py --http --port 8000     over HTTP
python tools/conformance.py                                 the suite against it

The first tool of the list needs no arguments and answers at once: the suite calls it to probe headers.
"""

import asyncio
import base64
from typing import Annotated, Any, Literal

import everything_more
import msgspec
from everything_more import red_dot, short_silence

from interlock import (
    AudioContent,
    Context,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceContents,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
)

server = Server(
    "everything",
    version="1.0",
    title="One of everything",
    description="What a server can offer, each once",
    icons=[everything_more.ICON],
    website_url="https://example.com/everything",
    instructions="One of everything, for tests.",
    page_size=100,  # the suite reads one page of each list: all tools are on the first, of the resources not all
)


PICTURE = ImageContent(data=base64.b64encode(red_dot()).decode(), mime_type="image/png")
SOUND = AudioContent(data=base64.b64encode(short_silence()).decode(), mime_type="audio/wav")


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=ResourceContents(uri=uri, mime_type=mime_type, text=text))


# --- tools that return -----------------------------------------------------------------------------


@server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
async def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> ImageContent:
    """Return a picture."""
    return PICTURE


@server.tool
async def test_audio_content() -> AudioContent:
    """Return a sound."""
    return SOUND


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Return a resource inside of the result."""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@server.tool
async def test_multiple_content_types() -> list[Any]:
    """Return a text, a picture and a resource."""
    mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [TextContent(text="Multiple content types test:"), PICTURE, mixed]


@server.tool
async def test_error_handling() -> str:
    """Fail, in words for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_x_mcp_header(
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})] = "",
) -> str:
    """Take an argument that clients repeat in a header, where a proxy can route by it."""
    return f"region: {region or 'none'}"


@server.tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
async def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments whose schema says more than type hints can."""
    return f"name: {arguments.get('name', 'nobody')}"


# --- tools that speak while they work --------------------------------------------------------------


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell three times how far it is."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return "Done."


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times, for clients that listen."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", said)
        await asyncio.sleep(0.05)
    return "Logged."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log once; who set no level hears nothing."""
    await ctx.log("info", "This goes to nobody who did not ask for it")
    return "Logged, if anybody listens."


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let the stream go before the answer is there, where the client may come back for it."""
    await ctx.release_stream(retry_ms=500)
    await asyncio.sleep(0.1)
    return "Still here."


# --- tools that change the lists -------------------------------------------------------------------


async def passing_tool() -> str:
    """Come and go."""
    return "here today"


async def passing_prompt() -> str:
    """Come and go."""
    return "here today"


# Each comes and goes within one call: who listens is told, and several workers list the same before and after.


@server.tool
async def test_trigger_tool_change() -> str:
    """Add a tool, and take it away again."""
    server.tool(passing_tool)
    server.remove_tool("passing_tool")
    return "Added and removed passing_tool."


@server.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt, and take it away again."""
    server.prompt(passing_prompt)
    server.remove_prompt("passing_prompt")
    return "Added and removed passing_prompt."


# --- tools that ask the client ---------------------------------------------------------------------
# The same lines in every revision: an old client is asked while the tool waits, a new one gets the question as a result
# and calls again with the answer. Ask first, act after: what stands before a question may run again.


class UserName(msgspec.Struct):
    name: str


class Colour(msgspec.Struct):
    color: str


class Purpose(msgspec.Struct):
    context: str


class Confirmation(msgspec.Struct):
    ok: bool


class Account(msgspec.Struct):
    username: Annotated[str, msgspec.Meta(description="User's response")]
    email: Annotated[str, msgspec.Meta(description="User's email address")]


class Profile(msgspec.Struct):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


TITLED = [{"const": f"value{number}", "title": f"{word} Option"} for number, word in ((1, "First"), (2, "Second"))]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100, key='prompt')).text}"


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user for an account."""
    account = await ctx.elicit(message, Account, key="account")
    return f"User response: {account.username}, {account.email}"


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default for every kind of field."""
    profile = await ctx.elicit("Please review and update the form fields with defaults", Profile, key="profile")
    return f"Elicitation completed: {profile}"


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with every kind of choice."""
    chosen = await ctx.elicit("Please select options from the enum fields", ENUMS, key="choices")
    return f"Elicitation completed: {chosen}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need a model; a client without one is told so by the library."""
    return (await ctx.sample("Say hello.", max_tokens=10, key="hello")).text


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user, never on the stream of the answer."""
    return f"ok: {(await ctx.elicit('Go on?', Confirmation, key='confirm')).ok}"


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask the user for a name."""
    return f"Hello, {(await ctx.elicit('What is your name?', UserName, key='user_name')).name}!"


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model a question."""
    answer = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return f"The model says: {answer.text}"


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask the client where it works."""
    return "Roots: " + ", ".join(root.uri for root in await ctx.roots(key="client_roots"))


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask once; what is remembered between both calls is sealed."""
    confirmed = await ctx.elicit("Please confirm.", Confirmation, key="confirm")
    return f"state-ok: {confirmed.ok}"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three things at once."""
    user, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", UserName, key="user_name"),
        ctx.sample("Generate a greeting.", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{greeting.text} {user.name}, {len(roots)} roots"


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask, then ask again."""
    first = await ctx.elicit("Step 1: what is your name?", UserName, key="step1")
    second = await ctx.elicit(f"Step 2: {first.name}, what is your favourite colour?", Colour, key="step2")
    return f"{first.name} likes {second.color}."


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask once; state that somebody changed is refused by the library."""
    return f"ok: {(await ctx.elicit('Please confirm.', Confirmation, key='confirm')).ok}"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what this client can answer."""
    heard: list[str] = []
    if ctx.client.can("elicitation"):
        heard.append((await ctx.elicit("What is your name?", UserName, key="user_name")).name)
    if ctx.client.can("sampling"):
        heard.append((await ctx.sample("Say hello.", max_tokens=50, key="greeting")).text)
    return ", ".join(heard) or "There is nobody to ask."


# --- resources -------------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """A picture that never changes."""
    return red_dot()


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched() -> str:
    """A text worth subscribing to."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# --- prompts ---------------------------------------------------------------------------------------


@server.prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(
    arg1: Annotated[str, msgspec.Meta(description="First test argument")],
    arg2: Annotated[str, msgspec.Meta(description="Second test argument")],
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion(prompt="test_prompt_with_arguments", argument="arg1")
async def complete_arg1(value: str) -> list[str]:
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


@server.completion(template="test://template/{id}/data", argument="id")
async def complete_id(value: str) -> list[str]:
    return [number for number in ("1", "12", "123") if number.startswith(value)]


@server.prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt that brings a resource along."""
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [resource, "Please process the embedded resource above."]


@server.prompt
async def test_prompt_with_image() -> list[Any]:
    """A prompt that shows a picture."""
    return [PromptMessage(role="user", content=PICTURE), "Please analyze the image above."]


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks the user before it answers."""
    chosen = await ctx.elicit("What is it about?", Purpose, key="user_context")
    return f"Write a greeting. It is about {chosen.context}."


server.mount("", everything_more.server)

if __name__ == "__main__":
    server.run()
