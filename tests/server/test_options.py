"""server/options.py: words to an author who used a decorator in another library's way."""

import pytest

from interlock import Server
from interlock.server.options import check_options, named_by, prompt_options, resource_options
from interlock.wire.errors import LocalError


def greet(name: str) -> str:
    return name


def test_an_option_that_is_not_there_is_named_with_those_that_are():
    check_options("tool", {"name": 1}, {"name", "title"})
    with pytest.raises(TypeError, match="tool has no option 'tags': it takes name, title"):
        check_options("tool", {"tags": 1}, {"name", "title"})
    with pytest.raises(TypeError, match="did you mean 'title'"):
        check_options("tool", {"tittle": 1}, {"name", "title"})


def test_the_options_of_a_function_are_those_it_takes_by_name():
    def function(a, *, b, c=1, **more): ...

    assert named_by(function) == {"b", "c"}


def test_what_may_be_said_about_prompts_and_resources():
    assert prompt_options() == {"name", "title", "description", "icons", "meta", "complete"}
    assert resource_options() == prompt_options() | {"mime_type", "size", "annotations", "unchecked"}


@pytest.mark.parametrize(
    "make",
    [
        lambda server: Server("other", lifespan=greet),
        lambda server: server.tool(tags={"a"}),
        lambda server: server.tool(threads=1),
        lambda server: server.add_tool(greet, tags={"a"}),
        lambda server: server.prompt(tags={"a"}),
        lambda server: server.add_prompt(greet, tags={"a"}),
        lambda server: server.resource("a:b", tags={"a"}),
        lambda server: server.add_resource("a:b", greet, tags={"a"}),
    ],
)
def test_it_is_told_in_the_words_of_the_author(make):
    with pytest.raises(TypeError, match=r"has no option '(tags|lifespan|threads)'"):
        make(Server("x"))


@pytest.mark.parametrize(
    "make",
    [
        lambda server, meta: server.tool(meta=meta),
        lambda server, meta: server.add_tool(greet, meta=meta),
        lambda server, meta: server.prompt(meta=meta),
        lambda server, meta: server.add_prompt(greet, meta=meta),
        lambda server, meta: server.resource("a:b", meta=meta),
        lambda server, meta: server.add_resource("a:b", lambda: "", meta=meta),
    ],
)
def test_a_key_of_the_protocol_is_refused_at_once(make):
    make(Server("x"), {"com.example/colour": "red"})
    with pytest.raises(LocalError, match=r"io\.modelcontextprotocol/colour"):
        make(Server("x"), {"io.modelcontextprotocol/colour": "red"})


def test_a_resource_without_a_uri_does_not_vanish():
    server = Server("x")
    with pytest.raises(LocalError, match="needs a URI"):
        server.resource(greet)
    with pytest.raises(LocalError, match="needs a URI"):
        server.add_resource(greet, "a:b")


def test_what_is_mounted_is_a_server_under_a_text():
    server = Server("x")
    with pytest.raises(LocalError, match="takes a text and a Server"):
        server.mount(Server("y"), "y")


def test_a_prompt_whose_completion_is_wrong_is_not_there():
    server = Server("x")
    for wrong in ({"nobody": ["a"]}, {"name": "a"}, {"name": list}):
        with pytest.raises(LocalError):
            server.prompt(complete=wrong)(greet)
        with pytest.raises(LocalError):
            server.resource("a://{name}", complete=wrong)(greet)
    server.prompt(complete={"name": ["Ada"]})(greet)
    server.resource("a://{name}", complete={"name": ["Ada"]})(greet)


@pytest.mark.parametrize(
    "facts",
    [
        {"title": 5},
        {"description": b"bytes"},
        {"name": 5},
        {"title": "\ud800"},
        {"meta": [1]},
        {"meta": {5: "x"}},
        {"meta": {"com.example/x": object()}},
        {"meta": {"com.example/x": "\ud800"}},
    ],
    ids=lambda facts: ascii(facts).partition(" at 0x")[0],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda server, facts: server.tool(**facts)(greet),
        lambda server, facts: server.add_tool(greet, **facts),
        lambda server, facts: server.prompt(**facts)(greet),
        lambda server, facts: server.add_resource("a:b", lambda: "", **facts),
    ],
)
def test_a_fact_that_would_break_a_whole_list_is_refused_where_it_is_said(make, facts):
    with pytest.raises(LocalError, match=r"is no|surrogate"):
        make(Server("x"), facts)


@pytest.mark.parametrize("facts", [{"title": 5}, {"instructions": ["a"]}, {"version": 1}, {"name": None, "title": b""}])
def test_what_a_server_says_of_itself_is_text(facts):
    with pytest.raises(LocalError, match="is no text"):
        Server(**{"name": "x", **facts})


@pytest.mark.parametrize("name", ["lifespan", "app_lifespan"])
def test_a_lifespan_is_a_decorator(name):
    with pytest.raises(TypeError, match=rf"Server has no option '{name}': .*@server\.app_lifespan"):
        Server("s", **{name: None})
