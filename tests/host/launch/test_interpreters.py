"""host/launch/interpreters.py: which words of a command are code, and which name a file of it."""

import pytest

from interlock.host.launch.interpreters import base_name, inline_code, scripts_in
from support.growth import assert_linear


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("python -c x", "-c"),
        ("/usr/bin/python3.11 -I -W ignore -c x", "-c"),
        ("python3 -Ic x", "-Ic"),
        ("python -cprint(1)", "-c"),
        ("node -e x", "-e"),
        ("node --eval=x", "--eval"),
        ("node -pe x", "-p"),
        ("nodejs -r ./a.js -e x", "-e"),
        ("perl -w -ne x", "-ne"),
        ("perl -E x", "-E"),
        ("ruby -rjson -e x", "-e"),
        ("deno eval x", "eval"),
        ("bun -e x", "-e"),
        ("php -r x", "-r"),
        ("bash -c x", "-c"),
        ("sh -euc x", "-euc"),
        (r"C:\Windows\cmd.exe /C x", "/C"),
        ("pwsh -NoProfile -Command x", "-Command"),
        ("env A=1 python3 -c x", "-c"),
        ("uv run python -c x", "-c"),
        ("python3.14t -c x", "-c"),
        ("python3-dbg -c x", "-c"),
        ("bash +x -c x", "-c"),
        ("cmd /d /s /c x", "/c"),
        ("npx -y -c x", "-c"),
        ("npm exec --call=x", "--call"),
        ("/usr/bin/env -S x", "-S"),
        ("python3 --check-hash-based-pycs always -c x", "-c"),
        ("bash --rcfile a.sh -c x", "-c"),
        ("node --title a.js -e x", "-e"),
        ("node --icu_data_dir a.js -e x", "-e"),
        ("node --title= -e x", "-e"),
        ("node --import data:text/javascript,x a.js", "data:"),
        ("node --import=data:text/javascript,x a.js", "data:"),
        ("deno run data:text/javascript,x", "data:"),
    ],
)
def test_code_in_the_words_is_found(line, option):
    assert [found for _, found in inline_code(line.split())] == [option]
    assert not [script for script in scripts_in(line.split()) if script != "python"]


@pytest.mark.parametrize(
    ("line", "scripts"),
    [
        ("python server.py -c conf", ["server.py"]),
        ("python -u -X dev server.py", ["server.py"]),
        ("python -m server -c x", []),
        ("node --import ./hook.js server.js -e", ["server.js"]),
        ("node -- server.js", ["server.js"]),
        ("node --no-warnings server.js --url data:x -p 80", ["server.js"]),
        ("bash run.sh -c", ["run.sh"]),
        ("deno run --allow-net server.ts", ["server.ts"]),
        ("uv run --with mcp server.py", ["server.py"]),
        ("uv --directory src run server.py", ["server.py"]),
        ("npx some-server -c x", []),
        ("python", []),
        ("python --", []),
        ("perl -I lib tool.pl", ["tool.pl"]),
    ],
)
def test_a_script_is_found_and_its_own_options_are_no_code(line, scripts):
    assert (scripts_in(line.split()), inline_code(line.split())) == (scripts, [])


@pytest.mark.parametrize("words", [["python"], ["uv", "--with"]])
def test_thousands_of_words_cost_linear_time(words):
    assert_linear(inline_code, lambda size: words * size, 1_000)


def test_code_after_very_many_options_is_named_as_well():
    assert inline_code(["python", *["-u"] * 1000, "-c", "x"]) == [("python", "-u")]


def test_what_a_program_is_called():
    assert [base_name(word) for word in ("/usr/bin/Python3", r"C:\x\NODE.EXE", "npx")] == ["python3", "node", "npx"]
