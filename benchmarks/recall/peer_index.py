"""Build the peer's index of a home and query it. The peer's own Python runs this program.

The program reads a JSON document from stdin: ``{"home", "index", "rounds", "queries"}``. It prints
a JSON document: ``built`` contains the peer's own counts, and ``answers`` has, for each query,
``files`` (best first), ``ms`` (the median of the rounds) and ``how``. ``how`` is "as typed", "as
plain words" if the peer's parser rejects the query as typed, or "refused" if it rejects both.
"""

from __future__ import annotations

import importlib
import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

MAX_HIT_COUNT = 10


def main() -> None:
    """Answer the queries of the document on stdin."""
    asked = json.load(sys.stdin)
    peer = importlib.import_module("claude_code_tools.search_index")
    nowhere = Path(asked["index"]) / "no-codex"
    index = Path(asked["index"])
    built = peer.auto_index(
        index_path=index, claude_home=Path(asked["home"]), codex_home=nowhere, silent=True
    )
    opened = peer.SessionIndex(index)
    answers = [answer_query(opened, query, asked["rounds"]) for query in asked["queries"]]
    print(json.dumps({"built": built, "answers": answers}))


def answer_query(index: Any, query: str, rounds: int) -> dict[str, Any]:
    """Answer a query. If the peer's parser rejects it, try its words without punctuation."""
    for how, text in (("as typed", query), ("as plain words", " ".join(re.findall(r"\w+", query)))):
        try:
            return {"how": how, **_time_search(index, text, rounds)}
        except ValueError:
            continue
    return {"how": "refused", "files": [], "ms": 0.0}


def _time_search(index: Any, text: str, rounds: int) -> dict[str, Any]:
    times, found = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        found = index.search(text, max_records=MAX_HIT_COUNT)
        times.append((time.perf_counter() - begun) * 1000)
    return {"files": [row["export_path"] for row in found], "ms": statistics.median(times)}


if __name__ == "__main__":
    main()
