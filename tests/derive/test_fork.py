"""Fork: a copy of the live conversation, byte for byte but for its ids and marks.

Cut, and at home elsewhere.
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
from resume_hooks.sessions.lineage_block import CLOSING_MARKER, OPENING_MARKER
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import scan_live_part, scan_transcript
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
from tests.transcripts.chain_cases import CASES, Case

LIMIT = 3_000_000
"""Bytes of the sessions of the corpus that every run takes; the largest are for the bench."""

SNAPSHOT = {
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


def write_lines(home: ConfigHome, rows: list[Any], name: str = SESSION) -> str:
    """Write a session with these lines in its project."""
    return write_session(home.project(), name, rows)


def fork_receipt(path: str, cut: CutSelector | None = None, **how: Any) -> Receipt:
    """Return the receipt of a written fork."""
    return write_child(fork.plan_fork(locate.session_file(path), Where(), cut=cut, **how), Where())


def body(path: str) -> list[bytes]:
    """The lines of a file."""
    return Path(path).read_bytes().split(b"\n")


def chain(path: str) -> list[Record]:
    """The live records of a file."""
    transcript = scan_transcript(path)
    return [transcript.read_record(node) for node in transcript.chain]


def problems(path: str) -> set[str]:
    """The kinds of errors and warnings in a file."""
    report = examine_session(locate.session_file(path), Where())
    return {group.kind.code for group in report.groups if group.kind.severity != "note"}


def test_a_whole_fork_is_byte_for_byte(config_home: ConfigHome) -> None:
    """But for the session's id and the mark of where a record came from.

    Token counts stay, no lineage is put in.
    """
    path = write_lines(config_home, [*conversation(2), custom_title("Fix the parser")])
    made = fork_receipt(path)
    assert all(check.ok for check in made.checks)
    for number, (parent, child) in enumerate(
        zip(body(path)[:4], body(made.file)[1:5], strict=True)
    ):
        mark = b',"forkedFrom":{"sessionId":"%s","messageUuid":"r%d"}}' % (SESSION.encode(), number)
        assert child == parent.replace(SESSION.encode(), made.session_id.encode())[:-1] + mark
    assert made.title == "Fix the parser · fork"
    assert (made.tokens_before, made.tokens_after) == (1_300, 1_300)
    assert made.warnings == ()
    assert problems(made.file) == set()


def test_kept_messages_are_in_the_chain(config_home: ConfigHome) -> None:
    """What a compaction kept is spliced in, so that its marks, which name records by id, are not needed any more.

    What lies before it, and on an abandoned branch, stays in the parent.
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
    made = fork_receipt(write_lines(config_home, rows))
    assert b"LEFT" not in Path(made.file).read_bytes()
    found = chain(made.file)
    assert [row["uuid"] for row in found] == ["b", "s", "r1", "y", "z"]
    assert found[0]["compactMetadata"] == {"trigger": "auto", "preTokens": 150_000}
    assert [row["forkedFrom"]["messageUuid"] for row in found] == ["b", "s", "r1", "y", "z"]
    assert b'"cache_read_input_tokens":1085' not in Path(made.file).read_bytes(), (
        "counted before the compaction"
    )


def test_a_conversation_that_begins_with_an_answer(config_home: ConfigHome) -> None:
    """It gets its lineage as a user's words before it, or no API would take it."""
    rows = [
        assistant("begun", uuid="a", parent="gone", ts=1),
        user("on", uuid="p", parent="a", ts=2),
    ]
    first = chain(fork_receipt(write_lines(config_home, rows)).file)[0]
    assert first["message"]["content"].startswith(OPENING_MARKER)
    assert "forkedFrom" not in first


def test_a_fork_of_a_fork(config_home: ConfigHome) -> None:
    """Its records name the fork; the rest is as it was, and so again."""
    path = write_lines(config_home, conversation(2))
    once = fork_receipt(path)
    twice = fork_receipt(once.file)
    assert [row["forkedFrom"]["sessionId"] for row in chain(twice.file)] == [once.session_id] * 4
    own, new = once.session_id.encode(), twice.session_id.encode()
    for one, other in zip(body(once.file)[1:5], body(twice.file)[1:5], strict=True):
        assert other == one.replace(own, new).replace(SESSION.encode(), own)
    lineage = [row.session_id for row in LineageFinder(Where()).find_lineage(twice.file)]
    assert lineage == [SESSION, once.session_id, twice.session_id]


