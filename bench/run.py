"""Measure Interlock beside its peers in one run and print the ratios.

python bench/run.py            everything, about 28 minutes once the peers are set up
python bench/run.py --quick    a short look, about five minutes
python bench/run.py --write    also rewrite docs/benchmarks.md
"""

import argparse
import os
import sys
from collections.abc import Callable
from time import perf_counter

import report
from driver import pin_driver
from measures import SELECTABLE, Bench
from peers import GROUPS, REPOSITORY, set_up
from plans import FULL, QUICK
from samples import Samples

PAGE = REPOSITORY / "docs" / "benchmarks.md"


def _names(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in allowed]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"choose from {', '.join(allowed)}")
        return names

    return parse


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Interlock beside its peers.")
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument("--write", action="store_true", help="rewrite docs/benchmarks.md")
    parser.add_argument(
        "--only",
        type=_names(SELECTABLE),
        default=list(SELECTABLE),
        metavar="MEASURES",
        help=f"comma-separated: {', '.join(SELECTABLE)}",
    )
    parser.add_argument(
        "--peers",
        type=_names(GROUPS),
        default=list(GROUPS),
        metavar="PEERS",
        help=f"comma-separated: {', '.join(GROUPS)}",
    )
    return parser.parse_args()


def main() -> int:
    """1 where a measure failed: the page keeps its figures then, and the tables go to the terminal only."""
    arguments = _arguments()
    cores = os.cpu_count() or 1
    plan = QUICK if arguments.quick else FULL
    contestants, absent = set_up(arguments.peers)
    for name, reason in absent.items():
        print(f"{name} is absent: {reason}")
    pin_driver()
    bench = Bench(contestants, set(arguments.only), plan, Samples())
    started = perf_counter()
    bench.run()
    run = report.Run(
        plan=plan,
        wanted=arguments.only,
        contestants=contestants,
        absent=absent,
        samples=bench.samples,
        cores=cores,
    )
    print(f"\n{report.machine_line(run)} Took {perf_counter() - started:.0f} s.\n")
    print("\n".join(report.tables(run)))
    failed = report.failures(run)
    for line in failed:
        print(line, file=sys.stderr)
    if arguments.write and not failed:
        PAGE.write_text(report.document(run), encoding="utf-8")
        print("\nwrote docs/benchmarks.md")
    elif arguments.write:
        print("\ndocs/benchmarks.md was not written: see what failed above, or leave it out (--only, --peers)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
