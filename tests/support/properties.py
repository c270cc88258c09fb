"""What the property tests share: settings, and values of JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["JSON", "JSON_OBJECTS", "TEXT", "many"]


def many(examples: int = 200, **options: Any) -> settings:
    """So many examples and no deadline: the machine is shared, and no test asserts on time."""
    return settings(
        max_examples=examples,
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
