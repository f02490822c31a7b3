"""Tests of other processes that write copies of a secret during a scrub in place.

The scrub removes or reports each copy, and a child that was planned before the scrub is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import archive_session
from resume_hooks.archive.vault import commit as noting
from resume_hooks.derive import fork
from resume_hooks.derive.child.rewrite_chain import ChainRewrite
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import WriteFailed
from resume_hooks.parts.secrets import findings
from resume_hooks.parts.secrets import purge as purging
from resume_hooks.parts.secrets import purge as replacing
from resume_hooks.parts.secrets.findings import (
    REMAINING_STATE,
    REMOVED_STATE,
    UNCHANGED_STATE,
    LocationWithSecrets,
)
from resume_hooks.parts.secrets.locations import OWN_SESSION, TRANSCRIPT, Location
from resume_hooks.parts.secrets.purge import remove_secrets_from_files
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import session_file
from tests.builders import SESSION, ConfigHome, assistant, session_bytes, session_id, user
from tests.parts.secrets.scrub.planting import SECRETS, find_secrets_by_path, write_old_file

PASSWORD = "k7Wz3-Qm9xT4"


@pytest.fixture
def session_with_secrets(config_home: ConfigHome) -> Path:
    """Write a session with a token and a password, and return its path."""
    said = [
        user(f"my token is {SECRETS[0]}, PASSWORD={PASSWORD}", uuid="u"),
        assistant("I see.", uuid="a", parent="u", ts=1),
    ]
    return write_old_file(config_home.project() / f"{SESSION}.jsonl", session_bytes(said))


def scrub_in_place(path: Path, environ: Mapping[str, str]) -> list[LocationWithSecrets]:
    """Scrub a session in place and return the locations of its secrets."""
    return remove_secrets_from_files(
        findings.search_all_files(session_file(str(path)), Where(environ)), Where(environ)
    )


def run_before_replacement(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Run ``action`` once, just before the session's own transcript is replaced."""
    replace = replacing.write_scrubbed_file
    done: list[Location] = []

    def replace_after_action(location: Location, *arguments: Any) -> None:
        if location.kind == TRANSCRIPT and location.relation == OWN_SESSION and not done:
            done.append(location)
            action()
        replace(location, *arguments)

    monkeypatch.setattr(replacing, "write_scrubbed_file", replace_after_action)


def test_a_child_written_during_a_scrub_is_scrubbed(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a child is written during a scrub, the scrub also removes the secrets from the child.

    The session's archived copy is scrubbed, too.
    """
    environ = config_home.environ
    born: list[str] = []
    decided = fork.plan_fork(session_file(str(session_with_secrets)), Where(environ))
    run_before_replacement(
        monkeypatch, lambda: born.append(write_child(decided, Where(environ)).file)
    )
    rows = scrub_in_place(session_with_secrets, environ)
    assert find_secrets_by_path(config_home, [*SECRETS, PASSWORD]) == {}
    assert {row.scrub_state for row in rows} == {REMOVED_STATE}
    assert {row.location.path for row in rows if row.location.kind == TRANSCRIPT} == {
        str(session_with_secrets),
        *born,
    }
    assert "vault" in {row.location.kind for row in rows}


def test_secrets_of_the_parent_are_found_in_a_child(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that only the parent's text makes recognizable is also removed from a child.

    The child in this test has the parent's password without the word "password" before it.
    """
    child = session_with_secrets.with_name(f"{session_id(5)}.jsonl")
    said = [
        user(f"is it {PASSWORD}?", uuid="c", forkedFrom={"sessionId": SESSION, "messageUuid": "u"})
    ]
    run_before_replacement(monkeypatch, lambda: write_old_file(child, session_bytes(said)))
    scrub_in_place(session_with_secrets, config_home.environ)
    assert b"is it [secret removed: password]?" in child.read_bytes()


def test_a_child_planned_before_a_scrub_is_refused(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that was planned before a scrub and is written after it is refused."""
    environ = config_home.environ
    decided = fork.plan_fork(session_file(str(session_with_secrets)), Where(environ))
    read = list(decided.body.lines())
    scrub_in_place(session_with_secrets, environ)
    monkeypatch.setattr(ChainRewrite, "lines", lambda _: iter(read))
    with pytest.raises(WriteFailed, match="rewritten while it was copied"):
        write_child(decided, Where(environ))
    assert find_secrets_by_path(config_home) == {}
    assert not [
        other for other in session_with_secrets.parent.iterdir() if other != session_with_secrets
    ]


def test_a_session_archived_during_a_scrub_is_scrubbed(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a session is archived during a scrub, its archived copy is scrubbed, too.

    The scrub waits for the archive command.
    """
    environ, commit, linked = config_home.where, noting.commit_manifest, threading.Event()
    keeper = threading.Thread(
        target=lambda: archive_session.archive_session(
            session_file(str(session_with_secrets)), environ
        )
    )

    def commit_slowly(archived_session: Any, where: Where) -> Any:
        if threading.current_thread() is keeper:
            linked.set()
            time.sleep(0.3)
        return commit(archived_session, where)

    def start_archiving() -> None:
        keeper.start()
        assert linked.wait(10)

    monkeypatch.setattr(noting, "commit_manifest", commit_slowly)
    run_before_replacement(monkeypatch, start_archiving)
    rows = scrub_in_place(session_with_secrets, environ.environ)
    assert not keeper.is_alive()
    assert find_secrets_by_path(config_home) == {}
    assert ("vault", REMOVED_STATE) in {(row.location.kind, row.scrub_state) for row in rows}


def test_a_long_running_archive_command_is_reported(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another command holds the lock of an archived copy too long, the scrub reports the copy."""
    monkeypatch.setattr(noting, "MAX_LOCK_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(noting.lock_archived.__wrapped__, "__defaults__", (0.0,))  # type: ignore[attr-defined]
    with noting.lock_archived(SESSION, config_home.where):
        rows = scrub_in_place(session_with_secrets, config_home.environ)
    (left,) = [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert left.location.kind == "vault"
    assert "Another command" in left.state_reason


def test_a_scrub_ends_although_new_copies_appear(
    config_home: ConfigHome, session_with_secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If new copies appear in every round of a scrub, the scrub ends anyway, and reports the newest copy."""
    said = session_bytes(
        [user(SECRETS[0], uuid="c", forkedFrom={"sessionId": SESSION, "messageUuid": "u"})]
    )
    looks = [0]
    look = findings.search_again_for_known_secrets

    def write_copy_and_search(*words: Any) -> Any:
        looks[0] += 1
        write_old_file(session_with_secrets.with_name(f"{session_id(looks[0])}.jsonl"), said)
        return look(*words)

    monkeypatch.setattr(purging, "search_again_for_known_secrets", write_copy_and_search)
    rows = scrub_in_place(session_with_secrets, config_home.environ)
    assert looks == [purging.MAX_REPEATED_SEARCHES]
    (left,) = [row for row in rows if row.scrub_state == REMAINING_STATE]
    assert left.state_reason == purging.FILE_APPEARED_DURING_REWRITE_MESSAGE
    assert UNCHANGED_STATE not in {row.scrub_state for row in rows}
