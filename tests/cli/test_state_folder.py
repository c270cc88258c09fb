"""cli/state_folder.py: where the commands keep what lasts."""

from pathlib import Path

from interlock.cli.state_folder import host_folder, state_folder, tokens_folder


def test_it_is_below_the_home_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_folder() == Path("/home/ada/.local/state/interlock")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert (tokens_folder(), host_folder()) == (Path("/state/interlock/tokens"), Path("/state/interlock/host"))
