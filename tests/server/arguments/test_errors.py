"""server/arguments/errors.py: what is raised for arguments that cannot be taken."""

from interlock.server.arguments.errors import Unmendable


def test_each_argument_has_its_line():
    error = Unmendable(["a: missing", "b: no number"])
    assert (error.lines, str(error)) == (["a: missing", "b: no number"], "a: missing\nb: no number")
