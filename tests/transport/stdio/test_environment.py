"""transport/stdio/environment.py: what a program gets of the environment, what of it is never shown, and what it
misses."""

import base64
import sys

import pytest

from interlock import Client, Command
from interlock.transport.stdio.environment import (
    NETWORK_ENVIRONMENT,
    minimal_environment,
    proxy_secrets,
    redact_proxy,
    withheld_variables,
)
from interlock.wire.errors import CallTimeout, PeerClosed, SpawnFailed

PROXY = "http://ann:s3cr%40t-word@proxy.example:8080"
DYING = "import os, sys; print(os.environ.get('HTTPS_PROXY'), 'TOKEN_OF_MINE is missing', file=sys.stderr); sys.exit(3)"


@pytest.mark.parametrize("name", NETWORK_ENVIRONMENT)
def test_certificates_and_proxies_of_the_user_reach_a_program(name, monkeypatch):
    monkeypatch.setenv(name, "/etc/mine")
    assert Command.of(["x"]).environment()[name] == "/etc/mine"
    assert Command.of(["x"], env={name: "/theirs"}).environment()[name] == "/theirs"
    assert Command.of(["x"], env_policy="explicit").environment() == {}


def test_the_names_are_those_that_programs_read():
    wanted = "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS"
    proxies = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy"
    assert sorted(NETWORK_ENVIRONMENT) == sorted([*wanted.split(), *proxies.split()])
    assert minimal_environment({"NO_PROXY": "*", "OTHER": "1"}) == {"NO_PROXY": "*"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (PROXY, "http://[redacted]@proxy.example:8080"),
        ("ann:secret@proxy:1", "[redacted]@proxy:1"),
        ("http://token@proxy", "http://[redacted]@proxy"),
        ("http://ann:p@ss@proxy", "http://[redacted]@proxy"),
        ("http://evil.example/@proxy.example", "[redacted]"),
        ("http://ann:pa/ss@proxy", "[redacted]"),
        ("http://a b@c", "[redacted]"),
        ("http://proxy:8080", "http://proxy:8080"),
        ("", ""),
    ],
)
def test_a_proxy_is_shown_without_its_user_and_with_its_true_host(value, shown):
    assert redact_proxy(value) == shown


def test_a_password_is_hidden_in_every_form_that_programs_print():
    secrets = proxy_secrets({"HTTPS_PROXY": PROXY, "PATH": "a:b@c", "npm_config_proxy": "x:yyyyy@h"})
    basic = base64.b64encode(b"ann:s3cr@t-word").decode()
    for each in ("s3cr%40t-word", "s3cr@t-word", "ann:s3cr@t-word@", basic, "yyyyy"):
        assert each in secrets
    assert "b" not in secrets and secrets == sorted(secrets, key=len, reverse=True)
    assert proxy_secrets({"HTTP_PROXY": "http://u:ab@h"}) == ["dTphYg==", "u:ab@"]  # too short to be hidden anywhere


def test_missed_variables_are_named_bounded_and_plausible():
    environ = {"SOME_API_KEY": "k", "PATH": "/bin", "WINDOWID": "1", "XDG_DATA_DIRS": "x", "ODD": "1", "EMPTY_KEY": ""}
    assert withheld_variables(environ, {"PATH": "/bin"}) == ("SOME_API_KEY",)
    assert withheld_variables(environ, {}, "KeyError: 'ODD'") == ("ODD", "PATH", "SOME_API_KEY")
    assert withheld_variables(environ, environ) == ()
    assert len(withheld_variables({f"A{number}_TOKEN": "t" for number in range(100)}, {})) == 8
    assert withheld_variables({"BAD\x1b[2J_KEY": "1", "x" * 100 + "_KEY": "1"}, {}) == ()


async def failure_of(*words, **options):
    with pytest.raises((PeerClosed, SpawnFailed, CallTimeout)) as caught:
        await Client(Command.of(words, **options), connect_timeout=10, probe_timeout=1).open()
    return caught.value


async def test_a_program_that_dies_at_its_start_names_what_it_was_not_given(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("TOKEN_OF_MINE", "value-of-mine")
    error = await failure_of(sys.executable, "-S", "-c", DYING)
    assert error.withheld[0] == "TOKEN_OF_MINE"
    told = "variables of your environment that it was not given: TOKEN_OF_MINE"
    for text in (str(error), error.explain()):
        assert told in text and "pass those it needs in `env`" in text
        assert "value-of-mine" not in text and "s3cr" not in text and "proxy.example:8080" in text


async def test_a_program_that_has_everything_misses_nothing(monkeypatch):
    monkeypatch.setenv("TOKEN_OF_MINE", "value")
    error = await failure_of(sys.executable, "-S", "-c", DYING, env_policy="inherit")
    assert error.withheld == () and "not given" not in str(error)


async def test_a_silent_program_names_what_it_was_not_given(monkeypatch):
    monkeypatch.setattr("os.environ", {"PATH": "/bin", "MY_TOKEN": "v"})
    with pytest.raises(CallTimeout) as caught:
        command = Command.of([sys.executable, "-S", "-c", "import signal; signal.pause()"], close_seconds=0.1)
        await Client(command, connect_timeout=1, probe_timeout=0.2).open()
    assert caught.value.withheld == ("MY_TOKEN",)
    assert any("MY_TOKEN" in note for note in caught.value.__notes__)


async def test_a_program_that_is_not_found_without_path_names_path():
    error = await failure_of("no-such-program-here", env_policy="explicit")
    assert error.withheld == ("PATH",) and "PATH" in error.describe_withheld()
    assert (await failure_of("no-such-program-here")).withheld == ()
