"""revisions/deprecation.py: said once each, in the log and as a warning."""

import logging
import warnings

import pytest

from interlock.revisions import deprecation
from interlock.revisions.deprecation import DeprecatedFeature, warn_of_deprecated
from interlock.revisions.table import REVISIONS


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(deprecation, "_said", set())


def test_each_feature_is_said_once(caplog):
    with caplog.at_level(logging.WARNING, "interlock.server"), pytest.warns(DeprecatedFeature) as warned:
        for _ in range(3):
            warn_of_deprecated("roots/list")
            warn_of_deprecated("notifications/message")
    assert len(warned) == len(caplog.records) == 2
    assert "roots/list" in str(warned[0].message)


def test_every_deprecated_method_has_an_alternative():
    deprecated = set().union(*(row.deprecated for row in REVISIONS.values()))
    for method in deprecated:
        with pytest.warns(DeprecatedFeature, match="instead"):
            warn_of_deprecated(method)


def test_the_warning_can_be_filtered_as_a_deprecation():
    assert issubclass(DeprecatedFeature, DeprecationWarning)


def test_where_warnings_are_errors_no_call_fails(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_deprecated("roots/list")
    assert "roots/list" in caplog.text
