"""Tests that a fork copies the whole live conversation or a part of it.

A fork may also be written to another project.
"""

from __future__ import annotations

import hashlib
import random
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.cut_point import CutAtRecord, CutAtTurn, CutBeforeCompaction, CutSelector
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.errors import NothingToFork, UsageError, WriteFailed
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.paths import Where, project_key
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import scan_live_records, scan_transcript
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    boundary,
    conversation,
    custom_title,
    last_prompt,
    session_bytes,
    session_id,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession
from tests.transcripts.chain_cases import CHAIN_CASES, Case

MAX_SESSION_BYTES = 3_000_000
"""Maximum size in bytes of a real session in these tests. The benchmarks use larger sessions."""

FILE_SNAPSHOT = {
    "type": "file-history-snapshot",
    "messageId": "r2",
    "snapshot": {
        "messageId": "r2",
        "trackedFileBackups": {
            "src/a.py": {"backupFileName": "aa@v1", "version": 1, "realParentDir": f"{CWD}/src"},
            "../beside/b.py": {
                "backupFileName": "bb@v1",
                "version": 1,
                "realParentDir": "/home/user/beside",
            },
            "/etc/c": {"backupFileName": "cc@v1", "version": 1},
        },
        "timestamp": "2026-01-31T09:30:02.000Z",
    },
    "isSnapshotUpdate": False,
}


def write_lines(home: ConfigHome, rows: list[Any], session_uuid: str = SESSION) -> str:
    """Write a session with these lines in its project."""
    return write_session(home.project(), session_uuid, rows)


def write_fork(path: str, cut: CutSelector | None = None, **fork_options: Any) -> Receipt:
    """Write a fork of a session and return its receipt."""
    return write_child(
        fork.plan_fork(locate.session_file(path), Where(), cut=cut, **fork_options), Where()
    )


def read_file_lines(path: str) -> list[bytes]:
    """Return a file's lines."""
    return Path(path).read_bytes().split(b"\n")


def read_live_records(path: str) -> list[Record]:
    """Return the live records of a file."""
    transcript = scan_transcript(path)
    return [transcript.read_record(node) for node in transcript.chain]


def find_defect_codes(path: str) -> set[str]:
    """Examine a session and return the codes of its errors and warnings."""
    report = examine_session(locate.session_file(path), Where())
    return {group.kind.code for group in report.groups if group.kind.severity != "note"}


def test_a_whole_fork_copies_records_byte_for_byte(config_home: ConfigHome) -> None:
    """A fork of a whole session copies the bytes of each record, with two exceptions.

    The session's id is replaced, and the field ``forkedFrom`` is added. The fork keeps the token
    counts and has no defects.
    """
    path = write_lines(config_home, [*conversation(2), custom_title("Fix the parser")])
    made = write_fork(path)
    assert all(check.ok for check in made.checks)
    for number, (parent, child) in enumerate(
        zip(read_file_lines(path)[:4], read_file_lines(made.file)[1:5], strict=True)
    ):
        mark = b',"forkedFrom":{"sessionId":"%s","messageUuid":"r%d"}}' % (SESSION.encode(), number)
        assert child == parent.replace(SESSION.encode(), made.session_id.encode())[:-1] + mark
    assert made.title == "Fix the parser · fork"
    assert (made.tokens_before, made.tokens_after) == (1_300, 1_300)
    assert made.warnings == ()
    assert find_defect_codes(made.file) == set()


def test_a_fork_of_a_compacted_session_includes_kept_messages(config_home: ConfigHome) -> None:
    """The fork of a compacted session includes the messages that the compaction kept.

    Records before the compaction and on abandoned branches are not copied.
    """
    rows = [
        *conversation(1),
        boundary(
            uuid="b",
            before="r1",
            ts=5,
            segment={"headUuid": "r1", "anchorUuid": "s", "tailUuid": "r1"},
        ),
        summary("SUMMARY", uuid="s", parent="b", ts=6),
        user("LEFT", uuid="x", parent="s", ts=7),
        user("on", uuid="y", parent="s", ts=8),
        assistant("well", uuid="z", parent="y", ts=9),
    ]
    made = write_fork(write_lines(config_home, rows))
    assert b"LEFT" not in Path(made.file).read_bytes()
    found = read_live_records(made.file)
    assert [row["uuid"] for row in found] == ["b", "s", "r1", "y", "z"]
    assert found[0]["compactMetadata"] == {"trigger": "auto", "preTokens": 150_000}
    assert [row["forkedFrom"]["messageUuid"] for row in found] == ["b", "s", "r1", "y", "z"]
    assert b'"cache_read_input_tokens":1085' not in Path(made.file).read_bytes(), (
        "counted before the compaction"
    )


