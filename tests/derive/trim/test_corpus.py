"""Tests that a real session can be trimmed with three settings and that a second trim finds nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.errors import ResumeHooksError
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.records import list_blocks
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.builders import ConfigHome
from tests.corpus import RealSession
from tests.derive.trim.sessions import get_chain_rewrite
from tests.needs import corpus, corpus_sessions

OPTIONS_BY_NAME = {
    "defaults": Options(),
    "all that may go": Options(threshold=100, keep_recent=0, assistant=1_000),
    "one tool": Options(tools=("bash",)),
}


def count_sent_calls(transcript: Transcript) -> Counter[tuple[str, str]]:
    """Count, by kind and id, the calls and results on the live chain that would be sent to the API."""
    row = linearize_chain(transcript.chain)
    return Counter(
        (kind, call)
        for node in row.nodes
        for kind, ids in (("call", node.call_ids), ("result", node.answered_call_ids))
        for call in ids
        if call not in row.dropped_call_ids.get(node.line_number, ())
    )


def count_thinking_blocks(transcript: Transcript) -> Counter[tuple[object, ...]]:
    """Return how often each thinking block occurs on the live chain."""
    kinds = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
    found: Counter[tuple[object, ...]] = Counter()
    for node in transcript.chain:
        if node.kind == "assistant":
            for block in list_blocks(transcript.read_record(node)):
                if block.get("type") in kinds:
                    found[tuple(block.get(key) for key in kinds[block["type"]])] += 1
    return found


def assert_child_is_trimmed(home: ConfigHome, scanned: SessionScan, options: Options) -> None:
    """Trim a session and check the child.

    The child's calls have results, its thinking is whole or removed, and a second trim finds
    nothing.
    """
    decided = plan.plan_trim(scanned, home.where, options, output_dir=str(home.project()))
    write_child(decided, home.where)
    child = scan_transcript(decided.draft.path)
    stubs = Counter(
        ("result", call) for call in get_chain_rewrite(decided).linear_chain.open_call_ids
    )
    assert count_sent_calls(child) == count_sent_calls(scanned.transcript) + stubs
    assert count_thinking_blocks(child) <= count_thinking_blocks(scanned.transcript)
    again = plan.plan_trim(plan.scan_session(session_file(decided.draft.path)), home.where, options)
    assert again.choices == ()
    assert not again.is_worthwhile


def test_a_real_session_is_trimmed_with_three_settings(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """A real session can be trimmed with three settings, and its file is unchanged."""
    path = real_session.path
    before = path.stat().st_size, path.stat().st_mtime_ns
    if not real_session.has_messages:
        with pytest.raises(ResumeHooksError):
            plan.scan_session(session_file(str(path)))
        return
    scanned = plan.scan_session(session_file(str(path)))
    for how in OPTIONS_BY_NAME.values():
        assert_child_is_trimmed(config_home, scanned, how)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == before


def test_the_corpus_has_sessions() -> None:
    """The corpus has more than 70 sessions, so the tests with real sessions have something to test."""
    corpus()
    assert len(corpus_sessions()) > 70
