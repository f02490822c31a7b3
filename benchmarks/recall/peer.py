"""Search with the peer's index, which returns sessions instead of turns.

The index is SessionIndex of claude-code-tools, which uses tantivy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recall import peer_index
from benchmarks.recall.questions import CorpusHome, Place
from benchmarks.recall.searcher import Answer

UNKNOWN_TURN = -1
"""The turn of a hit for which only the file is known."""


class PeerSearcher:
    """Searches with the peer's index. All questions are asked in one run of the peer's own Python."""

    name = "peer: tantivy SessionIndex"
    finds_turns = False

    def __init__(
        self, program: str, home: CorpusHome, index: Path, wording_lists: Iterable[Sequence[str]]
    ) -> None:
        texts = list(dict.fromkeys(map(" ".join, wording_lists)))
        said = ask_peer_index(program, home.config, index, texts)
        self.note = f"peer: {said['built']}; {_describe_refusals(said['answers'])}"
        self._home = home
        self._known: dict[str, dict[str, Any]] = dict(zip(texts, said["answers"], strict=True))

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the files of the peer's answer. Several wordings are asked as one query."""
        said = self._known[" ".join(wordings)]
        return Answer(
            [
                Place(self._home.find_path_in_corpus(file), UNKNOWN_TURN)
                for file in said["files"][:max_hits]
            ],
            said["ms"],
        )


def find_peer_program() -> str | None:
    """Return the path of the peer's ``aichat`` from BENCH_PEER or PATH, or None."""
    return os.environ.get("BENCH_PEER") or shutil.which("aichat")


def ask_peer_index(
    program: str, home: Path, index: Path, queries: Sequence[str], rounds: int = 1
) -> dict[str, Any]:
    """Ask the peer's index in the peer's own Python, and return the document that ``peer_index`` prints.

    The peer's index is built if it is missing.
    """
    index.mkdir(parents=True, exist_ok=True)
    asked = {"home": str(home), "index": str(index), "rounds": rounds, "queries": list(queries)}
    command = [str(Path(program).parent / "python"), str(peer_index.__file__)]
    env = {"PATH": os.environ["PATH"], "HOME": str(index)}
    done = subprocess.run(
        command, input=json.dumps(asked).encode(), capture_output=True, check=True, env=env
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _describe_refusals(answers: Sequence[dict[str, Any]]) -> str:
    kinds = [answer["how"] for answer in answers]
    return ", ".join(f"{kinds.count(kind)} questions {kind}" for kind in dict.fromkeys(kinds))
