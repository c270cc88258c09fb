"""`make docs`: write the reference, see that every page has its place and its test, and build the site.

Warnings are errors: a link that leads nowhere, a page that is in no menu, a block of code that no test runs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import api_reference

ROOT = Path(__file__).resolve().parent.parent
BUILDER = ROOT / ".venv-docs" / "bin" / "zensical"
FOREIGN_WORKER = re.compile(r'https://[^"]+/iframe-worker/shim')


def main() -> int:
    api_reference.main()
    faults = [*pages_without_a_place(), *places_without_a_page(), *pages_without_a_test()]
    for fault in faults:
        print(f"docs: {fault}", file=sys.stderr)
    if faults:
        return 1
    return build(ROOT / ".cache" / "docs")


def build(folder: Path) -> int:
    """In a folder of its own, made anew: the builder keeps, and clears, a `.cache` beside its configuration, and ours
    holds what took minutes to make."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    code = subprocess.call([str(BUILDER), "build", "--strict"], cwd=folder)
    if code == 0:
        if not use_own_worker(folder / "site"):
            print(
                "the builder writes no search worker that can be replaced: the search fails in a site opened as a file"
            )
            return 1
        print(f"open {folder.relative_to(ROOT) / 'site' / 'index.html'}")
    return code


def use_own_worker(site: Path) -> int:
    """Make the search work in a site that is opened as a file. The builder would load a script from elsewhere.

    The number of places that were changed.
    """
    changed = 0
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text, found = FOREIGN_WORKER.subn(f"{up}scripts/file_worker.js", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        changed += found
    return changed


def pages() -> list[Path]:
    return sorted((ROOT / "docs").glob("*.md"))


def pages_without_a_place() -> list[str]:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return [f"docs/{page.name} is not in the nav of mkdocs.yml" for page in pages() if f": {page.name}\n" not in menu]


def places_without_a_page() -> list[str]:
    """The builder passes over them in silence."""
    named = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    return [
        f"docs/{name} is in the nav of mkdocs.yml and not there"
        for name in named
        if not (ROOT / "docs" / name).is_file()
    ]


def pages_without_a_test() -> list[str]:
    """A page with code is named by the test that runs it."""
    tests = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*page*.py")))
    coded = [page for page in pages() if "```python" in page.read_text(encoding="utf-8")]
    return [f"docs/{page.name} has code that no test runs" for page in coded if f'"{page.name}"' not in tests]


if __name__ == "__main__":
    sys.exit(main())
