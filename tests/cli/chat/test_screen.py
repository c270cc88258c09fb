"""What a chat shows."""

import io

import pytest

from interlock.cli.chat.screen import Screen
from interlock.client.results import CallResult
from interlock.host.chat.conversation import Called, Calling, Cancelled, Finished, Progressed, Said, Shortened
from interlock.host.models.model import CallPart, Usage
from interlock.host.user import Notice
from interlock.wire.types.content import TextContent

CALL = CallPart("1", "notes__add", {"text": "a\x1b[2Jb"})


class Glass(io.StringIO):
    def isatty(self):
        return True


def shown(*events, stream=None, **more):
    stream = io.StringIO() if stream is None else stream
    screen = Screen(stream, **more)
    for event in events:
        screen.tell(event) if isinstance(event, Notice) else screen.happened(event)
    return stream.getvalue()


def gave(text, **more):
    return Called(CALL, "notes", CallResult([TextContent(text=text)], **more), None, 1.25)


def test_a_tool_that_runs_is_seen_with_what_it_gets():
    text = shown(Calling(CALL, "notes"), gave("added"))
    assert text == '> notes: notes__add { "text": "a\\u001b[2Jb" }\n< done (1.2 s): added\n'


def test_words_come_as_they_are_said():
    assert shown(Said("Hel"), Said("lo"), Finished("endTurn", Usage())) == "  Hello\n"
    assert shown(Said("Hello"), Calling(CALL, None)).startswith("  Hello\n> host: ")


def test_failures_are_told_apart():
    assert "< it failed (1.2 s): no" in shown(gave("no", is_error=True))
    assert "< it was not called (0.0 s): the user said no" in shown(Called(CALL, "n", None, "the user said no", 0.0))
    assert "stopped: maxTokens" in shown(Finished("maxTokens", Usage()))
    assert "cancelled" in shown(Cancelled())
    assert "2 results cut, 3 old messages" in shown(Shortened(2, 3))


def test_long_results_are_shown_in_part():
    assert "… (1000 characters)" in shown(gave("x" * 1000))
    assert "…" not in shown(gave("x" * 1000), all_results=True)


@pytest.mark.parametrize("evil", ["\x1b[31m", "\x07", "\u202e", "\x9b2J", "\r"])
def test_nothing_of_others_moves_the_cursor(evil):
    events = [
        Said(f"a{evil}b"),
        Calling(CallPart("1", f"t{evil}", {"k": evil}), f"s{evil}"),
        gave(f"r{evil}"),
        Called(CALL, "n", None, f"because{evil}", 0.0),
        Finished(f"why{evil}", Usage()),
        Notice(kind="log", text=f"log{evil}", name="warning"),
        Notice(kind="server", text=f"told{evil}"),
    ]
    assert evil not in shown(*events)


def test_progress_is_drawn_on_a_terminal_only():
    event = Progressed(CALL, 1, 2, "half\x1b[2J")
    drawn = shown(event, stream=Glass())
    assert "1/2 half" in drawn and "\x1b[2J" not in drawn
    assert shown(event) == ""


def test_notices_and_logs():
    assert shown(Notice(kind="denied", text="no")) == "! no\n"
    assert shown(Notice(kind="log", text="notes info: x", name="info")) == "  notes info: x\n"
    assert shown(Notice(kind="calling", text="tool 'add'")) == "  … running: tool 'add'\n"
    assert shown(Notice(kind="calling", text="elicitation 'x'")) == ""
    assert shown(Notice(kind="done", text="x")) == ""  # the conversation says it


def test_colours_are_for_terminals(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[33m" in shown(Notice(kind="denied", text="no"), stream=Glass())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in shown(Notice(kind="denied", text="no"), stream=Glass())


def test_what_a_terminal_has_no_letter_for_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", newline="")
    screen = Screen(stream)
    screen.happened(Said("für 木"))
    screen.line()
    assert stream.buffer.getvalue().decode("latin-1") == "  für \\u6728\n\n"
