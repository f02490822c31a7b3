"""Tests of a scrubbed child: its files contain no secrets, and the parent is unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resume_hooks.derive.child.rewrite_chain import ChainRewrite
from resume_hooks.derive.child.write_child import Sizes, write_child
from resume_hooks.derive.trim.plan import scan_session
from resume_hooks.errors import CheckFailed, NothingToFork
from resume_hooks.parts.secrets import child, findings
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_bytes,
    user,
    write_session,
)
from tests.parts.secrets.scrub.planting import (
    SECRETS,
    find_secrets_by_path,
    plant_secrets,
    records_with_secrets,
    write_old_file,
)


@pytest.fixture
def session_with_secrets(config_home: ConfigHome) -> Path:
    """Write a session with secrets in its records and its tool outputs, and return its path."""
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl", session_bytes(records_with_secrets())
    )
    write_old_file(
        path.with_suffix("") / "tool-results" / "big.txt", f"line\ntoken {SECRETS[1]}\n".encode()
    )
    write_old_file(path.with_suffix("") / "tool-results" / "clean.txt", b"nothing")
    return path


def write_scrubbed_child(home: ConfigHome, path: Path) -> Path:
    """Write a scrubbed child and return its path."""
    found = findings.search_all_files(session_file(str(path)), home.where)
    return Path(
        write_child(
            child.plan_scrubbed_child(found.session, home.where, found.scanning_cleaner), home.where
        ).file
    )


def test_a_scrubbed_child_has_no_secret_and_the_parent_is_unchanged(
    config_home: ConfigHome, session_with_secrets: Path
) -> None:
    """A scrubbed child has no secret in its records, title and outputs, and the parent is unchanged.

    The parent is not archived again.
    """
    before = {
        each: (each.read_bytes(), each.stat().st_mtime)
        for each in session_with_secrets.parent.rglob("*")
        if each.is_file()
    }
    made = write_scrubbed_child(config_home, session_with_secrets)
    assert {each: (each.read_bytes(), each.stat().st_mtime) for each in before} == before
    assert not [place for place in find_secrets_by_path(config_home) if made.stem in place]
    assert all(
        not each.removed_secrets
        for each in SecretCleaner().read_cleaned_chunks(str(made), is_read_by_line=True)
    )
    beside = made.with_suffix("") / "tool-results"
    assert (beside / "big.txt").read_bytes() == b"line\ntoken [secret removed: github-pat]\n"
    assert (beside / "clean.txt").samefile(
        session_with_secrets.with_suffix("") / "tool-results" / "clean.txt"
    )
    assert manifest.list_archived(config_home.where) == [], "of what is to go no copy more is kept"


def test_the_size_of_a_scrubbed_child_includes_text_after_the_last_token_count(
    config_home: ConfigHome,
) -> None:
    """The size of a scrubbed child includes the text after the parent's last token count, as in a trim."""
    rows = [*conversation(2), user("x" * 40_000, uuid="z", parent="r3", ts=9)]
    session = session_file(write_session(config_home.project(), SESSION, rows))
    sent = scan_session(session).context.tokens
    assert sent > 6_000
    assert child.plan_scrubbed_child(session, config_home.where, SecretCleaner()).sizes == Sizes(
        sent, sent
    )


def test_a_scrubbed_child_has_the_parents_chain(
    config_home: ConfigHome, session_with_secrets: Path
) -> None:
    """A scrubbed child has all records of the parent's chain except thinking with a secret.

    The child's records name the child's copies of large outputs, not the parent's.
    """
    file = write_scrubbed_child(config_home, session_with_secrets)
    made, old = scan_transcript(str(file)), scan_transcript(str(session_with_secrets))
    gone = {"t0", "t9"}
    assert [node.uuid for node in made.chain] == [
        node.uuid for node in old.chain if node.uuid not in gone
    ]
    parent = read_parent(made.path)
    assert (parent and parent.session_id, parent and parent.kind) == (SESSION, "scrub")
    assert f"/{file.stem}/tool-results/big.txt" in file.read_text()
    assert f"/{SESSION}/tool-results/" not in file.read_text()


def test_backups_with_secrets_are_not_copied(config_home: ConfigHome) -> None:
    """A scrubbed child gets the parent's file backups except those with secrets."""
    planted = plant_secrets(config_home)
    history = config_home.config / "file-history" / SESSION
    write_old_file(history / "1b@v1", b"clean")
    tracked = {name: {"backupFileName": name, "version": 1} for name in ("0a@v1", "1b@v1")}
    snapshot = {
        "messageId": "u0",
        "trackedFileBackups": tracked,
        "timestamp": "2026-01-31T09:30:00.000Z",
    }
    row = {
        "type": "file-history-snapshot",
        "messageId": "u0",
        "snapshot": snapshot,
        "isSnapshotUpdate": False,
    }
    planted.path.write_bytes(session_bytes([*records_with_secrets(), row]))
    found = findings.search_all_files(session_file(str(planted.path)), config_home.where)
    made = write_child(
        child.plan_scrubbed_child(found.session, config_home.where, found.scanning_cleaner),
        config_home.where,
    )
    assert [
        path.name for path in (config_home.config / "file-history" / made.session_id).iterdir()
    ] == ["1b@v1"]
    assert any("were not copied" in warning for warning in made.warnings)


def test_a_remaining_secret_prevents_the_child(
    config_home: ConfigHome, session_with_secrets: Path
) -> None:
    """If a secret is found in the written child, the child is not kept."""
    found = findings.search_all_files(session_file(str(session_with_secrets)), config_home.where)
    decided = child.plan_scrubbed_child(found.session, config_home.where, found.scanning_cleaner)
    assert isinstance(decided.body, ChainRewrite)
    decided = replace(decided, body=replace(decided.body, line_edit=lambda body, _: body))
    with pytest.raises(CheckFailed, match="no secret was found in it"):
        write_child(decided, config_home.where)
    assert sorted(each.name for each in session_with_secrets.parent.iterdir()) == [
        SESSION,
        session_with_secrets.name,
    ]


def test_a_session_without_messages_has_no_scrubbed_child(config_home: ConfigHome) -> None:
    """A session that has only a title gets no scrubbed child."""
    path = write_old_file(
        config_home.project() / f"{SESSION}.jsonl", session_bytes([custom_title(SECRETS[0])])
    )
    with pytest.raises(NothingToFork):
        child.plan_scrubbed_child(session_file(str(path)), config_home.where, SecretCleaner())
