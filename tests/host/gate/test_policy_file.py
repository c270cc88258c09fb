"""Policies from files: what they say, and what is said when they say nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interlock.client.config.parser import ConfigError
from interlock.host.gate.action import Deed
from interlock.host.gate.policy_file import policy_in, read_policy

TOML = """
[defaults]
resource = "allow"

[[rules]]
id = "read-work"
decision = "allow"
kind = "tool"
server = "files"
name = ["read_*", "list_*"]
arguments = { path = { within = "/srv/me/notes" } }
because = "my work may be read"

[[rules]]
decision = "deny"
server = "*"
name = "delete_*"
"""


def test_a_policy_of_toml(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(TOML)
    policy = read_policy(path)
    read = policy.decide(Deed("tool", "files", "read_file", {"path": "/srv/me/notes/a"}))
    assert (read.decision, read.rule, read.because) == ("allow", "read-work", "my work may be read")
    assert policy.decide(Deed("tool", "files", "read_file", {"path": "/etc/passwd"})).decision == "ask"
    assert policy.decide(Deed("tool", "mail", "delete_all")).decision == "deny"
    assert policy.decide(Deed("resource", "files", "file:///a")).decision == "allow"


def test_the_same_of_json_with_comments(tmp_path):
    path = tmp_path / "policy.json"
    rules = [{"decision": "allow", "server": ["a", "b"], "hints": {"read_only": True}, "trust_hints": True}]
    path.write_text("// mine\n" + json.dumps({"rules": rules}))
    [rule] = read_policy(path).rules
    assert rule.server == ("a", "b") and rule.hints == {"read_only": True}


def test_an_empty_policy_asks():
    assert policy_in({}).decide(Deed("tool", "s", "t")).decision == "ask"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"rule": []}, "policy: not known: rule; there are: defaults, rules"),
        ({"rules": {}}, "rules: must be a list"),
        ({"rules": ["deny"]}, "rules[0]: must be a table"),
        ({"rules": [{}]}, "rules[0]: decision is missing"),
        ({"rules": [{"decision": "Deny"}]}, "rules[0]: Invalid enum value 'Deny'"),
        ({"rules": [{"decision": "deny", "tool": "x"}]}, "rules[0]: not known: tool; there are: decision, id"),
        ({"rules": [{"decision": "deny", "kind": "tools"}]}, "rules[0]: Invalid enum value 'tools'"),
        ({"rules": [{"decision": "deny", "server": 5}]}, "rules[0]: Expected `array`, got `int`"),
        ({"rules": [{"decision": "deny", "server": []}]}, "rules[0], server: an empty list fits nothing"),
        ({"rules": [{"decision": "deny", "arguments": 5}]}, "rules[0], arguments: Expected `object`"),
        ({"rules": [{"decision": "deny", "arguments": {"p": {"in": 1}}}]}, "rules[0], arguments.p: no such test 'in'"),
        ({"rules": [{"decision": "allow", "hints": {"read_only": True}}]}, "rules[0]: rule '': hints are the server's"),
        ({"rules": [{"decision": "deny", "hints": {"readonly": True}}]}, "rules[0]: Invalid enum value 'readonly'"),
        ({"rules": [{"decision": "ask", "id": "x"}, {"decision": "deny", "id": "x"}]}, "policy: two rules are called"),
        ({"defaults": {"tool": "never"}}, "policy: defaults: tool = never means nothing"),
        ({"defaults": []}, "policy, defaults: Expected `object`"),
    ],
)
def test_what_is_not_understood_is_no_policy(members, message):
    with pytest.raises(ConfigError) as caught:
        policy_in(members)
    assert message in str(caught.value)


def test_files_that_cannot_be_read_say_which(tmp_path):
    for name, text, message in (
        ("a.toml", "rules = [", "no TOML"),
        ("a.json", "{", "no JSON"),
        ("a.yaml", "", "must end in .toml or .json"),
        ("a.toml", "x = " + "[" * 5000, "nested too deep"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ConfigError, match=message) as caught:
            read_policy(tmp_path / name)
        assert name in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_policy(tmp_path / "missing.toml")


def test_the_policy_of_the_documentation_is_one(tmp_path):
    page = Path(__file__).resolve().parents[3] / "docs" / "host_policy.md"
    [written] = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "policy.toml").write_text(written)
    policy = read_policy(tmp_path / "policy.toml")
    assert policy.decide(Deed("tool", "files", "read_a", {"path": "/srv/me/notes/a"})).decision == "allow"
    assert policy.decide(Deed("tool", "files", "delete_a")).because == "nothing is deleted by a model"
