"""Functions whose annotations name what is not defined: from Python 3.14 on they can be made, and must be usable."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

needs_deferred = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="before Python 3.14 annotations are evaluated where they stand"
)


def define(source: str) -> Callable[..., Any]:
    """The function `f` of this source, which does not inherit the future of the test's own file."""
    names: dict[str, Any] = {}
    exec(compile(source, "<deferred>", "exec", dont_inherit=True), names)
    return names["f"]
