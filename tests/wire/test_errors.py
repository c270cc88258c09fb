"""wire/errors.py: the tree is what its docstring draws, codes and classes are one table."""

import re

import pytest

from interlock.wire import errors
from interlock.wire.errors import (
    CLASS_OF,
    BadFrame,
    CallTimeout,
    ConnectionClosed,
    ConnectionEnded,
    ConnectionLost,
    InterlockError,
    InvalidParams,
    LocalError,
    NoCommonRevision,
    ParseError,
    PeerClosed,
    Refused,
    RemoteError,
    ResourceNotFound,
    ToolError,
    refusal,
)


def drawn_tree() -> dict[str, str | None]:
    """Each class of the docstring's drawing and the one it hangs on."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    (?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+)", line)
        if not found:
            continue
        depth = len(found["lead"])
        while path and path[-1][0] >= depth:
            path.pop()
        parents[found["name"]] = path[-1][1] if path else None
        path.append((depth, found["name"]))
    return parents


def test_the_tree_is_the_one_that_is_drawn():
    drawn = drawn_tree()
    assert drawn["InterlockError"] is None
    classes = {name: getattr(errors, name) for name in errors.__all__ if name[0].isupper()}
    assert set(drawn) == set(classes)
    for name, parent in drawn.items():
        if parent is not None:
            assert classes[parent] in classes[name].__bases__, f"{name} hangs on {parent} in the drawing"


def test_the_drawing_names_the_codes():
    for line in (errors.__doc__ or "").splitlines():
        found = re.search(r"(\w+)\s+(-32\d+)", line)
        if found:
            assert getattr(errors, found[1]).code == int(found[2])


def test_a_code_stands_for_one_class():
    subclasses = [kind for kind in Refused.__subclasses__() if kind.standard is not None]
    assert len({kind.standard for kind in subclasses}) == len(subclasses) == len(CLASS_OF)
    for code, kind in CLASS_OF.items():
        assert kind.code == kind.standard == code


@pytest.mark.parametrize("code", list(CLASS_OF))
def test_a_known_code_becomes_its_class(code):
    found = refusal(code, "no", {"a": 1})
    assert type(found) is CLASS_OF[code]
    assert (found.code, found.message, found.data, str(found)) == (code, "no", {"a": 1}, "no")


@pytest.mark.parametrize("code", [-1, 0, 7, -32000, -32099, 10**30])
def test_an_unknown_code_stays_what_it_is(code):
    found = refusal(code, "no")
    assert type(found) is Refused
    assert (found.code, found.data) == (code, None)


def test_a_revision_may_have_its_own_classes():
    found = refusal(-32002, "gone", {"uri": "a:b"}, {-32002: ResourceNotFound})
    assert isinstance(found, ResourceNotFound)
    assert (found.code, found.uri) == (-32002, "a:b")
    assert type(refusal(-32602, "no", classes={})) is Refused


def test_a_resource_that_is_not_found_names_its_uri_when_told():
    assert ResourceNotFound("no", {"uri": "a:b"}).uri == "a:b"
    assert ResourceNotFound("no").uri is None
    assert ResourceNotFound("no", ["a:b"]).uri is None
    assert ResourceNotFound("no").code == InvalidParams.code
    assert refusal(-32602, "no").__class__ is InvalidParams  # never guessed from the code alone


def test_the_code_of_one_refusal_is_its_own():
    assert Refused("no", code=5).code == 5
    assert Refused("no").code == -32603
    assert ParseError("no", code=5).code == 5 and ParseError("no").code == -32700


def test_our_own_timeout_is_never_taken_for_an_error_of_the_peer():
    timeout = CallTimeout("tools/call", 1.5, "idle")
    assert isinstance(timeout, LocalError) and isinstance(timeout, TimeoutError)
    assert not isinstance(timeout, Refused | RemoteError)
    assert (timeout.method, timeout.seconds, timeout.which) == ("tools/call", 1.5, "idle")
    assert str(timeout) == "tools/call: no answer within the idle deadline of 1.5 s"


def test_a_bad_frame_knows_its_answer():
    told = ParseError("broken")
    bad = BadFrame(told, 7)
    assert (bad.refusal, bad.id, str(bad)) == (told, 7, "broken")
    silent = BadFrame(None)
    assert (silent.refusal, silent.id) == (None, None)
    assert str(silent)
    assert (bad.answers, BadFrame(None, answers=7).answers) == (None, 7)


def test_no_common_revision_says_what_was_offered():
    assert NoCommonRevision("none", ("a", "b")).offered == ("a", "b")
    assert NoCommonRevision("none").offered == ()


# --- the end of a connection ---


@pytest.mark.parametrize("kind", [ConnectionClosed, ConnectionLost, PeerClosed])
@pytest.mark.parametrize("sent", [True, False, None])
def test_each_call_is_told_the_same_end_in_its_own_words(kind, sent):
    end = kind("it is over")
    told = end.for_call("tools/call", sent)
    assert type(told) is kind and told is not end
    assert isinstance(told, ConnectionEnded) and isinstance(told, ConnectionError)
    assert "tools/call" in str(told) and "it is over" in str(told)
    assert told.sent is sent and end.sent is None
    assert told.__cause__ is end


def test_two_calls_do_not_share_their_end():
    end = ConnectionLost("it is over")
    first, second = end.for_call("a", True), end.for_call("b", False)
    assert (first.sent, second.sent) == (True, False)
    assert str(first) != str(second)


def test_a_dead_child_tells_how_it_died_once():
    end = PeerClosed("it exited", exit_code=3, stderr="Traceback\nboom")
    assert (end.exit_code, end.stderr) == (3, "Traceback\nboom")
    assert "boom" in str(end)
    told = end.for_call("tools/call", True)
    assert (told.exit_code, told.stderr) == (3, "Traceback\nboom")
    assert str(told).count("boom") == 1
    assert "stderr" not in str(PeerClosed("it exited"))


def test_what_a_dead_child_wrote_comes_before_what_it_was_not_given():
    """The process tells the cause; a variable is a guess."""
    end = PeerClosed("it exited", exit_code=3, stderr="Traceback\nboom\n+-----\n\n")
    end.withheld = ("SOME_TOKEN",)
    for text in (str(end), end.explain()):
        assert text.index("boom") < text.index("SOME_TOKEN")
    assert end.summarize() == (
        "it exited; it wrote last: boom; "
        "variables of your environment that it was not given: SOME_TOKEN; pass those it needs in `env`"
    )
    assert CallTimeout("open", 2, "connect").summarize() == str(CallTimeout("open", 2, "connect"))


def test_a_tool_error_is_of_no_side():
    assert isinstance(ToolError("x"), InterlockError)
    assert not isinstance(ToolError("x"), LocalError | RemoteError | Refused | ConnectionEnded)
