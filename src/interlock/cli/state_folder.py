"""Where the commands keep what lasts from one to the next, in folders of their owner alone."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["host_folder", "state_folder", "tokens_folder"]


def state_folder() -> Path:
    """Tokens, history, approvals."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "interlock"


def tokens_folder() -> Path:
    """Tokens of users, each in a file that only its owner reads."""
    return state_folder() / "tokens"


def host_folder() -> Path:
    """Approvals, permissions and the audit: the `home` of a host."""
    return state_folder() / "host"
