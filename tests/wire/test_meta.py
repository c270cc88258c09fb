"""wire/meta.py: the grammar of keys against a parser written apart from it, and what a request says there."""

import string

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock.wire import meta
from interlock.wire.errors import LocalError
from interlock.wire.meta import (
    NO_META,
    TRACE_KEYS,
    RequestMeta,
    check_author_keys,
    check_capabilities,
    check_extension_ids,
    is_reserved_key,
    is_valid_key,
)
from support.properties import many

# --- the grammar (basic/index#meta), read by hand ---

LETTERS = set(string.ascii_letters)
ALNUM = LETTERS | set(string.digits)


def label_is_valid(label: str) -> bool:
    """Starts with a letter, ends with a letter or digit, hyphens only inside."""
    if not label or label[0] not in LETTERS or label[-1] not in ALNUM:
        return False
    return all(character in ALNUM or character == "-" for character in label)


def name_is_valid(name: str) -> bool:
    """Empty, or alphanumeric at both ends with `-`, `_`, `.` inside."""
    if not name:
        return True
    if name[0] not in ALNUM or name[-1] not in ALNUM:
        return False
    return all(character in ALNUM or character in "-_." for character in name)


def key_is_valid(key: str) -> bool:
    if not key or key.count("/") > 1:
        return False
    if "/" not in key:
        return name_is_valid(key)
    prefix, name = key.split("/")
    return all(label_is_valid(label) for label in prefix.split(".")) and name_is_valid(name)


KEYS = (
    st.text(st.sampled_from("aZ09-_./ é\n"), max_size=12)
    | st.text(max_size=6)
    | st.builds(
        lambda labels, name: ".".join(labels) + "/" + name,
        st.lists(st.sampled_from(["com", "example", "mcp", "MCP", "a-b", "x9", "modelcontextprotocol", "-", "9a"])),
        st.sampled_from(["", "name", "a.b_c-d", "_a", "a_", "9"]),
    )
)


@pytest.mark.requirement("META-02", "META-03", "META-04", "META-05", "META-016", "META-019", "META-020")
@many(600)
@given(KEYS)
@example("")
@example("/")
@example("/name")
@example("com.example/")
@example("com.example/name\n")
@example("a/b/c")
@example("é")
@example("٣")
def test_a_key_is_valid_by_the_grammar(key):
    assert is_valid_key(key) == key_is_valid(key)


@pytest.mark.requirement("META-07", "META-08", "META-018")
@pytest.mark.parametrize(
    "key",
    [
        "progressToken",
        "traceparent",
        "tracestate",
        "baggage",
        "io.modelcontextprotocol/anything",
        "dev.mcp/anything",
        "org.modelcontextprotocol.api/x",
        "com.mcp.tools/x",
        "modelcontextprotocol.io/x",
        "mcp.dev/x",
        "COM.MCP/x",
        "a.b.mcp.c/x",
    ],
)
def test_reserved_keys(key):
    assert is_reserved_key(key)


@pytest.mark.parametrize(
    "key",
    ["name", "com.example/x", "com.example.mcp/x", "mcp/x", "com.mcpx/x", "mcp", "com.example/mcp", "progresstoken"],
)
def test_free_keys(key):
    # `com.example.mcp/` is the specification's own example of a prefix that is not reserved.
    assert not is_reserved_key(key)


def test_every_key_of_ours_is_valid_and_the_official_ones_are_reserved():
    ours = [getattr(meta, name) for name in meta.__all__ if name.isupper() and isinstance(getattr(meta, name), str)]
    official = [key for key in ours if not key.startswith("dev.interlock/")]
    assert len(official) == 6 and len(ours) == 8
    for key in ours:
        assert is_valid_key(key) and is_reserved_key(key) == (key in official)


def test_an_author_may_set_keys_of_their_own():
    check_author_keys(None)
    check_author_keys({})
    check_author_keys({"com.example/a": 1, "plain": None})


@pytest.mark.requirement("META-02", "META-03", "META-04", "META-07", "META-08", "META-018")
@pytest.mark.parametrize("key", ["", "a b", "-a", "com..example/x", "progressToken", "io.modelcontextprotocol/x"])
def test_an_author_may_not_set_others(key):
    with pytest.raises(LocalError, match="_meta key"):
        check_author_keys({"com.example/fine": 1, key: 1})


