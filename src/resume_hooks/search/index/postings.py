"""Store the words of all transcripts in two tantivy indexes: one of records, one of windows in turns.

A window is a sequence of 200 words in a turn. There are two indexes because the ranking depends on
the number and the length of the documents in an index. A document contains each word of a record
once, or twice if the user or the model wrote the record. A part is a section of a file that is read
and replaced as a whole.

Tantivy never changes a file that it has written. Each file ends in a checksum. Tantivy never reads
the checksum, but ``verify_files`` does.

Only this package, ``ranking`` and ``scope`` use tantivy. Its errors are converted to IndexDamaged
and IndexUnusable.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import tantivy

from resume_hooks.errors import IndexDamaged, IndexUnusable
from resume_hooks.paths import open_regular
from resume_hooks.storage.state_file import PRIVATE_MODE

META_FILE_NAME = "meta.json"
_SEGMENT_SUFFIXES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
# The end of each file: the length of the JSON text before it, and a number that is the same in
# every file.
_FOOTER_FORMAT = struct.Struct("<II")
_FOOTER_MAGIC = 1337
_BLOCK_BYTES = 1024 * 1024  # bytes


class Segment(NamedTuple):
    """A segment of an index.

    ``name`` is the common part of its files' names. Of its ``document_count`` documents,
    ``deleted_count`` are deleted. ``deletion_list_number`` is the number in the name of the file
    that lists the deleted documents.
    """

    name: str
    document_count: int
    deleted_count: int
    deletion_list_number: int

    @property
    def file_names(self) -> list[str]:
        """The names of the segment's files."""
        files = []
        for part in (
            *_SEGMENT_SUFFIXES,
            *([f"{self.deletion_list_number}.del"] if self.deleted_count else []),
        ):
            files.append(f"{self.name}.{part}")
        return files


