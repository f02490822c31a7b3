"""Print the tables of docs/figures.md; see ``benchmarks.going_on``."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.going_on.measure import format_tables, list_missed_items, measure_own_sessions
from benchmarks.going_on.truth import LABEL_SETS, SEALED_LABEL_SETS, SEEN_LABEL_SETS
from resume_hooks.paths import Where


def main(arguments: list[str]) -> None:
    """Print the requested tables."""
    if arguments[:1] == ["--own"]:
        known = sorted(
            Path(Where().projects).glob("*/*.jsonl"), key=lambda file: -file.stat().st_mtime
        )
        print("\n".join(measure_own_sessions(known[: int(arguments[1]) if arguments[1:] else 20])))
        return
    label_sets = [word for word in arguments if word != "--missed"]
    if not {*label_sets} <= {*LABEL_SETS}:
        sys.exit(
            f"Usage: python -m benchmarks.going_on [{' '.join(LABEL_SETS)}] [--missed] | --own [COUNT]"
        )
    for group in [label_sets] if label_sets else [SEEN_LABEL_SETS, SEALED_LABEL_SETS]:
        for line in (
            *format_tables(*group),
            "",
            *(list_missed_items(*group) if "--missed" in arguments else ()),
        ):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