def test_a_fork_of_a_trimmed_session(config_home: ConfigHome) -> None:
    """Its placeholders still lead to the originals, through a fork of a fork."""
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
    made = fork_receipt(fork_receipt(trimmed.file).file)
    assert [
        node.uuid for node in scan_trimmed_session(locate.session_file(made.file)).trimmed_nodes
    ] == ["o"]
    record = next(row for row in chain(made.file) if row["uuid"] == "o")
    assert record["original_session_id"] == SESSION
    assert record["message"]["content"][0]["content"].startswith(
        "[Results from Bash tool suppressed"
    )
    assert problems(made.file) == set()


def test_a_trimmed_session_from_before_its_compaction(config_home: ConfigHome) -> None:
    """Nothing there was counted: its size includes the start of every session and its own records."""
    path = write_lines(
        config_home,
        [user("hi", uuid="u"), assistant("x" * 4_000, uuid="a", parent="u", tokens=31_000)],
    )
    options = Options(threshold=100, keep_recent=0, min_savings=0, assistant=1)
    trimmed = write_child(
        plan.plan_trim(plan.scan_session(locate.session_file(path)), Where(), options), Where()
    )
    last = chain(trimmed.file)[-1]["uuid"]
    more = [
        boundary(uuid="b", before=last, ts=100, session_id=trimmed.session_id),
        summary("all of it", uuid="s", parent="b", ts=101, session_id=trimmed.session_id),
        assistant(
            "done", uuid="d", parent="s", ts=102, session_id=trimmed.session_id, tokens=31_000
        ),
    ]
    with open(trimmed.file, "ab") as stream:
        stream.write(session_bytes(more))
    made = fork_receipt(trimmed.file, CutBeforeCompaction())
    assert made.tokens_after == pytest.approx(trimmed.tokens_after, rel=0.1)


def test_a_cut(config_home: ConfigHome) -> None:
    """The child ends there, in the tokens that were counted there.

    The receipt says where the place moved.
    """
    rows = [
        *conversation(2),
        tool_use("c", uuid="c", parent="r3", ts=5),
        tool_result("c", uuid="o", parent="c", ts=6),
    ]
    path = write_lines(
        config_home, [*rows, assistant("seen", uuid="e", parent="o", ts=7, tokens=9_000)]
    )
    made = fork_receipt(path, CutAtTurn(1))
    assert [row["uuid"] for row in chain(made.file)] == ["r0", "r1"]
    assert (made.tokens_before, made.tokens_after) == (9_000, 1_100)
    assert b'"cache_read_input_tokens":1085' in Path(made.file).read_bytes()
    moved = fork_receipt(path, CutAtRecord("c"))
    assert [row["uuid"] for row in chain(moved.file)] == ["r0", "r1", "r2", "r3", "c", "o"]
    assert moved.warnings == ("The cut moved forward to record 5, so that no tool call is split.",)


def test_one_figure_with_a_trim(config_home: ConfigHome) -> None:
    """The size includes content after the last count, also in a fork that is cut after it."""
    rows = [*conversation(2), user("x" * 40_000, uuid="z", parent="r3", ts=9)]
    path = write_lines(config_home, rows)
    sent = plan.scan_session(locate.session_file(path)).context.tokens
    assert sent > 6_000
    for made in (fork_receipt(path), fork_receipt(path, CutAtTurn(3))):
        assert (made.tokens_before, made.tokens_after) == (sent, sent)


def test_metadata(config_home: ConfigHome) -> None:
    """Snapshots of kept messages are taken over as they are, a pointer at a branch is not.

    So are the client's notes on results that it sends shorter, as its own forks and the SDK's do,
    and the last word on where it moved the session to, by which its picker goes.
    """
    note = {
        "type": "content-replacement",
        "sessionId": SESSION,
        "replacements": [{"toolUseId": "c"}],
    }
    moved = {"type": "relocated", "sessionId": SESSION, "relocatedCwd": CWD}
    tag = {"type": "tag", "tag": "mine", "sessionId": SESSION}
    path = write_lines(
        config_home, [*conversation(2), SNAPSHOT, last_prompt("r3"), tag, note, moved]
    )
    made = fork_receipt(path)
    lines = body(made.file)
    assert orjson.dumps(SNAPSHOT) in lines
    assert not any(b"last-prompt" in line for line in lines)
    assert {
        orjson.dumps({**row, "sessionId": made.session_id}) for row in (tag, note, moved)
    } <= set(lines)
    assert orjson.dumps(SNAPSHOT) not in body(fork_receipt(path, CutAtRecord("r1")).file)


