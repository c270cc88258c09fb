"""Signatures of callables that users write, read without resolving what their annotations name.

From Python 3.14 on annotations are evaluated when they are read: a name that is imported for type checkers alone would
fail here, where it is not needed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["signature_of"]

signature_of: Callable[[Callable[..., Any]], inspect.Signature] = inspect.signature
"""Like `inspect.signature`; raises TypeError or ValueError where a callable has none."""

if sys.version_info >= (3, 14):
    from annotationlib import Format

    signature_of = partial(inspect.signature, annotation_format=Format.FORWARDREF)