def test_a_fork_that_begins_with_an_answer_gets_a_lineage(config_home: ConfigHome) -> None:
    """A fork whose first message would be an answer begins with its lineage instead.

    The API refuses a conversation whose first message is not the user's.
    """
    rows = [
        assistant("begun", uuid="a", parent="gone", ts=1),
        user("on", uuid="p", parent="a", ts=2),
    ]
    first = read_live_records(write_fork(write_lines(config_home, rows)).file)[0]
    assert first["message"]["content"].startswith(LINEAGE_START_MARKER)
    assert "forkedFrom" not in first


def test_a_fork_of_a_fork_names_the_fork(config_home: ConfigHome) -> None:
    """The fork of a fork names the fork as its source, and its lineage names all three sessions."""
    path = write_lines(config_home, conversation(2))
    once = write_fork(path)
    twice = write_fork(once.file)
    assert [row["forkedFrom"]["sessionId"] for row in read_live_records(twice.file)] == [
        once.session_id
    ] * 4
    own, new = once.session_id.encode(), twice.session_id.encode()
    for one, other in zip(
        read_file_lines(once.file)[1:5], read_file_lines(twice.file)[1:5], strict=True
    ):
        assert other == one.replace(own, new).replace(SESSION.encode(), own)
    lineage = [row.session_id for row in LineageFinder(Where()).find_lineage(twice.file)]
    assert lineage == [SESSION, once.session_id, twice.session_id]


def test_a_fork_of_a_trimmed_session_keeps_its_originals(config_home: ConfigHome) -> None:
    """A fork of a trimmed session keeps the placeholders and their originals. So does a fork of that fork."""
    rows = [
        *conversation(1),
        tool_use("c", uuid="c", parent="r1", ts=5, name="Bash", tool_input={"command": "ls"}),
        tool_result("c", "OUTPUT " * 2_000, uuid="o", parent="c", ts=6),
        assistant("seen", uuid="e", parent="o", ts=7, tokens=9_000),
        *conversation(3, prefix="q", start=20),
    ]
    rows[5]["parentUuid"] = "e"
    path = write_lines(config_home, rows)
    options = Options(threshold=100, keep_recent=1, min_savings=0)
    trimmed = write_child(
        plan.plan_trim(plan.scan_session(locate.session_file(path)), Where(), options), Where()
    )
    made = write_fork(write_fork(trimmed.file).file)
    assert [
        node.uuid for node in scan_trimmed_session(locate.session_file(made.file)).trimmed_nodes
    ] == ["o"]
    record = next(row for row in read_live_records(made.file) if row["uuid"] == "o")
    assert record["original_session_id"] == SESSION
    assert record["message"]["content"][0]["content"].startswith(
        "[Results from Bash tool suppressed"
    )
    assert find_defect_codes(made.file) == set()


def test_the_size_of_a_fork_before_a_compaction_is_estimated(config_home: ConfigHome) -> None:
    """The estimated size of a fork before a compaction includes the client's system prompt and tools."""
    path = write_lines(
        config_home,
        [user("hi", uuid="u"), assistant("x" * 4_000, uuid="a", parent="u", tokens=31_000)],
    )
    options = Options(threshold=100, keep_recent=0, min_savings=0, assistant=1)
    trimmed = write_child(
        plan.plan_trim(plan.scan_session(locate.session_file(path)), Where(), options), Where()
    )
    last = read_live_records(trimmed.file)[-1]["uuid"]
    more = [
        boundary(uuid="b", before=last, ts=100, session_id=trimmed.session_id),
        summary("all of it", uuid="s", parent="b", ts=101, session_id=trimmed.session_id),
        assistant(
            "done", uuid="d", parent="s", ts=102, session_id=trimmed.session_id, tokens=31_000
        ),
    ]
    with open(trimmed.file, "ab") as stream:
        stream.write(session_bytes(more))
    made = write_fork(trimmed.file, CutBeforeCompaction())
    assert made.tokens_after == pytest.approx(trimmed.tokens_after, rel=0.1)


