"""The words of all transcripts in inverted indexes of tantivy's, one of records and one of turns.

Two, since each needs statistics of its own: how many documents there are, and how long. How often a word stands in a
document is what it is worth: once in each record that has it, twice where a person or the model said it. A part is a
stretch of a file that is read, and replaced, as a whole; a turn that goes over several of them has a document in each.

Nothing of tantivy's is known outside of this package, ``ranking`` and ``scope``; its errors leave as our own.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from resume_hooks.search.index.errors import IndexDamaged, IndexUnusable

if TYPE_CHECKING:
    from resume_hooks.search.index.read_transcript import Part

RECORDS, TURNS = "records", "turns"
"""What there is an index of; each lies in a folder of that name."""

WORDS = "words"
"""The field that holds the words."""

LABELS = ("tool", "branch", "path")
"""Fields that hold names as they are, not words."""

_INDEXED = ("file", "turn_key", "part_key", "role", "key", "turn_number")
_NUMBERS = (*_INDEXED, "time", "line", "offset", "length", "digest", "forked")
_ANALYZER = "spaced"
MOST_COPIES = 5_000  # records that are looked at as copies of those that are shown
_SHIFT = 24  # bits of a number of turns or parts within the key that it makes with its file's
SMALL, LARGE = 15_000_000, 80_000_000
"""Bytes of memory in which tantivy gathers what it writes; the least that it takes, and what a whole index is worth."""

_DAMAGE = ("corrupt", "does not exist", "no such file", "deserialize", "schema", "footer", "panicked", "version")
"""What tantivy says of an index that it can't read."""


def turn_key(file: int, turn: int) -> int:
    """The number that stands for a turn of a file; the file is ``file_of`` it."""
    return file << _SHIFT | min(turn, (1 << _SHIFT) - 1)


def file_of(key: int) -> int:
    """The file that a turn is of."""
    return key >> _SHIFT


class Posting(NamedTuple):
    """A record that has some of the words: where it stands, who said it, and how well it fits."""

    address: tantivy.DocAddress
    score: float
    file: int
    turn: int
    line: int
    offset: int
    length: int
    time: int
    role: int
    key: int
    digest: int
    forked: int


_POSTING = ("file", "turn_number", "line", "offset", "length", "time", "role", "key", "digest", "forked")


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(WORDS, tokenizer_name=_ANALYZER, index_option="freq")
    for name in LABELS:
        builder.add_text_field(name, stored=name == "tool", tokenizer_name="raw", index_option="basic")
    for name in _NUMBERS:
        builder.add_unsigned_field(name, indexed=name in _INDEXED, fast=True)
    return builder.build()


SCHEMA = _schema()

_analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """What tantivy says in the block, as one of our own errors."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise _told(error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust makes of what it did not expect
            raise
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _told(error: Exception) -> IndexDamaged | IndexUnusable:
    if any(word in str(error).lower() for word in _DAMAGE):
        return IndexDamaged(f"The index is damaged: {error}")
    return IndexUnusable(f"The index can't be used: {error}", "Check free space and the state folder.")


class Postings:
    """The inverted indexes in ``folder``, made where they are missing; in memory without one."""

    def __init__(self, folder: str | None) -> None:
        self._indexes: dict[str, tantivy.Index] = {}
        for level in (RECORDS, TURNS):
            own = folder and os.path.join(folder, level)
            if own:
                os.makedirs(own, mode=0o700, exist_ok=True)
            with telling():
                self._indexes[level] = tantivy.Index(SCHEMA, path=own)
                self._indexes[level].register_tokenizer(_ANALYZER, _analyzer)
        self._writers: dict[str, tantivy.IndexWriter] = {}
        self._look()

    def _look(self) -> None:
        """Search what was committed last."""
        with telling():
            self._searchers = {level: index.searcher() for level, index in self._indexes.items()}

    def open_writer(self, *, large: bool) -> None:
        """Get ready to be written to, for many parts or few."""
        with telling():
            for level, index in self._indexes.items():
                self._writers[level] = index.writer(heap_size=LARGE if large else SMALL, num_threads=1)

    def replace(self, file: int, part: Part) -> None:
        """Put what a part says in the place of what is known of it."""
        found = {RECORDS: list(_records(file, part)), TURNS: list(_turns(file, part))}
        with telling():
            for level, writer in self._writers.items():
                writer.delete_documents_by_query(_of("part_key", turn_key(file, part.number)))
                for document in found[level]:
                    writer.add_document(document)

    def forget(self, file: int) -> None:
        """Take out all that a file says."""
        with telling():
            for writer in self._writers.values():
                writer.delete_documents_by_query(_of("file", file))

    def commit(self) -> None:
        """Make what was written last."""
        with telling():
            for writer in self._writers.values():
                writer.commit()

    def close_writer(self) -> None:
        """End writing; what was not committed is dropped. Waits for what tantivy tidies up."""
        writers, self._writers = self._writers, {}
        with telling():
            for writer in writers.values():
                writer.wait_merging_threads()
            for index in self._indexes.values() if writers else ():
                index.reload()
        self._look()

    @property
    def records(self) -> int:
        """How many records it holds."""
        return self._searchers[RECORDS].num_docs

    def frequency(self, field: str, word: str) -> int:
        """How many records have a stemmed word, or a name in another field; lately replaced ones may be among them."""
        with telling():
            return self._searchers[RECORDS].doc_freq(field, word)

    def beginning(self, field: str, start: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The words or names of a field that begin so, each with how many documents have it."""
        with telling():
            return self._searchers[RECORDS].terms_with_prefix(field, start, limit=limit)

    def search(self, query: tantivy.Query, limit: int, order_by: str | None = None) -> list[Posting]:
        """The records that fit best, or with ``order_by`` those of the highest value; the best first."""
        searcher = self._searchers[RECORDS]
        with telling():
            hits = searcher.search(query, limit=limit, count=False, order_by_field=order_by).hits
            columns = [searcher.fast_field_values(name, [place for _, place in hits]) for name in _POSTING]
        rows = zip(hits, *columns, strict=True)
        return [
            Posting(address, float(score or 0), *(int(value or 0) for value in row)) for (score, address), *row in rows
        ]

    def turns(self, query: tantivy.Query, limit: int) -> dict[int, float]:
        """The keys of the turns that fit best, each with its score; the best first."""
        searcher = self._searchers[TURNS]
        with telling():
            hits = searcher.search(query, limit=limit, count=False).hits
            keys = searcher.fast_field_values("turn_key", [place for _, place in hits])
        found: dict[int, float] = {}
        for (score, _), key in zip(hits, keys, strict=True):
            found.setdefault(int(key or 0), float(score))
        return found

    def copies(self, keys: Collection[int]) -> dict[int, list[Posting]]:
        """All records of each key."""
        found: dict[int, list[Posting]] = {key: [] for key in keys}
        for record in self.search(tantivy.Query.term_set_query(SCHEMA, "key", list(keys)), MOST_COPIES):
            found[record.key].append(record)
        return found

    def tools(self, record: Posting) -> str:
        """The tools that a record calls or answers, as they are shown."""
        with telling():
            return ", ".join(self._searchers[RECORDS].doc(record.address).get_all("tool"))


def _of(field: str, number: int) -> tantivy.Query:
    """What has a number. ``delete_documents_by_term`` takes it for one with a sign, which no field of ours has."""
    return tantivy.Query.term_query(SCHEMA, field, number)


def _records(file: int, part: Part) -> Iterator[tantivy.Document]:
    """What each record of a part says, and where it stands."""
    for row in part.rows:
        yield _document(
            {
                **_place(file, part, row.turn),
                WORDS: row.words.decode(),
                "line": row.line,
                "offset": row.offset,
                "length": row.length,
                "time": row.time,
                "role": row.role,
                "key": row.key,
                "digest": row.digest,
                "forked": int(row.forked),
                "tool": list(row.tools),
                "branch": [row.branch] if row.branch else [],
                "path": list(row.files),
            }
        )


def _turns(file: int, part: Part) -> Iterator[tantivy.Document]:
    """What each turn of a part says."""
    for turn, rows in itertools.groupby(part.rows, key=lambda row: row.turn):
        yield _document({**_place(file, part, turn), WORDS: b" ".join(row.words for row in rows).decode()})


def _place(file: int, part: Part, turn: int) -> dict[str, int]:
    return {
        "file": file,
        "part_key": turn_key(file, part.number),
        "turn_key": turn_key(file, turn),
        "turn_number": turn,
    }


def _document(values: dict[str, object]) -> tantivy.Document:
    return tantivy.Document.from_dict(values, SCHEMA)
