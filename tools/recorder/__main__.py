"""Record what a checkout does, or compare two records.

``python -m tools.recorder TREE OUT.jsonl`` makes a record. TREE is a checkout with a ``.venv`` of
its own. The files that the steps wrote are stored in the folder OUT. ``python -m tools.recorder
--compare A.jsonl B.jsonl`` prints the differences of two records and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tools.recorder import matrix, sessions
from tools.recorder.compare import print_differences
from tools.recorder.home import RecorderHome, enter_private_mounts
from tools.recorder.run import Runner, select_one_per_path

SHARED_FOLDER = Path(__file__).resolve().parents[2].parent / "shared"


def main() -> int:
    """Run the program, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.recorder", description=__doc__)
    parser.add_argument("first", type=Path, metavar="TREE|A.jsonl")
    parser.add_argument("second", type=Path, metavar="OUT.jsonl|B.jsonl")
    parser.add_argument("--compare", action="store_true", help="compare two records")
    parser.add_argument(
        "--corpus", type=Path, default=SHARED_FOLDER / "corpus", help="Claude Code sessions"
    )
    parser.add_argument(
        "--codex", type=Path, default=SHARED_FOLDER / "codex", help="Codex sessions"
    )
    parser.add_argument("--mutants", type=int, default=100, help="number of damaged copies")
    parser.add_argument(
        "--varied",
        type=int,
        default=12,
        help="number of sessions of each agent for which every step is recorded",
    )
    parser.add_argument(
        "--only", default="", help="record only sessions whose agent and name contain this text"
    )
    given = parser.parse_args()
    if given.compare:
        return int(print_differences(given.first, given.second) > 0)
    enter_private_mounts()
    record_tree(given)
    return 0


def record_tree(given: argparse.Namespace) -> None:
    """Record what a checkout does with the sessions of the corpora, damaged copies, and a full home."""
    tree, out, began = given.first.resolve(), given.second.resolve(), time.monotonic()
    if not (tree / ".venv" / "bin" / "python").exists():
        raise SystemExit(f"{tree} has no .venv/bin/python")
    store = out.with_suffix("")
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    agents = [
        sessions.read_claude_sessions(given.corpus),
        sessions.read_codex_sessions(given.codex),
    ]
    with out.open("w", encoding="utf-8") as record:
        runner = Runner(tree, RecorderHome(tree, store), record)
        for found in agents:
            names_with_every_step = {
                session.name
                for session in sessions.choose_sessions_of_all_sizes(found, given.varied)
            }
            for session in sessions.select_sessions_by_name(found, given.only):
                runner.record_session(
                    session,
                    matrix.list_scenarios(
                        session, include_all=session.name in names_with_every_step
                    ),
                )
        damaged = sessions.make_damaged_copies([*agents[0], *agents[1]], given.mutants)
        for session in sessions.select_sessions_by_name(damaged, given.only):
            runner.record_session(session, matrix.DAMAGED_SCENARIOS)
        if not given.only:
            some = [
                *sessions.choose_sessions_of_all_sizes(agents[0], 20),
                *sessions.choose_sessions_of_all_sizes(agents[1], 8),
            ]
            runner.record_home("home", select_one_per_path(some), matrix.HOME_SCENARIOS)
        runner.close()
    sys.stderr.write(f"{runner.count:,} steps in {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    sys.exit(main())
