"""The words of all records in tantivy's inverted index, by record, by turn and by part of a file.

A part is a stretch of a file that is read, and replaced, as a whole; what its turns and records say lies in documents
of their own, each level in a field of its own, so that each has its own statistics. How often a word stands in a
document is what it is worth: once in each record that says it, twice where a person or the model said it.

Nothing of tantivy's is known outside of this module and ``ranking``; its errors leave as our own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from resume_hooks.search.index.errors import IndexDamaged, IndexUnusable

if TYPE_CHECKING:
    from resume_hooks.search.index.read_transcript import IndexRow, Part

RECORD, TURN, PART = "record", "turn", "part"
"""The levels, and the fields that hold their words."""

LABELS = ("tool", "branch", "path")
"""Fields that hold names as they are, not words."""

_INDEXED = ("file", "turn_key", "part_key", "role", "key", "turn_number")
_NUMBERS = (*_INDEXED, "time", "line", "offset", "length", "digest", "forked")
_ANALYZER = "words"
MOST_COPIES = 1_000  # sessions that are named of those that hold a record
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
    address: tantivy.DocAddress


_POSTING = ("file", "turn_number", "line", "offset", "length", "time", "role", "key", "digest", "forked")


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in (RECORD, TURN, PART):
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="freq")
    for name in LABELS:
        builder.add_text_field(name, stored=name == "tool", tokenizer_name="raw", index_option="basic")
    for name in _NUMBERS:
        builder.add_unsigned_field(name, indexed=name in _INDEXED, fast=True)
    return builder.build()


SCHEMA = _schema()

_analyzer = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.stemmer("english")).build()
)


def stem(form: str) -> str:
    """A word as the index has it."""
    return next(iter(_analyzer.analyze(form)), form)


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
    """The inverted index in ``folder``, made where it is missing; in memory without one."""

    def __init__(self, folder: str | None) -> None:
        with telling():
            self._index = tantivy.Index(SCHEMA, path=folder)
            self._index.register_tokenizer(_ANALYZER, _analyzer)
            self._searcher = self._index.searcher()
        self._writer: tantivy.IndexWriter | None = None

    def open_writer(self, *, large: bool) -> None:
        """Get ready to be written to, for many parts or few."""
        with telling():
            self._writer = self._index.writer(heap_size=LARGE if large else SMALL, num_threads=1)

    def replace(self, file: int, part: Part) -> None:
        """Put what a part says in the place of what is known of it."""
        writer, documents = self._writing, list(_documents(file, part))
        with telling():
            writer.delete_documents_by_term("part_key", turn_key(file, part.number))
            for document in documents:
                writer.add_document(document)

    def forget(self, file: int) -> None:
        """Take out all that a file says."""
        with telling():
            self._writing.delete_documents_by_term("file", file)

    def commit(self) -> None:
        """Make what was written last."""
        with telling():
            self._writing.commit()

    def close_writer(self) -> None:
        """End writing; what was not committed is dropped. Waits for what tantivy tidies up."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with telling():
                writer.wait_merging_threads()
                self._index.reload()
                self._searcher = self._index.searcher()

    @property
    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise RuntimeError("The index is not open to be written")
        return self._writer

    @property
    def records(self) -> int:
        """How many records it holds."""
        with telling():
            return self._searcher.search(tantivy.Query.exists_query("line"), limit=1).count or 0

    def frequency(self, level: str, word: str) -> int:
        """How many documents of a level have a stemmed word, those that were replaced lately among them."""
        with telling():
            return self._searcher.doc_freq(level, word)

    def beginning(self, field: str, start: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The words or names of a field that begin so, each with how many documents have it."""
        with telling():
            return self._searcher.terms_with_prefix(field, start, limit=limit)

    def search(self, query: tantivy.Query, limit: int, order_by: str | None = None) -> list[Posting]:
        """The records that fit best, or with ``order_by`` those of the highest value; the best first."""
        with telling():
            hits = self._searcher.search(query, limit=limit, count=False, order_by_field=order_by).hits
            columns = [self._searcher.fast_field_values(name, [place for _, place in hits]) for name in _POSTING]
        return [
            Posting(float(score or 0), *(int(value or 0) for value in row), address=address)
            for (score, address), *row in zip(hits, *columns, strict=True)
        ]

    def copies(self, key: int) -> list[Posting]:
        """All records of a key."""
        return self.search(tantivy.Query.term_query(SCHEMA, "key", key), MOST_COPIES)

    def tools(self, record: Posting) -> str:
        """The tools that a record calls or answers, as they are shown."""
        with telling():
            return ", ".join(self._searcher.doc(record.address).get_all("tool"))

    def best(self, query: tantivy.Query, limit: int, name: str) -> dict[int, float]:
        """The best score by each value that documents have in a column: by ``file`` or ``turn_key``."""
        with telling():
            hits = self._searcher.search(query, limit=limit, count=False).hits
            values = self._searcher.fast_field_values(name, [place for _, place in hits])
        found: dict[int, float] = {}
        for (score, _), value in zip(hits, values, strict=True):
            found.setdefault(int(value or 0), float(score))
        return found


def _documents(file: int, part: Part) -> Iterator[tantivy.Document]:
    """The documents of a part: of each record, of each turn, of it all."""
    own = {"file": file, "part_key": turn_key(file, part.number)}
    turns: dict[int, list[IndexRow]] = {}
    for row in part.rows:
        turns.setdefault(row.turn, []).append(row)
        yield _record(row, {**own, "turn_key": turn_key(file, row.turn)})
    for turn, rows in turns.items():
        place = {"turn_key": turn_key(file, turn), "turn_number": turn}
        yield _document({**own, **place, TURN: _words(rows)})
    if turns:
        yield _document({**own, PART: _words(part.rows)})


def _record(row: IndexRow, own: dict[str, int]) -> tantivy.Document:
    return _document(
        {
            **own,
            RECORD: row.words.decode(),
            "turn_number": row.turn,
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


def _document(values: dict[str, object]) -> tantivy.Document:
    return tantivy.Document.from_dict(values, SCHEMA)


def _words(rows: Sequence[IndexRow]) -> str:
    return b" ".join(row.words for row in rows).decode()
