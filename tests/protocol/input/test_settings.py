"""protocol/input/settings.py: what holds for who says nothing else."""

import time

import pytest

from interlock.protocol.input.settings import AskingRules
from interlock.state.sealing import Seal


def test_nothing_waits_in_memory_and_nothing_counts_once_unless_it_is_said():
    rules = AskingRules(sealer=Seal(), clock=time.time)
    assert not rules.parks("tools/call", None) and not rules.single_use("tools/call", None)
    assert (rules.seconds, rules.total_seconds, rules.parked_runs) == (600.0, 3600.0, 1000)


def test_rules_do_not_change():
    rules = AskingRules(sealer=Seal(), clock=time.time)
    with pytest.raises(AttributeError):
        rules.seconds = 1.0
