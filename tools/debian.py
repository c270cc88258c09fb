"""Folders with a release of Debian, below .cache, made by debootstrap and entered by chroot, for the Pythons they have.

make debian-pythons                  the tests with the Pythons of every suite below; missing folders are made
make debian-pythons SUITES=sid       of one suite
python tools/debian.py enter sid python3.15 -VV    one command inside, in the current checkout

Needs Linux, root and debootstrap. A folder has a few hundred MB and stays until `make clean`. The mirror is the one
that apt uses on this machine; DEBIAN_MIRROR names another one. All mounts belong to a mount namespace of the one
command that runs inside: they are gone when it ends, however it ends, and are never visible in the folder from outside.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ROOT / ".cache" / "debian"
COMMON = ("ca-certificates", "git", "procps")
SUITES = {  # and the Pythons to test with: bookworm, Debian 12, has 3.11.2
    "bookworm": ("python3.11",),
    "sid": ("python3.14", "python3.15"),
}
# How pip and TLS reach the package registry outside is how they reach it inside: the variables are inherited, the
# files bound, read-only. Nothing of their content is written down.
NETWORK = ("/etc/resolv.conf", "/etc/hosts")
REGISTRY = ("/etc/pip.conf", "/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates")
MOUNT_AND_ENTER = """
set -eu
folder=$1 root=$2 pip=$3 bound=$4; shift 4
for name in dev proc sys; do mount --rbind "/$name" "$folder/$name"; done
mkdir -p "$folder$root"
mount --bind "$root" "$folder$root"
show() {  # what is there outside, inside; nothing that runs there can change it
    [ -e "$1" ] || return 0
    if [ -d "$1" ]; then mkdir -p "$2"; else touch "$2"; fi
    mount --bind "$1" "$2"
    mount -o remount,bind,ro "$2"
}
for name in $bound; do show "$name" "$folder$name"; done
HOME=/root
show "$pip" "$folder$HOME/.config/pip"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TMPDIR=/tmp
export HOME PATH LC_ALL TMPDIR
unset XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
exec chroot "$folder" /bin/sh -c 'cd "$1"; shift; exec "$@"' sh "$root" "$@"
"""


class Unusable(Exception):
    """Why a folder cannot be made or entered on this machine, and what to do about it."""


def enter(suite: str) -> list[str]:
    """The words before a command that is to run inside the folder of a suite."""
    return [sys.executable, str(ROOT / "tools" / "debian.py"), "enter", suite]


def find_pythons() -> list[tuple[str, str]]:
    """Suite and name of each Python of the folders that exist; none where this user cannot enter them."""
    made = [suite for suite in SUITES if (FOLDERS / suite).is_dir()]
    if not made:
        return []
    try:
        check_machine()
    except Unusable as reason:
        print(f"pythons: {', '.join(made)} left out: {reason}", file=sys.stderr)
        return []
    return [(suite, name) for suite in made for name in SUITES[suite]]


def check_machine() -> None:
    """Raises `Unusable` unless this process may make mounts of its own and change its root."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise Unusable("chroot needs root")
    if not shutil.which("unshare") or subprocess.call(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL):
        raise Unusable("mount namespaces are not permitted here (a container needs CAP_SYS_ADMIN)")


def make_folder(suite: str) -> None:
    """The folder of a suite, unless it exists; one process at a time. What a failed run leaves is not used."""
    FOLDERS.mkdir(parents=True, exist_ok=True)
    with open(FOLDERS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (FOLDERS / suite).is_dir():
            return
        check_machine()
        if not shutil.which("debootstrap"):
            raise Unusable("debootstrap is not installed: apt-get install debootstrap")
        unfinished = FOLDERS / f"{suite}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        words = ["debootstrap", "--variant=minbase", "--force-check-gpg", suite, str(unfinished), find_mirror()]
        if subprocess.call(words) != 0:
            raise Unusable(f"debootstrap failed, see {unfinished}/debootstrap/debootstrap.log")
        # By apt and not by debootstrap, which does not know the packages that only another one provides.
        packages = [*COMMON, *(word for name in SUITES[suite] for word in (name, f"{name}-venv"))]
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qy", "--no-install-recommends"]
        if subprocess.call(inside(unfinished, [*apt, *packages], NETWORK)) != 0:
            raise Unusable(f"apt-get failed in the folder of {suite}")
        subprocess.check_call(inside(unfinished, ["apt-get", "clean"], NETWORK))
        unfinished.rename(FOLDERS / suite)


def find_mirror() -> str:
    """The mirror of Debian's own packages that this machine's apt uses, or DEBIAN_MIRROR."""
    if given := os.environ.get("DEBIAN_MIRROR"):
        return given
    words = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
    if not shutil.which(words[0]):
        raise Unusable("this machine has no apt: name a mirror with DEBIAN_MIRROR=")
    mirror = choose_mirror(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    if mirror is None:
        raise Unusable("apt knows no mirror of Debian: run apt-get update, or name one with DEBIAN_MIRROR=")
    return mirror


def choose_mirror(targets: str) -> str | None:
    """The first of `origin|label|address` per line that is Debian's main archive (security has another label)."""
    rows = (line.split("|", 2) for line in targets.splitlines())
    return next((row[2] for row in rows if row[:2] == ["Debian", "Debian"]), None)


def inside(folder: Path, words: list[str], bound: tuple[str, ...] = NETWORK + REGISTRY) -> list[str]:
    """The command that runs these words inside a folder, in this checkout, which has the same path there; `bound` is
    what of this machine is seen there. Where packages are installed it must not hold what they write."""
    pip = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "pip")
    given = [str(folder.resolve()), str(ROOT), pip, " ".join(bound)]
    shell = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT_AND_ENTER, "sh"]
    return [*shell, *given, *words]


def run_inside(suite: str, words: list[str]) -> NoReturn:
    """This process becomes that command."""
    if not (FOLDERS / suite).is_dir():
        raise Unusable(f"there is no folder of {suite}: make debian-pythons SUITES={suite}")
    check_machine()
    command = inside(FOLDERS / suite, words)
    os.execvp(command[0], command)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["enter", suite, *words] if suite in SUITES and words:
            try:
                run_inside(suite, words)
            except Unusable as reason:
                sys.exit(f"debian: {reason}")
        case _:
            sys.exit(f"usage: debian.py enter SUITE COMMAND..., SUITE one of {', '.join(SUITES)}")