def test_companions(config_home: ConfigHome) -> None:
    """Large outputs, and the file backups that its own records name, are under the child's id, too."""
    path = write_lines(config_home, [*conversation(2), SNAPSHOT])
    backups = config_home.config / "file-history" / SESSION
    outputs = Path(path).with_suffix("") / "tool-results"
    for folder in (backups, outputs):
        folder.mkdir(parents=True)
        (folder / "one").write_text("KEPT")
        (folder / "aa@v1").write_text("KEPT")
    made = fork_receipt(path)
    (copied,) = backups.with_name(made.session_id).iterdir()
    assert (copied.name, copied.read_text(), copied.samefile(backups / "aa@v1")) == (
        "aa@v1",
        "KEPT",
        False,
    )
    assert (Path(made.file).with_suffix("") / "tool-results" / "one").samefile(outputs / "one")


def test_nothing_to_fork(config_home: ConfigHome) -> None:
    """A session without messages is an expected failure."""
    path = write_lines(config_home, [custom_title("Empty")])
    with pytest.raises(NothingToFork):
        fork.plan_fork(locate.session_file(path), Where())


def test_a_large_session_is_read_from_its_last_compaction(config_home: ConfigHome) -> None:
    """The live chain alone is scanned, and cut where the place is there.

    Farther up the whole is asked.
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
    part, _ = scan_live_part(path, lambda: ())
    assert not part.whole
    assert [row["uuid"] for row in chain(fork_receipt(path).file)] == [
        "b",
        "s",
        "r0",
        "r1",
        "r2",
        "r3",
    ]
    assert [row["uuid"] for row in chain(fork_receipt(path, CutAtRecord("r1")).file)] == [
        "b",
        "s",
        "r0",
        "r1",
    ]
    early = fork_receipt(path, CutAtRecord("x1"))
    assert [row["uuid"] for row in chain(early.file)] == ["x0", "x1"]
    assert early.warnings == (
        "The cut is before a compaction: the fork has the conversation from then.",
    )


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder that a session can be at home in."""
    folder = tmp_path / "moved" / "proj"
    folder.mkdir(parents=True)
    return folder


def test_another_home(config_home: ConfigHome, elsewhere: Path) -> None:
    """The child is in the new folder's project, tells its lineage and what moved.

    Folders in records follow.
    """
    rows = [
        *conversation(2),
        SNAPSHOT,
        {"type": "worktree-state", "worktreeSession": {"x": 1}, "sessionId": SESSION},
    ]
    rows[2]["cwd"] = f"{CWD}/src"
    rows[3]["cwd"] = f"{CWD}-other"
    made = fork_receipt(write_lines(config_home, rows), home=str(elsewhere))
    assert Path(made.file).parent == config_home.config / "projects" / project_key(str(elsewhere))
    assert stat.S_IMODE(Path(made.file).parent.stat().st_mode) == 0o700
    assert (made.kind, made.folder, made.title) == ("rehome", str(elsewhere), "prompt 0 · rehome")
    told, *found = chain(made.file)
    assert told["message"]["content"].startswith(OPENING_MARKER)
    assert (
        f"Its project was {CWD} and is {elsewhere} now"
        in told["message"]["content"].partition(CLOSING_MARKER)[2]
    )
    assert [row["cwd"] for row in (told, *found)] == [
        *[str(elsewhere)] * 3,
        f"{elsewhere}/src",
        f"{CWD}-other",
    ]
    assert b"worktree-state" not in Path(made.file).read_bytes()
    (snapshot,) = (orjson.loads(line) for line in body(made.file) if b"file-history" in line)
    files = snapshot["snapshot"]["trackedFileBackups"]
    assert files["src/a.py"]["realParentDir"] == f"{elsewhere}/src"
    assert files["/home/user/beside/b.py"]["realParentDir"] == "/home/user/beside"
    assert list(files) == ["src/a.py", "/home/user/beside/b.py", "/etc/c"]
    assert f"now apply to the files below {elsewhere}" in made.warnings[0]
    assert problems(made.file) == set()


def test_a_home_next_to_the_old_one(
    config_home: ConfigHome, elsewhere: Path, tmp_path: Path
) -> None:
    """Files that are still where they were are not confused with others of the same names.

    It is said.
    """
    (tmp_path / "old").mkdir()
    rows = [{**record, "cwd": str(tmp_path / "old")} for record in conversation(2)]
    made = fork_receipt(write_lines(config_home, [*rows, SNAPSHOT]), home=str(elsewhere))
    assert b"file-history" not in Path(made.file).read_bytes()
    assert (
        f"file backups were not copied: they belong to the files below {tmp_path / 'old'}"
        in made.warnings[0]
    )


def test_its_own_home(config_home: ConfigHome, elsewhere: Path) -> None:
    """With its present home, it is a plain fork."""
    path = write_session(
        config_home.project(str(elsewhere)),
        SESSION,
        [{**r, "cwd": str(elsewhere)} for r in conversation(1)],
    )
    made = fork_receipt(path, home=str(elsewhere))
    assert (made.kind, Path(made.file).parent) == ("fork", Path(path).parent)


