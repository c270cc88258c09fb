"""cli/commands/listen.py: changes as they happen."""

import asyncio
import json

import pytest

from interlock import Client, Server
from interlock.cli import connect
from interlock.cli.commands import listen
from support.command_line import aimed, code_of, demo


@pytest.fixture
def changing(monkeypatch):
    """A server whose tools, and one of whose resources, change as soon as somebody listens."""
    server = demo()
    aimed(monkeypatch, server)
    original = listen.listen

    async def listened(client: Client, *arguments, **options):
        async def change() -> None:
            for number in range(200):
                await asyncio.sleep(0.02)
                server.resource_changed("note://1")
                server.add_tool(lambda: "", name=f"new{number}")

        changing = asyncio.ensure_future(change())
        try:
            await original(client, *arguments, **options)
        finally:
            changing.cancel()

    monkeypatch.setattr(listen, "listen", listened)
    return server


def test_a_list_that_changes_is_told(changing, capsys):
    assert code_of("listen", "x", "tools", "--count", "2") == 0
    assert capsys.readouterr().out == "the list of tools changed\n" * 2


def test_without_words_every_list_is_listened_to(changing, capsys):
    assert code_of("listen", "x", "--count", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"kind": "tools"}


def test_a_resource_that_changes_is_told_with_its_uri(changing, capsys):
    assert code_of("listen", "x", "note://1", "--count", "1") == 0
    assert capsys.readouterr().out == "changed: note://1\n"
    assert code_of("listen", "x", "note://1", "--count", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"kind": "resource", "uri": "note://1"}


def test_it_ends_after_its_time(monkeypatch, capsys):
    aimed(monkeypatch, demo())
    assert code_of("listen", "x", "tools", "--for", "0.1") == 0
    assert capsys.readouterr() == ("", "")


def test_a_server_that_ends_the_stream_is_told(monkeypatch, capsys):
    server = demo()
    aimed(monkeypatch, server)
    original = listen.listen

    async def listened(client: Client, *arguments, **options):
        asyncio.get_running_loop().call_later(0.1, server.stop_listening)
        await original(client, *arguments, **options)

    monkeypatch.setattr(listen, "listen", listened)
    assert code_of("listen", "x", "tools") == 0
    assert capsys.readouterr().err == "the server ended the stream: it tells of no more changes\n"


def test_a_server_that_tells_of_nothing_is_said(monkeypatch, capsys):
    aimed(monkeypatch, Server("bare"))
    assert code_of("listen", "x") == 4
    assert "does not tell of changes" in capsys.readouterr().err


def test_no_target_is_a_usage_error(capsys):
    assert connect.aim_of is not None and code_of("listen") == 2
    assert "which server?" in capsys.readouterr().err