def read_segments(folder: str) -> list[Segment]:
    """Return the segments of an index in a folder.

    Raise IndexDamaged if the list of segments cannot be read.
    """
    try:
        with open_regular(os.path.join(folder, META_FILE_NAME), follow=False) as stream:
            return [_parse_segment(segment_data) for segment_data in json.load(stream)["segments"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _parse_segment(segment_data: dict[str, Any]) -> Segment:
    deletes = segment_data["deletes"] or {"num_deleted_docs": 0, "opstamp": 0}
    name = str(segment_data["segment_id"]).replace("-", "")
    return Segment(
        name,
        int(segment_data["max_doc"]),
        int(deletes["num_deleted_docs"]),
        int(deletes["opstamp"]),
    )


def _has_valid_checksum(path: str) -> bool:
    """Check whether the content of a file matches the checksum at its end.

    If the end of the file cannot be parsed, raise ValueError, KeyError, TypeError or struct.error.
    """
    with open_regular(path, follow=False) as stream:
        end = stream.seek(-_FOOTER_FORMAT.size, os.SEEK_END)
        length, magic = _FOOTER_FORMAT.unpack(stream.read())
        remaining = end - length
        stream.seek(remaining)
        expected = json.loads(stream.read(length))["crc"]
        stream.seek(0)
        checksum = 0
        while remaining > 0 and (block := stream.read(min(remaining, _BLOCK_BYTES))):
            checksum = zlib.crc32(block, checksum)
            remaining -= len(block)
    return magic == _FOOTER_MAGIC and not remaining and checksum == expected


def make_files_private(folder: str) -> None:
    """Make the files of an index private. Tantivy creates them with a mode that depends on the umask."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # Another command may delete the file at this moment.
            with contextlib.suppress(FileNotFoundError):
                if (
                    entry.is_file(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_mode & 0o077
                ):
                    os.chmod(entry.path, PRIVATE_MODE)


RECORD_INDEX, WINDOW_INDEX = INDEX_NAMES = "records", "windows"
"""The names of the two indexes, which are also the names of their folders."""

WORDS_FIELD_NAME = "words"
"""Name of the field that contains a document's words."""

LABEL_FIELD_NAMES = ("tool", "branch", "path")
"""The fields that contain the whole name of a tool, a branch or a file instead of single words."""

_ID_FIELD_NAMES = ("key", "own")
_INDEXED_FIELD_NAMES = ("file", "turn_key", "part_key", "role", *_ID_FIELD_NAMES, "turn_number")
_ROW_FIELD_NAMES = ("line", "offset", "length", "time", "role", *_ID_FIELD_NAMES, "digest")
_NUMERIC_FIELD_NAMES = dict.fromkeys((*_INDEXED_FIELD_NAMES, *_ROW_FIELD_NAMES))
_ANALYZER_NAME = "spaced"
# Number of words in a window of a turn. A window may contain words from several records.
WORDS_PER_WINDOW = 200
# Maximum number of records to read in the search for copies of the displayed records.
MAX_RECORDS_READ_FOR_COPIES = 5_000
# Number of bits for the turn or the part in a key. The bits above them contain the file's number.
_KEY_NUMBER_BITS = 24
SMALL_HEAP_BYTES, LARGE_HEAP_BYTES = 15_000_000, 80_000_000
"""The memory in bytes that tantivy uses for a small and for a large update.

The first value is tantivy's minimum. The second value is enough for a whole index.
"""

# The index is rebuilt if more than this number of records are deleted and these are more than half
# of all records.
MAX_DELETED_RECORDS = 20_000
_SYSTEM_ERROR_PATTERN = re.compile(r"os error \d|\bOs \{|Lock")
"""Matches tantivy's error messages about a failed write or too many open files.

All other messages mean that the index is unreadable.
"""


def make_key_from_file_and_number(file_id: int, number: int) -> int:
    """Return a key that identifies the turn or the part with this number in a file."""
    return file_id << _KEY_NUMBER_BITS | min(number, (1 << _KEY_NUMBER_BITS) - 1)


class Posting(NamedTuple):
    """A record that was found in the index: its position in a file, its role and its score.

    ``key`` identifies the record and its copies in other files. ``copy_key`` is the record's own id
    if it is a copy in a fork, or else 0. ``text_checksum`` is a checksum of the record's texts, or
    0 if they were trimmed.
    """

    address: tantivy.DocAddress
    score: float
    file_id: int
    turn_number: int
    line_number: int
    offset: int
    byte_length: int
    record_time: int
    role_index: int
    key: int
    copy_key: int
    text_checksum: int


WordWithRecordCount = tuple[str, int]

_POSTING_FIELD_NAMES = ("file", "turn_number", *_ROW_FIELD_NAMES)


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(WORDS_FIELD_NAME, tokenizer_name=_ANALYZER_NAME, index_option="freq")
    for name in LABEL_FIELD_NAMES:
        builder.add_text_field(
            name, stored=name == "tool", tokenizer_name="raw", index_option="basic"
        )
    for name in _NUMERIC_FIELD_NAMES:
        builder.add_unsigned_field(name, indexed=name in _INDEXED_FIELD_NAMES, fast=True)
    return builder.build()


INDEX_SCHEMA = _build_schema()

_analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


class _StandardErrorSilencer:
    """Redirects the process's standard error stream to the null device during a ``with`` block.

    Rust prints its panics to that stream. Several threads may use the redirection at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0
        self._saved_descriptor = -1

    def __enter__(self) -> None:
        # The process may have no standard error stream.
        with self._lock, contextlib.suppress(OSError), open(os.devnull, "wb") as null:
            if not self._user_count:
                self._saved_descriptor = os.dup(2)
                os.dup2(null.fileno(), 2)
            self._user_count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._user_count -= self._user_count > 0
            if not self._user_count and self._saved_descriptor >= 0:
                os.dup2(self._saved_descriptor, 2)
                os.close(self._saved_descriptor)
                self._saved_descriptor = -1


_silent_stderr = _StandardErrorSilencer()


@contextlib.contextmanager
def converted_tantivy_errors() -> Iterator[None]:
    """Convert tantivy errors in the block to IndexDamaged or IndexUnusable. Suppress tantivy's output."""
    try:
        with _silent_stderr:
            yield
    except (ValueError, OSError) as error:
        if _SYSTEM_ERROR_PATTERN.search(str(error)):
            raise _unusable_error(error) from error
        raise IndexDamaged(f"The index is damaged: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # A Rust panic has this class.
            raise
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _unusable_error(error: Exception) -> IndexUnusable:
    return IndexUnusable(
        f"The index can't be used: {error}", "Check free space and the state folder."
    )


class Postings:
    """The two inverted indexes in ``folder``, or in memory if ``folder`` is None.

    Each index is opened (or, if ``is_new``, created) when it is first used. It is not opened
    earlier, because the process must not fork while tantivy's threads are running.
    """

    def __init__(self, folder: str | None, *, is_new: bool = True) -> None:
        self._folders = {
            index_name: os.path.join(folder, index_name) if folder else None
            for index_name in INDEX_NAMES
        }
        self._is_new = is_new
        self._heap_bytes = SMALL_HEAP_BYTES
        self._has_changes = False  # whether there are changes that are not committed yet
        self._indexes: dict[str, tantivy.Index] = {}
        self._writers: dict[str, tantivy.IndexWriter] = {}
        self._searchers: dict[str, tantivy.Searcher] = {}

    def load_latest_commit(self) -> None:
        """Make searches use the latest commit. Raise IndexDamaged if an index is missing."""
        with converted_tantivy_errors():
            indexes: dict[str, tantivy.Index] = {}
            for index_name, folder in self._folders.items() if not self._indexes else ():
                if folder and not self._is_new and not tantivy.Index.exists(folder):
                    raise IndexDamaged(f"{folder} contains no index")
                index = tantivy.Index(INDEX_SCHEMA, path=folder)
                # In any other mode, one of tantivy's threads would reload the index at an
                # unpredictable time.
                index.config_reader("manual")
                index.register_tokenizer(_ANALYZER_NAME, _analyzer)
                indexes[index_name] = index
            self._indexes = self._indexes or indexes
            for index in self._indexes.values():
                index.reload()
            self._searchers = {
                index_name: index.searcher() for index_name, index in self._indexes.items()
            }

    def verify_files(self) -> None:
        """Verify the checksums of all files on disk. Raise IndexDamaged if a file has changed."""
        for folder in filter(None, self._folders.values()):
            for name in (name for segment in read_segments(folder) for name in segment.file_names):
                try:
                    is_valid = _has_valid_checksum(os.path.join(folder, name))
                except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
                    raise IndexDamaged(f"The index is damaged: {name}: {error}") from error
                if not is_valid:
                    raise IndexDamaged(
                        f"The index is damaged: {name} has changed since it was written"
                    )

    @property
    def is_mostly_deleted(self) -> bool:
        """Whether more than half of the records on disk, and a large number of them, are deleted.

        Tantivy keeps deleted records until their whole segment is deleted.
        """
        folder = self._folders[RECORD_INDEX]
        segments = read_segments(folder) if folder and not self._is_new else []
        deleted_count = sum(segment.deleted_count for segment in segments)
        return deleted_count > MAX_DELETED_RECORDS and deleted_count * 2 > sum(
            segment.document_count for segment in segments
        )

    def begin_update(self, *, is_large: bool) -> None:
        """Set how much memory the next update may use."""
        self._heap_bytes = LARGE_HEAP_BYTES if is_large else SMALL_HEAP_BYTES

    def replace_part(
        self, file_id: int, part_number: int, documents: Mapping[str, list[str]]
    ) -> None:
        """Replace all documents of a part of a file.

        ``documents`` maps the name of each index to the new documents.
        """
        self._delete_matching_documents(
            _query_for_number("part_key", make_key_from_file_and_number(file_id, part_number))
        )
        writers = self._open_writers()
        with self._write_errors():
            for index_name, level_documents in documents.items():
                for document in level_documents:
                    writers[index_name].add_json(document)

    def delete_file(self, file_id: int) -> None:
        """Delete all documents of a file."""
        self._delete_matching_documents(_query_for_number("file", file_id))

    def commit(self) -> None:
        """Commit all changes."""
        with self._write_errors():
            for writer in self._writers.values():
                writer.commit()
        self._has_changes = False

    def finish_update(self) -> None:
        """Finish writing, and remove uncommitted changes from the disk.

        Wait until tantivy's threads have ended.
        """
        writers, self._writers, self._searchers = self._writers, {}, {}
        for writer in writers.values():
            # If tantivy cannot delete a file now, it tries again later.
            with contextlib.suppress(IndexDamaged, IndexUnusable), converted_tantivy_errors():
                if self._has_changes:
                    writer.rollback()
                    writer.garbage_collect_files()
                writer.wait_merging_threads()
        for folder in filter(None, self._folders.values()):
            make_files_private(folder)

    def _open_writers(self) -> dict[str, tantivy.IndexWriter]:
        self._has_changes = True
        if not self._writers:
            self.load_latest_commit()
            with converted_tantivy_errors():
                for index_name, index in self._indexes.items():
                    self._writers[index_name] = index.writer(
                        heap_size=self._heap_bytes, num_threads=1
                    )
        return self._writers

    def _delete_matching_documents(self, query: tantivy.Query) -> None:
        writers = self._open_writers()
        with self._write_errors():
            for index_name, writer in writers.items():
                # If the index is unreadable, this search raises an error. Without it, the error
                # would occur in tantivy's thread and end the process.
                self._searcher_of_index(index_name).search(query, limit=1)
                writer.delete_documents_by_query(query)

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Convert tantivy's errors during a write to IndexUnusable.

        Tantivy writes in another thread, so its error does not show the cause. If the files turn
        out to be damaged, raise IndexDamaged instead.
        """
        try:
            with converted_tantivy_errors():
                yield
        except IndexDamaged as error:
            self.verify_files()
            raise _unusable_error(error) from error

    def _searcher_of_index(self, index_name: str) -> tantivy.Searcher:
        if not self._searchers:
            self.load_latest_commit()
        return self._searchers[index_name]

    @property
    def record_count(self) -> int:
        """The number of records in the index."""
        return self._searcher_of_index(RECORD_INDEX).num_docs

    def count_records_containing(self, field: str, word: str) -> int:
        """Return the number of records that contain ``word`` in a field.

        ``word`` is a stem or, if ``field`` is one of ``LABEL_FIELD_NAMES``, a whole name. The
        number may include records that were recently replaced.
        """
        with converted_tantivy_errors():
            return self._searcher_of_index(RECORD_INDEX).doc_freq(field, word)

    def words_with_prefix(
        self, field: str, prefix: str, max_words: int | None = None
    ) -> list[WordWithRecordCount]:
        """Return the words or names in a field that begin with a prefix, each with its number of records."""
        with converted_tantivy_errors():
            return self._searcher_of_index(RECORD_INDEX).terms_with_prefix(
                field, prefix, limit=max_words
            )

    def find_records(
        self, query: tantivy.Query, max_records: int, order_by: str | None = None
    ) -> list[Posting]:
        """Return the records that match a query best, in the order of their scores.

        With ``order_by``, return the records with the highest values in this field instead, highest
        first.
        """
        searcher = self._searcher_of_index(RECORD_INDEX)
        with converted_tantivy_errors():
            hits = searcher.search(
                query, limit=max_records, count=False, order_by_field=order_by
            ).hits
            columns = []
            for name in _POSTING_FIELD_NAMES:
                columns.append(searcher.fast_field_values(name, [place for _, place in hits]))
        rows = zip(hits, *columns, strict=True)
        postings = []
        for (score, address), *row in rows:
            numbers = [int(value or 0) for value in row]
            postings.append(Posting(address, float(score or 0), *numbers))
        return postings

    def find_turns(self, query: tantivy.Query, max_windows: int) -> dict[int, float]:
        """Return the turns whose windows match a query best, in the order of their scores.

        The result maps the key of each turn to the score of its best window.
        """
        searcher = self._searcher_of_index(WINDOW_INDEX)
        with converted_tantivy_errors():
            hits = searcher.search(query, limit=max_windows, count=False).hits
            keys = searcher.fast_field_values("turn_key", [address for _, address in hits])
        scores: dict[int, float] = {}
        for (score, _), key in zip(hits, keys, strict=True):
            scores.setdefault(int(key or 0), float(score))
        return scores

    def find_copies(self, keys: Collection[int]) -> dict[int, list[Posting]]:
        """Map each key to its records and to all of their copies in forks, including copies of copies."""
        records: dict[tuple[int, int], Posting] = {}
        known_ids: set[int] = {0}
        new_ids = set(keys)
        while new_ids:
            known_ids |= new_ids
            key_clauses = []
            for name in _ID_FIELD_NAMES:
                key_clauses.append(
                    (
                        tantivy.Occur.Should,
                        tantivy.Query.term_set_query(INDEX_SCHEMA, name, list(new_ids)),
                    )
                )
            postings = self.find_records(
                tantivy.Query.boolean_query(key_clauses), MAX_RECORDS_READ_FOR_COPIES
            )
            for row in postings:
                records[(row.file_id, row.offset)] = row
            new_ids = {row.key for row in postings} | {row.copy_key for row in postings}
            new_ids -= known_ids
        origins = {}
        for row in records.values():
            if row.copy_key:
                origins[row.copy_key] = row.key
        groups: dict[int, list[Posting]] = {}
        for key in keys:
            groups[_find_original_id(key, origins)] = []
        for row in records.values():
            groups.setdefault(_find_original_id(row.key, origins), []).append(row)
        return {key: groups[_find_original_id(key, origins)] for key in keys}

    def tool_names(self, record: Posting) -> str:
        """Return the names of the tools that a record calls or answers."""
        with converted_tantivy_errors():
            return ", ".join(
                self._searcher_of_index(RECORD_INDEX).doc(record.address).get_all("tool")
            )


def _find_original_id(key: int, origins: Mapping[int, int]) -> int:
    """Return the id of the original from which a record was copied, possibly in several steps.

    ``origins`` maps the ids of copies to the ids from which they were copied. If the ids form a
    cycle, return the lowest id in it.
    """
    seen_keys: set[int] = set()
    while key in origins and key not in seen_keys:
        seen_keys.add(key)
        key = origins[key]
    if key in seen_keys:
        return min(seen_keys)
    return key


def _query_for_number(field: str, number: int) -> tantivy.Query:
    """Return a query for documents that have this number in this field.

    Documents can't be deleted by ``delete_documents_by_term``, because it expects signed numbers
    and our fields are unsigned.
    """
    return tantivy.Query.term_query(INDEX_SCHEMA, field, number)


class Documents:
    """The JSON documents of one part of a file. The part's records must be added in order.

    ``documents_by_index`` maps each index's name ("records" or "windows") to its documents.
    """

    def __init__(self, file: int, part: int) -> None:
        self.documents_by_index: dict[str, list[str]] = {
            index_name: [] for index_name in INDEX_NAMES
        }
        self._position_fields = {
            "file": file,
            "part_key": make_key_from_file_and_number(file, part),
            "turn_key": -1,
            "turn_number": -1,
        }
        self._words: list[str] = []

    def add_record(self, turn_number: int, words: str, fields: Mapping[str, object]) -> None:
        """Add a record of a turn.

        ``words`` are the record's words, separated by spaces. ``fields`` are the values of the
        other fields.
        """
        if turn_number != self._position_fields["turn_number"]:
            self.end_turn()
            self._position_fields |= {
                "turn_key": make_key_from_file_and_number(
                    self._position_fields["file"], turn_number
                ),
                "turn_number": turn_number,
            }
        self.documents_by_index[RECORD_INDEX].append(
            _encode_document({**self._position_fields, **fields, WORDS_FIELD_NAME: words})
        )
        self._words += words.split(" ")
        self._add_windows(len(self._words) // WORDS_PER_WINDOW * WORDS_PER_WINDOW)

    def end_turn(self) -> None:
        """Add the last window of a turn, which may be shorter than the others."""
        self._add_windows(len(self._words))

    def _add_windows(self, word_count: int) -> None:
        for start in range(0, word_count, WORDS_PER_WINDOW):
            words = " ".join(self._words[start : start + WORDS_PER_WINDOW])
            self.documents_by_index[WINDOW_INDEX].append(
                _encode_document({**self._position_fields, WORDS_FIELD_NAME: words})
            )
        del self._words[:word_count]


def _encode_document(document: Mapping[str, object]) -> str:
    import orjson  # Imported here because a search does not need it.

    return orjson.dumps(document).decode()
