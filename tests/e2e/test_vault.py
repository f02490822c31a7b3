"""Tests that archived sessions and their children send the same requests as the originals."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import restore
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import find_archived
from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.sessions import locate
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    ClientHome,
    ClientVersion,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_fork import NEW_PROMPT, install_corpus_session, rows_of_request
from tests.e2e.test_rename import FIRST_ID, resumed_messages, write_session_with_word
from tests.needs import one_in
from tests.sessions.archived.removed_sessions import archive_and_remove


def test_a_restored_session_resumes(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A restored session has the same id and files, and sends the same request, as before.

    If another session now has this id, the restored session gets a new one.
    """
    session = write_session_with_word(home, FIRST_ID, "ALPHA", every_client)
    output = Path(session.path.removesuffix(".jsonl")) / "tool-results" / "toolu_1.txt"
    output.parent.mkdir(parents=True)
    output.write_bytes(b"large")
    before = resumed_messages(every_client, home, api, FIRST_ID)
    raw = Path(session.path).read_bytes()
    archive_session(session, home.where)
    os.unlink(session.path)
    shutil.rmtree(output.parent.parent)
    done = restore.execute_restore_plan(
        restore.plan_restore(find_archived(FIRST_ID, home.where), home.where), home.where
    )
    assert (done.session_id, Path(session.path).read_bytes(), output.read_bytes()) == (
        FIRST_ID,
        raw,
        b"large",
    )
    assert resumed_messages(every_client, home, api, FIRST_ID) == before
    write_session_with_word(home, FIRST_ID, "BETA", every_client)
    other = restore.execute_restore_plan(
        restore.plan_restore(find_archived(FIRST_ID, home.where), home.where), home.where
    )
    assert other.session_id != FIRST_ID
    assert resumed_messages(every_client, home, api, other.session_id) == before
    assert "BETA" in str(resumed_messages(every_client, home, api, FIRST_ID))


SAMPLE_SESSIONS = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
)
"""A session with large outputs and sub-agents, and a session with an unanswered call."""


def messages_of_resumed_child(
    client: ClientVersion, home: ClientHome, api: MockApi, child: Receipt
) -> str:
    """Resume a child, and return the request's messages with ``<child>`` instead of the child's id."""
    api.clear_requests()
    done = run_print(client, home, api, NEW_PROMPT, resume=child.session_id)
    assert done.returncode == 0, done.stderr
    request: dict[str, Any] = api.main_requests()[0]
    assert rows_of_request(request)
    return json.dumps(request["messages"]).replace(child.session_id, "<child>")


@pytest.mark.parametrize("name", one_in(2, SAMPLE_SESSIONS))
def test_a_fork_of_an_archived_session_sends_the_original_bytes(
    name: str, home: ClientHome, api: MockApi
) -> None:
    """A fork of an archived session sends the same bytes as a fork of the original session."""
    client = find_client(NEWEST_VERSION)
    parent = install_corpus_session(home, name)
    before = write_child(fork.plan_fork(locate.session_file(str(parent)), home.where), home.where)
    wanted = messages_of_resumed_child(client, home, api, before)
    archive_and_remove(parent, home.env())
    kept = locate.resolve_locator(parent.stem, "/", home.where)
    after = write_child(fork.plan_fork(kept, home.where), home.where)
    assert not parent.exists()
    assert messages_of_resumed_child(client, home, api, after) == wanted
