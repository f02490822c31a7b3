"""Compares the messages of sessions with those of the official SDK, also page by page.

Each difference has a reason. The real client decides which side is right:
``tests/transcripts/test_chain_in_client.py`` resumes every case of ``chain_cases`` with it. Where
the SDK differs, the conversation that it shows is not the one that a resumed client sends.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from claude_agent_sdk import get_session_messages, get_subagent_messages, list_subagents

from resume_hooks.paths import session_id_from_path
from resume_hooks.reading.passages import has_content, read_page
from resume_hooks.sessions.record_references import RecordLines, TranscriptNames
from resume_hooks.sessions.transcript_files import subagents_of_session
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import BOM
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.builders import SESSION, ConfigHome, conversation, session_bytes
from tests.needs import corpus, corpus_folder, corpus_sessions
from tests.transcripts.chain_cases import CHAIN_CASES, Case

IGNORED_LEAF_REASON = (
    "the SDK does not read the record last-prompt, which says where the conversation ends"
)
KEPT_MESSAGES_OMITTED_REASON = "the SDK omits the messages that a compaction kept"
GAP_NOT_BRIDGED_REASON = (
    "the SDK stops at a missing parent, but the client bridges a gap of up to five seconds"
)
DROPPED_RECORDS_READ_REASON = (
    "the SDK reads what a compaction dropped, which the client skips in a file over 5 MiB"
)
SORTED_RESULTS_REASON = (
    "the SDK sorts results of parallel calls by time and call, but the client keeps their order"
)
UNUSABLE_RECORDS_REASON = (
    "the SDK takes records that the client skips: those without a usable message, and blank ones"
)
FOLLOWED_PROGRESS_REASON = "the SDK follows progress records at any position in the file"
UNKNOWN_PROMPT_ID_REASON = "the SDK does not know the id under which a queued prompt was sent"

REASONS_AND_UUIDS_BY_CASE = {
    "a hint beats a newer branch": (IGNORED_LEAF_REASON, "u1 a1 u3 a3"),
    "a hint before a newer branch still holds": (IGNORED_LEAF_REASON, "u1 a1 u3 a3"),
    "a hint at an ancestor with another branch last": (IGNORED_LEAF_REASON, "u1 a1 u4 a4"),
    "an explicit hint is exact": (IGNORED_LEAF_REASON, "u1 a1 u2 a2"),
    "a hint at an aside means the message above it": (IGNORED_LEAF_REASON, "u1 u2 a2"),
    "a hint at a result of calls side by side stays": (IGNORED_LEAF_REASON, "u1 c2 c1 r1 r2 a1"),
    "an emptied conversation": (IGNORED_LEAF_REASON, "u1 a1"),
    "a walked segment is spliced in": (KEPT_MESSAGES_OMITTED_REASON, "s u3 a3"),
    "a listed segment is spliced in": (KEPT_MESSAGES_OMITTED_REASON, "s u3 a3"),
    "what hangs before a spliced compaction hangs on its segment": (
        KEPT_MESSAGES_OMITTED_REASON,
        "u1 a1 u3 a3",
    ),
    "a hint with answers below it is void beside a kept segment": (
        KEPT_MESSAGES_OMITTED_REASON,
        "s u3 u5 a5",
    ),
    "over 5 MiB a kept segment is still spliced in": (KEPT_MESSAGES_OMITTED_REASON, "s u3 a3"),
    "a missing parent is bridged within five seconds": (GAP_NOT_BRIDGED_REASON, "u2 a2"),
    "of two records at the same instant the first bridges": (GAP_NOT_BRIDGED_REASON, "u2 a2"),
    "a cycle is bridged by time, then ends": (GAP_NOT_BRIDGED_REASON, ""),
    "over 5 MiB what a compaction dropped stays dropped": (
        DROPPED_RECORDS_READ_REASON,
        "u1 a1 u2 a2 u3 a3",
    ),
    "over 5 MiB a near parent is bridged by what is left": (
        DROPPED_RECORDS_READ_REASON,
        "u1 a1 u2 a2 u3 a3",
    ),
    "over 5 MiB a shared message id pulls nothing in": (
        DROPPED_RECORDS_READ_REASON,
        "s c2 c1 r1 r2 a2",
    ),
    "parallel calls streamed between their results": (SORTED_RESULTS_REASON, "u1 c1 c2 r1 r2 a1"),
    "results of parallel calls come in the order of the file": (
        SORTED_RESULTS_REASON,
        "u1 c1 c2 c3 r1 r2 r3 a1",
    ),
    "an answer of white space alone is stepped over": (UNUSABLE_RECORDS_REASON, "u1 a1 u2 a2"),
    "a user record without a message is stepped over": (UNUSABLE_RECORDS_REASON, "u1 bad a1"),
    "a progress record after its child is unknown to it": (FOLLOWED_PROGRESS_REASON, "u1 a1 u2 a2"),
    "a queued prompt goes by the id that it was sent under": (UNKNOWN_PROMPT_ID_REASON, "a2"),
}
"""The reasons why the SDK's messages differ from ours, each with the uuids of the SDK's messages.
The keys are the names of the cases."""

# For each reason, the number of sessions in the corpus for which the SDK differs from us.
DIFFERENCE_COUNTS_BY_REASON = {
    KEPT_MESSAGES_OMITTED_REASON: 2,
    SORTED_RESULTS_REASON: 1,
    UNUSABLE_RECORDS_REASON: 1,
}

TRANSCRIPT_NAMES = TranscriptNames(SESSION, SESSION)


@pytest.fixture
def project(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project's folder in the config home. The SDK uses this home too."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config_home.config))
    return config_home.project()


def uuids_of_sdk_messages(session: str, limit: int | None = None, offset: int = 0) -> list[str]:
    """Return the uuids of a session's messages according to the SDK."""
    return [message.uuid for message in get_session_messages(session, limit=limit, offset=offset)]


