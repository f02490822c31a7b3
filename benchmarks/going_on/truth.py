"""Read the labels that readers gave to items in real sessions.

A label says which record states the item, and at which position. The files of labels contain no
text of a session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from resume_hooks.transcripts.records import parse_record
from tests.needs import REPO, corpus

LABELS_FOLDER = Path(__file__).parent
SAMPLE_LABEL_SET = "sample"
LABEL_SETS = ("tune", "final", "unseen", "sealed", SAMPLE_LABEL_SET)

SEEN_LABEL_SETS = ("tune", "final", "unseen")
"""The sets of labels that we used to make rules, or whose missed items we have read."""

SEALED_LABEL_SETS = ("sealed",)
"""The sessions that two readers labelled without seeing our code or a digest.

We have not read the items that our handoffs miss in them, except for four constraints that are
texts of skills.
"""

ITEM_KINDS = ("decision", "constraint", "command", "failure", "file")


@dataclass(frozen=True)
class Item:
    """An item that a reader would not want to lose.

    ``is_in_summary`` says whether the summary of a later compaction contains the item, or is None if
    there is no later compaction. ``session_path`` is the path of the session below the corpus, without
    .jsonl.
    """

    session_path: str
    kind: str
    record_number: int
    text: str
    is_in_summary: bool | None


def read_labelled_items(label_set: str) -> list[Item]:
    """Return the labelled items of a set of labels."""
    files = sorted(LABELS_FOLDER.glob(f"truth_{label_set}_*.jsonl"))
    rows = [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [_parse_item(row) for row in rows]


def find_transcript(session_path: str) -> Path:
    """Return the file of a session in the corpus or among our own samples."""
    return (
        REPO / "demo" if session_path == SAMPLE_LABEL_SET else corpus()
    ) / f"{session_path}.jsonl"


@cache
def read_session_lines(session_path: str) -> Sequence[bytes]:
    """Return the lines of a session's transcript."""
    return find_transcript(session_path).read_bytes().split(b"\n")


def _parse_item(row: dict[str, object]) -> Item:
    session, number = str(row["session"]), int(str(row["record"]))
    record = parse_record(read_session_lines(session)[number])
    assert record is not None
    text = _read_block_text(record, int(str(row["block"])))[
        int(str(row["start"])) : int(str(row["end"]))
    ]
    kept = row["in_summary"]
    return Item(session, str(row["kind"]), number, text, kept if isinstance(kept, bool) else None)


def _read_block_text(record: dict[str, object], block_index: int) -> str:
    """Return the text of a block of a record's content. The positions in a label count its characters."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else record.get("content")
    if isinstance(content, str) or not isinstance(content, list):
        return str(content)
    found = content[block_index]
    if found["type"] == "tool_use":
        given = found["input"]
        named = next(
            (given[key] for key in ("command", "file_path", "notebook_path") if given.get(key)),
            None,
        )
        return str(named or json.dumps(given, ensure_ascii=False))
    if found["type"] == "tool_result":
        inner = found["content"]
        return (
            inner if isinstance(inner, str) else "\n".join(part.get("text", "") for part in inner)
        )
    return str(found.get("text", ""))
