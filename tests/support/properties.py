"""What the property tests share: settings, and values of JSON."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["JSON", "JSON_OBJECTS", "TEXT", "many"]


SHARE = float(os.environ.get("PROPERTIES", "0.5"))  # of the examples that are enough; with 1 they take their time


def many(examples: int = 200, **options: Any) -> settings:
    """A share of so many examples and no deadline: the machine is shared, and no test asserts on time."""
    return settings(
        max_examples=max(10, round(examples * SHARE)),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        **options,
    )


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
JSON_OBJECTS = st.dictionaries(TEXT, JSON, max_size=5)
