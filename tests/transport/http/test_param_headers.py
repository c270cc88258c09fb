"""transport/http/param_headers.py: which parameters are said again in headers, and whether they say the same."""

import pytest

from interlock.transport.http.param_headers import ParamHeader, check_param_headers, headers_of, read_param_headers
from interlock.wire.errors import HeaderMismatch, LocalError


def schema(**properties):
    return {"type": "object", "properties": properties}


def param(name, kind="string"):
    return {"type": kind, "x-mcp-header": name}


NESTED = schema(
    region=param("Region"),
    count=param("Count", "integer"),
    dry={"type": "boolean", "x-mcp-header": "Dry"},
    inner={"type": "object", "properties": {"deep": param("Deep")}},
    plain={"type": "string"},
)
FOUND = read_param_headers(NESTED)


def test_the_annotated_are_found_wherever_properties_lead():
    assert (
        ParamHeader("Region", "string", ("region",)),
        ParamHeader("Count", "integer", ("count",)),
        ParamHeader("Dry", "boolean", ("dry",)),
        ParamHeader("Deep", "string", ("inner", "deep")),
    ) == FOUND


def test_a_property_may_have_the_annotations_name():
    named = {"type": "object", "properties": {"x-mcp-header": {"type": "string"}, "properties": param("P")}}
    assert read_param_headers(named) == (ParamHeader("P", "string", ("properties",)),)


@pytest.mark.parametrize("odd", [{}, {"properties": None}, {"properties": {"a": True}}, {"properties": []}])
def test_schemas_without_any(odd):
    assert read_param_headers(odd) == ()


@pytest.mark.parametrize(
    "broken",
    [
        schema(a=param("")),
        schema(a=param("My Region")),
        schema(a=param("a:b")),
        schema(a=param("Région")),
        schema(a=param("Region\t1")),
        schema(a=param(None)),
        schema(a=param("A", "number")),
        schema(a=param("A", "object")),
        schema(a=param("A", "array")),
        schema(a=param("A", "null")),
        schema(a=param("A", ["string", "null"])),
        schema(a={"x-mcp-header": "A"}),
        schema(a=param("Region"), b=param("REGION")),
        schema(a={"type": "array", "items": param("A")}),
        {"anyOf": [schema(a=param("A"))]},
        {"$defs": {"x": param("A")}},
        {"if": schema(a=param("A"))},
    ],
)
def test_what_breaks_a_rule_is_named(broken):
    with pytest.raises(LocalError, match="x-mcp-header"):
        read_param_headers(broken)


def test_the_headers_of_arguments():
    arguments = {"region": "é", "count": 42, "dry": False, "inner": {"deep": ""}, "plain": "x"}
    said = {
        "Mcp-Param-Region": "=?base64?w6k=?=",
        "Mcp-Param-Count": "42",
        "Mcp-Param-Dry": "false",
        "Mcp-Param-Deep": "",
    }
    assert headers_of(FOUND, arguments) == said
    check_param_headers(FOUND, arguments, {name.lower(): value for name, value in said.items()})


@pytest.mark.requirement("XHDR-017", "XHDR-022")
def test_a_number_that_is_whole_is_an_integer():
    said = headers_of(FOUND, {"count": 42.0})
    assert said == {"Mcp-Param-Count": "42"}
    check_param_headers(FOUND, {"count": 42.0}, {name.lower(): value for name, value in said.items()})


@pytest.mark.parametrize("arguments", [{"count": 4.5}, {"count": float("inf")}, {"count": 2.0**60}])
def test_a_number_that_no_integer_is_has_no_header(arguments):
    assert headers_of(FOUND, arguments) == {}


@pytest.mark.parametrize("arguments", [{}, {"region": None, "inner": None}, {"inner": 7}, {"count": 2**60}])
def test_what_has_no_header(arguments):
    assert headers_of(FOUND, arguments) == {}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"region": ["a"]}, "its argument, region, must be a string"),
        ({"count": 2**60}, r"its argument, count, must be an integer within ±\(2\^53 - 1\)"),
        ({"count": 4.5}, "its argument, count, must be an integer"),
        ({"dry": 0.5}, "its argument, dry, must be true or false"),
        ({"inner": {"deep": {}}}, "its argument, inner.deep, must be a string"),
        ({"region": "a"}, "the argument is said in a header too"),
    ],
)
def test_who_sends_what_no_header_can_say_hears_that_the_argument_is_wrong(arguments, wanted):
    with pytest.raises(HeaderMismatch, match=wanted):
        check_param_headers(FOUND, arguments, {})


def test_nothing_is_expected_for_what_is_absent():
    check_param_headers(FOUND, {"region": None}, {})


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "a"}, {}),
        ({"region": "a"}, {"mcp-param-region": "A"}),
        ({"region": "a"}, {"mcp-param-region": "=?base64?YQ?="}),
        ({"region": "a"}, {"mcp-param-region": "a\x01"}),
        ({"region": None}, {"mcp-param-region": "a"}),
        ({}, {"mcp-param-region": ""}),
        ({"count": 42}, {"mcp-param-count": "43"}),
        ({"count": 42}, {"mcp-param-count": "4.2e1"}),
        ({"count": 42}, {"mcp-param-count": "x"}),
        ({"count": 1000}, {"mcp-param-count": "1_000"}),
        ({"count": 42}, {"mcp-param-count": "+42"}),
        ({"count": 42}, {"mcp-param-count": "42.00000000000000000001"}),
        ({"count": 2**53}, {"mcp-param-count": "9007199254740993.0"}),
        ({"count": 42}, {"mcp-param-count": ""}),
        ({"count": 1}, {"mcp-param-count": "true"}),
        ({"dry": True}, {"mcp-param-dry": "True"}),
        ({"dry": True}, {"mcp-param-dry": "1"}),
        ({"region": ["a"]}, {"mcp-param-region": "a"}),
        ({"region": ["a"]}, {"mcp-param-region": "['a']"}),
    ],
)
def test_what_differs_is_refused(arguments, headers):
    with pytest.raises(HeaderMismatch):
        check_param_headers(FOUND, arguments, headers)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8=?="}),
        ({"region": "=?base64?x"}, {"mcp-param-region": "=?base64?x"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": 42.0}, {"mcp-param-count": "42"}),
        ({"region": "a"}, {"mcp-param-region": " a\t"}),
    ],
)
def test_what_is_the_same_passes(arguments, headers):
    check_param_headers(FOUND, arguments, headers)


def test_a_schema_of_any_depth_is_read():
    deep = param("Deep")
    for _ in range(5000):
        deep = schema(inner=deep)
    assert read_param_headers(deep) == ()
