"""Tests that, after random changes to files, an updated index equals a new index."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from resume_hooks.search.index import read_transcript
from resume_hooks.search.index.connect import open_index
from tests.builders import ConfigHome, Record, line, session_bytes, session_id
from tests.search.index.probe import (
    answer_with_id,
    append_records,
    make_old,
    prompt_with_id,
    read_index,
    read_rows,
)
from tests.sessions.archived.removed_sessions import archive_and_remove

SEED_COUNT = 12
STEP_COUNT = 30


@pytest.mark.parametrize("seed", range(SEED_COUNT))
def test_an_updated_index_equals_a_new_one(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """An index that is updated after random changes equals an index that is built afterwards.

    Files are extended, rewritten, deleted, renamed, cut, copied and archived. Updates may run out
    of time.
    """
    rng = random.Random(seed)
    monkeypatch.setattr(read_transcript, "FULL_PART_BYTES", rng.choice([400, 2_000, 2_000_000]))
    pool: list[Record] = []
    for step in range(STEP_COUNT):
        _change_file_randomly(
            _random_file(config_home, rng),
            config_home,
            _new_record(step, pool, rng),
            pool,
            rng,
        )
        if rng.random() < 0.6:
            limit = rng.choice([0.0, float("inf"), float("inf")])
            with open_index(config_home.where, max_seconds=limit) as index:
                assert not index.was_rebuilt
                read_rows(index)
    for path in config_home.project().rglob("*.jsonl"):
        make_old(path)
    warm, fresh = read_index(config_home), read_index(config_home, rebuild=True)
    assert warm.found_words == fresh.found_words, warm.found_words ^ fresh.found_words
    assert [(*row[:5], row.posting[3:]) for row in warm.rows] == [
        (*row[:5], row.posting[3:]) for row in fresh.rows
    ]


def _random_file(home: ConfigHome, rng: random.Random) -> Path:
    """Return the path of one of four sessions, or of one of its sub-agents."""
    number = rng.randrange(1, 5)
    path = home.project() / f"{session_id(number)}.jsonl"
    if rng.random() < 0.2:
        path = path.with_suffix("") / "subagents" / f"agent-a{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and rng.random() < 0.5:
        make_old(path)
    return path


def _new_record(step_number: int, pool: list[Record], rng: random.Random) -> Record:
    """Add a record with a new text to ``pool`` and return it."""
    text = f"w{step_number} {rng.choice('abc')}x w{rng.randrange(9)} " + "filling " * rng.randrange(
        90
    )
    fresh = rng.choice([prompt_with_id, answer_with_id])(text, number=f"{rng.random()}")
    pool.append(fresh)
    return fresh


def _change_file_randomly(
    path: Path, home: ConfigHome, new_record: Record, pool: list[Record], rng: random.Random
) -> None:
    """Make one random change to the file."""
    what = rng.choice(
        [
            "append",
            "append",
            "copy",
            "rewrite",
            "replace",
            "unlink",
            "cut",
            "tear",
            "rename",
            "vault",
        ]
    )
    raw = path.read_bytes() if path.exists() else b""
    if what == "rewrite":
        path.write_bytes(session_bytes(rng.sample(pool, min(len(pool), rng.randrange(1, 6)))))
    elif what == "replace" and raw:
        other = path.with_suffix(".tmp")
        other.write_bytes(session_bytes([new_record]) + raw)
        os.replace(other, path)
    elif what == "unlink" and raw:
        path.unlink()
    elif what == "cut" and raw:
        path.write_bytes(raw[: rng.randrange(1, 4_000)])
    elif what == "tear" and raw:
        append_records(path, b"garbage", new_record)
        with path.open("ab") as stream:
            stream.write(line(new_record)[: rng.randrange(1, 400)])
    elif what == "rename" and raw:
        path.rename(path.with_name(f"{session_id(5)}.jsonl"))
    elif what == "vault" and raw and path.parent == home.project():
        archive_and_remove(make_old(path), home.environ)
    else:
        copied = rng.choice(pool)
        new = (
            what == "copy" and copied is not new_record and str(copied["uuid"]).encode() not in raw
        )
        append_records(path, new_record, *([copied] if new else []))
