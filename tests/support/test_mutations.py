"""The generator: valid where it starts, everywhere damaged, judged right, always the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from support.mutations import (
    ANCHORS,
    WRONG_KINDS,
    Mutation,
    all_mutations,
    dumps,
    methods,
    mutations,
    nodes,
    replaced,
    reply_to,
    sample,
    valid_frames,
)
from support.schema_source import REVISIONS
from support.schemas import Oracle

FLOOR = 15_000

per_revision = pytest.mark.parametrize("revision", REVISIONS)


def find(revision: str, method: str, label: str) -> Mutation:
    return next(found for found in mutations(revision, method) if found.label == f"{method}: {label}")


def test_there_are_enough_of_them():
    counts = {revision: len(all_mutations(revision)) for revision in REVISIONS}
    verdicts = Counter(found.expectation for revision in REVISIONS for found in all_mutations(revision))
    print(f"mutations: {sum(counts.values())} {counts} {dict(verdicts)}")
    assert sum(counts.values()) >= FLOOR
    assert all(counts.values())


@per_revision
@pytest.mark.parametrize("sender", ["client", "server"])
def test_what_gets_damaged_was_valid(revision: str, sender: Any):
    oracle = Oracle.load(revision)
    for method in methods(revision, sender):
        names = []
        for name, frame, _focus in valid_frames(revision, method, sender):
            oracle.check_frame(frame, sender=sender)
            names.append(name)
        assert names[:2] == ["minimal", "full"]


@per_revision
def test_every_field_of_the_full_frame_is_damaged(revision: str):
    for method in methods(revision):
        frame = next(frame for name, frame, _ in valid_frames(revision, method) if name == "full")
        lines = {found.frame_bytes.decode() for found in mutations(revision, method)}
        for path, _value in nodes(frame):
            for kind, wrong in WRONG_KINDS.items():
                assert dumps(replaced(frame, path, wrong)) in lines, (path, kind)


@per_revision
def test_labels_and_bytes_are_unique_per_method(revision: str):
    for method in methods(revision):
        found = list(mutations(revision, method))
        assert len({mutation.frame_bytes for mutation in found}) == len(found)
        assert len({mutation.label for mutation in found}) == len(found)
        assert all(b"\n" not in mutation.frame_bytes for mutation in found)


@per_revision
def test_verdicts(revision: str):
    for label, expectation, reply in (
        ("full", "valid", "required"),
        ("full params/name is null", "invalid", "required"),
        ("full params/name is string", "valid", "required"),
        ("full params/name is missing", "invalid", "required"),
        ("full params/name is there twice", "valid", "required"),
        ("full params/arguments is missing", "valid", "required"),
        ("full params/arguments is array", "invalid", "required"),
        ("full params has one more", "valid", "required"),
        ("minimal params is null", "invalid", "required"),
        ("minimal params is array", "invalid", "required"),
        ("id is null", "invalid", "required"),
        ("id is fraction", "invalid", "required"),
        ("id is missing", "invalid", "forbidden"),
        ("id in capitals", "invalid", "forbidden"),
        ("id is empty", "valid", "required"),
        ("id has 400 digits (limit)", "valid", "required"),
        ("jsonrpc is missing", "invalid", "required"),
        ("method is missing", "invalid", "open"),
        ("method is zero", "invalid", "required"),
        ("result and error", "invalid", "forbidden"),
        ("a result beside the method", "invalid", "open"),
        ("in an array", "valid" if revision == "2025-03-26" else "invalid", "open"),
        ("as a string", "invalid", "required"),
    ):
        found = find(revision, "tools/call", label)
        assert (found.expectation, found.reply) == (expectation, reply), label
        assert found.limited == ("limit" in label)


@per_revision
def test_notifications_are_never_answered(revision: str):
    found = find(revision, "notifications/cancelled", "full params/requestId is object")
    assert (found.expectation, found.reply) == ("invalid", "forbidden")
    with_id = find(revision, "notifications/cancelled", "id is string")
    assert (with_id.expectation, with_id.reply) == ("invalid", "required")


@pytest.mark.parametrize(
    ("frame", "reply"),
    [
        (1, "required"),
        ([], "required"),
        ([1], "open"),
        ({}, "open"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "forbidden"),
        ({"jsonrpc": "1.0", "id": 1, "result": {}}, "open"),
        ({"jsonrpc": "2.0", "method": "a"}, "forbidden"),
        ({"method": "a"}, "open"),
        ({"jsonrpc": "2.0", "method": 1}, "open"),
        ({"id": None, "method": 1}, "required"),
    ],
)
def test_who_is_owed_a_reply(frame: Any, reply: str):
    assert reply_to(frame) == reply


def test_twice_means_twice():
    line = find("2025-06-18", "tools/call", "full params/name is there twice").frame_bytes
    assert line.count(b'"name":') == 2
    assert json.loads(line)["params"]["name"] == ANCHORS["tools/call", "name"]


@per_revision
def test_samples_are_fixed_by_their_seed(revision: str):
    first = sample(revision, 50, seed=1)
    assert len(first) == 50 and first == sample(revision, 50, seed=1) != sample(revision, 50, seed=2)
    assert len(sample(revision, 10**9)) == len(all_mutations(revision))
