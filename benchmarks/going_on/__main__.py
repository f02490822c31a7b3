"""Prints the table of docs/figures.md; see the package."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.going_on.measure import missed, own, table
from benchmarks.going_on.truth import HALVES
from resume_hooks.paths import Where

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--missed"] or ["all"]
    if words[0] == "--own":
        known = sorted(Path(Where().projects).glob("*/*.jsonl"), key=lambda file: -file.stat().st_mtime)
        print("\n".join(own(known[: int(words[1]) if words[1:] else 20])))
    elif not {*words} <= {*HALVES, "all"}:
        sys.exit(f"Usage: python -m benchmarks.going_on [all | {' '.join(HALVES)}] [--missed] | --own [COUNT]")
    else:
        print("\n".join([*table(*words), *(missed(*words) if "--missed" in sys.argv else ())]))
