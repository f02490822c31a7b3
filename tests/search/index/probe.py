"""Helpers that write sessions and read the complete content of their search index."""

from __future__ import annotations

import os
import random
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from tantivy import Query

from resume_hooks.paths import Where
from resume_hooks.search.index.changed_files import UpdateOutcome
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.search.index.database import index_file_path, words_folder
from resume_hooks.search.index.postings import (
    INDEX_SCHEMA,
    LABEL_FIELD_NAMES,
    WINDOW_INDEX,
    WORDS_FIELD_NAME,
    Posting,
    make_key_from_file_and_number,
)
from resume_hooks.search.roles import ROLES
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    Record,
    assistant,
    session_bytes,
    session_id,
    user,
)

OLD_FILE_TIME = 1_000_000_000.0

FoundWord = tuple[str, int, str, str]
"""A word in the index: the file name, the line number, the field, and the word's stem.

If the word was found in a turn, the turn's number replaces the line number.
"""


class Row(NamedTuple):
    """A record in the index, with the name of its file."""

    file_name: str
    line_number: int
    turn_number: int
    role: str
    tool: str
    posting: Posting


class IndexContent(NamedTuple):
    """The content of an index, and the outcome of the update before the content was read."""

    found_words: set[FoundWord]
    rows: list[Row]
    outcome: UpdateOutcome
    notes: list[str]
    was_rebuilt: bool

    def lines_with_word(self, word: str) -> list[tuple[str, int]]:
        """Return the file name and the line number of each record that contains ``word``."""
        return sorted(
            (name, line)
            for name, line, field, found in self.found_words
            if (field, found) == (WORDS_FIELD_NAME, word)
        )

    def words(self) -> set[str]:
        """Return all words of the index."""
        return {word for _, _, field, word in self.found_words if field == WORDS_FIELD_NAME}


def uuid_of_text(text: str | int) -> str:
    """Return a UUID that is always the same for ``text``."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(text)))


def prompt_with_id(text: str, *, uuid_seed: str | int = "", **record_fields: Any) -> Record:
    """Return a prompt whose uuid is made from ``uuid_seed`` or, without it, from its text."""
    return user(text, uuid=uuid_of_text(uuid_seed or text), **record_fields)


def answer_with_id(
    text: str | list[Record], *, uuid_seed: str | int = "", **record_fields: Any
) -> Record:
    """Return an answer whose uuid is made from ``uuid_seed`` or, without it, from its text."""
    return assistant(text, uuid=uuid_of_text(uuid_seed or str(text)), **record_fields)


def read_index(
    home: ConfigHome, *, state_folder: Path | None = None, **options: Any
) -> IndexContent:
    """Update the index and return its complete content.

    ``state_folder`` replaces the state folder of ``home``.
    """
    where = (
        Where({**home.environ, "RESUME_HOOKS_HOME": str(state_folder)})
        if state_folder
        else home.where
    )
    with open_index(where, **options) as index:
        return IndexContent(
            read_found_words(index),
            read_rows(index),
            index.update_outcome,
            index.notes,
            index.was_rebuilt,
        )


def read_rows(index: OpenIndex) -> list[Row]:
    """Return the indexed records, sorted by file and line, after checking that no record is repeated."""
    names = file_names(index)
    found = index.postings.find_records(Query.all_query(), max(1, index.postings.record_count))
    read = [
        Row(
            names[row.file_id],
            row.line_number,
            row.turn_number,
            ROLES[row.role_index],
            index.postings.tool_names(row),
            row,
        )
        for row in found
    ]
    assert (
        len({(row.posting.file_id, row.line_number) for row in read})
        == len(read)
        == index.postings.record_count
    )
    return sorted(read, key=lambda row: row[:2])


def read_found_words(index: OpenIndex) -> set[FoundWord]:
    """Return every word and name that the index finds, for each record and each turn."""
    names, words, most = file_names(index), index.postings, max(1, index.postings.record_count)
    found: set[FoundWord] = set()
    for field in (WORDS_FIELD_NAME, *LABEL_FIELD_NAMES):
        for word, _ in words.words_with_prefix(field, ""):
            query = Query.term_query(INDEX_SCHEMA, field, word)
            found |= {
                (names[row.file_id], row.line_number, field, word)
                for row in words.find_records(query, most)
            }
            if field == WORDS_FIELD_NAME:
                keys = (
                    divmod(key, make_key_from_file_and_number(1, 0))
                    for key in words.find_turns(query, most)
                )
                found |= {(names[file], turn, WINDOW_INDEX, word) for file, turn in keys}
    return found


def file_names(index: OpenIndex) -> dict[int, str]:
    """Return the file name for each file number in the index."""
    return {
        number: os.path.basename(path)
        for number, path in index.db.execute("SELECT id, path FROM files")
    }


def build_new_index(home: ConfigHome, tmp_path: Path) -> IndexContent:
    """Build an index in a new state folder and return its content."""
    return read_index(home, state_folder=tmp_path / f"cold-{uuid.uuid4()}")


def write_session_file(
    home: ConfigHome, *records: Record | bytes, session_uuid: str = SESSION, is_old: bool = True
) -> Path:
    """Write a session to the project and return its path.

    If ``is_old`` is true, the file's time is set to long ago, so that the file looks finished.
    """
    path = home.project(CWD) / f"{session_uuid}.jsonl"
    path.write_bytes(session_bytes(records))
    return make_old(path) if is_old else path


def make_old(path: Path) -> Path:
    """Set the time of ``path`` to long ago, and return ``path``."""
    os.utime(path, (OLD_FILE_TIME, OLD_FILE_TIME))
    return path


def append_records(path: Path, *records: Record | bytes) -> int:
    """Append records as complete lines, and return the number of appended bytes."""
    return add_bytes(path, session_bytes(records))


def add_bytes(path: Path, raw: bytes) -> int:
    """Append raw bytes, and return the number of these bytes."""
    with path.open("ab") as stream:
        stream.write(raw)
    return len(raw)


def index_database_path(home: ConfigHome) -> Path:
    """Return the path of the index's SQLite file."""
    return Path(index_file_path(home.where))


def index_words_folder(home: ConfigHome) -> Path:
    """Return the folder in which the index stores its words."""
    return Path(words_folder(home.where))


def fill_home(home: ConfigHome, session_count: int = 24, records_per_session: int = 60) -> int:
    """Write many sessions of random words, and return the total number of records."""
    rng = random.Random(1)
    vocabulary = [f"{rng.choice('abcdefgh')}{rng.randrange(4_000)}word" for _ in range(4_000)]
    for number in range(session_count):
        texts = (" ".join(rng.choices(vocabulary, k=100)) for _ in range(records_per_session))
        write_session_file(
            home,
            *(
                answer_with_id(text, uuid_seed=f"{number}.{place}")
                for place, text in enumerate(texts)
            ),
            session_uuid=session_id(number),
        )
    return session_count * records_per_session
