"""server/prompts.py: a function of strings that gives messages."""

from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET

from interlock.server.context import Context
from interlock.server.prompts import RegisteredPrompt
from interlock.server.threads import Threads
from interlock.wire.errors import InvalidParams
from interlock.wire.types.content import EmbeddedResource, ImageContent, ResourceContents, TextContent
from interlock.wire.types.prompts import GetPromptParams, PromptMessage
from support.doubles import Spoken


def prompt(function, **facts):
    return RegisteredPrompt(function, threads=Threads(2), **facts)


async def get(registered, **arguments):
    params = GetPromptParams(name=registered.noun.name, arguments=arguments or UNSET)
    return await registered.get(Spoken("prompts/get", params))


def user(text):
    return {"role": "user", "content": {"type": "text", "text": text}}


def test_a_prompt_says_what_it_takes():
    async def greet(name: str, mood: str = "fine", ctx: Context = None):
        """A greeting."""

    registered = prompt(greet, title="T", meta={"a": 1})
    noun = registered.noun
    assert (noun.name, noun.title, noun.description, noun.meta) == ("greet", "T", "A greeting.", {"a": 1})
    assert [(each.name, each.required) for each in noun.arguments] == [("name", True), ("mood", False)]
    assert registered.takes_context


def test_a_prompt_that_takes_nothing_says_so():
    async def plain(): ...

    noun = prompt(plain, name="other", description="D").noun
    assert (noun.name, noun.description, noun.arguments, noun.title) == ("other", "D", UNSET, UNSET)


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [user("hi")]),
        (["a", "b"], [user("a"), user("b")]),
        (TextContent(text="x"), [{"role": "user", "content": TextContent(text="x")}]),
        (
            {"role": "assistant", "content": {"type": "text", "text": "x"}},
            [PromptMessage(role="assistant", content={"type": "text", "text": "x"})],
        ),
        (PromptMessage(role="user", content={}), [PromptMessage(role="user", content={})]),
        ([], []),
        (
            {"role": "assistant", "content": "x"},
            [PromptMessage(role="assistant", content=TextContent(text="x"))],
        ),
    ],
)
async def test_what_it_returns_becomes_messages(value, messages):
    async def function():
        return value

    assert (await get(prompt(function)))["messages"] == messages


async def test_the_description_goes_with_the_messages():
    async def described():
        """D."""
        return "x"

    async def undescribed():
        return "x"

    assert (await get(prompt(described)))["description"] == "D."
    assert "description" not in await get(prompt(undescribed))


async def test_arguments_are_strings():
    async def greet(name: str, mood: str = "fine"):
        return f"{name} {mood}"

    assert (await get(prompt(greet), name="Ada"))["messages"] == [user("Ada fine")]
    assert (await get(prompt(greet), name="Ada", mood="glad"))["messages"] == [user("Ada glad")]


async def test_a_missing_argument_is_a_wrong_request():
    # -32602 (server/prompts#error-handling)
    async def greet(name: str): ...

    with pytest.raises(InvalidParams, match="name") as caught:
        await get(prompt(greet))
    assert "`" not in caught.value.message


@pytest.mark.parametrize("value", [{"role": "narrator", "content": {}}, {"content": {}}, 7, None])
async def test_a_message_of_the_wrong_shape_is_a_bug_of_the_author(value):
    async def odd():
        return value

    with pytest.raises(msgspec.ValidationError):
        await get(prompt(odd))


async def test_a_plain_function_is_a_prompt_too():
    def plain(name: str):
        return name

    assert (await get(prompt(plain), name="x"))["messages"] == [user("x")]


def test_an_argument_says_what_it_is_for():
    async def greet(name: Annotated[str, msgspec.Meta(title="Name", description="Whom to greet.")], mood: str = ""): ...

    name, mood = prompt(greet).noun.arguments
    assert (name.title, name.description) == ("Name", "Whom to greet.")
    assert (mood.title, mood.description) == (UNSET, UNSET)


async def test_arguments_are_text_and_become_what_the_function_declares():
    async def count(number: int, deep: bool = False):
        return f"{number + 1} {deep}"

    registered = prompt(count)
    assert (await get(registered, number="41", deep="true"))["messages"] == [user("42 True")]
    with pytest.raises(InvalidParams, match="number"):
        await get(registered, number="many")


async def test_messages_hold_any_block():
    picture = ImageContent(data="AA==", mime_type="image/png")
    book = EmbeddedResource(resource=ResourceContents(uri="book://1", text="x", mime_type="text/plain"))

    async def look():
        return [book, PromptMessage(role="assistant", content=picture), "and?"]

    first, second, third = msgspec.to_builtins((await get(prompt(look)))["messages"])
    assert first["role"] == "user" and first["content"]["resource"]["uri"] == "book://1"
    assert second == {"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}
    assert third == user("and?")
