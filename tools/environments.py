"""`make environments`: the tests in surroundings other than a developer's own, one after another.

Each runs what `make pythons` runs. What cannot be made here (another user needs root, a CPU limit a cgroup) is left out
and named. `python tools/environments.py user locale …` runs some of them; words that begin with `-` or name a path go
to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from pythons import OTHERS
from test import WORKERS

ROOT = Path(__file__).resolve().parent.parent
NOBODY = 65534  # the user and the group that own nothing
CPU_PERIOD, CPU_QUOTA = 100_000, 25_000  # microseconds: a quarter of one CPU for all processes together
QUIET_ASYNCIO = """
import logging
logging.getLogger("asyncio").addFilter(lambda record: record.msg != "Executing %s took %.3f seconds")
"""
PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


class Unavailable(Exception):
    """This machine cannot make these surroundings."""


class Surroundings(NamedTuple):
    folder: Path = ROOT  # that holds the tests
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    wrapper: tuple[str, ...] = ()  # words before those of the Python


def main() -> int:
    names = [word for word in sys.argv[1:] if word in SURROUNDINGS] or list(SURROUNDINGS)
    options = [word for word in sys.argv[1:] if word not in SURROUNDINGS]
    results = {name: run(name, options) for name in names}
    print("\n" + "\n".join(f"{name}: {result}" for name, result in results.items()))
    return int(any(result.startswith("failed") for result in results.values()))


def run(name: str, options: list[str]) -> str:
    print(f"\n=== {name}", flush=True)
    try:
        with SURROUNDINGS[name]() as around:
            words = [*around.wrapper, sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "--dist", "worksteal"]
            words += ["-p", "no:cacheprovider", *OTHERS, *options]
            variables = {**os.environ, "PROPERTIES": "0.2", **around.variables}
            code = subprocess.call(words, cwd=around.folder, env=variables)
    except Unavailable as error:
        return f"left out: {error}"
    return "passed" if code == 0 else f"failed with exit code {code}"


@contextmanager
def user() -> Iterator[Surroundings]:
    """An ordinary user with a copy of the sources. Its own mount namespace has a way to the interpreter, wherever that
    is: root's folders are closed to others."""
    if os.geteuid() != 0:
        yield Surroundings()  # this is one
        return
    if not shutil.which("setpriv") or subprocess.call(["unshare", "--mount", "true"]) != 0:
        raise Unavailable("needs setpriv and mount namespaces")
    with tempfile.TemporaryDirectory() as name:
        folder, python = Path(name), Path(sys.base_prefix)
        copy, aside = folder / "checkout", folder / "python"
        copy_sources(copy)
        aside.mkdir()
        for path in (folder, copy, *copy.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        script = 'mount --bind "$1" "$2" && '
        if python.is_relative_to("/root"):
            script += 'mount -t tmpfs -o mode=755 none /root && mkdir -p "$1" && mount --bind "$2" "$1" && '
        script += 'shift 2 && exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs -- "$@"'
        wrapper = ("unshare", "--mount", "sh", "-c", script, "sh", str(python), str(aside))
        own = {"HOME": name, "USER": "nobody", "LOGNAME": "nobody", "PYTHONPATH": str(copy / "src")}
        yield Surroundings(copy, own, wrapper)


def copy_sources(target: Path) -> None:
    """What git knows of, and what is new."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT).split(b"\0")
    for name in filter(None, listed):
        source, place = ROOT / os.fsdecode(name), target / os.fsdecode(name)
        if source.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


@contextmanager
def locale() -> Iterator[Surroundings]:
    """Turkish, whose small letter of I has no dot."""
    with tempfile.TemporaryDirectory() as folder:
        made = ["localedef", "-i", "tr_TR", "-f", "UTF-8", f"{folder}/tr_TR.UTF-8"]
        if not shutil.which("localedef") or subprocess.call(made, stderr=subprocess.DEVNULL) != 0:
            raise Unavailable("needs localedef and the sources of tr_TR (Debian: the package locales)")
        yield Surroundings(variables={"LC_ALL": "tr_TR.UTF-8", "LOCPATH": folder, "TZ": "Asia/Kolkata"})


@contextmanager
def quarter_cpu() -> Iterator[Surroundings]:
    first = Path("/sys/fs/cgroup/cpu" if Path("/sys/fs/cgroup/cpu").is_dir() else "/sys/fs/cgroup")
    folder = first / f"interlock-tests-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Unavailable(f"needs a cgroup of its own: {error.strerror}") from None
    try:
        try:
            if (folder / "cpu.cfs_quota_us").exists():
                (folder / "cpu.cfs_period_us").write_text(str(CPU_PERIOD))
                (folder / "cpu.cfs_quota_us").write_text(str(CPU_QUOTA))
            else:
                (folder / "cpu.max").write_text(f"{CPU_QUOTA} {CPU_PERIOD}")
        except OSError as error:
            raise Unavailable(f"needs the cpu controller of cgroups: {error.strerror}") from None
        script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        yield Surroundings(wrapper=("sh", "-c", script, str(folder)))
    finally:
        folder.rmdir()


@contextmanager
def development() -> Iterator[Surroundings]:
    """Without asyncio's notes about callbacks that took long: those speak about the machine."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(QUIET_ASYNCIO, encoding="utf-8")
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        yield Surroundings(variables={"PYTHONDEVMODE": "1", "PYTHONPATH": os.pathsep.join(paths)})


def given(**variables: str) -> Callable[[], AbstractContextManager[Surroundings]]:
    @contextmanager
    def surroundings() -> Iterator[Surroundings]:
        yield Surroundings(variables=variables)

    return surroundings


SURROUNDINGS = {
    "user": user,
    "locale": locale,
    "time-zone": given(TZ="Pacific/Kiritimati"),
    "no-utf8": given(**PLAIN),
    "development": development,
    "quarter-cpu": quarter_cpu,
}


if __name__ == "__main__":
    sys.exit(main())
