"""``python -m tests.fuzz`` runs one or all targets for a long time and prints a table of the results."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.draws import Draws
from tests.fuzz.running import TargetResult, make_home, restore_environment, run_target
from tests.fuzz.targets import TARGETS as CORE_TARGETS
from tests.needs import REPO

TARGETS = [
    *CORE_TARGETS,
    *(
        target
        for path in sorted(REPO.glob("tests/parts/*/fuzz.py"))
        for target in importlib.import_module(f"tests.parts.{path.parent.name}.fuzz").TARGETS
    ),
]


def main() -> int:
    """Run the targets. Return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0, help="of all targets together")
    parser.add_argument(
        "--target", help="one target alone: " + ", ".join(target.name for target in TARGETS)
    )
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="the same seed gives the same cases"
    )
    parser.add_argument("--again", help="run one case of --target, as a failed one was printed")
    asked = parser.parse_args()
    chosen = [target for target in TARGETS if asked.target in {None, target.name}]
    if not chosen or (asked.again and len(chosen) > 1):
        parser.error("name one target with --target")
    target_results = []
    for target in chosen:
        with tempfile.TemporaryDirectory() as folder, restore_environment():
            try_one = target.prepare(make_home(Path(folder)))
            if asked.again:
                try_one(Draws(bytes.fromhex(asked.again)))
            else:
                target_results.append(
                    run_target(target, try_one, 60 * asked.minutes / len(chosen), asked.seed)
                )
    print(_format_table(target_results, asked.seed))
    for one in target_results:
        for where, raw in one.failures.items():
            print(
                f"\n{one.target_name}: {where}\n  python -m tests.fuzz --target '{one.target_name}' --again {raw}"
            )
    return int(any(one.failures for one in target_results))


def _format_table(target_results: list[TargetResult], seed: int) -> str:
    rows = [
        f"| target | cases | CPU s | slowest ms | failures |  seed {seed}",
        "|---|---|---|---|---|",
    ]
    for one in target_results:
        slowest = f"{1000 * one.slowest_seconds:.0f}"
        rows.append(
            f"| {one.target_name} | {one.case_count:,} | {one.cpu_seconds:.0f} | {slowest} | {len(one.failures)} |"
        )
    cases, failures = (
        sum(one.case_count for one in target_results),
        sum(len(one.failures) for one in target_results),
    )
    return "\n".join(
        [
            *rows,
            f"| all | {cases:,} | {sum(one.cpu_seconds for one in target_results):.0f} | | {failures} |",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
