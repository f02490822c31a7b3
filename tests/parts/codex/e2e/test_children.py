"""Tests of children of real rollouts: the real Codex's requests show that the children are correct."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import ChildPlan, write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.derive.verbs.fork import plan_fork
from resume_hooks.derive.verbs.trim import plan_trim
from resume_hooks.derive.verbs.untrim import plan_untrim
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions.locate import SessionFile, resolve_locator
from tests.needs import require_for_test
from tests.parts.codex.e2e.client import COMPACTION_REQUEST_START, CodexHome, thread_id_of_path
from tests.parts.codex.e2e.responses import Item, item_text, join_input_texts
from tests.parts.codex.rollouts import codex_rollouts

FIRST_PAGINATED_VERSION = (0, 150)


@pytest.fixture
def where(every_codex: CodexHome, monkeypatch: pytest.MonkeyPatch) -> Where:
    """Return the paths of a run in the home of Codex."""
    monkeypatch.setenv("HOME", str(every_codex.root))
    monkeypatch.setenv("CODEX_HOME", str(every_codex.codex))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(every_codex.root / ".claude"))
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(every_codex.root / "state"))
    return Where()


def add_real_rollouts(client: CodexHome, max_count: int | None = None) -> list[Path]:
    """Copy all real rollouts, or the first ``max_count`` of them, to a home and return the paths of the copies."""
    found = codex_rollouts()[:max_count]
    require_for_test(
        "the corpus of rollouts", found, "set RESUME_HOOKS_CODEX, or put it beside the transcripts"
    )
    return [client.add_rollout(path) for path in found]


def thread_file(path: Path, where: Where) -> SessionFile:
    """Find the session file of a thread by the thread's id, as a verb does."""
    return resolve_locator(thread_id_of_path(path), "/", where, allow_other_agents=True)


def request_or_none(client: CodexHome, thread: str) -> list[Item] | None:
    """Return the first request after a resume, or None if this version refuses the session."""
    try:
        return client.resume(thread)
    except AssertionError:
        return None


def is_read_completely(client: CodexHome, path: Path, sent_items: list[Item] | None) -> bool:
    """Check whether this version reads the whole session and continues it without a compaction."""
    knows = (
        tuple(map(int, client.version.split(".")[:2])) >= FIRST_PAGINATED_VERSION
        or read_meta(str(path)).base is None
    )
    return (
        sent_items is not None
        and knows
        and COMPACTION_REQUEST_START not in item_text(sent_items[-1])
    )


def comparable_items(path: Path, sent_items: list[Item]) -> list[Item]:
    """Return the items of a request that can be compared with those of another request.

    After a compaction by an old client, environment messages are omitted, because the client sends
    them again.
    """
    lines = path.read_bytes().splitlines()
    old = any(
        b'"type":"compacted"' in line and b"replacement_history" not in line for line in lines
    )
    return (
        [
            item
            for item in sent_items
            if item.get("role") != "developer" and not codex_items.is_harness_message(item)
        ]
        if old
        else sent_items
    )


def differ_only_in_placeholders(before: list[Item], after: list[Item]) -> bool:
    """Check whether all items that differ between two requests are placeholders in the second request."""
    changed = [json.dumps(new) for old, new in zip(before, after, strict=True) if old != new]
    return all(
        " suppressed - original " in text or " trimmed - original " in text for text in changed
    )


def write_child_receipt(plan: ChildPlan, where: Where) -> Receipt:
    """Write a child and return its receipt."""
    receipt = write_child(plan, where)
    assert receipt.checks, receipt
    return receipt


ROLLOUT_SAMPLE_STEP = 1 if os.environ.get("RUN_ALL") == "1" else 12
"""Every twelfth rollout is tested. With RUN_ALL=1, all are tested, which takes a minute per
version."""


def test_children_of_every_rollout_send_the_parents_request(
    every_codex: CodexHome, where: Where
) -> None:
    """A fork sends its parent's items, a trim only adds placeholders, and an untrim restores the items.

    The parent's file is unchanged.
    """
    client = every_codex
    whole = trimmed = 0
    for path in add_real_rollouts(client)[::ROLLOUT_SAMPLE_STEP]:
        before = hashlib.sha256(path.read_bytes()).digest()
        parent = thread_file(path, where)
        fork = write_child_receipt(plan_fork(parent, where), where)
        decided = plan_trim(parent, where, Options())
        trim = write_child_receipt(decided, where) if decided.is_worthwhile else None
        back = untrim_all(trim, where) if trim else None
        assert hashlib.sha256(path.read_bytes()).digest() == before, path.name
        sent = request_or_none(client, parent.session_id)
        ours = client.resume(fork.session_id) if sent is not None else []
        if not is_read_completely(client, path, sent) or sent is None:
            continue
        whole += 1
        assert comparable_items(path, ours) == comparable_items(path, sent), path.name
        if trim is not None and back is not None:
            trimmed += 1
            assert differ_only_in_placeholders(
                comparable_items(path, sent), comparable_items(path, client.resume(trim.session_id))
            ), path.name
            assert comparable_items(path, client.resume(back.session_id)) == comparable_items(
                path, sent
            ), path.name
    assert whole >= 15 // ROLLOUT_SAMPLE_STEP
    assert trimmed >= 6 // ROLLOUT_SAMPLE_STEP


def untrim_all(trim: Receipt, where: Where) -> Receipt:
    """Write an untrim with all trimmed contents restored, and return its receipt."""
    reading = scan_trimmed_session(
        resolve_locator(trim.session_id, "/", where, allow_other_agents=True)
    )
    return write_child_receipt(plan_untrim(reading, where, strict=True), where)


def test_a_handoff_starts_with_lineage_and_next_step(every_codex: CodexHome, where: Where) -> None:
    """The first request of a handoff contains the lineage, the next step and Codex's environment.

    If a second handoff is made from the first, its first request names both earlier sessions.
    """
    client = every_codex
    parent = thread_file(add_real_rollouts(client, 1)[0], where)
    contents = ChildContents(build_digest(parent, where))
    first = write_child_receipt(
        agents.plan_fresh_child(
            parent, where, kind="handoff", next_step="write the tests", contents=contents
        ),
        where,
    )
    sent = client.resume(first.session_id)
    words = join_input_texts(sent)
    assert "[SESSION LINEAGE]" in words
    assert parent.session_id in words
    assert words.count("Next step, as the user put it:\nwrite the tests") == 1
    assert "<environment_context>" in words
    again = agents.plan_fresh_child(
        resolve_locator(first.session_id, "/", where, allow_other_agents=True),
        where,
        kind="handoff",
        next_step="go on",
    )
    second = write_child_receipt(again, where)
    words = join_input_texts(client.resume(second.session_id))
    assert parent.session_id in words
    assert first.session_id in words
    assert second.title.endswith(" · handoff 2")


@pytest.mark.part("marks")
def test_a_rewind_contains_the_conversation_up_to_the_mark(
    every_codex: CodexHome, where: Where
) -> None:
    """The request of a rewind has the conversation up to the mark, followed by the report."""
    from resume_hooks.parts.marks import plan_back
    from resume_hooks.parts.marks import state as marks

    client = every_codex
    parent = thread_file(add_real_rollouts(client, 1)[0], where)
    mark = marks.make_mark_at_end(parent, "try").mark
    report = write_child_receipt(
        plan_back.plan_back(parent, mark, "it was slower", where).child, where
    )
    sent, before = client.resume(report.session_id), client.resume(parent.session_id)
    assert [item for item in sent if item in before][: len(before) - 1] == before[:-1]
    assert "it was slower" in join_input_texts(sent)
