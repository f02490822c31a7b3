"""The recall set: questions by readers who saw no search code, and a home in which they are asked.

Each question names the answering records by file and line of the corpus; no text of the corpus is
here. We looked at the half ``tune`` while tuning, and used ``kept`` only for the figure.
Paraphrased questions have three further wordings each, by a reader who saw neither the answer nor
the transcript.
"""

from __future__ import annotations

import functools
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from resume_hooks.paths import session_id_from_path
from resume_hooks.sessions import transcript_files
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.turns import opens_turn
from tests.needs import corpus_folder

FOLDER = Path(__file__).parent
HALVES = ("tune", "kept")
KINDS = ("natural", "paraphrased", "unanswerable")


class Question(NamedTuple):
    """A question. ``answers`` are pairs of file (below the corpus) and line, empty if the topic never came up.

    ``also`` are further wordings.
    """

    id: str
    kind: str
    text: str
    answers: tuple[tuple[str, int], ...]
    half: str
    also: tuple[str, ...] = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """The question in all its wordings."""
        return (self.text, *self.also)


class Place(NamedTuple):
    """A turn in a file of the corpus, as a hit shows it."""

    file: str
    turn: int


class CorpusFile(NamedTuple):
    """A file of the corpus, line by line: the ``turns`` of its lines, and the ids of their records ("" for none)."""

    turns: Sequence[int]
    ids: Sequence[str]


def questions(half: str = "all") -> list[Question]:
    """Return the questions of a half, or all, in the order of their ids."""
    rows: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("questions_*.jsonl")):
        rows += (orjson.loads(line) for line in path.read_bytes().splitlines() if line)
    also: dict[str, list[str]] = orjson.loads((FOLDER / "wordings.json").read_bytes())
    return [
        Question(
            row["id"],
            row["kind"],
            row["question"],
            tuple((answer["file"], answer["record"]) for answer in row["answers"]),
            row["half"],
            tuple(also.get(row["id"], ())),
        )
        for row in sorted(rows, key=lambda row: str(row["id"]))
        if half in {"all", row["half"]}
    ]


def right_places(question: Question) -> frozenset[Place]:
    """Return the turns with an answering record, in every file that contains a copy of it."""
    places = set()
    for name, line in question.answers:
        file = corpus_file(name)
        places.add(Place(name, file.turns[line]))
        places.update(by_id().get(file.ids[line], ()))
    return frozenset(places)


@functools.cache
def session_of(name: str) -> str:
    """Return the id of the session to which a file of the corpus belongs; for a sub-agent's file, its parent's."""
    path = corpus_folder() / name
    return (
        transcript_files.owning_session(str(path))
        if transcript_files.subagent_name(path.name)
        else path.stem
    )


@functools.cache
def corpus_file(name: str) -> CorpusFile:
    """Return the turns and ids in a file of the corpus."""
    subagent = transcript_files.subagent_name(name) is not None
    turn, turns, ids = 0, [], []
    for raw in (corpus_folder() / name).read_bytes().split(b"\n"):
        record = records.parse_record(raw)
        turn += record is not None and opens_turn(record, subagent=subagent)
        turns.append(turn)
        ids.append(_id_of(record) if record is not None else "")
    return CorpusFile(turns, ids)


def corpus_names() -> list[str]:
    """Return the paths of the non-empty files of the corpus."""
    root = corpus_folder()
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*.jsonl") if path.stat().st_size
    )


def _id_of(record: Record) -> str:
    """Return the id that a record shares with its copies in other sessions.

    Forks give records new ids and name the old ones.
    """
    fork = record.get("forkedFrom")
    return (get_string(fork, "messageUuid") if isinstance(fork, dict) else "") or get_string(
        record, "uuid"
    )


@functools.cache
def by_id() -> dict[str, set[Place]]:
    """Return the turns of the corpus by the id that a record shares with its copies."""
    found: dict[str, set[Place]] = {}
    for name in corpus_names():
        file = corpus_file(name)
        for turn, record_id in zip(file.turns, file.ids, strict=True):
            if record_id:
                found.setdefault(record_id, set()).add(Place(name, turn))
    return found


class Home:
    """The whole corpus as a config home with one project per group.

    Files whose names are not ids get ids of their own.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self.where = {"CLAUDE_CONFIG_DIR": str(config)}
        self._names_file = dict(self._filled())

    def name(self, file: str) -> str:
        """Return the corpus's own name of a file in this home."""
        return self._names_file[file]

    def _filled(self) -> Iterator[tuple[str, str]]:
        """Copy every file, and yield each copy with the name of its original."""
        for name in corpus_names():
            target = self._target(Path(name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(corpus_folder() / name, target)
            yield str(target), name

    def _target(self, name: Path) -> Path:
        """Return the path for a file. A file in a session's own folder stays there."""
        inside = [part for part in name.parts[:-1] if session_id_from_path(f"{part}.jsonl")]
        place = name.parts.index(inside[0]) if inside else len(name.parts) - 1
        folder = self.config.joinpath(
            "projects", "-".join(name.parts[:place]), *name.parts[place:-1]
        )
        if inside or session_id_from_path(name.name) or transcript_files.subagent_name(name.name):
            return folder / name.name
        return folder / f"{uuid.uuid5(uuid.NAMESPACE_URL, str(name))}.jsonl"