def uuids_of_our_messages(transcript: Transcript) -> list[str]:
    """Return the uuids of the live chain's messages that the SDK would show.

    The SDK hides the client's own remarks and the messages of sub-agents and teams.
    """
    spoken = ((node, transcript.read_record(node)) for node in transcript.chain if node.is_message)
    hidden = ("isMeta", "isSidechain", "teamName")
    return [node.uuid for node, record in spoken if not any(record.get(key) for key in hidden)]


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_conversations_of_each_case_agree(project: Path, case: Case) -> None:
    """For each small transcript, the SDK and we show the same conversation, except for known differences."""
    path = project / f"{SESSION}.jsonl"
    path.write_bytes(session_bytes(case.records))
    our_uuids = uuids_of_our_messages(scan_transcript(str(path)))
    _, sdk_uuids = REASONS_AND_UUIDS_BY_CASE.get(case.name, ("", " ".join(our_uuids)))
    assert " ".join(uuids_of_sdk_messages(SESSION)) == sdk_uuids
    assert (case.name in REASONS_AND_UUIDS_BY_CASE) is (sdk_uuids != " ".join(our_uuids))


def test_each_difference_names_an_existing_case() -> None:
    """The table of differences contains only names of existing cases."""
    assert REASONS_AND_UUIDS_BY_CASE.keys() <= {case.name for case in CHAIN_CASES}


def _reason_for_difference(
    transcript: Transcript, our_uuids: list[str], sdk_uuids: list[str]
) -> str:
    """Return the reason why the SDK's messages of a real session differ from ours, or "" if it is unknown."""
    kept = {
        uuid
        for node in transcript.chain
        if node.kept_segment
        for uuid in node.kept_segment.uuids or ()
    }
    if (
        our_uuids != sdk_uuids
        and kept
        and [uuid for uuid in our_uuids if uuid not in kept] == sdk_uuids
    ):
        return KEPT_MESSAGES_OMITTED_REASON
    if our_uuids != sdk_uuids and sorted(our_uuids) == sorted(sdk_uuids):
        results = {node.uuid for node in transcript.chain if node.answered_call_ids}
        return (
            SORTED_RESULTS_REASON
            if [u for u in our_uuids if u not in results]
            == [u for u in sdk_uuids if u not in results]
            else ""
        )
    broken = {node.uuid for node in transcript.nodes if node.is_broken}
    return (
        UNUSABLE_RECORDS_REASON
        if our_uuids != sdk_uuids and sdk_uuids and sdk_uuids[-1] in broken
        else ""
    )