def test_a_home_again(config_home: ConfigHome, elsewhere: Path, tmp_path: Path) -> None:
    """The older lineage is replaced; both moves are reported."""
    third = tmp_path / "third"
    third.mkdir()
    once = fork_receipt(write_lines(config_home, conversation(1)), home=str(elsewhere))
    told, *rest = chain(fork_receipt(once.file, home=str(third)).file)
    content = told["message"]["content"]
    assert content.count(OPENING_MARKER) == 1
    assert f"was {elsewhere} and is {third} now" in content
    assert f"was {CWD} and is {elsewhere} now" in content
    assert {row["cwd"] for row in rest} == {str(third)}


def test_a_home_for_a_compacted_session(config_home: ConfigHome, elsewhere: Path) -> None:
    """Its first record is the compaction's, which gets the new home."""
    rows = [
        boundary(uuid="b", ts=5) | {"cwd": "/somewhere/else"},
        summary("SUMMARY", uuid="s", parent="b", ts=6),
        user("on", uuid="y", parent="s", ts=8),
        assistant("well", uuid="z", parent="y", ts=9),
    ]
    made = fork_receipt(write_lines(config_home, rows), home=str(elsewhere))
    found = chain(made.file)
    assert found[0]["cwd"] == str(elsewhere)
    assert found[2]["message"]["content"].startswith(OPENING_MARKER)


def test_a_file_in_no_project_gets_a_home(
    config_home: ConfigHome, elsewhere: Path, tmp_path: Path
) -> None:
    """The client finds the child there: no warning is needed."""
    path = write_session(tmp_path / "copies", session_id(7), conversation(1))
    assert "outside its project's folder" in fork_receipt(path).warnings[0]
    assert fork_receipt(path, home=str(elsewhere)).warnings == ()


def test_no_such_home(config_home: ConfigHome, tmp_path: Path) -> None:
    """A home has to be there, and a project folder that leads elsewhere is not written to."""
    path = write_lines(config_home, conversation(1))
    with pytest.raises(UsageError, match="is not a folder"):
        fork_receipt(path, home=str(tmp_path / "gone"))
    (tmp_path / "trap").mkdir()
    (tmp_path / "new").mkdir()
    (config_home.config / "projects" / project_key(str(tmp_path / "new"))).symlink_to(
        tmp_path / "trap"
    )
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        fork_receipt(path, home=str(tmp_path / "new"))
    assert list((tmp_path / "trap").iterdir()) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_any_place_of_any_case(config_home: ConfigHome, case: Case) -> None:
    """Branches, gaps, cycles, parallel calls: a fork at each record is sound, or refused in a sentence."""
    path = write_lines(config_home, case.records)
    for node in scan_transcript(path).nodes:
        made = cut_at(path, node.number)
        if made is not None:
            assert all(check.ok for check in made.checks)
            assert (
                node.uuid in {one.uuid for one in scan_transcript(made.file).nodes} or made.warnings
            )


def test_the_corpus(config_home: ConfigHome, real_session: RealSession) -> None:
    """Real sessions, whole, cut at random places and forked again: every child is sound, the chain as expected."""
    if real_session.size > LIMIT:
        return
    path = real_session.copied_to(config_home.project())
    before = hashlib.sha256(path.read_bytes()).digest()
    row = linearize_chain(real_session.transcript.chain)
    if not any(node.is_message for node in row.nodes):
        with pytest.raises(NothingToFork):
            fork_receipt(str(path))
        return
    known = problems(str(path))
    whole = fork_receipt(str(path))
    again = fork_receipt(whole.file)
    assert problems(whole.file) <= known
    own = {node.uuid for node in row.nodes}
    assert fork_contents(again.file, own) == fork_contents(whole.file, own)
    chance = random.Random(real_session.name)
    for node in chance.sample(row.nodes, min(3, len(row.nodes))):
        if not (made := cut_at(str(path), node.number)):
            continue
        assert problems(made.file) <= known
        assert node.uuid in {one.uuid for one in scan_transcript(made.file).chain} or made.warnings
    assert hashlib.sha256(path.read_bytes()).digest() == before


def cut_at(path: str, number: int) -> Receipt | None:
    """Return the receipt of a fork that ends at a line; None for an empty one."""
    try:
        return fork_receipt(path, CutAtRecord(number))
    except UsageError:
        return None


def fork_contents(path: str, own: set[str]) -> list[Any]:
    """Return the contents of the parent's ``own`` records in a fork, without the fork's own fields."""
    return [
        (row["uuid"], row.get("message"), row["timestamp"])
        for row in chain(path)
        if row["uuid"] in own
    ]
