"""Every transcript of these folders, one file per subject and revision, against a real server.

They double as documentation: read them to see what is said in which revision. The format stands in support/plays.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.plays import PLAYS, Play, Player
from support.wire_peer import ALL, CARRIERS, server_under_test

FEWEST = 12  # transcripts that every revision has at least


def as_parameter(play: Play) -> Any:
    return pytest.param(play, id=play.name, marks=pytest.mark.requirement(*play.requirements))


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("play", [as_parameter(play) for play in PLAYS])
async def test_a_real_server_says_what_is_written(carrier: str, play: Play):
    async with server_under_test(carrier, play.revision, server=play.server, opened=False) as peer:
        await Player(peer, free_order=play.free_order).play(play.transcript.entries)
        peer.transcript.check()


# --- the files themselves ---


@pytest.mark.parametrize("play", [pytest.param(play, id=play.name) for play in PLAYS])
def test_a_transcript_stands_under_its_revision_and_fits_its_schema(play: Play):
    assert play.name.startswith(f"{play.revision}/")
    play.transcript.check()  # the lines without wildcards; the others are judged when they are played


@pytest.mark.parametrize("revision", ALL)
def test_every_revision_has_its_transcripts(revision: str):
    assert sum(play.revision == revision for play in PLAYS) >= FEWEST
