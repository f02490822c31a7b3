"""Sessions out of the vault in the real client: what it sends of one is what it sent before its own copy was gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from resume_hooks.archive.vault import restore
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.lookup import find
from resume_hooks.paths import Where
from tests.e2e.harness.client import ClientHome, ClientVersion
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_rename import ONE, environ, sent, spoken_in


def test_a_restored_session_resumes(every_client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """Under its own id where that is free; under a new one beside what took its place."""
    session = spoken_in(home, ONE, "ALPHA", every_client)
    output = Path(session.path.removesuffix(".jsonl")) / "tool-results" / "toolu_1.txt"
    output.parent.mkdir(parents=True)
    output.write_bytes(b"large")
    before = sent(every_client, home, api, ONE)
    raw = Path(session.path).read_bytes()
    archive_session(session, Where(environ(home)))
    os.unlink(session.path)
    shutil.rmtree(output.parent.parent)
    done = restore.write(restore.plan(find(ONE, Where(environ(home))), Where(environ(home))), Where(environ(home)))
    assert (done.session_id, Path(session.path).read_bytes(), output.read_bytes()) == (ONE, raw, b"large")
    assert sent(every_client, home, api, ONE) == before
    spoken_in(home, ONE, "BETA", every_client)
    other = restore.write(restore.plan(find(ONE, Where(environ(home))), Where(environ(home))), Where(environ(home)))
    assert other.session_id != ONE
    assert sent(every_client, home, api, other.session_id) == before
    assert "BETA" in str(sent(every_client, home, api, ONE))
