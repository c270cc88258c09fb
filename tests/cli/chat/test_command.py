"""`interlock chat`: how it is begun, and one whole talk at a real (pseudo) terminal."""

import io
import stat
import sys

import pytest

from interlock.cli.chat.command import HELP, command, model_of
from interlock.cli.errors import OK, USAGE, Failure
from interlock.host.chat.transcript import read_transcript
from interlock.host.models.offline import PlainModel
from interlock.host.models.openai import OpenAIModel
from interlock.wire.errors import InterlockError
from support.sitting import Sitting

SERVER = """
from interlock import Context, Server
server = Server("house")

@server.tool
async def add(a: int, b: int) -> int:
    '''Adds.'''
    return a + b

@server.tool
async def hello(ctx: Context) -> str:
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return "Hello " + (await ctx.elicit("Who are you?\\x1b[2J", form))["name"]

@server.tool
async def brief(ctx: Context) -> str:
    return (await ctx.sample("hello model", max_tokens=10)).text
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "house.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_whole_talk(folder):
    words = ["-m", "interlock", "chat", "house.py", "--home", "home", "--transcript", "talk.jsonl"]
    async with Sitting(*words) as sitting:

        async def answer(shown, *lines):
            await sitting.sees(shown)
            for line in lines:
                sitting.type(f"{line}\n")

        await answer("[n] no: ", "y")  # may it be started?
        await answer("[n] no: ", "y")  # may what it offers be used?
        await answer("you> ", "add a=20 b=22")
        await answer("[n] no: ", "n")
        await answer("was not done: the user said no")
        await answer("you> ", "add a=20 b=22")
        await answer("[n] no: ", "s")
        await answer("It says: 42")
        await answer("you> ", "hello")
        await answer("[n] no: ", "y")
        await answer('answer for "name": ', "Ann")
        await answer("[n] send nothing: ", "y")
        await answer("It says: Hello Ann")
        await answer("you> ", "brief")
        await answer("[n] no: ", "y")
        await answer("Send it to the model?")
        await answer("[n] no: ", "y")
        await answer("Give it to the server 'house'?")
        await answer("[n] no: ", "y")
        await answer("It says: You said: hello model")
        await answer("you> ", "/quit")
        await sitting.process.wait()
    assert "\x1b[2J" not in sitting.seen
    messages, sources = read_transcript(folder / "talk.jsonl")
    assert (len(messages), sources) == (16, {"house"})
    for path in (folder / "talk.jsonl", folder / "home" / "audit.jsonl"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    book = (folder / "home" / "audit.jsonl").read_text()
    assert all(kind in book for kind in ('"launch"', '"definitions"', '"tool"', '"elicitation"', '"sampling_answer"'))


def test_without_a_terminal_nobody_is_asked_and_nothing_starts(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("add a=1 b=2\n"))
    assert command(["house.py", "--home", str(folder / "home")]) == OK
    shown = capsys.readouterr().out
    assert "house is refused" in shown and "You said: add" in shown
    assert "nobody can be asked" in shown
    assert "there is no terminal to ask you on" in shown and "the user said no" not in shown
    assert "the user said no" not in (folder / "home" / "audit.jsonl").read_text()


def in_one_line(screen):
    """Without the line breaks of a narrow terminal."""
    return " ".join(screen.split())


START = 'May this be done: start or connect to the server "'
OFFER = 'May this be done: trust what the server "house" offers'


async def test_an_approval_of_tools_lasts_as_long_as_its_answer_says(folder):
    async def first_questions(answer):
        """What is asked before the prompt when this is answered."""
        async with Sitting("-m", "interlock", "chat", "house.py", "--home", "home") as sitting:
            await sitting.sees(START)
            await sitting.sees("[n] no: ")
            sitting.type("y\n")
            if answer:
                await sitting.sees(OFFER)
                await sitting.sees("[y] yes, until this program ends, [a] yes, until it changes, [n] no: ")
                sitting.type(f"{answer}\n")
            await sitting.sees("1 of 1 servers and 3 tools")
            await sitting.sees("you> ")
            sitting.type("/quit\n")
            await sitting.process.wait()
        return sitting.seen

    for answer in ("y", "y", "a"):
        assert OFFER in await first_questions(answer)
    assert OFFER not in await first_questions("")


async def test_a_server_that_fails_is_asked_about_once(folder):
    (folder / "bad.py").write_text("import sys\nsys.exit(3)\n")
    words = ["--home", "home", "--", sys.executable, "bad.py"]
    async with Sitting("-m", "interlock", "chat", *words) as sitting:
        await sitting.sees(START)
        await sitting.sees("[n] no: ")
        sitting.type("y\n")
        await sitting.sees("is failed: ")
        await sitting.sees("you> ")
        sitting.type("/quit\n")
        await sitting.process.wait()
    assert sitting.seen.count(START) == 1


async def test_a_program_that_is_not_there_is_not_asked_about(folder):
    async with Sitting("-m", "interlock", "chat", "--home", "home", "--", "no-such-program") as sitting:
        await sitting.sees("no-such-program is failed")
        await sitting.sees("you> ")
        sitting.type("/quit\n")
        await sitting.process.wait()
    assert START not in sitting.seen and 'could not start "no-such-program": no such program' in in_one_line(
        sitting.seen
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8000/mcp", "127-0-0-1"),
        ("http://[::1]:8000/mcp", "1"),
        ("https://me:secret@mcp.example.com/", "mcp-example-com"),
    ],
)
def test_a_server_at_a_url_is_called_after_its_host(folder, monkeypatch, capsys, url, name):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert command([url, "--home", str(folder / "home")]) == OK
    assert f"  {name} is refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "which servers"),
        (["house.py", "house.py"], "two servers are called 'house'"),
        (["house.py", "--model", "best"], "anthropic:NAME"),
        (["house.py", "--model", "anthropic:"], "anthropic:NAME"),
        (["house.py", "--model", "anthropic:x"], "ANTHROPIC_API_KEY"),
        (["house.py", "--resume", "none.jsonl"], "cannot be read"),
        (["house.py", "--root", "nowhere"], "cannot be found"),
        (["house.py", "--policy", "none.toml"], "none.toml"),
        (["house.py", "--budget", "5"], "--budget"),
        (["house.py", "--config", "none.json"], "none.json"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(folder, monkeypatch, words, told):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(Failure) as failure:
        command([*words, "--home", str(folder / "home")])
    assert told in failure.value.told() and failure.value.code == USAGE


def test_models_by_their_names(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert isinstance(model_of("plain", None), PlainModel)
    local = model_of("openai:qwen3", "http://127.0.0.1:1/v1")
    assert isinstance(local, OpenAIModel) and local.facts.name == "qwen3"
    assert HELP.startswith("examples:")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for url, word in (("https://api.others.example/v1", "max_tokens"), (None, "max_completion_tokens")):
        assert vars(model_of("openai:m", url))["_limit_word"] == word
    with pytest.raises(InterlockError):
        model_of("openai:m", "http://[")
    assert vars(model_of("openai:m", "https://eu.api.openai.com/v1"))["_limit_word"] == "max_completion_tokens"