def test_messages_of_every_real_session_agree(project: Path) -> None:
    """For every real session, the SDK and we show the same messages, as a whole and in slices.

    Known differences are counted by reason.
    """
    corpus()
    reasons: Counter[str] = Counter()
    for file in corpus_sessions():
        session = session_id_from_path(str(file)) or SESSION
        copy = project / f"{session}.jsonl"
        shutil.copyfile(file, copy)
        transcript = scan_transcript(str(copy))
        our_uuids, sdk_uuids = uuids_of_our_messages(transcript), uuids_of_sdk_messages(session)
        if our_uuids != sdk_uuids:
            reason = _reason_for_difference(transcript, our_uuids, sdk_uuids)
            assert reason, (
                f"{file}: no reason is known for {len(our_uuids)} messages here, {len(sdk_uuids)} of the SDK"
            )
            reasons[reason] += 1
        for limit, offset in (
            ((1, 0), (7, 3), (None, max(0, len(our_uuids) - 2)), (5, len(our_uuids) + 1))
            if our_uuids == sdk_uuids
            else ()
        ):
            assert (
                uuids_of_sdk_messages(session, limit, offset)
                == our_uuids[offset : None if limit is None else offset + limit]
            )
        copy.unlink()
    assert dict(reasons) == DIFFERENCE_COUNTS_BY_REASON


def uuids_of_pages(path: Path, limit: int) -> list[str]:
    """Read all our pages, from the last to the first, and return the uuids of their records.

    The uuids are in the order of the file.
    """
    entries = RecordLines(str(path), SESSION)
    found = read_page(entries, TRANSCRIPT_NAMES, None, limit)
    uuids = [one.uuid for one in found.passages]
    while found.has_earlier_records:
        found = read_page(entries, TRANSCRIPT_NAMES, found.passages[0].entry, limit)
        uuids = [one.uuid for one in found.passages] + uuids
    return uuids


def uuids_of_records_with_text(path: Path) -> list[str]:
    """Return the uuids of the records with text, in the order of the file."""
    with path.open("rb") as stream:
        rows: list[Record] = [
            record
            for line in stream
            if (record := records.parse_record(line)) and has_content(record)
        ]
    return [records.get_string(record, "uuid") for record in rows]


def _list_sampled_sessions() -> list[Path]:
    """Return every sixth session of the corpus, ordered by size."""
    chosen = sorted(corpus_sessions(), key=lambda file: file.stat().st_size)[::6]
    return [file for file in chosen if session_id_from_path(str(file))]


@pytest.mark.parametrize("file", _list_sampled_sessions(), ids=lambda file: file.name[:8])
def test_pages_contain_every_message(project: Path, file: Path) -> None:
    """Our pages contain every record with text, even outside the live chain, in the order of the file.

    Every message that the SDK returns is on our pages once.
    """
    copy = project / file.name
    shutil.copyfile(file, copy)
    there = uuids_of_records_with_text(copy)
    on_pages = uuids_of_pages(copy, 61)
    assert on_pages == there
    counts = Counter(on_pages)
    assert {counts[uuid] for uuid in uuids_of_sdk_messages(file.stem) if uuid in set(there)} <= {1}


def _list_sessions_with_agents() -> list[Path]:
    return [file for file in corpus_sessions() if (file.parent / file.stem / "subagents").is_dir()]


@pytest.mark.parametrize("file", _list_sessions_with_agents(), ids=lambda file: file.name[:8])
def test_subagents_and_their_messages_agree(project: Path, file: Path) -> None:
    """The SDK and we find the same sub-agents.

    Our pages contain each sub-agent's messages in the same order as the SDK returns them.
    """
    copy = project / file.name
    shutil.copyfile(file, copy)
    shutil.copytree(file.parent / file.stem, project / file.stem)
    found = subagents_of_session(str(copy))
    assert [one.name.removeprefix("agent-") for one in found] == list_subagents(file.stem)
    assert found
    for one in found:
        agent = one.name.removeprefix("agent-")
        told = [message.uuid for message in get_subagent_messages(file.stem, agent)]
        on_pages = uuids_of_pages(Path(one.path), 2)
        assert [uuid for uuid in on_pages if uuid in set(told)] == told
        part = [
            message.uuid for message in get_subagent_messages(file.stem, agent, limit=2, offset=1)
        ]
        assert part == told[1:3]