def test_a_cut_fork_has_the_tokens_counted_at_the_cut(config_home: ConfigHome) -> None:
    """The size of a cut fork is the token count at the cut. The receipt says if the cut moved."""
    rows = [
        *conversation(2),
        tool_use("c", uuid="c", parent="r3", ts=5),
        tool_result("c", uuid="o", parent="c", ts=6),
    ]
    path = write_lines(
        config_home, [*rows, assistant("seen", uuid="e", parent="o", ts=7, tokens=9_000)]
    )
    made = write_fork(path, CutAtTurn(1))
    assert [row["uuid"] for row in read_live_records(made.file)] == ["r0", "r1"]
    assert (made.tokens_before, made.tokens_after) == (9_000, 1_100)
    assert b'"cache_read_input_tokens":1085' in Path(made.file).read_bytes()
    moved = write_fork(path, CutAtRecord("c"))
    assert [row["uuid"] for row in read_live_records(moved.file)] == [
        "r0",
        "r1",
        "r2",
        "r3",
        "c",
        "o",
    ]
    assert moved.warnings == ("The cut moved forward to record 5, so that no tool call is split.",)


def test_a_fork_and_a_trim_report_the_same_size(config_home: ConfigHome) -> None:
    """A fork and a trim report the same size.

    The size includes content after the last token count.
    """
    rows = [*conversation(2), user("x" * 40_000, uuid="z", parent="r3", ts=9)]
    path = write_lines(config_home, rows)
    sent = plan.scan_session(locate.session_file(path)).context.tokens
    assert sent > 6_000
    for made in (write_fork(path), write_fork(path, CutAtTurn(3))):
        assert (made.tokens_before, made.tokens_after) == (sent, sent)


def test_a_fork_copies_metadata(config_home: ConfigHome) -> None:
    """A fork copies tags, replacements of results, the last folder, and snapshots of its own messages.

    The client's record of the last prompt is not copied.
    """
    note = {
        "type": "content-replacement",
        "sessionId": SESSION,
        "replacements": [{"toolUseId": "c"}],
    }
    moved = {"type": "relocated", "sessionId": SESSION, "relocatedCwd": CWD}
    tag = {"type": "tag", "tag": "mine", "sessionId": SESSION}
    path = write_lines(
        config_home, [*conversation(2), FILE_SNAPSHOT, last_prompt("r3"), tag, note, moved]
    )
    made = write_fork(path)
    lines = read_file_lines(made.file)
    assert orjson.dumps(FILE_SNAPSHOT) in lines
    assert not any(b"last-prompt" in line for line in lines)
    assert {
        orjson.dumps({**row, "sessionId": made.session_id}) for row in (tag, note, moved)
    } <= set(lines)
    assert orjson.dumps(FILE_SNAPSHOT) not in read_file_lines(
        write_fork(path, CutAtRecord("r1")).file
    )


def test_a_fork_gets_outputs_and_named_backups(config_home: ConfigHome) -> None:
    """A fork gets links to the parent's outputs and copies of the backups that its records name."""
    path = write_lines(config_home, [*conversation(2), FILE_SNAPSHOT])
    backups = config_home.config / "file-history" / SESSION
    outputs = Path(path).with_suffix("") / "tool-results"
    for folder in (backups, outputs):
        folder.mkdir(parents=True)
        (folder / "one").write_text("KEPT")
        (folder / "aa@v1").write_text("KEPT")
    made = write_fork(path)
    (copied,) = backups.with_name(made.session_id).iterdir()
    assert (copied.name, copied.read_text(), copied.samefile(backups / "aa@v1")) == (
        "aa@v1",
        "KEPT",
        False,
    )
    assert (Path(made.file).with_suffix("") / "tool-results" / "one").samefile(outputs / "one")


def test_a_session_without_messages_cannot_be_forked(config_home: ConfigHome) -> None:
    """Forking a session without messages raises ``NothingToFork``."""
    path = write_lines(config_home, [custom_title("Empty")])
    with pytest.raises(NothingToFork):
        fork.plan_fork(locate.session_file(path), Where())


def test_a_fork_of_a_large_session_reads_only_the_live_part(config_home: ConfigHome) -> None:
    """Only the live part of a large compacted session is read for a fork.

    For a cut before the compaction, the whole file is read.
    """
    long = [
        user(f"{'x' * 1_000_000}", uuid=f"x{n}", parent=f"x{n - 1}" if n else None, ts=n)
        for n in range(7)
    ]
    rows = [
        *long,
        boundary(uuid="b", before="x6", ts=10),
        summary("SUMMARY", uuid="s", parent="b", ts=11),
        *conversation(2, start=20),
    ]
    rows[9]["parentUuid"] = "s"
    path = write_lines(config_home, rows)
    part, _ = scan_live_records(path, lambda: ())
    assert not part.is_whole
    assert [row["uuid"] for row in read_live_records(write_fork(path).file)] == [
        "b",
        "s",
        "r0",
        "r1",
        "r2",
        "r3",
    ]
    assert [row["uuid"] for row in read_live_records(write_fork(path, CutAtRecord("r1")).file)] == [
        "b",
        "s",
        "r0",
        "r1",
    ]
    early = write_fork(path, CutAtRecord("x1"))
    assert [row["uuid"] for row in read_live_records(early.file)] == ["x0", "x1"]
    assert early.warnings == (
        "The cut is before a compaction, so the fork contains the conversation as it was before the compaction.",
    )


