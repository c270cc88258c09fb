"""Policies: the strictest rule counts, hints and foreign data never loosen, and defaults ask."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.client.config.parser import ConfigError
from interlock.host.gate.action import KINDS, Deed
from interlock.host.gate.conditions import conditions_of
from interlock.host.gate.policy import Policy, Rule, principal_text
from interlock.wire.exchange import LOCAL, Principal
from interlock.wire.types.tools import ToolAnnotations
from support.properties import many

TOOL = Deed("tool", "files", "read_file", {"path": "/notes/a"})


def decided(deed: Deed, *rules: Rule) -> str:
    return Policy(rules).decide(deed).decision


def test_without_rules_everything_that_acts_is_asked_about():
    decisions = {kind: Policy().decide(Deed(kind, "s", "n")).decision for kind in KINDS}
    assert {kind for kind, decision in decisions.items() if decision == "allow"} == {"prompt", "completion"}
    assert set(decisions.values()) == {"ask", "allow"}


def test_defaults_can_be_changed_by_kind_and_nothing_else():
    assert Policy(defaults={"tool": "deny"}).decide(TOOL).decision == "deny"
    for defaults in ({"tools": "deny"}, {"tool": "perhaps"}):
        with pytest.raises(ConfigError, match="means nothing"):
            Policy(defaults=defaults)


RULES = [
    Rule(decision="allow", id="a", server=("files",)),
    Rule(decision="ask", id="b", name=("read_*",)),
    Rule(decision="deny", id="c", arguments=conditions_of({"path": {"within": "/etc"}}, "")),
    Rule(decision="allow", id="d"),
]


@given(st.lists(st.sampled_from(RULES), unique_by=lambda rule: rule.id), st.randoms(use_true_random=False))
@many(60)
def test_the_order_of_rules_does_not_matter_and_the_strictest_counts(rules, chance: random.Random):
    shuffled = list(rules)
    chance.shuffle(shuffled)
    for path in ("/notes/a", "/etc/shadow"):
        deed = TOOL.edited({"path": path})
        applying = {rule.decision for rule in rules if rule.id != "c" or path.startswith("/etc")}
        expected = next((each for each in ("deny", "ask", "allow") if each in applying), "ask")
        assert decided(deed, *shuffled) == decided(deed, *rules) == expected


def test_a_rule_says_which_one_it_was_and_why():
    verdict = Policy([Rule(decision="deny", id="no-files", because="files are private")]).decide(TOOL)
    assert (verdict.rule, verdict.because) == ("no-files", "files are private")
    assert Policy([Rule(decision="deny", because="no\x1b[2K")]).decide(TOOL).because == r"no\x1b[2K"
    assert "the rule 'x' says ask" in Policy([Rule(decision="ask", id="x")]).decide(TOOL).because


@pytest.mark.parametrize(
    "rule",
    [
        Rule(decision="deny", kind=("resource",)),
        Rule(decision="deny", server=("file",)),
        Rule(decision="deny", server=("FILES",)),
        Rule(decision="deny", name=("write_*", "delete_*")),
        Rule(decision="deny", principal=("https://issuer.example *",)),
        Rule(decision="deny", sources=("mail",)),
        Rule(decision="deny", hints={"read_only": True}),
    ],
)
def test_a_rule_that_does_not_fit_in_one_thing_does_not_apply(rule):
    assert decided(TOOL, rule) == "ask"


def test_principals_are_told_apart_by_issuer_and_subject():
    rule = Rule(decision="allow", principal=("https://a.example ada",))
    ada, other = Principal("https://a.example", "ada"), Principal("https://b.example", "ada")
    assert decided(TOOL.by(ada), rule) == "allow" and decided(TOOL.by(other), rule) == "ask"
    assert decided(TOOL, Rule(decision="allow", principal=(principal_text(LOCAL),))) == "allow"


# --- hints ---


def test_no_allow_by_hints_without_trust_in_a_named_server():
    for server in ((), ("*",), ("fi?es",)):
        with pytest.raises(ConfigError, match="trust_hints"):
            Rule(decision="allow", hints={"read_only": True}, server=server, trust_hints=True)
    with pytest.raises(ConfigError, match="the server's own words"):
        Rule(decision="allow", hints={"read_only": True}, server=("files",))


def test_hints_allow_for_a_trusted_server_and_for_no_other():
    rule = Rule(decision="allow", hints={"read_only": True}, server=("files",), trust_hints=True)
    hints = ToolAnnotations(read_only_hint=True)
    assert decided(Deed("tool", "files", "t", hints=hints), rule) == "allow"
    assert decided(Deed("tool", "other", "t", hints=hints), rule) == "ask"
    assert decided(Deed("tool", "files", "t"), rule) == "ask"


def test_hints_may_tighten_without_trust_and_what_is_not_said_is_the_worse():
    rules = (Rule(decision="allow", server=("*",)), Rule(decision="ask", hints={"destructive": True}))
    assert decided(Deed("tool", "s", "t"), *rules) == "ask"
    assert decided(Deed("tool", "s", "t", hints=ToolAnnotations()), *rules) == "ask"
    assert decided(Deed("tool", "s", "t", hints=ToolAnnotations(destructive_hint=False)), *rules) == "allow"
    assert decided(Deed("tool", "s", "t"), rules[0], Rule(decision="deny", hints={"open_world": True})) == "deny"


# --- where data comes from ---


def test_an_allow_does_not_cover_data_of_other_servers_unless_it_says_so():
    deed = Deed("tool", "mail", "send", sources={"mail", "files"})
    assert decided(deed, Rule(decision="allow", server=("mail",))) == "ask"
    assert decided(deed, Rule(decision="allow", server=("mail",), sources=("files",))) == "allow"
    assert decided(deed, Rule(decision="allow", server=("mail",), sources=("*",))) == "allow"
    more = Deed("tool", "mail", "send", sources={"files", "secrets"})
    assert decided(more, Rule(decision="allow", server=("mail",), sources=("files",))) == "ask"
    assert decided(Deed("tool", "mail", "send", sources={"mail"}), Rule(decision="allow")) == "allow"


def test_a_default_allow_does_not_cover_them_either():
    verdict = Policy().decide(Deed("completion", "mail", "to", sources={"files"}))
    assert verdict.decision == "ask" and verdict.rule == "foreign data"
    assert "data of files may be in it" in verdict.because


def test_a_deny_by_source_needs_one_of_them():
    rule = Rule(decision="deny", sources=("secret*",))
    assert decided(Deed("tool", "mail", "send", sources={"files", "secrets"}), rule) == "deny"
    assert decided(Deed("tool", "mail", "send", sources={"files"}), rule) == "ask"
    assert decided(Deed("tool", "secrets", "send", sources={"secrets"}), rule) == "ask"


# --- what is remembered, and names ---


def test_many_kinds_of_deeds_do_not_fill_the_memory_and_change_no_verdict():
    policy = Policy([Rule(decision="allow", name=("*7",))])
    for number in range(5000):
        expected = "allow" if number % 10 == 7 else "ask"
        assert policy.decide(Deed("tool", "s", str(number))).decision == expected
    assert len(policy._known) <= 4096


def test_a_rule_without_a_name_is_called_after_what_it_says():
    [one] = Policy([Rule(decision="allow", server=("a",))]).rules
    first, second = Policy([Rule(decision="deny", name=("x",)), Rule(decision="allow", server=("a",))]).rules
    assert one.id == second.id != first.id


def test_two_rules_of_one_name_are_refused():
    for twice in (("x", "x"), ("default", "y")):
        with pytest.raises(ConfigError, match="two rules"):
            Policy([Rule(decision="allow", id=twice[0]), Rule(decision="deny", id=twice[1])])


def test_leave_lasts_no_longer_than_rule_and_kind_permit():
    def offered(deed: Deed, *rules: Rule):
        return Policy(rules).decide(deed).scopes

    assert offered(TOOL) == ("once", "session", "always")
    assert offered(TOOL, Rule(decision="ask", scopes=("once",))) == ("once",)
    assert offered(Deed("open_url", "s", "n")) == ("once",)
    assert offered(Deed("sampling", "s", "n"), Rule(decision="ask", scopes=("always",))) == ("once",)
    with pytest.raises(ConfigError, match="scopes must name one"):
        Rule(decision="ask", scopes=())
