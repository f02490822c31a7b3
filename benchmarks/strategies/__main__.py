"""Prints the table of docs/figures.md. Run: ``python -m benchmarks.strategies [tune|final|all]``."""

from __future__ import annotations

import sys

from benchmarks.recovery.truth import HALVES
from benchmarks.strategies.measure import table

if __name__ == "__main__":
    words = sys.argv[1:] or ["all"]
    if len(words) > 1 or words[0] not in {*HALVES, "all"}:
        sys.exit(f"Usage: python -m benchmarks.strategies [{'|'.join(HALVES)}|all]")
    print("\n".join(table(words[0])))
