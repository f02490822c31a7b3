"""The recall set: questions written from the transcripts before any ranking was tuned, and a home to ask them in.

Each names the records that answer it by file and line of the corpus; nothing of the corpus stands here. The half
``tune`` was looked at while tuning, ``final`` only for the figure.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from resume_hooks.paths import session_id_of
from resume_hooks.records import parse
from resume_hooks.turns import opens_turn
from tests.needs import corpus_folder

FOLDER = Path(__file__).parent


class Question(NamedTuple):
    """A question; ``answers`` are (file below the corpus, line), none for what was never talked about."""

    id: str
    kind: str
    text: str
    answers: tuple[tuple[str, int], ...]
    half: str


class Place(NamedTuple):
    """A record of the corpus, and the turn of its file that it stands in."""

    file: str
    line: int
    turn: int


def questions() -> list[Question]:
    """All questions, in the order of their ids."""
    rows: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("questions_*.jsonl")):
        rows += (orjson.loads(line) for line in path.read_bytes().splitlines() if line)
    return [
        Question(
            row["id"],
            row["kind"],
            row["question"],
            tuple((answer["file"], answer["record"]) for answer in row["answers"]),
            row["half"],
        )
        for row in sorted(rows, key=lambda row: str(row["id"]))
    ]


class Home:
    """The whole corpus as a config home: one project a group; files of other names get ids of their own."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.environ = {"CLAUDE_CONFIG_DIR": str(config)}
        self._files: dict[str, str] = {}
        root = corpus_folder()
        for source in sorted(root.rglob("*.jsonl")):
            if source.stat().st_size:
                self._add(source, source.relative_to(root))

    def _add(self, source: Path, name: Path) -> None:
        """Copy a file; what lies in a session's own folder stays in it."""
        inside = [part for part in name.parts[:-1] if session_id_of(f"{part}.jsonl")]
        place = name.parts.index(inside[0]) if inside else len(name.parts) - 1
        folder = self.config / "projects" / "-".join(name.parts[:place])
        stem = source.stem
        known = inside or session_id_of(source.name) or stem.startswith("agent-")
        target = folder.joinpath(*name.parts[place:-1]) / (
            source.name if known else f"{uuid.uuid5(uuid.NAMESPACE_URL, str(name))}.jsonl"
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        self._files[str(target)] = str(name)

    def name(self, file: str) -> str:
        """The corpus's own name of a file of this home."""
        return self._files[file]

    @property
    def files(self) -> dict[str, str]:
        """The corpus's names by the files of this home."""
        return self._files


def turn_of(name: str, line: int, _known: dict[str, list[int]] | None = None) -> int:
    """The turn that a line of a corpus file stands in."""
    known = _TURNS if _known is None else _known
    if name not in known:
        subagent = Path(name).name.startswith("agent-")
        turn, turns = 0, []
        for raw in (corpus_folder() / name).read_bytes().split(b"\n"):
            record = parse(raw)
            turn += record is not None and opens_turn(record, subagent=subagent)
            turns.append(turn)
        known[name] = turns
    return known[name][line]


_TURNS: dict[str, list[int]] = {}
