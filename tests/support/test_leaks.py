"""support/leaks.py: what a test leaves is found, also by the tests' own conftest and in synchronous tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import leaks
from support.leaks import no_leaks

TESTS = Path(__file__).resolve().parents[1]
LEAKS = """
import os, subprocess, sys

def test_descriptor():
    os.open("/dev/null", os.O_RDONLY)

async def test_descriptor_of_an_asynchronous_test():
    os.open("/dev/null", os.O_RDONLY)

def test_orphan():
    code = "import os, time; os.fork() and os._exit(0); os.setsid(); print('up', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()

def test_nothing():
    assert subprocess.run([sys.executable, "-S", "-c", ""]).returncode == 0
"""


def test_a_descriptor_is_found_and_named():
    with pytest.raises(AssertionError, match=r"descriptors left open: .*/dev/null"), no_leaks():
        descriptor = os.open("/dev/null", os.O_RDONLY)
    os.close(descriptor)


def test_a_process_is_found_named_and_ended(monkeypatch):
    monkeypatch.setattr(leaks, "GRACE", 0.1)
    with pytest.raises(AssertionError, match=r"processes left behind: .*sleep 600"), no_leaks():
        process = subprocess.Popen(["sleep", "600"])
    assert process.wait(30) == -9


def test_what_is_ended_in_time_is_not_left():
    with no_leaks():
        process = subprocess.Popen(["sleep", "600"])
        with open(os.devnull) as file:
            assert file.read() == ""
        process.kill()
    process.wait(30)


def test_each_test_is_checked_whether_asynchronous_or_not(tmp_path):
    path = tmp_path / "test_leaking.py"
    path.write_text(LEAKS, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-c", os.devnull, str(path)]
    code = "import support.leaks; support.leaks.GRACE = 0.1"
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.path.insert(0, {str(TESTS)!r}); {code}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = set(re.findall(r"^ERROR test_leaking.py::(\w+)", run.stdout, re.M))
    assert found == {"test_descriptor", "test_descriptor_of_an_asynchronous_test", "test_orphan"}, run.stdout