@pytest.mark.parametrize("key", TRACE_KEYS)
def test_a_caller_may_pass_on_its_trace(key):
    check_author_keys({key: "x"}, trace=True)
    with pytest.raises(LocalError):
        check_author_keys({key: "x"})
    with pytest.raises(LocalError):
        check_author_keys({"progressToken": 1}, trace=True)


def test_extension_identifiers_have_a_prefix():
    check_extension_ids(["com.example/a", "io.modelcontextprotocol/tasks"])


@pytest.mark.parametrize("id", ["", "name", "/name", "com.example/", "com example/x", "a/b/c"])
def test_other_extension_identifiers_are_refused(id):
    with pytest.raises(LocalError, match="extension identifier"):
        check_extension_ids(["com.example/fine", id])


# --- what a request says ---

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def read(text: bytes) -> RequestMeta:
    return msgspec.json.decode(text, type=RequestMeta)


def test_an_envelope_is_read():
    found = read(
        b'{"io.modelcontextprotocol/protocolVersion":"v","io.modelcontextprotocol/clientCapabilities":{"roots":{}},'
        b'"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/logLevel":"info",'
        b'"progressToken":7,"com.example/other":1}'
    )
    assert (found.version, found.log_level, found.progress_token) == ("v", "info", 7)
    assert found.capabilities.can("roots")
    assert found.client.name == "n"


def test_nothing_said_is_nothing_known():
    for found in (read(b"{}"), NO_META):
        assert found.version is UNSET and found.capabilities is UNSET and found.progress_token is UNSET
        assert found.trace() == {}


def test_the_trace_context_is_passed_on_as_it_came():
    sent = {"traceparent": TRACE, "tracestate": "x=1", "baggage": "b=2", "other": "c"}
    assert read(msgspec.json.encode(sent)).trace() == {
        "traceparent": TRACE,
        "tracestate": "x=1",
        "baggage": "b=2",
    }


def test_a_malformed_trace_context_is_dropped_and_harms_nothing():
    assert read(b'{"traceparent":7,"tracestate":null,"baggage":"b=2"}').trace() == {"baggage": "b=2"}


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00-a",
        TRACE.upper(),
        TRACE + "-more",
        TRACE + "\n",
        "ff" + TRACE[2:],
        TRACE.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        TRACE.replace("b7ad6b7169203331", "0" * 16),
        TRACE[:-1],
        7,
    ],
)
def test_a_trace_that_is_not_well_formed_is_none_and_its_state_goes_with_it(parent):
    # W3C Trace Context §3.2: a vendor that cannot read traceparent must not read tracestate either.
    sent = {"traceparent": parent, "tracestate": "x=1", "baggage": "b=2"}
    assert read(msgspec.json.encode(sent)).trace() == {"baggage": "b=2"}


def test_a_trace_of_a_later_version_may_say_more():
    later = "01" + TRACE[2:] + "-more"
    assert read(msgspec.json.encode({"traceparent": later})).trace() == {"traceparent": later}


def test_a_state_without_a_trace_is_none():
    assert read(b'{"tracestate":"x=1"}').trace() == {}


@pytest.mark.parametrize("token", [b"1.5", b"null", b"true", b"[]", b"{}"])
def test_a_progress_token_is_a_string_or_an_integer(token):
    with pytest.raises(msgspec.ValidationError):
        read(b'{"progressToken":%s}' % token)


@pytest.mark.parametrize("settings", [True, None, [], "on", 1])
@pytest.mark.parametrize("option", ["experimental", "extensions"])
def test_a_capability_is_an_object(option, settings):
    given = {"experimental": {"a": {}}, "extensions": {"com.example/a": {}}}
    check_capabilities(**given)
    with pytest.raises(LocalError, match=rf"{option}: 'com.example/b' is .*, but a capability is an object"):
        check_capabilities(**{**given, option: {"com.example/b": settings}})


@pytest.mark.parametrize("given", [True, ["com.example/b"], "com.example/b"])
@pytest.mark.parametrize("option", ["experimental", "extensions"])
def test_capabilities_are_a_mapping(option, given):
    with pytest.raises(LocalError, match=rf"{option}=.* is not a mapping: .* write {option}="):
        check_capabilities(**{"experimental": None, "extensions": None, option: given})