@pytest.fixture
def other_folder(tmp_path: Path) -> Path:
    """Return a folder of another project."""
    folder = tmp_path / "moved" / "proj"
    folder.mkdir(parents=True)
    return folder


def test_a_fork_moves_to_another_home(config_home: ConfigHome, other_folder: Path) -> None:
    """A fork to another folder belongs to that folder's project, and paths in its records are changed.

    The fork's lineage explains the move.
    """
    rows = [
        *conversation(2),
        FILE_SNAPSHOT,
        {"type": "worktree-state", "worktreeSession": {"x": 1}, "sessionId": SESSION},
    ]
    rows[2]["cwd"] = f"{CWD}/src"
    rows[3]["cwd"] = f"{CWD}-other"
    made = write_fork(write_lines(config_home, rows), home=str(other_folder))
    assert Path(made.file).parent == config_home.config / "projects" / project_key(
        str(other_folder)
    )
    assert stat.S_IMODE(Path(made.file).parent.stat().st_mode) == 0o700
    assert (made.kind, made.folder, made.title) == (
        "rehome",
        str(other_folder),
        "prompt 0 · rehome",
    )
    told, *found = read_live_records(made.file)
    assert told["message"]["content"].startswith(LINEAGE_START_MARKER)
    assert (
        f"Its project was {CWD} and is {other_folder} now"
        in told["message"]["content"].partition(LINEAGE_END_MARKER)[2]
    )
    assert [row["cwd"] for row in (told, *found)] == [
        *[str(other_folder)] * 3,
        f"{other_folder}/src",
        f"{CWD}-other",
    ]
    assert b"worktree-state" not in Path(made.file).read_bytes()
    (snapshot,) = (
        orjson.loads(line) for line in read_file_lines(made.file) if b"file-history" in line
    )
    files = snapshot["snapshot"]["trackedFileBackups"]
    assert files["src/a.py"]["realParentDir"] == f"{other_folder}/src"
    assert files["/home/user/beside/b.py"]["realParentDir"] == "/home/user/beside"
    assert list(files) == ["src/a.py", "/home/user/beside/b.py", "/etc/c"]
    assert f"now belong to the files in {other_folder}" in made.warnings[0]
    assert find_defect_codes(made.file) == set()


def test_a_fork_has_no_backups_if_the_old_folder_still_exists(
    config_home: ConfigHome, other_folder: Path, tmp_path: Path
) -> None:
    """A fork to another folder gets no file backups if the old folder still exists.

    The receipt says so.
    """
    (tmp_path / "old").mkdir()
    rows = [{**record, "cwd": str(tmp_path / "old")} for record in conversation(2)]
    made = write_fork(write_lines(config_home, [*rows, FILE_SNAPSHOT]), home=str(other_folder))
    assert b"file-history" not in Path(made.file).read_bytes()
    assert (
        f"file backups were not copied: they belong to the files below {tmp_path / 'old'}"
        in made.warnings[0]
    )


def test_a_fork_to_the_sessions_own_folder_is_an_ordinary_fork(
    config_home: ConfigHome, other_folder: Path
) -> None:
    """A fork to the session's own folder is an ordinary fork in the same project."""
    path = write_session(
        config_home.project(str(other_folder)),
        SESSION,
        [{**r, "cwd": str(other_folder)} for r in conversation(1)],
    )
    made = write_fork(path, home=str(other_folder))
    assert (made.kind, Path(made.file).parent) == ("fork", Path(path).parent)


def test_a_second_move_is_added_to_the_lineage(
    config_home: ConfigHome, other_folder: Path, tmp_path: Path
) -> None:
    """After a second move, the fork has a single lineage, which names both moves."""
    third = tmp_path / "third"
    third.mkdir()
    once = write_fork(write_lines(config_home, conversation(1)), home=str(other_folder))
    told, *rest = read_live_records(write_fork(once.file, home=str(third)).file)
    content = told["message"]["content"]
    assert content.count(LINEAGE_START_MARKER) == 1
    assert f"was {other_folder} and is {third} now" in content
    assert f"was {CWD} and is {other_folder} now" in content
    assert {row["cwd"] for row in rest} == {str(third)}


