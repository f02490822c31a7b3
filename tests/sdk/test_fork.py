"""Tests that compare our forks with those of the official SDK.

Both forks must give the same conversation on resume, except for differences with a known reason.
The field ``forkedFrom``, which both write, tells which records were copied. Only the messages that
a client would load are compared. tests/e2e/test_fork.py compares our fork with its parent in the
real client.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from claude_agent_sdk import fork_session

from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.cut_point import CutAtRecord
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import locate
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.write_scan import mend_record, needs_repair
from tests.builders import SESSION, ConfigHome, assistant, user, write_session
from tests.needs import corpus, corpus_sessions
from tests.search.index.probe import uuid_of_text
from tests.transcripts.chain_cases import CHAIN_CASES, Case

DROPPED_LEAF_REASON = (
    "the SDK drops the record last-prompt, in which the client stores where the conversation ends"
)
OLD_IDS_OF_KEPT_MESSAGES_REASON = (
    "the SDK leaves the old ids in a compaction's list of kept messages"
)
SPLIT_LINE_REASON = "the SDK splits a line at the character U+2028, and loses both halves"
CUT_AT_PARENT_REASON = (
    "the SDK cuts the chain at a parent that is missing, follows its child, or is in the file twice"
)
SKIPPED_RECORDS_COPIED_REASON = (
    "the SDK copies records that the client skips: blank ones, and those of a sub-agent's file"
)
SCATTERED_CALLS_REASON = (
    "the SDK leaves parallel calls between results, where old clients lose all results but one"
)
UNPAIRED_MESSAGES_REASON = (
    "the SDK leaves a call without a result and an answer at the start, which the client repairs"
)

SMALLER_FORK_REASON = (
    "the SDK's fork is smaller than 5 MiB, so the client reads records that it skips in the parent"
)
FOLLOWED_PROGRESS_REASON = "the SDK follows progress records at any position in the file"
UNKNOWN_PROMPT_ID_REASON = "the SDK does not know the id under which a queued prompt was sent"
AGENT_FILE_COPIED_REASON = (
    "the SDK copies a file that begins with a sub-agent's record, which no list of sessions shows"
)

REASONS_BY_CASE = {
    "over 5 MiB what a compaction dropped stays dropped": SMALLER_FORK_REASON,
    "over 5 MiB a near parent is bridged by what is left": SMALLER_FORK_REASON,
    "over 5 MiB a shared message id pulls nothing in": SMALLER_FORK_REASON,
    "over 5 MiB a kept segment is still spliced in": OLD_IDS_OF_KEPT_MESSAGES_REASON,
    "a progress record after its child is unknown to it": FOLLOWED_PROGRESS_REASON,
    "a queued prompt goes by the id that it was sent under": UNKNOWN_PROMPT_ID_REASON,
    "an inline sub-agent's records can be parents": AGENT_FILE_COPIED_REASON,
    "a hint beats a newer branch": DROPPED_LEAF_REASON,
    "a hint before a newer branch still holds": DROPPED_LEAF_REASON,
    "a hint at an ancestor with another branch last": DROPPED_LEAF_REASON,
    "an explicit hint is exact": DROPPED_LEAF_REASON,
    "a hint at an aside means the message above it": DROPPED_LEAF_REASON,
    "a hint at a result of calls side by side stays": DROPPED_LEAF_REASON,
    "an emptied conversation": DROPPED_LEAF_REASON,
    "a walked segment is spliced in": OLD_IDS_OF_KEPT_MESSAGES_REASON,
    "a listed segment is spliced in": OLD_IDS_OF_KEPT_MESSAGES_REASON,
    "what hangs before a spliced compaction hangs on its segment": OLD_IDS_OF_KEPT_MESSAGES_REASON,
    "a hint with answers below it is void beside a kept segment": OLD_IDS_OF_KEPT_MESSAGES_REASON,
    "parallel calls streamed between their results": SCATTERED_CALLS_REASON,
    "a missing parent is bridged within five seconds": CUT_AT_PARENT_REASON,
    "of two records at the same instant the first bridges": CUT_AT_PARENT_REASON,
    "a duplicate uuid: the last record wins": CUT_AT_PARENT_REASON,
    "parents after their children": CUT_AT_PARENT_REASON,
}
"""The reasons why the SDK's fork differs from ours. The keys are the names of the cases."""


def uuids_of_fork_messages(path: str) -> list[str]:
    """Return the ids of the parent's messages that a client would load from a fork, in order."""
    transcript = scan_transcript(path)
    marks = (
        transcript.read_record(node).get("forkedFrom")
        for node in transcript.chain
        if node.is_message and not node.is_meta
    )
    return [mark["messageUuid"] for mark in marks if mark]


def uuids_loaded_from_our_fork(path: Path, cut: str | None = None) -> list[str]:
    """Return the ids of the messages in our fork, or an empty list if we refuse to fork."""
    at = CutAtRecord(cut) if cut else None
    try:
        decided = fork.plan_fork(locate.session_file(str(path)), Where(), cut=at)
    except ResumeHooksError:
        return []
    return uuids_of_fork_messages(write_child(decided, Where()).file)


def uuids_loaded_from_sdk_fork(path: Path, cut: str | None = None) -> list[str]:
    """Return the ids of the messages in the SDK's fork, or an empty list if the SDK refuses to fork."""
    try:
        made = fork_session(path.stem, up_to_message_id=cut)
    except ValueError:
        return []
    return uuids_of_fork_messages(str(path.with_name(f"{made.session_id}.jsonl")))


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_forks_of_each_chain_case_agree(config_home: ConfigHome, case: Case) -> None:
    """Our fork and the SDK's fork differ only in the cases with a known reason."""
    path = Path(write_session(config_home.project(), SESSION, case.records))
    assert (uuids_loaded_from_our_fork(path) != uuids_loaded_from_sdk_fork(path)) == (
        case.name in REASONS_BY_CASE
    )


