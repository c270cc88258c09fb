"""state/private_folder.py: what is made is its owner's alone, whatever the umask of the process."""

import os
import stat

import pytest

from interlock.auth.client.token_storage import FileRecords
from interlock.state.private_folder import make_private_folder

posix = pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@posix
def test_all_that_is_made_is_of_the_owner_alone(tmp_path, umask):
    make_private_folder(tmp_path / "a" / "b" / "c")
    assert [mode(tmp_path / part) for part in ("a", "a/b", "a/b/c")] == [0o700] * 3


@posix
def test_what_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o755)
    make_private_folder(tmp_path / "a")
    make_private_folder(tmp_path / "a" / "b")
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o755, 0o700)


def test_a_file_in_its_place_is_an_error(tmp_path):
    (tmp_path / "a").write_text("")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(OSError):
            make_private_folder(path)


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022], indirect=True)
def test_so_is_the_folder_above_the_tokens(tmp_path, umask):
    """As `interlock` has them: the folder of its state is made because that of the tokens is."""
    FileRecords(tmp_path / "interlock" / "tokens").save("key", b"{}")
    assert [mode(tmp_path / part) for part in ("interlock", "interlock/tokens")] == [0o700] * 2
    assert [mode(file) for file in (tmp_path / "interlock" / "tokens").iterdir()] == [0o600]
