"""Which requirement is shown by which test: `make coverage-spec`.

Prints coverage by area and by level, then what is open. The exit code is 0 when every MUST and SHOULD row has a
test or a written reason, no test names an unknown row, and the table still is the specification's.

--json prints only what the tests claim, for whoever wants to judge it (tests/behaviours/test_manifest.py).
-v lists the rows shown in fewer revisions than they apply to as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.manifest import (  # noqa: E402 - it lives among the tests
    Manifest,
    Row,
    collect_shown,
    read_reasons,
    read_rows,
    spec_differences,
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Which requirement is shown by which test.")
    parser.add_argument("--json", action="store_true", help="print what the tests claim, and nothing else")
    parser.add_argument("-v", "--verbose", action="store_true", help="list rows that lack a revision, too")
    options = parser.parse_args()
    shown = collect_shown()
    if options.json:
        print(json.dumps({"tests": shown.tests, "broken": shown.broken}))
        return 0
    manifest = Manifest(read_rows(), shown, read_reasons())
    print_table(manifest, "area", lambda row: row.area)
    print_table(manifest, "level", lambda row: row.level)
    print_warnings(manifest, verbose=options.verbose)
    faults = print_faults(manifest)
    print(f"{faults} to mend" if faults else "every binding row has a test or a reason")
    return 1 if faults else 0


def print_table(manifest: Manifest, title: str, key: Callable[[Row], str]) -> None:
    groups: dict[str, list[Row]] = {}
    for row in manifest.rows.values():
        groups.setdefault(key(row), []).append(row)
    groups["all"] = list(manifest.rows.values())
    tested, reasoned, open_ids = manifest.shown.tests, manifest.reasoned, {row.id for row in manifest.open()}
    print(f"{title:<24}{'rows':>6}{'tested':>8}{'reason':>8}{'open':>6}")
    for name, rows in groups.items():
        with_test = sum(row.id in tested for row in rows)
        with_reason = sum(row.id in reasoned and row.id not in tested for row in rows)
        still_open = sum(row.id in open_ids for row in rows)
        print(f"{name:<24}{len(rows):>6}{with_test:>8}{with_reason:>8}{still_open:>6}")
    print()


def print_warnings(manifest: Manifest, *, verbose: bool) -> None:
    needless = (f"{reason.where}: {reason.id}" for reason in manifest.needless_reasons())
    print_list("warning: a reason for a row that is tested", needless)
    thin = manifest.thin()
    if verbose:
        print_list("note: not shown in", (f"{id}: {', '.join(names)}" for id, names in thin.items()))
    elif thin:
        print(f"note: {len(thin)} tested rows lack a test in some revision they apply to (-v lists them)\n")


def print_faults(manifest: Manifest) -> int:
    differences = spec_differences(manifest.rows)
    if differences is None:
        print("note: no specification beside the repository, the table was not compared with it\n")
    unknown = manifest.unknown_in_tests()
    return sum(
        (
            print_list("could not be collected", manifest.shown.broken),
            print_list("differs from the specification", differences or ()),
            print_list("unknown id in a test", (f"{id}: {', '.join(unknown[id][:3])}" for id in sorted(unknown))),
            print_list("bad reason", manifest.bad_reasons()),
            print_list("open", (f"{row.id:<16}{row.level:<12}{row.text}" for row in manifest.open())),
        )
    )


def print_list(title: str, lines: Iterable[str]) -> int:
    found = list(lines)
    if found:
        print(f"{title} ({len(found)}):")
        print("".join(f"  {line}\n" for line in found))
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
