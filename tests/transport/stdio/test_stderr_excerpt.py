"""transport/stdio/stderr_excerpt.py: the last lines of a stderr, as errors quote them."""

import traceback

import pytest

from interlock.transport.stdio.stderr_excerpt import MAX_LINES, quote_stderr

FIELDS = (
    """\
PingRequest.method
  Input should be 'ping' [type=literal_error, input_value='server/discover', input_type=str]
    For further information visit https://errors.pydantic.dev/2.11/v/literal_error
CompleteRequest.params.argument
  Field required [type=missing, input_value={'_meta': {'io.modelconte...lientCapabilities': {}}}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.11/v/missing
"""
    * 12
)
REPORT = f"Failed to validate request: 24 validation errors for ClientRequest\n{FIELDS}"
WRAPPED = """\
[11/18/26 01:33:26] WARNING  Failed to validate request: 31       session.py:383
                             validation errors for ClientRequest
                             PingRequest.method
                               Input should be 'ping'
                             [type=literal_error,
                             input_value='server/discover',
                             input_type=str]
"""
GROUP = f"""\
  + Exception Group Traceback (most recent call last):
  |   File "/srv.py", line 6, in <module>
  |     m.run()
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/shared/session.py", line 307, in _receive_loop
    | pydantic_core._pydantic_core.ValidationError: 24 validation errors for ClientRequest
{FIELDS}      +------------------------------------
"""


@pytest.mark.parametrize("caused", [REPORT, WRAPPED, GROUP, FIELDS])
@pytest.mark.parametrize("after", ["", "KeyError: 'API_TOKEN'"])
def test_what_the_probe_caused_is_left_out(caused, after):
    before = "" if caused is FIELDS else "starting\n"  # a list that lost its beginning is at the beginning
    assert quote_stderr(f"{before}{caused}{after}") == f"{before}{after}".strip()


def test_the_same_report_about_another_request_is_the_servers_own():
    text = REPORT.replace("server/discover", "tools/call").strip()
    assert quote_stderr(text) == text


def test_a_single_line_is_never_left_out():
    told = "ValueError: unknown method 'server/discover'"
    assert quote_stderr(told) == told


def test_the_last_lines_are_quoted():
    lines = [f"line {number}" for number in range(100)]
    assert quote_stderr("\n".join(lines)).splitlines() == lines[-MAX_LINES:]


def raised():
    """A traceback of more lines than are quoted, chained with another."""

    def fail(depth):
        if depth:
            odd_or_even = fail_again if depth % 2 else fail
            return odd_or_even(depth - 1)
        try:
            raise ValueError("the cause")
        except ValueError as error:
            raise RuntimeError("the end") from error

    def fail_again(depth):
        return fail(depth)

    try:
        fail(40)
    except RuntimeError:
        return traceback.format_exc()


def test_a_traceback_is_quoted_whole():
    found = raised()
    assert len(found.splitlines()) > MAX_LINES
    assert quote_stderr(f"one\ntwo\n{found}") == found.strip()
    assert quote_stderr(f"{found}a\nb\n") == f"{found}a\nb"


@pytest.mark.parametrize(
    "text",
    ["", " \n", "Traceback (most recent call last):", "  + Exception Group Traceback (most recent call last):\n"],
)
def test_what_is_cut_off_harms_nothing(text):
    assert quote_stderr(text) == text.strip()
