"""server/prompts.py: a function of strings that gives messages."""

import dataclasses
import functools
import pathlib
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import UNSET

from interlock.server.content import File, Image
from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.prompts import RegisteredPrompt
from interlock.wire.errors import InternalError, InvalidParams, LocalError, Refused, ToolError
from interlock.wire.types.common import Icon
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


def test_what_a_docstring_says_of_arguments_goes_to_them():
    async def greet(name: str):
        """A greeting.

        Args:
            name: Whom to greet.
        """

    noun = prompt(functools.partial(greet), name="greet").noun
    assert noun.description == "A greeting."
    assert noun.arguments[0].description == "Whom to greet."


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
            [{"role": "assistant", "content": TextContent(text="x")}],
        ),
        (PromptMessage(role="user", content="y"), [user("y")]),
        (("a", "é"), [user("a"), user("é")]),
        ([], []),
        ({"role": "assistant", "content": "x"}, [{"role": "assistant", "content": {"type": "text", "text": "x"}}]),
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


async def test_a_wrong_argument_is_told_with_its_choices():
    async def pick(kind: Literal["road", "city"], most: int = 1): ...

    with pytest.raises(InvalidParams) as caught:
        await get(prompt(pick), kind="raod")
    assert "kind: Invalid enum value 'raod'; expected one of" in caught.value.message
    assert '"road"' in caught.value.message and '"city"' in caught.value.message
    with pytest.raises(InvalidParams, match=r"most: .*expected an integer"):
        await get(prompt(pick), kind="road", most="many")


def odd_message():
    """A message whose role was changed after it was made."""
    message = PromptMessage(role="user", content="x")
    message.role = "narrator"
    return message


@pytest.mark.parametrize(
    "value",
    [
        {"role": "narrator", "content": "x"},
        {"content": "x"},
        {"role": "user"},
        {"role": "user", "content": {}},
        {"role": "user", "content": ["a"]},
        {"role": "user", "content": {"type": "video", "data": "AA=="}},
        odd_message(),
        7,
        None,
        [None],
        "\ud800",
        TextContent(text=7),
        ImageContent(data="no base64!", mime_type="image/png"),
        ImageContent(data="AA==", mime_type="picture"),
        EmbeddedResource(resource=ResourceContents(uri="no uri", text="x", mime_type="text/plain")),
        EmbeddedResource(resource=ResourceContents(uri="a:b", text="x")),
    ],
)
async def test_a_message_of_the_wrong_shape_is_a_bug_of_the_author(value, caplog):
    async def odd():
        return value

    with pytest.raises(
        InternalError, match=r"^The prompt odd failed unexpectedly \(reference [0-9a-f]{8}\)$"
    ) as caught:
        await get(prompt(odd))
    assert caught.value.message.rpartition(" ")[2].rstrip(")") in caplog.messages[0]


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_a_bug_is_told_by_a_reference(error, caplog):
    async def fails():
        raise error

    with pytest.raises(InternalError, match="reference") as caught:
        await get(prompt(fails))
    assert "secret" not in caught.value.message and caplog.records[0].exc_info[1] is error


async def test_words_meant_for_the_other_side_reach_it():
    async def fails():
        raise ToolError("no such language")

    with pytest.raises(InternalError, match=r"^no such language$"):
        await get(prompt(fails))


async def test_a_refusal_is_an_answer_of_the_protocol():
    async def refuses():
        raise Refused("no", code=5)

    with pytest.raises(Refused, match="no"):
        await get(prompt(refuses))


def test_icons_are_listed_and_checked():
    async def plain(): ...

    icon = Icon(src="data:image/png;base64,AAAA")
    assert prompt(plain, icons=[icon]).noun.icons == [icon]
    with pytest.raises(LocalError, match="plain: the icon"):
        prompt(plain, icons=[Icon(src="javascript:alert(1)")])


async def test_helpers_are_content_too():
    async def look():
        return [Image(b"\x89PNG\r\n\x1a\n"), {"role": "assistant", "content": File(b"hi", name="a.txt")}]

    first, second = msgspec.to_builtins((await get(prompt(look)))["messages"])
    assert first["content"]["mimeType"] == "image/png"
    assert second["content"]["resource"] == {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hi"}


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


@dataclasses.dataclass
class Range:
    first: int
    last: int = 9


async def test_what_cannot_be_a_text_is_read_as_json():
    async def count(numbers: list[int], within: Range | None = None, words: str = ""):
        return f"{sum(numbers)} {within} {words}"

    registered = prompt(count)
    found = await get(registered, numbers="[1, 2]", within='{"first": 1}', words="[3]")
    assert found["messages"] == [user("3 Range(first=1, last=9) [3]")]
    for wrong in ("1, 2", '{"a": 1}', '["x"]'):
        with pytest.raises(InvalidParams, match="numbers"):
            await get(registered, numbers=wrong)


async def test_messages_hold_any_block():
    picture = ImageContent(data="AA==", mime_type="image/png")
    book = EmbeddedResource(resource=ResourceContents(uri="book://1", text="x", mime_type="text/plain"))

    async def look():
        return [book, PromptMessage(role="assistant", content=picture), "and?"]

    first, second, third = msgspec.to_builtins((await get(prompt(look)))["messages"])
    assert first["role"] == "user" and first["content"]["resource"]["uri"] == "book://1"
    assert second == {"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}
    assert third == user("and?")


def test_a_generator_is_no_prompt():
    async def spoken():
        yield "x"

    with pytest.raises(LocalError, match="cannot be a generator"):
        prompt(spoken)


async def test_a_path_is_a_path():
    async def explain(path: pathlib.Path, more: list[pathlib.Path] = []):  # noqa: B006 - copied for each call
        return path.name

    found = await get(prompt(explain), path="a/b.txt")
    assert found["messages"] == [user("b.txt")]


def test_what_the_docstring_says_of_arguments_stands_with_them_alone():
    async def review(code: str):
        """Review code,

        in two paragraphs.

        Args:
            code: What to review.
        """

    noun = prompt(review).noun
    assert noun.description == "Review code,\n\nin two paragraphs."
    assert noun.arguments[0].description == "What to review."


def test_a_prompt_needs_a_name():
    with pytest.raises(LocalError, match="name="):
        prompt(type("Callable", (), {"__call__": lambda self: "x"})())


async def test_a_refusal_does_not_repeat_all_that_was_sent():
    async def speak(tone: Literal["kind", "rude"]): ...

    with pytest.raises(InvalidParams) as refused:
        await get(prompt(speak), tone="\x1b[2J" + "x" * 100_000)
    assert len(str(refused.value)) < 500 and "\x1b" not in str(refused.value)
