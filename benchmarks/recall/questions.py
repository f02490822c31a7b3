"""Read the questions for measuring searches, and create a home in which they are asked.

The questions were written by readers who had not seen our search. Each question names the answering
records by file and line of the corpus, so that no text of the corpus is published. We looked at the
half ``tune`` while we improved the search. The half ``kept`` was used only for the published
result. A paraphrased question has three more wordings, by a reader who had seen neither the answer
nor the transcript.
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

QUESTIONS_FOLDER = Path(__file__).parent
QUESTION_HALVES = ("tune", "kept")
QUESTION_KINDS = ("natural", "paraphrased", "unanswerable")


class Question(NamedTuple):
    """A question about the corpus.

    ``answer_lines`` are the file (its path below the corpus) and the line number of each answering
    record. They are empty if the corpus has no answer. ``other_wordings`` are the question in other
    words.
    """

    id: str
    kind: str
    text: str
    answer_lines: tuple[tuple[str, int], ...]
    half: str
    other_wordings: tuple[str, ...] = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """All wordings of the question."""
        return (self.text, *self.other_wordings)


class Place(NamedTuple):
    """A turn of a file of the corpus. The hits of all searchers have this form."""

    file: str
    turn_number: int


class CorpusFile(NamedTuple):
    """A file of the corpus: the turn of each line, and the id of each line's record.

    An id is ``""`` if the line has no record with an id.
    """

    turn_numbers: Sequence[int]
    record_ids: Sequence[str]


def read_questions(half: str = "all") -> list[Question]:
    """Return the questions of one half or of both halves, ordered by id."""
    rows: list[dict[str, Any]] = []
    for path in sorted(QUESTIONS_FOLDER.glob("questions_*.jsonl")):
        rows += (orjson.loads(line) for line in path.read_bytes().splitlines() if line)
    also: dict[str, list[str]] = orjson.loads((QUESTIONS_FOLDER / "wordings.json").read_bytes())
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


def find_right_places(question: Question) -> frozenset[Place]:
    """Return the turns that contain an answering record or a copy of it."""
    places = set()
    for name, line in question.answer_lines:
        file = read_corpus_file(name)
        places.add(Place(name, file.turn_numbers[line]))
        places.update(map_ids_to_places().get(file.record_ids[line], ()))
    return frozenset(places)


@functools.cache
def find_session_of_file(name: str) -> str:
    """Return the id of the session to which a file of the corpus belongs.

    For a sub-agent's file, this is the session that started the sub-agent.
    """
    path = corpus_folder() / name
    return (
        transcript_files.read_owning_session_id(str(path))
        if transcript_files.subagent_name(path.name)
        else path.stem
    )


@functools.cache
def read_corpus_file(name: str) -> CorpusFile:
    """Return the turns and ids of the lines in a file of the corpus."""
    subagent = transcript_files.subagent_name(name) is not None
    turn, turns, ids = 0, [], []
    for raw in (corpus_folder() / name).read_bytes().split(b"\n"):
        record = records.parse_record(raw)
        turn += record is not None and opens_turn(record, is_subagent=subagent)
        turns.append(turn)
        ids.append(_find_shared_id(record) if record is not None else "")
    return CorpusFile(turns, ids)


def list_corpus_files() -> list[str]:
    """Return the paths of the corpus's files that are not empty, relative to the corpus."""
    root = corpus_folder()
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*.jsonl") if path.stat().st_size
    )


def _find_shared_id(record: Record) -> str:
    """Return the id that a record shares with its copies in other sessions.

    A record in a fork has a new id and names the old one.
    """
    fork = record.get("forkedFrom")
    return (get_string(fork, "messageUuid") if isinstance(fork, dict) else "") or get_string(
        record, "uuid"
    )


@functools.cache
def map_ids_to_places() -> dict[str, set[Place]]:
    """Map the shared id of each record of the corpus to the turns that contain the record or a copy of it."""
    found: dict[str, set[Place]] = {}
    for name in list_corpus_files():
        file = read_corpus_file(name)
        for turn, record_id in zip(file.turn_numbers, file.record_ids, strict=True):
            if record_id:
                found.setdefault(record_id, set()).add(Place(name, turn))
    return found


class CorpusHome:
    """A config home with the whole corpus. Each folder of the corpus is a project.

    A file whose name is not an id gets an id as its name.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self.where = {"CLAUDE_CONFIG_DIR": str(config)}
        self._name_by_copy = dict(self._copy_corpus_files())

    def find_path_in_corpus(self, copy_path: str) -> str:
        """Return a file's path within the corpus. ``copy_path`` is the path of its copy in this home."""
        return self._name_by_copy[copy_path]

    def _copy_corpus_files(self) -> Iterator[tuple[str, str]]:
        """Copy every file of the corpus. Yield the path of each copy with the original's path in the corpus."""
        for name in list_corpus_files():
            target = self._choose_copy_path(Path(name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(corpus_folder() / name, target)
            yield str(target), name

    def _choose_copy_path(self, name: Path) -> Path:
        """Return the path to which a file is copied.

        A file in the folder of a session is copied to a folder of the same session.
        """
        inside = [part for part in name.parts[:-1] if session_id_from_path(f"{part}.jsonl")]
        place = name.parts.index(inside[0]) if inside else len(name.parts) - 1
        folder = self.config.joinpath(
            "projects", "-".join(name.parts[:place]), *name.parts[place:-1]
        )
        if inside or session_id_from_path(name.name) or transcript_files.subagent_name(name.name):
            return folder / name.name
        return folder / f"{uuid.uuid5(uuid.NAMESPACE_URL, str(name))}.jsonl"
