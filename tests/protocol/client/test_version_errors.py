"""protocol/client/version_errors.py: the versions that a refusal lists."""

import pytest

from interlock.protocol.client.version_errors import no_common, supported_in, versions_shown
from interlock.wire.errors import InvalidParams


@pytest.mark.parametrize(
    ("data", "listed"),
    [
        ({"supported": ["2024-11-05", 7], "requested": "x"}, ["2024-11-05", 7]),
        ({"supported": []}, []),
        ({"supported": "2024-11-05"}, []),
        ({"supported": None}, []),
        ({}, []),
        (None, []),
        ([], []),
        ("x", []),
    ],
)
def test_the_list_is_read_where_it_is_one(data, listed):
    assert supported_in(InvalidParams("no", data)) == listed


def test_the_error_shows_both_sides_harmlessly_and_within_bounds():
    error = no_common(["\x1b[2J", *(str(number) for number in range(100))], ("2024-11-05", "2025-11-25"))
    assert error.offered == versions_shown(["\x1b[2J", *map(str, range(19))]) and len(error.offered) == 20
    assert str(error).startswith("the server speaks \\x1b[2J, 0, 1") and str(error).endswith("2024-11-05, 2025-11-25")
    assert "speaks nothing, this client a" in str(no_common([], ("a",)))
