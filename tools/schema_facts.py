"""Writes what the official JSON Schemas demand to tests/schemas, as facts without a sentence of theirs.

    .venv/bin/python tools/schema_facts.py FOLDER            write the files
    .venv/bin/python tools/schema_facts.py FOLDER --check    only compare; exit code 1 if they differ

FOLDER holds `<revision>/schema.json` for every revision, and `<revision>/examples/<definition>/*.json` for the newest.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.schema_notation import read_schema, reduce_schema, write_schema  # noqa: E402 - it lives among the tests
from support.schema_source import EXAMPLES_FILE, FACTS_FOLDER, MODERN_REVISION, REVISIONS  # noqa: E402

ORIGIN = "written by tools/schema_facts.py, not by hand"
PLACEHOLDER = "text"  # instead of every string of an example that has more than one word
MAX_DIFFERENCES = 40  # lines printed for one file


def main() -> int:
    parser = argparse.ArgumentParser(description="Write what the official JSON Schemas demand to tests/schemas.")
    parser.add_argument("folder", type=Path, help="holds <revision>/schema.json")
    parser.add_argument("--check", action="store_true", help="only compare; exit code 1 if the files differ")
    parser.add_argument("--into", type=Path, default=FACTS_FOLDER, help="where the files are (default: tests/schemas)")
    options = parser.parse_args()
    files = make_files(options.folder)
    if options.check:
        return 1 if sum([print_differences(options.into / name, text) for name, text in files.items()]) else 0
    options.into.mkdir(exist_ok=True)
    for name, text in files.items():
        (options.into / name).write_text(text, encoding="utf-8")
    return 0


def make_files(folder: Path) -> dict[str, str]:
    """File name → text, for every revision and the examples of the newest."""
    found = {f"{revision}.txt": render_facts(folder, revision) for revision in REVISIONS}
    found[EXAMPLES_FILE] = render_examples(folder / MODERN_REVISION / "examples")
    return found


def render_facts(folder: Path, revision: str) -> str:
    document = json.loads((folder / revision / "schema.json").read_text(encoding="utf-8"))
    text = write_schema(document, f"What the JSON Schema of {revision} demands; {ORIGIN}.")
    if reduce_schema(read_schema(text)) != reduce_schema(document):
        raise ValueError(f"{revision}: the notation loses a fact; extend tests/support/schema_notation.py")
    return text


def render_examples(folder: Path) -> str:
    lines = [f"# The shapes of the official examples of {MODERN_REVISION}; {ORIGIN}."]
    for path in sorted(folder.glob("*/*.json")):
        value = replace_sentences(json.loads(path.read_text(encoding="utf-8")))
        lines.append(f"{path.parent.name}/{path.stem} {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def replace_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: replace_sentences(member) for name, member in value.items()}
    if isinstance(value, list):
        return [replace_sentences(item) for item in value]
    return PLACEHOLDER if isinstance(value, str) and len(value.split()) > 1 else value


def print_differences(path: Path, text: str) -> bool:
    """Print how the file differs from what the official files say; is there anything?"""
    ours = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = list(difflib.unified_diff(ours.splitlines(), text.splitlines(), path.name, "official", lineterm="", n=0))
    print("".join(f"{line[:200]}\n" for line in lines[:MAX_DIFFERENCES]), end="")
    return ours != text


if __name__ == "__main__":
    sys.exit(main())
