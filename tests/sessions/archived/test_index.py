"""Tests of the search index for archived sessions.

An indexed session is not read again after it is archived. A new index unpacks one archived session
at a time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.archive.vault import restore
from resume_hooks.archive.vault.rewrite import rewrite_archived
from resume_hooks.search.index import read_transcript
from resume_hooks.search.index.archived_transcripts import ArchivedSessions
from resume_hooks.search.index.changed_files import ReadJob, find_changed_and_deleted_files
from resume_hooks.search.index.connect import index_status, open_index
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope, project_scope_of_folder
from resume_hooks.sessions.archived import unpack
from resume_hooks.sessions.archived.layout import unpacked_folder
from resume_hooks.sessions.archived.manifest import find_archived as note_of
from resume_hooks.sessions.transcript_files import list_transcripts
from tests.builders import CWD, SESSION, ConfigHome, conversation, session_id, user, write_session
from tests.search.index.probe import read_index
from tests.sessions.archived.removed_sessions import archive_and_remove
from tests.sessions.test_lineage import opened_paths

OLD_FILE_TIME = 1_700_000_000


def write_session_with_subagent(
    home: ConfigHome, session_uuid: str = SESSION, prompt: str = "zebra crossing"
) -> Path:
    """Write a session and its sub-agent with different words, and return the session's path."""
    rows = [
        *conversation(2, session_id=session_uuid),
        user(prompt, uuid=f"u-{session_uuid}", parent="r4", session_id=session_uuid),
    ]
    path = Path(write_session(home.project(), session_uuid, rows, mtime=OLD_FILE_TIME))
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    said = {
        "type": "user",
        "sessionId": session_uuid,
        "uuid": "a",
        "message": {"content": "giraffe"},
    }
    agent.write_text(f"{json.dumps(said)}\n")
    os.utime(agent, (OLD_FILE_TIME, OLD_FILE_TIME))
    return path


def update_index_and_count_read_bytes(home: ConfigHome) -> int:
    """Update the index and return the number of bytes that it read."""
    with open_index(home.where) as index:
        assert index.notes == []
        return index.update_outcome.read_byte_count


def find_references_and_snippets(
    home: ConfigHome, query: str, scope: Scope | None = None
) -> list[tuple[str, str]]:
    """Return the references and snippets of the hits of a search."""
    found = search_index(query.split(), scope or Scope(), home.where)
    return [(hit.reference, hit.snippet) for hit in found.hits]


def test_a_restored_session_is_not_read_again(config_home: ConfigHome) -> None:
    """When a session is archived and deleted, the index reads nothing again and finds every word.

    When the session is restored, the hits are the same as before.
    """
    path = write_session_with_subagent(config_home)
    before = read_index(config_home).found_words
    told = (
        find_references_and_snippets(config_home, "zebra"),
        find_references_and_snippets(config_home, "giraffe"),
        find_references_and_snippets(
            config_home, "zebra", project_scope_of_folder(CWD, config_home.where)
        ),
    )
    assert all(told)
    archive_and_remove(path, config_home.environ)
    assert update_index_and_count_read_bytes(config_home) == 0
    assert read_index(config_home).found_words == before
    assert (
        find_references_and_snippets(config_home, "zebra"),
        find_references_and_snippets(config_home, "giraffe"),
        find_references_and_snippets(
            config_home, "zebra", project_scope_of_folder(CWD, config_home.where)
        ),
    ) == told
    kept = note_of(SESSION, config_home.where)
    assert kept is not None
    assert index_status(config_home.where).archived_session_count == 1
    assert index_status(config_home.where).outdated_file_count == 0
    restore.execute_restore_plan(restore.plan_restore(kept, config_home.where), config_home.where)
    os.utime(path, (OLD_FILE_TIME, OLD_FILE_TIME))
    read_index(config_home)
    assert index_status(config_home.where)[3:] == (2, *index_status(config_home.where)[4:7], 0, 0)
    assert find_references_and_snippets(config_home, "zebra") == told[0]


def test_a_new_index_includes_archived_sessions(config_home: ConfigHome, tmp_path: Path) -> None:
    """A new index of archived sessions is equal to the index from before the sessions were deleted.

    No unpacked copy is left.
    """
    paths = [
        write_session_with_subagent(config_home, session_id(number), f"word{number}")
        for number in range(1, 4)
    ]
    whole = read_index(config_home, state_folder=tmp_path / "warm").found_words
    for path in paths:
        archive_and_remove(path, config_home.environ)
    assert read_index(config_home).found_words == whole
    assert not os.path.isdir(unpacked_folder(config_home.where)) or not os.listdir(
        unpacked_folder(config_home.where)
    )
    assert update_index_and_count_read_bytes(config_home) == 0
    assert [reference for reference, _ in find_references_and_snippets(config_home, "word2")] == [
        f"{session_id(2)}:4"
    ]


