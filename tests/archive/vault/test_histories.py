"""Tests that every archived state of a session can be read after any sequence of changes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import list_earlier_states, select_earlier_state
from resume_hooks.archive.vault.packs import verify_archived
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived
from tests.archive.vault.full_sessions import (
    FIVE_DAYS_AGO,
    archived_contents,
    session_with_every_file,
    vault_files,
)
from tests.builders import SESSION, ConfigHome

CHANGE_COUNT = 25


def archived_transcripts(home: ConfigHome) -> set[bytes]:
    """Return the contents of all states of the session's transcript in the vault."""
    kept = find_archived(SESSION, home.where)
    assert kept is not None
    every: list[ArchivedSession] = [
        kept,
        *(select_earlier_state(kept, state) for state in list_earlier_states(kept)),
    ]
    return {archived_contents(each, home)[kept.place] for each in every}


def change_transcript(path: Path, random: random.Random) -> None:
    """Change a transcript at random, as clients, this program or other programs may do."""
    raw = path.read_bytes() if path.exists() else b""
    how = random.choice(["append", "append", "anew", "shorter", "other", "older", "away", "cut"])
    if how == "append":
        with path.open("ab") as stream:
            stream.write(b'{"type":"x","n":%d}\n' % random.randrange(1000))
    elif how == "cut":
        path.write_bytes(raw[: len(raw) // 3] or b"{}\n")
    elif how == "away":
        path.unlink(missing_ok=True)
    else:
        new = {
            "anew": raw + b'{"type":"y"}\n',
            "shorter": raw[: len(raw) // 2] or b"{}\n",
            "other": raw[::-1] or b"{}\n",
        }
        path.with_suffix(".new").write_bytes(new.get(how, raw or b"{}\n"))
        path.with_suffix(".new").replace(path)
    if path.exists():
        os.utime(
            path,
            (FIVE_DAYS_AGO + random.randrange(100_000), FIVE_DAYS_AGO + random.randrange(100_000)),
        )


@pytest.mark.parametrize("seed", range(3))
def test_no_archived_content_is_lost(config_home: ConfigHome, seed: int) -> None:
    """After many changes, the vault still has every version of a file, or a version that continues it."""
    chance = random.Random(seed)
    path = Path(session_with_every_file(config_home).path)
    known: set[bytes] = set()
    for _ in range(CHANGE_COUNT):
        change_transcript(path, chance)
        if path.exists() and path.stat().st_size:
            archive_session(locate.session_file(str(path)), config_home.where)
            known.add(path.read_bytes())
        kept = find_archived(SESSION, config_home.where)
        if kept:
            assert verify_archived(kept) == []
    there = archived_transcripts(config_home)
    assert [raw for raw in known if not any(each.startswith(raw) for each in there)] == []
    kept = find_archived(SESSION, config_home.where)
    assert kept is not None
    named = {part.where for part in kept.all_parts}
    assert len(named) == 1
    assert {name.split("/")[1] for name in vault_files(config_home)} == {"manifest.json", *named}