def test_no_record_of_a_sub_agents_file_is_shown(project: Path) -> None:
    """For a sub-agent's file, the SDK and we show no messages.

    The records of a sub-agent do not belong to a conversation.
    """
    files = [path for path in corpus().rglob("agent-*.jsonl") if path.stat().st_size]
    assert len(files) > 20
    for path in files:
        copy = shutil.copyfile(path, project / f"{SESSION}.jsonl")
        assert (
            uuids_of_our_messages(scan_transcript(str(copy)))
            == uuids_of_sdk_messages(SESSION)
            == []
        )


def test_unlike_ours_the_sdk_misses_subagents_next_to_the_session(project: Path) -> None:
    """The SDK does not find sub-agents whose files are next to the session.

    Clients before 2.1 wrote the files there. The corpus contains 9 of these sub-agents.
    """
    corpus()
    missed = 0
    for folder in {
        file.parent
        for file in corpus_folder().rglob("agent-*.jsonl")
        if file.parent.name != "subagents"
    }:
        for file in [*folder.glob("agent-*.jsonl"), *corpus_sessions()]:
            if file.parent == folder:
                shutil.copyfile(file, project / file.name)
    for session in project.glob("*.jsonl"):
        if session_id_from_path(str(session)):
            assert list_subagents(session.stem) == []
            missed += len(subagents_of_session(str(session)))
    assert missed == 9


DAMAGE_FUNCTIONS = {
    "CR LF": lambda content: content.replace(b"\n", b"\r\n"),
    "no last line feed": lambda content: content[:-1],
    "a torn last line": lambda content: content[:-20],
    "a raw line separator": lambda content: content.replace(b"prompt 2", "a\u2028b".encode()),
    "half of a surrogate pair": lambda content: content.replace(b"prompt 2", b"\\ud83d"),
    "garbage between": lambda content: content.replace(b"\n", b"\nnull\n[1]\ngarbage\n\n", 1),
}
"""Functions that damage a file in a way that both the client and the SDK tolerate. The keys name
the kinds of damage."""


@pytest.mark.parametrize("damage", DAMAGE_FUNCTIONS.values(), ids=DAMAGE_FUNCTIONS)
def test_damaged_files_are_read_alike(project: Path, damage: Callable[[bytes], bytes]) -> None:
    """The SDK and we read a damaged file in the same way."""
    path = project / f"{SESSION}.jsonl"
    path.write_bytes(damage(session_bytes(conversation(2))))
    assert uuids_of_sdk_messages(SESSION) == uuids_of_our_messages(scan_transcript(str(path)))
    assert len(uuids_of_sdk_messages(SESSION)) >= 3


def test_unlike_ours_the_sdk_loses_a_record_after_a_byte_order_mark(project: Path) -> None:
    """The SDK loses the first record after a byte order mark. We read it, like the client."""
    path = project / f"{SESSION}.jsonl"
    path.write_bytes(BOM + session_bytes(conversation(2)))
    assert uuids_of_sdk_messages(SESSION) == ["r1", "r2", "r3"]
    assert uuids_of_our_messages(scan_transcript(str(path))) == ["r0", "r1", "r2", "r3"]


def test_unlike_ours_the_sdk_cannot_read_bytes_that_are_not_utf_8(project: Path) -> None:
    """The SDK cannot read a session with a byte that is not UTF-8. We replace the byte with U+FFFD."""
    path = project / f"{SESSION}.jsonl"
    path.write_bytes(session_bytes(conversation(2)).replace(b"prompt 2", b"\xff"))
    with pytest.raises(UnicodeDecodeError):
        uuids_of_sdk_messages(SESSION)
    assert uuids_of_our_messages(scan_transcript(str(path))) == ["r0", "r1", "r2", "r3"]