def test_packed_sessions_are_unpacked_one_at_a_time(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new index unpacks archived sessions one after the other.

    A copy that another process has unpacked is kept.
    """
    for number in range(1, 5):
        archive_and_remove(
            write_session_with_subagent(config_home, session_id(number), f"word{number}"),
            config_home.environ,
        )
    kept = note_of(session_id(4), config_home.where)
    assert kept is not None
    unpack.unpacked_transcript(kept, config_home.where)
    seen = set()
    real = read_transcript.read_parts

    def record_unpacked_files_and_read(job: ReadJob) -> Iterator[read_transcript.Part | None]:
        seen.add(tuple(sorted(os.listdir(unpacked_folder(config_home.where)))))
        return real(job)

    monkeypatch.setattr(
        "resume_hooks.search.index.read_transcript.read_parts", record_unpacked_files_and_read
    )
    read_index(config_home)
    assert seen == {tuple(sorted({session_id(number), session_id(4)})) for number in range(1, 5)}
    assert os.listdir(unpacked_folder(config_home.where)) == [session_id(4)]


def test_an_up_to_date_index_reads_no_manifest(config_home: ConfigHome) -> None:
    """The index reads no manifest of an archived session that has not changed."""
    for number in range(1, 4):
        archive_and_remove(
            write_session_with_subagent(config_home, session_id(number), f"word{number}"),
            config_home.environ,
        )
    read_index(config_home)
    with open_index(config_home.where) as index:
        found = list_transcripts(config_home.where)
        with opened_paths() as opened:
            assert find_changed_and_deleted_files(
                index.db, found, ArchivedSessions(config_home.where, found)
            ) == (
                [],
                [],
            )
    assert [path for path in opened if path.endswith(".json")] == []


def test_a_rewritten_archived_copy_is_read_again(config_home: ConfigHome) -> None:
    """When a word in an archived copy is replaced, the index finds only the new word."""
    kept = archive_and_remove(write_session_with_subagent(config_home), config_home.environ)
    assert find_references_and_snippets(config_home, "zebra")
    rewrite_archived(
        kept, lambda line: line.replace(b"zebra", b"a striped horse"), config_home.where
    )
    assert find_references_and_snippets(config_home, "zebra") == []
    assert find_references_and_snippets(config_home, "striped")


def test_a_session_that_was_deleted_from_the_vault_is_dropped(config_home: ConfigHome) -> None:
    """The index drops a session whose archived copy was deleted."""
    kept = archive_and_remove(write_session_with_subagent(config_home), config_home.environ)
    assert find_references_and_snippets(config_home, "zebra")
    shutil.rmtree(kept.folder)
    assert find_references_and_snippets(config_home, "zebra") == []
    assert read_index(config_home).found_words == set()


def test_an_archived_parent_keeps_its_records(config_home: ConfigHome) -> None:
    """A record that a fork copied is a hit in the original session, even if the original is archived."""
    path = write_session_with_subagent(config_home)
    raw = path.read_bytes().replace(SESSION.encode(), session_id(7).encode())
    fork = path.with_name(f"{session_id(7)}.jsonl")
    fork.write_bytes(raw)
    os.utime(fork, (OLD_FILE_TIME + 60, OLD_FILE_TIME + 60))
    told = search_index(["zebra"], Scope(), config_home.where).hits
    archive_and_remove(path, config_home.environ)
    again = search_index(["zebra"], Scope(), config_home.where).hits
    assert [(hit.reference, hit.session_ids) for hit in again] == [
        (hit.reference, hit.session_ids) for hit in told
    ]
    os.unlink(os.path.join(config_home.config, "resume-hooks", "index.db"))
    cold = search_index(["zebra"], Scope(), config_home.where).hits
    assert {session for hit in cold for session in hit.session_ids} == {SESSION, session_id(7)}


def test_a_temporary_index_reads_only_the_needed_files(config_home: ConfigHome) -> None:
    """A temporary index includes archived sessions, but only those of the searched project."""
    archive_and_remove(write_session_with_subagent(config_home), config_home.environ)
    os.mkdir(os.path.join(config_home.config, "resume-hooks", "index.db"))
    found = search_index(
        ["zebra"], project_scope_of_folder(CWD, config_home.where), config_home.where
    )
    assert [hit.session_id for hit in found.hits] == [SESSION]
    assert (
        search_index(
            ["zebra"], project_scope_of_folder("/elsewhere", config_home.where), config_home.where
        ).hits
        == []
    )