def test_a_compacted_session_moves_to_another_home(
    config_home: ConfigHome, other_folder: Path
) -> None:
    """If a compacted session moves, the boundary of its compaction names the new folder."""
    rows = [
        boundary(uuid="b", ts=5) | {"cwd": "/somewhere/else"},
        summary("SUMMARY", uuid="s", parent="b", ts=6),
        user("on", uuid="y", parent="s", ts=8),
        assistant("well", uuid="z", parent="y", ts=9),
    ]
    made = write_fork(write_lines(config_home, rows), home=str(other_folder))
    found = read_live_records(made.file)
    assert found[0]["cwd"] == str(other_folder)
    assert found[2]["message"]["content"].startswith(LINEAGE_START_MARKER)


def test_a_fork_of_a_file_outside_the_projects_has_a_warning(
    config_home: ConfigHome, other_folder: Path, tmp_path: Path
) -> None:
    """A fork of a file outside the projects' folders has a warning.

    With ``home``, which moves the fork to another folder, the fork has no warning.
    """
    path = write_session(tmp_path / "copies", session_id(7), conversation(1))
    assert "outside its project's folder" in write_fork(path).warnings[0]
    assert write_fork(path, home=str(other_folder)).warnings == ()


def test_a_fork_to_a_missing_or_linked_folder_is_refused(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A fork to a missing folder or to a project folder that is a symbolic link is refused."""
    path = write_lines(config_home, conversation(1))
    with pytest.raises(UsageError, match="is not a folder"):
        write_fork(path, home=str(tmp_path / "gone"))
    (tmp_path / "trap").mkdir()
    (tmp_path / "new").mkdir()
    (config_home.config / "projects" / project_key(str(tmp_path / "new"))).symlink_to(
        tmp_path / "trap"
    )
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        write_fork(path, home=str(tmp_path / "new"))
    assert list((tmp_path / "trap").iterdir()) == []


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_every_fork_of_a_test_session_is_valid_or_refused(
    config_home: ConfigHome, case: Case
) -> None:
    """A fork of any test session at any record either passes its checks or is refused."""
    path = write_lines(config_home, case.records)
    for node in scan_transcript(path).nodes:
        made = fork_at_line(path, node.line_number)
        if made is not None:
            assert all(check.ok for check in made.checks)
            assert (
                node.uuid in {one.uuid for one in scan_transcript(made.file).nodes} or made.warnings
            )


def test_every_session_of_the_corpus_can_be_forked(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """A whole fork, a cut fork, and a fork of a fork of a real session have no new defects."""
    if real_session.size > MAX_SESSION_BYTES:
        return
    path = real_session.copy_to(config_home.project())
    before = hashlib.sha256(path.read_bytes()).digest()
    row = linearize_chain(real_session.transcript.chain)
    if not any(node.is_message for node in row.nodes):
        with pytest.raises(NothingToFork):
            write_fork(str(path))
        return
    known = find_defect_codes(str(path))
    whole = write_fork(str(path))
    again = write_fork(whole.file)
    assert find_defect_codes(whole.file) <= known
    own = {node.uuid for node in row.nodes}
    assert read_fork_contents(again.file, own) == read_fork_contents(whole.file, own)
    chance = random.Random(real_session.name)
    for node in chance.sample(row.nodes, min(3, len(row.nodes))):
        if not (made := fork_at_line(str(path), node.line_number)):
            continue
        assert find_defect_codes(made.file) <= known
        assert node.uuid in {one.uuid for one in scan_transcript(made.file).chain} or made.warnings
    assert hashlib.sha256(path.read_bytes()).digest() == before


def fork_at_line(path: str, line_number: int) -> Receipt | None:
    """Return the receipt of a fork that ends at a line. Return None if the cut is refused."""
    try:
        return write_fork(path, CutAtRecord(line_number))
    except UsageError:
        return None


def read_fork_contents(path: str, own_uuids: set[str]) -> list[Any]:
    """Return the uuid, message and time of those records in a fork whose uuid is in ``own_uuids``."""
    return [
        (row["uuid"], row.get("message"), row["timestamp"])
        for row in read_live_records(path)
        if row["uuid"] in own_uuids
    ]
