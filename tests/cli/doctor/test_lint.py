"""cli/doctor/lint.py: what other clients, hosts and models will stumble over."""

import pytest

from interlock.cli.doctor.lint import Remark, lint_prompts, lint_resources, lint_templates, lint_tools

FINE = {
    "name": "add",
    "description": "Adds.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer", "description": "one"}}},
}


def tools(*changes, **options):
    return list(lint_tools([{**FINE, **change} for change in changes], **options))


def only(remarks):
    [remark] = remarks
    assert remark.todo and remark.where
    return remark.state, remark.said


def schema(**members):
    return {"inputSchema": {"type": "object", **members}}


def test_what_is_fine_is_left_alone():
    assert tools({}, {"name": "two", "outputSchema": {"type": "object"}}) == []
    assert tools({"outputSchema": {"type": "string"}}) == []


@pytest.mark.parametrize(
    ("change", "state", "said"),
    [
        ({"name": "a b"}, "fail", "the name is not one of"),
        ({"name": ""}, "fail", "the name is not one of"),
        ({"name": "a" * 129}, "fail", "the name is not one of"),
        ({"name": "a.b"}, "warn", "models do not take it"),
        ({"name": "a" * 65}, "warn", "over 64"),
        ({"description": " "}, "warn", "no description"),
        ({"description": None}, "warn", "no description"),
        ({"description": "x" * 1025}, "warn", "1,025 characters"),
        ({"description": "kind\U000e0041\u200b"}, "warn", "2 characters in its description that nobody sees"),
        ({"inputSchema": None}, "fail", "not of type object"),
        ({"inputSchema": {}}, "fail", "not of type object"),
        ({"inputSchema": {"type": "string"}}, "fail", "not of type object"),
        (schema(properties={"a": {"type": "strin", "description": "x"}}), "fail", "no usable JSON Schema"),
        (schema(properties={"a": {"$ref": "https://x.example/s", "description": "x"}}), "fail", "inputSchema"),
        (schema(**{"$schema": "https://x.example/dialect"}), "fail", "dialect"),
        (schema(anyOf=[{"required": ["a"]}]), "warn", "anyOf at the top"),
        (schema(properties={"a": {"type": "integer"}}), "warn", "no description of a"),
        (schema(required=["b"]), "warn", "'b' is required and not among the properties"),
        (schema(properties={"a b": {"description": "x"}}), "warn", "'a b' has a name that models do not take"),
        (schema(properties={"a": {"type": "array", "description": "x"}}), "warn", "does not say of what"),
        (
            schema(properties={f"a{n}": {"type": "integer", "description": "x"} for n in range(101)}),
            "warn",
            "101 arguments",
        ),
        ({"outputSchema": "x"}, "fail", "its outputSchema: it is no object"),
        ({"outputSchema": {"type": 5}}, "fail", "its outputSchema"),
        ({"annotations": {"readOnlyHint": True, "destructiveHint": True}}, "warn", "both readOnlyHint"),
    ],
)
def test_each_mistake_is_named(change, state, said):
    found, told = only(tools(change))
    assert found == state and said in told and told.isprintable()


def test_a_result_that_is_no_object_is_a_fault_where_the_revision_says_so():
    state, told = only(tools({"outputSchema": {"type": "string"}}, objects_only=True))
    assert state == "fail" and "which this revision wants" in told


def test_two_of_one_name_are_a_fault():
    state, told = only(tools({}, {}))
    assert state == "fail" and told.startswith("2 tools have this name")


def test_too_many_tools_are_said_once():
    state, told = only(tools(*({"name": f"t{n}"} for n in range(101))))
    assert state == "warn" and told.startswith("101 tools")


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, {"name": 3, "inputSchema": [], "annotations": 1}])
def test_anything_may_stand_in_a_list(junk):
    for lint in (lint_tools, lint_prompts, lint_resources, lint_templates):
        assert all(isinstance(remark, Remark) for remark in lint([junk]))


def test_nothing_that_is_said_moves_a_cursor():
    hostile = "\x1b[2J"
    tool = {**FINE, "name": hostile, "inputSchema": {"type": "object", "properties": {hostile: {"type": hostile}}}}
    for remark in (
        *lint_tools([tool]),
        *lint_resources([{"uri": hostile}]),
        *lint_templates([{"uriTemplate": "{\x1b"}]),
    ):
        assert remark.said.isprintable() and remark.where.isprintable()


def test_prompts_have_descriptions_and_names_of_their_own():
    said = [remark.said for remark in lint_prompts([{"name": "a"}, {"name": "a", "description": "x"}])]
    assert said == ["2 prompts have this name: which one is meant nobody can say", "no description"]
    twice = {"name": "p", "description": "x", "arguments": [{"name": "q"}, {"name": "q"}]}
    assert [remark.where for remark in lint_prompts([twice])] == ["p(q)"]


def test_resources_have_uris_of_their_own():
    assert not list(lint_resources([{"uri": "note://1"}, {"uri": "file:///x"}]))
    assert only(lint_resources([{"uri": "/just/a/path"}])) == ("fail", "this is no URI: it has no scheme")
    assert "2 resources" in only(lint_resources([{"uri": "a:b"}, {"uri": "a:b"}]))[1]


def test_templates_are_templates():
    assert not list(lint_templates([{"uriTemplate": "note://{day}{?x*}"}]))
    state, told = only(lint_templates([{"uriTemplate": "note://{day"}]))
    assert state == "fail" and "no URI template" in told
