"""Tests of a repaired child: it has all reachable content, passes every check, and has no finding."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.maintenance.fsck import repair
from resume_hooks.maintenance.fsck.damaged_bytes import salvage_nodes
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.maintenance.fsck.repair import build_repaired_chain
from resume_hooks.sessions.lineage_block import LINEAGE_START_MARKER
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts import records
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import get_string
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    conversation,
    session_bytes,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.maintenance.fsck.cases import CASES, TWO_TURNS_OUTLINE, VALID_RECORDS, Case
from tests.transcripts.chain_cases import CHAIN_CASES
from tests.transcripts.chain_cases import Case as Chain

REPAIRED_CASES = [case for case in CASES if case.repaired_outline]


def write_session_bytes(content: bytes, home: ConfigHome) -> Path:
    """Write a session with this content to the project's folder, and return its path."""
    path = home.project() / f"{SESSION}.jsonl"
    path.write_bytes(content)
    return path


def write_repaired_child(
    content: bytes, home: ConfigHome, branch: str | None = None
) -> tuple[Receipt, repair.RepairPlan]:
    """Write the repaired child of a session with this content. The parent does not change."""
    path = write_session_bytes(content, home)
    decided = repair.plan_repair(session_file(str(path)), home.where, branch=branch)
    receipt = write_child(decided, home.where)
    assert path.read_bytes() == content
    return receipt, decided


def outline_live_chain(path: str) -> str:
    """Return the live chain of a file in the form of ``Case.repaired_outline``."""
    transcript = scan_transcript(path)
    words = []
    for node in transcript.chain:
        for block in records.list_blocks(transcript.read_record(node)):
            text = get_string(block, "text")
            if block["type"] == "tool_use":
                words.append(f"call:{block['id']}")
            elif block["type"] == "tool_result":
                words.append(f"result:{block['tool_use_id']}")
            elif text and not text.startswith(LINEAGE_START_MARKER):
                words.append(text)
    return " ".join(words)


def ids_after_repair(content: bytes, folder: Path, branch: str | None = None) -> list[str]:
    """Return the uuids of the records that a repaired child of a session with this content would have."""
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(content)
    transcript = scan_transcript(str(path))
    return [
        node.uuid for node in build_repaired_chain(transcript, salvage_nodes(transcript), branch)
    ]


@pytest.mark.parametrize("case", REPAIRED_CASES, ids=lambda case: case.name)
def test_a_repaired_child_has_every_message(case: Case, config_home: ConfigHome) -> None:
    """A repaired child has every message, and only those defects that no repair can remove."""
    receipt, _ = write_repaired_child(case.content, config_home)
    assert outline_live_chain(receipt.file) == case.repaired_outline
    left = examine_session(session_file(receipt.file), config_home.where)
    assert [group.kind.code for group in left.groups if group.kind.severity != "note"] == []
    assert all(check.ok for check in receipt.checks)
    parent = read_parent(receipt.file)
    assert parent is not None
    assert (parent.session_id, parent.kind) == (SESSION, "repair")


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_the_live_chain_is_kept(case: Chain, tmp_path: Path) -> None:
    """A repaired session contains every record of its live chain, and no record twice."""
    content = session_bytes(case.records)
    kept = ids_after_repair(content, tmp_path)
    live = [node.uuid for node in scan_transcript(str(tmp_path / f"{SESSION}.jsonl")).chain]
    assert set(live) <= set(kept)
    assert len(set(kept)) == len(kept)


@pytest.mark.parametrize(
    ("name", "loss_beginning"),
    [
        ("conversation gone after a crash: a torn line", "record 4: The last line is cut off"),
        ("a line of garbage", "record 2: 12 bytes that are not a JSON object"),
        ("two records under one id", "record 4: Record 1 has the same uuid"),
        (
            "history lost after compaction",
            "record 4: Of the messages that the compaction kept, these can't be found: gone",
        ),
        ("most of the session is gone after a resume", "record 5: A branch of 2 turns ends here"),
        (
            "tool pair 400: a call that nobody answered",
            "record 2: omitted, because its counterpart is missing: 1",
        ),
        (
            "tool pair 400: a result that nobody asked for",
            "record 2: omitted, because its counterpart is missing: 1",
        ),
        (
            "conversation gone after a crash: a torn record before the next one",
            "record 2: 29 bytes of the line are part of another record",
        ),
        ("bytes of another encoding", "record 2: The line contains bytes that are not UTF-8"),
    ],
)
def test_losses_are_reported(name: str, loss_beginning: str, config_home: ConfigHome) -> None:
    """The contents that a repair loses are listed by record, so that a user finds them in the parent."""
    case = next(case for case in CASES if case.name == name)
    _, decided = write_repaired_child(case.content, config_home)
    (loss,) = decided.losses
    assert loss.startswith(loss_beginning)


def test_a_repair_without_losses_lists_none(config_home: ConfigHome) -> None:
    """A repair that bridges a gap or drops thinking lists no losses."""
    for code in ("history-cut", "thinking-unsigned", "line-glued"):
        _, decided = write_repaired_child(
            next(case.content for case in CASES if case.defect_code == code), config_home
        )
        assert decided.losses == ()


