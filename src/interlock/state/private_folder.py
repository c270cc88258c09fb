"""Folders for what only their owner may read: tokens, approvals, logs."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_private_folder"]

_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make it, and those above it that are missing, with mode 0700 whatever the umask is; one that is there stays.

    `Path.mkdir(mode=0o700, parents=True)` gives that mode to the last folder alone, and less where the umask takes it.
    """
    missing: list[Path] = []
    for each in (folder, *folder.parents):
        if each.is_dir():
            break
        missing.append(each)
    for each in reversed(missing):
        try:
            each.mkdir(_MODE)
        except FileExistsError:
            if not each.is_dir():
                raise
        else:
            each.chmod(_MODE)
