"""Approval of servers that the files of the current folder name.

A folder comes from anywhere: a clone, an archive, another user. What its files say is started or contacted under a bare
name only after the user has seen all of it (security best practices, local server compromise). The answer is kept where
hosts keep theirs, bound to the digest of what was shown.
"""

from __future__ import annotations

import asyncio
import sys

from ..client.config.entries import ServerEntry
from ..host.gate.action import Denied
from ..host.gate.audit import FileAudit
from ..host.gate.gate import Gate
from ..host.gate.permissions import Leaves
from ..host.gate.policy import Policy, Rule
from ..host.gate.record_lock import files_in
from ..host.launch.launch import Launch, bound, check_program, launch_of
from ..host.user import Absent, User
from ..wire.errors import InterlockError
from ..wire.escaping import display
from .chat.screen import Screen
from .chat.user import TerminalUser
from .errors import USAGE, Failure
from .state_folder import host_folder
from .terminal.prompt import terminal_or_none

__all__ = ["approve_entry"]

_RULE = Rule(
    decision="ask",
    id="folder",
    kind=("launch",),
    scopes=("once", "always"),
    because="a file of this folder names it, not one of yours",
)


def approve_entry(entry: ServerEntry) -> ServerEntry:
    """The same, once the user agrees: what is found when it is started must still be what was approved. `Failure` where
    the user does not, or cannot be asked."""
    server, user = f"{entry.name} of {entry.file}", _user()
    try:
        launch = launch_of(server, entry)
        assert launch is not None  # an entry is a command or a URL
        check_program(launch)
        asyncio.run(_ask(launch, user))
    except Denied as denied:
        told = f"{display(entry.file, 200)} names the server {display(entry.name, 60)!r}, and it is not approved"
        cause = "there is no terminal to ask you on" if isinstance(user, Absent) else denied.because
        hint = f"approve it in a terminal, or name the file: {display(entry.file, 200)}:{display(entry.name, 60)}"
        raise Failure(told, code=USAGE, cause=cause, hint=hint) from denied
    except InterlockError as error:
        raise Failure(str(error), code=USAGE, hint=error.hint or "") from error
    return bound(server, entry, launch)


async def _ask(launch: Launch, user: User) -> None:
    home = host_folder()
    leaves = Leaves(files_in(home / "leaves", "leaves"))
    gate = Gate(Policy([_RULE]), user, audit=FileAudit(home / "audit.jsonl"), leaves=leaves)
    try:
        await gate.launch(launch)
    finally:
        gate.close()


def _user() -> User:
    """On stderr: stdout belongs to the result."""
    terminal = terminal_or_none()
    return Absent() if terminal is None else TerminalUser(Screen(sys.stderr), terminal, forget=terminal.forget_typed)