def test_every_difference_names_an_existing_case() -> None:
    """The table of differences contains only names of existing cases."""
    assert REASONS_BY_CASE.keys() <= {case.name for case in CHAIN_CASES}


def reason_for_difference(
    path: Path, transcript: Transcript, our_uuids: list[str], sdk_uuids: list[str]
) -> str:
    """Return the reason why the SDK's fork of a real session differs from ours, or "" if it is unknown."""
    text = path.read_text(encoding="utf-8", errors="replace")
    row = linearize_chain(transcript.chain)
    if len(text.splitlines()) != len(text.rstrip("\n").split("\n")):
        return SPLIT_LINE_REASON
    if any(node.kept_segment for node in transcript.chain):
        return OLD_IDS_OF_KEPT_MESSAGES_REASON
    if sorted(our_uuids) == sorted(sdk_uuids):
        return SCATTERED_CALLS_REASON
    blank = {
        n.uuid
        for n in transcript.nodes
        if n.is_message and is_blank_without_invalid_blocks(transcript, n.line_number)
    }
    if set(sdk_uuids) - set(our_uuids) <= blank and not set(our_uuids) - set(sdk_uuids):
        return SKIPPED_RECORDS_COPIED_REASON
    return UNPAIRED_MESSAGES_REASON if row.dropped_call_ids or row.open_call_ids else ""


def is_blank_without_invalid_blocks(transcript: Transcript, line_number: int) -> bool:
    """Check whether a message would be empty without its invalid blocks."""
    record = transcript.read_record(
        next(node for node in transcript.nodes if node.line_number == line_number)
    )
    return needs_repair(record) and mend_record(record) is None


def test_forks_of_every_real_session_agree(config_home: ConfigHome) -> None:
    """For every real session, our fork and the SDK's fork agree, or differ for a known reason."""
    corpus()
    found: Counter[str] = Counter()
    project = config_home.project()
    for source in corpus_sessions():
        path = project / f"{source.stem if is_session_id(source.stem) else SESSION}.jsonl"
        shutil.copyfile(source, path)
        own, told = uuids_loaded_from_our_fork(path), uuids_loaded_from_sdk_fork(path)
        found[
            reason_for_difference(path, scan_transcript(str(path)), own, told)
            if own != told
            else "alike"
        ] += 1
        for file in project.glob("*.jsonl"):
            file.unlink()
    assert found[""] == 0
    assert found["alike"] > 50
    assert found.keys() <= {
        "alike",
        SPLIT_LINE_REASON,
        OLD_IDS_OF_KEPT_MESSAGES_REASON,
        SCATTERED_CALLS_REASON,
        SKIPPED_RECORDS_COPIED_REASON,
        UNPAIRED_MESSAGES_REASON,
    }


def two_plain_turns() -> list[dict[str, object]]:
    """Return the records of two turns without calls."""
    rows = [
        user("one", uuid=uuid_of_text(1), ts=1),
        assistant("two", uuid=uuid_of_text(2), parent=uuid_of_text(1), ts=2),
    ]
    return [
        *rows,
        user("three", uuid=uuid_of_text(3), parent=uuid_of_text(2), ts=3),
        assistant("four", uuid=uuid_of_text(4), parent=uuid_of_text(3), ts=4),
    ]


@pytest.mark.parametrize("message_number", [1, 2, 3, 4])
def test_cut_forks_agree(config_home: ConfigHome, message_number: int) -> None:
    """A fork with the SDK's ``up_to_message_id`` and a fork with our ``--at`` end at the same message."""
    path = Path(write_session(config_home.project(), SESSION, two_plain_turns()))
    assert (
        uuids_loaded_from_our_fork(path, uuid_of_text(message_number))
        == uuids_loaded_from_sdk_fork(path, uuid_of_text(message_number))
        == [uuid_of_text(n) for n in range(1, message_number + 1)]
    )


def test_unlike_ours_the_sdk_gives_new_ids(config_home: ConfigHome) -> None:
    """The SDK gives the copied messages new uuids. We keep the uuids, so that file snapshots still match.

    The client's ``--fork-session`` also keeps the uuids.
    """
    path = Path(write_session(config_home.project(), SESSION, two_plain_turns()))
    made = write_child(fork.plan_fork(locate.session_file(str(path)), Where()), Where())
    assert [node.uuid for node in scan_transcript(made.file).nodes] == [
        uuid_of_text(n) for n in range(1, 5)
    ]
    told = fork_session(path.stem)
    other = scan_transcript(str(path.with_name(f"{told.session_id}.jsonl")))
    assert not {node.uuid for node in other.nodes} & {uuid_of_text(n) for n in range(1, 5)}


def test_unlike_ours_the_sdk_copies_no_snapshots(config_home: ConfigHome) -> None:
    """The SDK's fork has no file snapshots, so no file can be rewound in it. Our fork has the snapshots."""
    snapshot = {
        "type": "file-history-snapshot",
        "messageId": uuid_of_text(1),
        "snapshot": {"messageId": uuid_of_text(1)},
    }
    path = Path(write_session(config_home.project(), SESSION, [*two_plain_turns(), snapshot]))
    made = write_child(fork.plan_fork(locate.session_file(str(path)), Where()), Where())
    assert b"file-history-snapshot" in Path(made.file).read_bytes()
    told = fork_session(path.stem)
    assert b"file-history-snapshot" not in path.with_name(f"{told.session_id}.jsonl").read_bytes()