@pytest.mark.parametrize("branch", ["a3", "u3"])
def test_a_repair_can_end_at_a_chosen_record(branch: str, config_home: ConfigHome) -> None:
    """The repair of a session can end at a chosen record, and then omits the branch that clients show."""
    case = next(case for case in CASES if case.defect_code == "branch-longer")
    receipt, _ = write_repaired_child(case.content, config_home, branch)
    assert outline_live_chain(receipt.file) == f"{TWO_TURNS_OUTLINE} u3" + (
        " a3" if branch == "a3" else ""
    )


def test_a_repair_can_end_in_a_branch_from_before_a_compaction(tmp_path: Path) -> None:
    """A repaired child can end in a branch from before the compaction.

    The child then has only the records before the compaction. If the compaction kept the branch,
    the records of the branch follow the summary.
    """
    records_ = next(
        case.records for case in CHAIN_CASES if case.name == "a walked segment is spliced in"
    )
    assert ids_after_repair(session_bytes(records_), tmp_path, "a1") == ["u1", "a1"]
    assert ids_after_repair(session_bytes(records_), tmp_path, "a2") == ["b", "s", "u2", "a2"]


def test_an_unknown_branch_is_refused(config_home: ConfigHome) -> None:
    """A repair refuses an unknown branch and writes no file."""
    session = session_file(str(write_session_bytes(session_bytes(VALID_RECORDS), config_home)))
    with pytest.raises(UsageError, match="This session has no record nowhere"):
        repair.plan_repair(session, config_home.where, branch="nowhere")


def test_a_session_without_messages_is_not_repaired(config_home: ConfigHome) -> None:
    """A session without a reachable message is not repaired."""
    session = session_file(str(write_session_bytes(b'{"type":"us', config_home)))
    with pytest.raises(ResumeHooksError, match="nothing to repair"):
        repair.plan_repair(session, config_home.where)


def test_the_child_of_an_undone_compaction_begins_with_its_summary(tmp_path: Path) -> None:
    """If a file has more than 5 MiB, the child of an undone compaction begins with its summary.

    Clients begin at the record before the compaction.
    """
    records_ = next(
        case.records
        for case in CHAIN_CASES
        if case.name == "over 5 MiB what a compaction dropped stays dropped"
    )
    assert ids_after_repair(session_bytes(records_), tmp_path) == ["b", "s", "u3", "a3"]


def test_several_records_in_one_line_are_separated(config_home: ConfigHome) -> None:
    """Several records in one line are separated, and a repair of one of them leaves the others unchanged."""
    glued: list[Record] = [
        user("u1", uuid="u1"),
        tool_use("1", uuid="c1", parent="u1", ts=1),
        tool_result("1", uuid="r1", parent="c1", ts=2),
        tool_use("2", uuid="c2", parent="r1", ts=3),
        user("u2", uuid="u2", parent="c2", ts=4),
    ]
    content = session_bytes(glued).replace(b"\n", b"") + b"\n" + session_bytes(VALID_RECORDS[3:])
    receipt, _ = write_repaired_child(content, config_home)
    assert outline_live_chain(receipt.file) == "u1 call:1 result:1 u2 a2"


def test_valid_records_keep_their_bytes(config_home: ConfigHome) -> None:
    """A repair copies valid records byte for byte."""
    content = session_bytes([*VALID_RECORDS[:2], b"garbage", *VALID_RECORDS[2:]]).replace(
        b'"content":"u2"', b'"content":"u\\u0032"'
    )
    receipt, _ = write_repaired_child(content, config_home)
    assert b'"content":"u\\u0032"' in Path(receipt.file).read_bytes()


def test_a_repair_keeps_the_size_of_a_trimmed_session(config_home: ConfigHome) -> None:
    """The size of a trimmed session is read from its first line if the API has not counted its tokens.

    A repaired child has the same size. If the repair loses content, the child is smaller by the
    size of the lost content.
    """
    write_session(config_home.project(), SESSION, conversation(3))
    trim = {
        "type": "x",
        "trim_metadata": {"parent_session_id": SESSION, "stats": {"trimmed_tokens": 53_800}},
    }
    prompts = [
        user("word " * 200, uuid=f"u{n}", parent=f"u{n - 1}" if n else None, ts=n) for n in range(3)
    ]
    whole = session_bytes([trim, *prompts])
    receipt, decided = write_repaired_child(whole, config_home)
    assert decided.sizes[:2] == (53_800, 53_800)
    assert measure_chain(receipt.file, scan_transcript(receipt.file).chain)[0].tokens == 53_800
    lost = session_bytes([trim, *prompts[:2], {**prompts[2], "uuid": "u1", "parentUuid": "u0"}])
    _, decided = write_repaired_child(lost, config_home, "u0")
    assert decided.sizes[:2] == (53_800, 53_550)


def test_a_session_changed_during_its_repair_gets_no_child(config_home: ConfigHome) -> None:
    """If the session changes during its repair, writing the child fails."""
    path = Path(write_session(config_home.project(), SESSION, conversation(2)))
    decided = repair.plan_repair(session_file(str(path)), config_home.where)
    path.write_bytes(b"x" * path.stat().st_size)
    digest = hashlib.sha256(path.read_bytes()).digest()
    with pytest.raises(ResumeHooksError):
        write_child(decided, config_home.where)
    assert [entry.name for entry in config_home.project().iterdir()] == [path.name]
    assert hashlib.sha256(path.read_bytes()).digest() == digest
