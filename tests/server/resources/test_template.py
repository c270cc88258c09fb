"""server/resources/template.py: one function for all resources of a shape."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import pytest
from msgspec import UNSET

from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.resources.template import RegisteredTemplate
from interlock.wire.errors import LocalError
from support.doubles import Spoken


def template(uri, function, **facts):
    return RegisteredTemplate(uri, function, threads=Threads(2), **facts)


async def read(registered, uri):
    arguments = registered.arguments(uri)
    return await registered.read(uri, arguments, Spoken("resources/read", None))


def test_a_template_says_what_it_is():
    async def note(id: str, ctx: Context):
        """One note."""

    registered = template("note://{id}", note, title="T", mime_type="text/plain", meta={"a": 1})
    noun = registered.noun
    assert (noun.uri_template, noun.name, noun.title, noun.description) == ("note://{id}", "note", "T", "One note.")
    assert (noun.mime_type, noun.meta) == ("text/plain", {"a": 1})
    assert registered.takes_context and registered.names == ("id",)


def test_what_is_not_said_is_left_out():
    async def note(id: str): ...

    noun = template("note://{id}", note, name="N").noun
    assert (noun.name, noun.title, noun.description, noun.mime_type, noun.meta) == ("N", UNSET, UNSET, UNSET, UNSET)


async def test_contents_carry_the_uri_that_was_asked_for():
    async def note(id: str):
        return f"note {id}"

    [contents] = await read(template("note://{id}", note, mime_type="text/x"), "note://a%20b")
    assert (contents.uri, contents.text, contents.mime_type) == ("note://a%20b", "note a b", "text/x")


async def test_a_plain_function_works_and_bytes_are_a_blob():
    def picture(id: int):
        return bytes([id])

    [contents] = await read(template("picture://{id}", picture), "picture://7")
    assert (contents.blob, contents.mime_type) == ("Bw==", "application/octet-stream")


async def test_the_context_is_handed_over():
    async def note(ctx: Context, id: str):
        await ctx.exchange.notify("said", {"id": id})
        return ""

    registered, exchange = template("note://{id}", note), Spoken("resources/read", None)
    await registered.read("note://1", registered.arguments("note://1"), exchange)
    assert exchange.told == [("said", {"id": "1"})]


def test_types_are_those_of_the_function():
    async def find(n: int, kind: Literal["a", "b"], deep: bool = False, near: float | None = None): ...

    registered = template("f:{n}/{kind}{?deep,near}", find)
    assert registered.arguments("f:7/a") == {"n": 7, "kind": "a", "deep": False, "near": None}
    assert registered.arguments("f:7/b?deep=true&near=1.5") == {"n": 7, "kind": "b", "deep": True, "near": 1.5}


@pytest.mark.parametrize("uri", ["f:x/a", "f:7/c", "f:7/a?deep=maybe", "f:7", "g:7/a", "f:1.5/a"])
def test_a_value_of_another_type_is_no_resource_of_this_template(uri):
    async def find(n: int, kind: Literal["a", "b"], deep: bool = False): ...

    assert template("f:{n}/{kind}{?deep}", find).arguments(uri) is None


def test_text_stays_text():
    async def note(id: str, more: str | None = None): ...

    registered = template("n:{id}{?more}", note)
    assert registered.arguments("n:007?more=null") == {"id": "007", "more": "null"}


def test_the_function_takes_the_variables_and_nothing_else():
    async def nothing(): ...
    async def other(name: str): ...
    async def more(id: str, name: str = ""): ...

    for function in (nothing, other, more):
        with pytest.raises(LocalError, match="differ"):
            template("note://{id}", function)


def test_what_may_be_absent_needs_a_default():
    async def find(text: str): ...

    with pytest.raises(LocalError, match="default"):
        template("find:{?text}", find)


# --- several values ---


@pytest.mark.parametrize(
    ("hint", "value"),
    [(list[str], ["1", "2"]), (list[int], [1, 2]), (tuple[int, ...], (1, 2)), (str, "1/2"), (str | None, "1/2")],
)
def test_a_path_comes_as_a_list_or_as_a_text(hint, value):
    async def tree(path): ...

    tree.__annotations__["path"] = hint
    assert template("t:x{/path*}", tree).arguments("t:x/1/2") == {"path": value}


def test_a_path_may_be_absent():
    async def tree(path: str = "top"): ...
    async def strict(path: str): ...

    assert template("t:x{/path*}", tree).arguments("t:x") == {"path": "top"}
    assert template("t:x{/path*}", strict).arguments("t:x") is None


@pytest.mark.parametrize("uri", ["t:{ids*}", "t:x{?ids*}", "t:x{.ids*}"])
def test_other_lists_are_lists(uri):
    async def good(ids: list[int] = []): ...  # noqa: B006 - each call gets its own
    async def bad(ids: str = ""): ...

    assert template(uri, good).template.many == {"ids"}
    with pytest.raises(LocalError, match="make the parameter a list"):
        template(uri, bad)


@pytest.mark.parametrize("uri", ["t:x{;p}", "t:x{?p}", "t:x?y{&p}", "t:x{#p}"])
def test_every_kind_that_may_be_absent_needs_a_default(uri):
    async def needs(p: str): ...
    async def has(p: str = ""): ...

    with pytest.raises(LocalError, match="default"):
        template(uri, needs)
    assert template(uri, has).arguments(uri.partition("{")[0]) == {"p": ""}


# --- what else can be said ---


def test_a_template_has_no_size_of_its_own():
    async def note(id: str): ...

    with pytest.raises(LocalError, match="size"):
        template("note://{id}", note, size=3)


def test_a_completion_is_for_a_variable():
    async def note(id: str): ...

    assert template("note://{id}", note, complete={"id": ["a"]}).complete == {"id": ["a"]}
    with pytest.raises(LocalError, match="no variable other"):
        template("note://{id}", note, complete={"other": ["a"]})


def test_what_is_declared_may_hold_anything():
    async def file(path: str): ...

    assert template("file://{+path}", file).arguments("file:///etc/passwd") is None
    assert template("file://{+path}", file, unchecked=("path",)).arguments("file:///etc/passwd") == {
        "path": "/etc/passwd"
    }
    with pytest.raises(LocalError, match="no variable"):
        template("file://{+path}", file, unchecked=("other",))


# --- paths ---


@pytest.mark.parametrize("hint", [Path, PurePosixPath, Path | None, Annotated[Path, "where"]])
@pytest.mark.parametrize(
    ("uri", "asked"), [("t:x{?p}", "t:x?p="), ("t:{p}", "t:"), ("t:x{#p}", "t:x#"), ("t:x{;p}", "t:x;p=")]
)
def test_what_is_taken_as_a_path_does_not_climb(hint, uri, asked):
    async def file(p=None): ...

    file.__annotations__["p"] = hint
    registered = template(uri, file)
    assert str(registered.arguments(asked + "a.txt")["p"]) == "a.txt"
    assert isinstance(registered.arguments(asked + "a.txt")["p"], PurePosixPath)
    for value in ("..", "%2e%2e", "..%2Fx", "%2Fetc", "a%5Cb", "C%3A", "%252e%252e", "a%2F..%2Fb", "a%00"):
        assert registered.arguments(asked + value) is None, value
    if "{p}" not in uri:
        assert str(registered.arguments(asked + "a/b")["p"]) == "a/b"
        assert registered.arguments(asked) is None  # no path at all


def test_a_list_of_paths_does_not_climb():
    async def several(p: list[Path]): ...
    async def whole(p: Path): ...

    assert template("t:x{/p*}", several).arguments("t:x/a/b") == {"p": [Path("a"), Path("b")]}
    assert template("t:x{/p*}", whole).arguments("t:x/a/b") == {"p": Path("a/b")}

    async def queried(p: list[Path] = []): ...  # noqa: B006 - each call gets its own

    registered = template("t:x{?p*}", queried)
    assert registered.arguments("t:x?p=a/b&p=c") == {"p": [Path("a/b"), Path("c")]}
    assert registered.arguments("t:x?p=a/b&p=../c") is None


def test_a_path_that_is_declared_may_be_any():
    async def file(p: Path = Path()): ...

    assert template("t:x{?p}", file, unchecked=("p",)).arguments("t:x?p=/etc/../x") == {"p": Path("/etc/../x")}
