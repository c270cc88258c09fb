"""protocol/client/identity.py: who we are, in the words of each revision."""

import pytest

from interlock.protocol.client.identity import Identity
from interlock.revisions.table import REVISIONS
from interlock.wire.exchange import Exchange, Peer
from interlock.wire.types.common import Icon, Implementation

ME = Identity(
    Implementation(
        name="n",
        version="1",
        title="T",
        description="D",
        icons=[Icon(src="https://example.com/i.png")],
        website_url="https://example.com",
    ),
    {"roots": {}, "sampling": {}, "elicitation": {}, "experimental": {"a": {}}, "extensions": {"com.example/x": {}}},
    Exchange("", {}, peer=Peer()),
)


@pytest.mark.parametrize(
    ("revision", "members"),
    [
        ("2024-11-05", {"name", "version"}),
        ("2025-03-26", {"name", "version"}),
        ("2025-06-18", {"name", "version", "title"}),
        ("2025-11-25", {"name", "version", "title", "description", "icons", "websiteUrl"}),
        ("2026-07-28", {"name", "version", "title", "description", "icons", "websiteUrl"}),
    ],
)
def test_each_revision_hears_of_the_name_what_it_knows(revision, members):
    assert set(ME.info_for(REVISIONS[revision])) == members


@pytest.mark.parametrize(
    ("revision", "capabilities"),
    [
        ("2024-11-05", {"roots", "sampling", "experimental"}),
        ("2025-03-26", {"roots", "sampling", "experimental"}),
        ("2025-06-18", {"roots", "sampling", "experimental", "elicitation"}),
        ("2025-11-25", {"roots", "sampling", "experimental", "elicitation", "extensions"}),
        ("2026-07-28", {"roots", "sampling", "experimental", "elicitation", "extensions"}),
    ],
)
def test_each_revision_hears_only_of_capabilities_it_has(revision, capabilities):
    assert set(ME.capabilities_for(REVISIONS[revision])) == capabilities


def test_roots_that_change_are_announced_where_there_is_a_notice_for_it():
    for name, row in REVISIONS.items():
        assert ME.capabilities_for(row)["roots"] == ({} if name == "2026-07-28" else {"listChanged": True})


def test_what_is_not_set_is_not_said():
    plainly = Identity(Implementation(name="n", version="1"), {}, ME.standing)
    assert plainly.info_for(REVISIONS["2026-07-28"]) == {"name": "n", "version": "1"}
    assert plainly.capabilities_for(REVISIONS["2026-07-28"]) == {}
